//! A text with the class of each character at hand.

use crate::tokenizer::char_class::{Classes, class_of};

/// Reads a text by byte position. Past its end there are no characters, which the rules rely on.
#[derive(Clone, Copy)]
pub(super) struct Scan<'a> {
    pub(super) text: &'a str,
}

/// One character of a text.
#[derive(Clone, Copy)]
pub(super) struct CharAt {
    pub(super) c: char,
    pub(super) class: Classes,
    /// Byte position after the character.
    pub(super) end: usize,
}

impl<'a> Scan<'a> {
    /// The character at a byte position, `None` at the end.
    #[inline]
    pub(super) fn at(self, pos: usize) -> Option<CharAt> {
        let byte = *self.text.as_bytes().get(pos)?;
        if byte < 0x80 {
            let c = byte as char;
            return Some(CharAt {
                c,
                class: class_of(c),
                end: pos + 1,
            });
        }
        let c = self.text.get(pos..)?.chars().next()?;
        Some(CharAt {
            c,
            class: class_of(c),
            end: pos + c.len_utf8(),
        })
    }

    /// Whether the character at `pos` exists and is in `set`.
    #[inline]
    pub(super) fn is(self, pos: usize, set: Classes) -> bool {
        self.at(pos).is_some_and(|ch| ch.class.is_in(set))
    }

    /// Where the run of characters in `set` that starts at `pos` ends (`pos` if it is empty).
    #[inline]
    pub(super) fn run(self, pos: usize, set: Classes) -> usize {
        self.run_while(pos, |ch| ch.class.is_in(set))
    }

    /// Where the run of characters that `accept` takes ends.
    #[inline]
    pub(super) fn run_while(self, mut pos: usize, accept: impl Fn(CharAt) -> bool) -> usize {
        while let Some(ch) = self.at(pos) {
            if !accept(ch) {
                break;
            }
            pos = ch.end;
        }
        pos
    }

    /// Whether the text goes on after `pos`.
    #[inline]
    pub(super) fn goes_on(self, pos: usize) -> bool {
        pos < self.text.len()
    }

    /// Part of the text.
    #[inline]
    pub(super) fn slice(self, start: usize, end: usize) -> &'a str {
        // Positions come from `at`, so they are boundaries; an empty piece is dropped by the caller.
        self.text.get(start..end).unwrap_or_default()
    }

    /// Where an English contraction such as `'s` or `'ll` that starts at `pos` ends, `None` if there is none.
    pub(super) fn contraction(self, pos: usize, case: Case) -> Option<usize> {
        let bytes = self.text.as_bytes();
        if bytes.get(pos) != Some(&b'\'') {
            return None;
        }
        let letter = |at: usize| match (bytes.get(at), case) {
            (Some(byte), Case::Either) => byte.to_ascii_lowercase(),
            (Some(byte), Case::Lower) => *byte,
            (None, _) => 0,
        };
        match (letter(pos + 1), letter(pos + 2)) {
            (b's' | b't' | b'm' | b'd', _) => Some(pos + 2),
            (b'r' | b'v', b'e') | (b'l', b'l') => Some(pos + 3),
            _ => None,
        }
    }
}

/// Which letters a contraction may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// Small ones only.
    Lower,
    /// Small or capital ones.
    Either,
}

/// Cuts the text into the matches of `matched_end` (which gets a position and says where a match that starts there
/// ends, or the position itself) and the stretches between them.
#[inline]
pub(super) fn isolate(
    text: &str,
    emit: &mut dyn FnMut(&str),
    matched_end: impl Fn(Scan<'_>, usize) -> usize,
) {
    let scan = Scan { text };
    let mut gap_start = 0;
    let mut pos = 0;
    while let Some(ch) = scan.at(pos) {
        let end = matched_end(scan, pos);
        if end == pos {
            pos = ch.end;
            continue;
        }
        if gap_start < pos {
            emit(scan.slice(gap_start, pos));
        }
        emit(scan.slice(pos, end));
        pos = end;
        gap_start = end;
    }
    if gap_start < text.len() {
        emit(scan.slice(gap_start, text.len()));
    }
}
