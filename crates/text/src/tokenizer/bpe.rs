//! Byte-pair encoding with ranked merges: byte-level (GPT-2 and most others), and on text as Gemma 4 has it.
//!
//! Each string that occurs in the vocabulary or in a merge has a number, its symbol; tokens' numbers are their ids. A
//! merge is then a pair of numbers with a rank and the number of the joined string.

use hashbrown::HashMap;

use super::byte_level;
use super::char_class::{Classes, class_of};
use super::error::TokenizerError;
use super::merge::{Join, LONGEST_WORD_BYTES, Merger, NO_SYMBOL, Rules};
use super::raw::{RawTokenizer, key};
use super::space_cuts::{MARKED_SPACE, SpaceCuts};
use super::split::{Family, Spelling, split_words};
use super::strings::{Lookup, Strings};
use super::vocab::{TokenKind, Vocab};
use super::whole_tokens::WholeTokens;

/// The value of `tokenizer.ggml.model` for vocabularies of words without the space between them.
pub(crate) const WHITESPACE_MODEL: &str = "whitespace";

/// A vocabulary with merges.
#[derive(Debug)]
pub(crate) struct Bpe {
    family: &'static Family,
    /// The strings behind the symbols. Those of tokens that ordinary text cannot become are empty and not found.
    symbols: Strings,
    lookup: Lookup,
    merges: Merges,
    n_tokens: u32,
    /// The longest token, to skip the look-up of longer words.
    longest_token: usize,
    /// The symbol of each byte (byte-level) or its fallback token.
    bytes: Box<[Option<u32>; 256]>,
    whole: WholeTokens,
    /// Only for vocabularies that mark spaces.
    space_cuts: Option<SpaceCuts>,
    /// White space only separates words and is dropped (`tokenizer.ggml.model` = `whitespace`).
    drop_spaces: bool,
    /// Words lose their capitals first; only together with `drop_spaces`.
    lowercase: bool,
}

/// Pairs of symbols, packed, to rank and joined symbol.
#[derive(Debug)]
struct Merges(HashMap<u64, Join>);

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

impl Rules for Merges {
    #[inline]
    fn join(&self, left: u32, right: u32, _: &[u8]) -> Option<Join> {
        self.0.get(&pair(left, right)).copied()
    }
}

impl Bpe {
    /// Reads vocabulary and merges.
    pub(crate) fn new(
        raw: &RawTokenizer<'_>,
        vocab: &Vocab,
        family: &'static Family,
    ) -> Result<Bpe, TokenizerError> {
        let mut symbols = Strings::with_capacity(vocab.len());
        let mut lookup = Lookup::with_capacity(vocab.len());
        let mut longest_token = 0;
        let mut word = Vec::new();
        for id in vocab.ids() {
            word.clear();
            let usable = !matches!(
                vocab.kind(id),
                TokenKind::Control | TokenKind::Unknown | TokenKind::Byte(_)
            ) && spell(family.spelling, vocab.text(id), &mut word);
            symbols.push(&word);
            if usable {
                longest_token = longest_token.max(word.len());
                lookup.insert(&symbols, id);
            }
        }
        let n_tokens = vocab.len() as u32;
        let merges = read_merges(raw, family.spelling, &mut symbols, &mut lookup)?;
        let bytes = match family.spelling {
            Spelling::Bytes => {
                let mut bytes = Box::new([None; 256]);
                for byte in 0..=255u8 {
                    bytes[byte as usize] = lookup.find(&symbols, &[byte]);
                }
                bytes
            }
            Spelling::Text | Spelling::TextWithMarkedSpaces => vocab.byte_tokens(),
        };
        let marks_spaces = family.spelling == Spelling::TextWithMarkedSpaces;
        let space_cuts = marks_spaces.then(|| SpaceCuts::new(&symbols));
        let drop_spaces = raw.model == WHITESPACE_MODEL;
        Ok(Bpe {
            family,
            symbols,
            lookup,
            merges,
            n_tokens,
            longest_token,
            bytes,
            whole: WholeTokens::new(vocab.len()),
            space_cuts,
            drop_spaces,
            // The plain name of the rule stands for a vocabulary that keeps capitals.
            lowercase: drop_spaces && raw.lowercase.unwrap_or(raw.pre != Some(WHITESPACE_MODEL)),
        })
    }

    /// How words are spelled.
    pub(crate) fn spelling(&self) -> Spelling {
        self.family.spelling
    }

    /// Appends the tokens of ordinary text.
    pub(crate) fn encode(&self, text: &str, out: &mut Vec<u32>) {
        let mut merger = Merger::default();
        if self.drop_spaces {
            for word in text
                .split(|c| class_of(c).is_in(Classes::SPACE))
                .filter(|word| !word.is_empty())
            {
                if self.lowercase {
                    let word: String = word
                        .chars()
                        .map(|c| c.to_lowercase().next().unwrap_or(c))
                        .collect();
                    self.encode_word(&word, &mut merger, out);
                } else {
                    self.encode_word(word, &mut merger, out);
                }
            }
            return;
        }
        let Some(cuts) = &self.space_cuts else {
            split_words(self.family, text, &mut |word| {
                self.encode_word(word, &mut merger, out)
            });
            return;
        };
        let marked = text.replace(' ', MARKED_SPACE);
        split_words(self.family, &marked, &mut |line| {
            cuts.split(line, |word| self.encode_word(word, &mut merger, out));
        });
    }

