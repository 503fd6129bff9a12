//! WordPiece as BERT uses it: text is stripped of accents and capitals, cut into words and punctuation marks, and
//! each word is spelled in the longest tokens from the left, or is unknown.
//!
//! Files spell a token that begins a word `▁word` and one that continues it `word`.

use aho_corasick::{AhoCorasick, Anchored, Input, StartKind};
use unicode_normalization::char::decompose_canonical;

use super::char_class::{Classes, class_of};
use super::error::TokenizerError;
use super::partition::longest_match;
use super::raw::RawTokenizer;
use super::vocab::{TokenKind, Vocab};

/// A vocabulary of word pieces.
#[derive(Debug)]
pub(crate) struct WordPiece {
    tokens: AhoCorasick,
    ids: Vec<u32>,
    unknown: Option<u32>,
    lowercase: bool,
    strip_accents: bool,
}

impl WordPiece {
    /// Reads the vocabulary.
    pub(crate) fn new(raw: &RawTokenizer<'_>, vocab: &Vocab) -> Result<WordPiece, TokenizerError> {
        let usable = |id: &u32| !matches!(vocab.kind(*id), TokenKind::Control | TokenKind::Unknown);
        let ids: Vec<u32> = vocab.ids().filter(usable).collect();
        let tokens = longest_match(vocab, &ids, StartKind::Anchored)?;
        let lowercase = raw.lowercase.unwrap_or(true);
        let strip_accents = raw.strip_accents.unwrap_or(lowercase);
        Ok(WordPiece {
            tokens,
            ids,
            unknown: vocab.ids.unknown,
            lowercase,
            strip_accents,
        })
    }

    /// Appends the tokens of ordinary text.
    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let mut word = WORD_START.to_string();
        for c in text.chars() {
            let c = if self.strip_accents {
                first_of_decomposition(c)
            } else {
                c
            };
            let class = class_of(c);
            if class.is_in(Classes::SPACE) {
                self.finish_word(&mut word, out);
            } else if self.is_dropped(c, class) {
            } else {
                let c = if self.lowercase {
                    c.to_lowercase().next().unwrap_or(c)
                } else {
                    c
                };
                if stands_alone(c, class) {
                    self.finish_word(&mut word, out);
                    word.push(c);
                    self.finish_word(&mut word, out);
                } else {
                    word.push(c);
                }
            }
        }
        self.finish_word(&mut word, out);
    }

    fn is_dropped(&self, c: char, class: Classes) -> bool {
        class.is_in(Classes::CONTROL)
            || c == '\u{fffd}'
            || (self.strip_accents && class.is_in(Classes::MARK))
    }

    /// Appends the tokens of a word and begins the next one.
    fn finish_word(&self, word: &mut String, out: &mut Vec<u32>) {
        if word.len() > WORD_START.len() {
            let start = out.len();
            if !self.spell(word, out) {
                out.truncate(start);
                out.extend(self.unknown);
            }
            word.truncate(WORD_START.len());
        }
    }

    /// False where no token fits.
    fn spell(&self, word: &str, out: &mut Vec<u32>) -> bool {
        let mut pos = 0;
        while pos < word.len() {
            let input = Input::new(word).range(pos..).anchored(Anchored::Yes);
            let Some(found) = self.tokens.try_find(input).ok().flatten() else {
                return false;
            };
            let Some(id) = self.ids.get(found.pattern().as_usize()) else {
                return false;
            };
            out.push(*id);
            pos = found.end();
        }
        true
    }
}

const WORD_START: &str = "▁";

/// The base letter of an accented one; Korean syllables lose all but their first letter, as in the reference.
fn first_of_decomposition(c: char) -> char {
    let mut first = None;
    decompose_canonical(c, |part| {
        first.get_or_insert(part);
    });
    first.unwrap_or(c)
}

/// Whether a character is a word of its own.
fn stands_alone(c: char, class: Classes) -> bool {
    class.is_in(Classes::PUNCTUATION)
        || (c < '\u{7f}' && class.is_in(Classes::SYMBOL))
        || is_ideograph(c)
}

/// The ideographs that BERT's rule knows.
fn is_ideograph(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2b81f}'
        // Published as U+2B920, though the block begins at U+2B820.
        | '\u{2b920}'..='\u{2ceaf}'
        | '\u{f900}'..='\u{faff}'
        | '\u{2f800}'..='\u{2fa1f}')
}
