//! A bounded reader of little-endian numbers that knows how long the whole file is.

use crate::GgufError;

/// Reads the beginning of a file.
///
/// Every read is checked twice: against the file's length (past it the file is truncated or lies) and against
/// the bytes at hand (past them more of the file is needed).
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    file_len: u64,
    pos: u64,
}

impl<'a> Cursor<'a> {
    /// `bytes` are the first ones of a file of `file_len` bytes.
    pub(crate) fn new(bytes: &'a [u8], file_len: u64) -> Self {
        Self {
            bytes,
            file_len,
            pos: 0,
        }
    }

    /// Offset of the next byte.
    pub(crate) fn pos(&self) -> u64 {
        self.pos
    }

    /// The next `n` bytes; `what` names them in errors.
    pub(crate) fn take(
        &mut self,
        n: u64,
        what: &dyn Fn() -> String,
    ) -> Result<&'a [u8], GgufError> {
        self.require(n, what)?;
        let end = self.pos.saturating_add(n); // `require` has shown that it is at most `file_len`
        let range = usize::try_from(self.pos)
            .ok()
            .zip(usize::try_from(end).ok());
        let Some(taken) = range.and_then(|(from, to)| self.bytes.get(from..to)) else {
            return Err(GgufError::NeedMore {
                have: self.bytes.len() as u64,
                need: end,
                what: what(),
            });
        };
        self.pos = end;
        Ok(taken)
    }

    /// Fails unless `n` more bytes are left in the file (not necessarily at hand).
    pub(crate) fn require(&self, n: u64, what: &dyn Fn() -> String) -> Result<(), GgufError> {
        let left = self.file_len.saturating_sub(self.pos);
        if n > left {
            return Err(GgufError::Truncated {
                what: what(),
                offset: self.pos,
                needed: n,
                left,
            });
        }
        Ok(())
    }

    /// Fails unless `count` items of at least `min_bytes` each are left in the file, which is to be called before
    /// anything is allocated for them. Answers how many of them can be at hand: a safe capacity.
    pub(crate) fn require_items(
        &self,
        count: u64,
        min_bytes: u64,
        what: &dyn Fn() -> String,
    ) -> Result<usize, GgufError> {
        self.require(count.saturating_mul(min_bytes), what)?;
        let at_hand = (self.bytes.len() as u64).saturating_sub(self.pos);
        let capacity = at_hand.checked_div(min_bytes).unwrap_or(0).min(count);
        Ok(usize::try_from(capacity).unwrap_or(0))
    }

    pub(crate) fn array<const N: usize>(
        &mut self,
        what: &dyn Fn() -> String,
    ) -> Result<[u8; N], GgufError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self, what: &dyn Fn() -> String) -> Result<u8, GgufError> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self, what: &dyn Fn() -> String) -> Result<u32, GgufError> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &dyn Fn() -> String) -> Result<u64, GgufError> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A string: its length in 8 bytes, then that many bytes of UTF-8. Longer ones than `limit` bytes are refused.
    pub(crate) fn string(
        &mut self,
        limit: u64,
        what: &dyn Fn() -> String,
    ) -> Result<&'a str, GgufError> {
        let offset = self.pos;
        let len = self.u64(&|| format!("length of {}", what()))?;
        if len > limit {
            let what = format!("length of {}", what());
            return Err(GgufError::OverLimit {
                what,
                offset,
                found: len,
                limit,
            });
        }
        let bytes = self.take(len, what)?;
        std::str::from_utf8(bytes).map_err(|_| GgufError::InvalidUtf8 {
            what: what(),
            offset,
        })
    }
}