    fn encode_word(&self, word: &str, merger: &mut Merger, out: &mut Vec<u32>) {
        if word.len() > LONGEST_WORD_BYTES {
            let (head, tail) = word.split_at(word.floor_char_boundary(LONGEST_WORD_BYTES));
            self.encode_word(head, merger, out);
            return self.encode_word(tail, merger, out);
        }
        let token = self.whole_token(word);
        if let Some(id) = token
            && (self.family.ignore_merges
                || self.whole.is_reached(id)
                || self.is_whole_line_breaks(word))
        {
            out.push(id);
            return;
        }
        let start = out.len();
        self.merge_word(word, merger, out);
        if let Some(id) = token {
            self.whole.record(id, out.get(start..).unwrap_or_default());
        }
    }

    /// The token that is spelled like the whole word.
    fn whole_token(&self, word: &str) -> Option<u32> {
        if word.len() > self.longest_token {
            return None;
        }
        self.lookup
            .find(&self.symbols, word.as_bytes())
            .filter(|symbol| *symbol < self.n_tokens)
    }

    fn is_whole_line_breaks(&self, word: &str) -> bool {
        self.family.whole_line_breaks && word.bytes().all(|byte| byte == b'\n')
    }

    fn merge_word(&self, word: &str, merger: &mut Merger, out: &mut Vec<u32>) {
        merger.clear();
        if self.family.spelling == Spelling::Bytes {
            for (start, byte) in word.bytes().enumerate() {
                merger.push(start, self.bytes[byte as usize].unwrap_or(NO_SYMBOL));
            }
        } else {
            for (start, c) in word.char_indices() {
                let mut buffer = [0; 4];
                let letter = c.encode_utf8(&mut buffer).as_bytes();
                merger.push(
                    start,
                    self.lookup.find(&self.symbols, letter).unwrap_or(NO_SYMBOL),
                );
            }
        }
        merger.run(&self.merges, word.as_bytes());
        for (symbol, range) in merger.pieces(word.len()) {
            if symbol < self.n_tokens {
                out.push(symbol);
            } else {
                // A string that is no token: byte by byte, and what has no byte token is lost.
                let bytes = word.as_bytes().get(range).unwrap_or_default();
                let tokens = bytes.iter().filter_map(|byte| self.bytes[*byte as usize]);
                out.extend(tokens.filter(|id| *id < self.n_tokens));
            }
        }
    }
}

/// Appends the bytes of a word that is spelled so; false if no word can be.
fn spell(spelling: Spelling, text: &str, out: &mut Vec<u8>) -> bool {
    match spelling {
        Spelling::Bytes => byte_level::append_bytes(text, out),
        Spelling::Text | Spelling::TextWithMarkedSpaces => {
            out.extend_from_slice(text.as_bytes());
            true
        }
    }
}

fn read_merges(
    raw: &RawTokenizer<'_>,
    spelling: Spelling,
    symbols: &mut Strings,
    lookup: &mut Lookup,
) -> Result<Merges, TokenizerError> {
    let texts = raw.merges.unwrap_or_default();
    let mut merges = HashMap::with_capacity(texts.len());
    let mut word = Vec::new();
    for (rank, text) in texts.iter().enumerate() {
        let Some((left, right)) = parts_of_merge(text) else {
            let found = text.chars().take(32).collect();
            return Err(TokenizerError::Merge {
                key: key::MERGES,
                index: rank,
                found,
            });
        };
        word.clear();
        if !spell(spelling, left, &mut word) {
            continue;
        }
        let middle = word.len();
        if !spell(spelling, right, &mut word) {
            continue;
        }
        let mut number = |string: &[u8]| {
            lookup.find(symbols, string).unwrap_or_else(|| {
                symbols.push(string);
                // Two arrays of at most 2^24 entries cannot make u32::MAX symbols.
                let symbol = (symbols.len() - 1) as u32;
                lookup.insert(symbols, symbol);
                symbol
            })
        };
        let (left, right, joined) = (
            number(&word[..middle]),
            number(&word[middle..]),
            number(&word),
        );
        merges.entry(pair(left, right)).or_insert(Join {
            priority: rank as u32,
            symbol: joined,
        });
    }
    Ok(Merges(merges))
}

/// The two sides of a merge. A space at the very beginning belongs to the left side.
fn parts_of_merge(text: &str) -> Option<(&str, &str)> {
    let (space, _) = text.char_indices().skip(1).find(|(_, c)| *c == ' ')?;
    let (left, right) = (text.get(..space)?, text.get(space + 1..)?);
    (!right.is_empty()).then_some((left, right))
}
