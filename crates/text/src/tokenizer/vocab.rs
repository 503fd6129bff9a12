//! The tokens: their spelling, their kind, and which of them mean something to the engine.

use super::end_tokens;
use super::error::TokenizerError;
use super::raw::{RawTokenizer, SpecialIds, key};
use super::strings::{Lookup, Strings};

/// What a token is, from `tokenizer.ggml.token_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Part of ordinary text.
    Normal,
    /// Stands for text that no token covers.
    Unknown,
    /// Structure, such as the end of a turn; has no text of its own.
    Control,
    /// Text that is always one token, wherever it occurs.
    UserDefined,
    /// Reserved, or of a type that means nothing.
    Unused,
    /// A single byte.
    Byte(u8),
}

impl TokenKind {
    /// Shown only on request.
    pub(crate) fn is_special(self) -> bool {
        matches!(self, TokenKind::Control | TokenKind::Unknown)
    }
}

/// All tokens.
#[derive(Debug)]
pub(crate) struct Vocab {
    texts: Strings,
    by_text: Lookup,
    kinds: Vec<TokenKind>,
    pub(crate) ids: SpecialIds,
    /// Tokens after which an answer is complete, in ascending order.
    pub(crate) end_tokens: Vec<u32>,
}

impl Vocab {
    /// Takes over the tokens; `defaults` are the ids that hold where the file names none.
    pub(crate) fn new(
        raw: &RawTokenizer<'_>,
        defaults: SpecialIds,
    ) -> Result<Vocab, TokenizerError> {
        let n_tokens = raw.tokens.len();
        let mut texts = Strings::with_capacity(n_tokens);
        let mut by_text = Lookup::with_capacity(n_tokens);
        let mut kinds = Vec::with_capacity(n_tokens);
        for (index, text) in raw.tokens.iter().enumerate() {
            if text.is_empty() {
                texts.push(format!("[EMPTY_{index}]").as_bytes());
            } else {
                texts.push(text.as_bytes());
            }
            // `RawTokenizer::check` keeps the number of tokens far below u32::MAX.
            by_text.insert(&texts, index as u32);
            let code = raw
                .types
                .as_ref()
                .and_then(|types| types.get(index))
                .copied()
                .unwrap_or(1);
            kinds.push(kind_of(code, index, text)?);
        }
        let in_vocab = |id: Option<u32>| id.filter(|id| (*id as usize) < n_tokens);
        let ids = SpecialIds {
            bos: raw.ids.bos.or(in_vocab(defaults.bos)),
            eos: raw.ids.eos.or(in_vocab(defaults.eos)),
            unknown: raw.ids.unknown.or(in_vocab(defaults.unknown)),
            separator: raw.ids.separator.or(in_vocab(defaults.separator)),
            padding: raw.ids.padding.or(in_vocab(defaults.padding)),
            mask: raw.ids.mask.or(in_vocab(defaults.mask)),
            ..raw.ids
        };
        let mut vocab = Vocab {
            texts,
            by_text,
            kinds,
            ids,
            end_tokens: Vec::new(),
        };
        end_tokens::find(&mut vocab);
        Ok(vocab)
    }

    /// How many tokens there are.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// All ids.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.kinds.len() as u32
    }

    /// A token's spelling, empty for an id that does not exist.
    pub(crate) fn text(&self, id: u32) -> &str {
        self.texts.text(id)
    }

    /// The token that is spelled so.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.by_text.find(&self.texts, text.as_bytes())
    }

    /// A token's kind; ids that do not exist are unused.
    pub(crate) fn kind(&self, id: u32) -> TokenKind {
        self.kinds
            .get(id as usize)
            .copied()
            .unwrap_or(TokenKind::Unused)
    }

    /// Corrects a token's kind.
    pub(crate) fn set_kind(&mut self, id: u32, kind: TokenKind) {
        if let Some(old) = self.kinds.get_mut(id as usize) {
            *old = kind;
        }
    }

    /// The token of each byte: `<0x00>` and so on, or where there is none the byte itself as a one-letter text.
    pub(crate) fn byte_tokens(&self) -> Box<[Option<u32>; 256]> {
        let mut tokens = Box::new([None; 256]);
        for byte in 0..=255u8 {
            let letter = [byte];
            let single = || {
                std::str::from_utf8(&letter)
                    .ok()
                    .and_then(|letter| self.find(letter))
            };
            tokens[byte as usize] = self.find(&format!("<0x{byte:02X}>")).or_else(single);
        }
        tokens
    }
}

fn kind_of(code: i32, index: usize, text: &str) -> Result<TokenKind, TokenizerError> {
    Ok(match code {
        1 => TokenKind::Normal,
        2 => TokenKind::Unknown,
        3 => TokenKind::Control,
        4 => TokenKind::UserDefined,
        6 => match byte_of_text(text) {
            Some(byte) => TokenKind::Byte(byte),
            None => {
                let found = text.chars().take(32).collect();
                return Err(TokenizerError::ByteToken {
                    key: key::TOKENS,
                    index,
                    found,
                });
            }
        },
        _ => TokenKind::Unused,
    })
}

/// The byte that `<0x41>` stands for; exactly two hexadecimal digits.
fn byte_of_text(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>')?;
    if digits.len() != 2 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    u8::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_tokens_have_two_hexadecimal_digits() {
        for (text, byte) in [("<0x41>", Some(0x41)), ("<0xfF>", Some(0xff))] {
            assert_eq!(byte_of_text(text), byte);
        }
        for text in [
            "<0x-1>", "<0x+1>", "<0x1>", "<0x100>", "<0x>", "<0x", "0x41", "<0xé>", "",
        ] {
            assert_eq!(byte_of_text(text), None, "{text}");
        }
    }
}
