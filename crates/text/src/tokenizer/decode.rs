//! From tokens back to text.

use super::byte_level;
use super::space_cuts::MARKED_SPACE;
use super::split::Spelling;
use super::vocab::{TokenKind, Vocab};

/// Appends the bytes that a token adds to a text.
pub(crate) fn append_piece(
    vocab: &Vocab,
    spelling: Spelling,
    id: u32,
    special: bool,
    out: &mut Vec<u8>,
) {
    let text = vocab.text(id);
    match vocab.kind(id) {
        TokenKind::Byte(byte) => out.push(byte),
        TokenKind::UserDefined => out.extend_from_slice(text.as_bytes()),
        TokenKind::Control | TokenKind::Unknown if special => {
            out.extend_from_slice(text.as_bytes())
        }
        TokenKind::Control | TokenKind::Unknown | TokenKind::Unused => {}
        TokenKind::Normal => match spelling {
            Spelling::Text => out.extend_from_slice(text.as_bytes()),
            Spelling::TextWithMarkedSpaces => {
                for (index, part) in text.split(MARKED_SPACE).enumerate() {
                    if index > 0 {
                        out.push(b' ');
                    }
                    out.extend_from_slice(part.as_bytes());
                }
            }
            Spelling::Bytes => {
                for c in text.chars() {
                    match byte_level::byte_of_char(c) {
                        Some(byte) => out.push(byte),
                        // Not spelled by the rule; shown as it is.
                        None => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    }
                }
            }
        },
    }
}

/// Takes out the spaces that WordPiece puts before punctuation and English contractions.
pub(crate) fn clean_spaces(text: &[u8]) -> Vec<u8> {
    let text = drop_spaces_before_marks(text);
    let text = drop_spaces_around_apostrophes(&text);
    drop_spaces_before_contractions(&text)
}

/// ` ?`, ` !`, ` .`, ` ,`
fn drop_spaces_before_marks(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if matches!(byte, b'?' | b'!' | b'.' | b',') && out.last() == Some(&b' ') {
            out.pop();
        }
        out.push(byte);
    }
    out
}

/// ` ' `
fn drop_spaces_around_apostrophes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(&byte) = rest.first() {
        if let [b' ', b'\'', b' ', after @ ..] = rest {
            out.push(b'\'');
            rest = after;
        } else {
            out.push(byte);
            rest = &rest[1..];
        }
    }
    out
}

/// ` 's`, ` 'm`, ` 're`, ` 've`
fn drop_spaces_before_contractions(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for (index, &byte) in text.iter().enumerate() {
        let rest = text.get(index..).unwrap_or_default();
        let contracts = matches!(
            rest,
            [b'\'', b's' | b'm', ..] | [b'\'', b'r' | b'v', b'e', ..]
        );
        if contracts && index > 0 && text.get(index - 1) == Some(&b' ') {
            out.pop();
        }
        out.push(byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_that_wordpiece_adds() {
        for (text, expected) in [
            (" hello , world !", " hello, world!"),
            (" .", "."),
            ("' quoted '", "' quoted '"),
            (" it ' s ' ' x", " it's'' x"),
            (" i 'm 're 'll 't", " i'm're 'll 't"),
            ("  ?", " ?"),
        ] {
            assert_eq!(
                clean_spaces(text.as_bytes()),
                expected.as_bytes(),
                "{text:?}"
            );
        }
    }
}
