//! The printable spelling of bytes that byte-level vocabularies use: printable Latin-1 characters stand for
//! themselves, the other 68 bytes for the characters from U+0100 on, so a space is written `Ġ`.

/// The character that stands for each byte.
pub(crate) const CHAR_OF_BYTE: [char; 256] = {
    let mut table = ['\0'; 256];
    let mut byte = 0;
    let mut unprintable = 0;
    while byte < 256 {
        let code = if is_printable(byte as u8) {
            byte as u32
        } else {
            unprintable += 1;
            255 + unprintable
        };
        // All codes lie between U+0021 and U+0143, where every value is a character.
        table[byte] = match char::from_u32(code) {
            Some(c) => c,
            None => '\0',
        };
        byte += 1;
    }
    table
};

const N_CODES: usize = 256 + 68;

const BYTE_OF_CODE: [Option<u8>; N_CODES] = {
    let mut table = [None; N_CODES];
    let mut byte = 0;
    while byte < 256 {
        table[CHAR_OF_BYTE[byte] as usize] = Some(byte as u8);
        byte += 1;
    }
    table
};

const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

/// The byte that a character stands for, `None` if it stands for none.
#[inline]
pub(crate) fn byte_of_char(c: char) -> Option<u8> {
    BYTE_OF_CODE.get(c as usize).copied().flatten()
}

/// Appends the bytes that `spelling` stands for. False, and nothing appended, if one of its characters stands for none.
pub(crate) fn append_bytes(spelling: &str, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    for c in spelling.chars() {
        let Some(byte) = byte_of_char(c) else {
            out.truncate(start);
            return false;
        };
        out.push(byte);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character() {
        for byte in 0..=255u8 {
            assert_eq!(byte_of_char(CHAR_OF_BYTE[byte as usize]), Some(byte));
        }
        assert_eq!(CHAR_OF_BYTE[b' ' as usize], 'Ġ');
        assert_eq!(CHAR_OF_BYTE[b'\n' as usize], 'Ċ');
        assert_eq!(CHAR_OF_BYTE[0xad], 'Ń');
        assert_eq!(byte_of_char('一'), None);
        assert_eq!(byte_of_char(' '), None);
    }
}
