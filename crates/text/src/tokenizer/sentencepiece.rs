//! SentencePiece's byte-pair encoding: any two adjacent pieces whose join is a token may be joined, the token with
//! the highest score first. What no token covers is spelled in byte tokens.

use super::merge::{Join, LONGEST_WORD_BYTES, Merger, NO_SYMBOL, Rules};
use super::raw::RawTokenizer;
use super::space_cuts::{MARKED_SPACE, SpaceCuts};
use super::strings::{Lookup, Strings};
use super::vocab::{TokenKind, Vocab};
use super::whole_tokens::WholeTokens;

/// A vocabulary with scores.
#[derive(Debug)]
pub(crate) struct SentencePiece {
    pieces: Pieces,
    bytes: Box<[Option<u32>; 256]>,
    unknown: Option<u32>,
    /// Put a space before text that stands at the beginning or after a special token.
    pub(crate) add_space_prefix: bool,
    whole: WholeTokens,
    space_cuts: SpaceCuts,
}

/// The tokens that ordinary text can become.
#[derive(Debug)]
struct Pieces {
    texts: Strings,
    lookup: Lookup,
    /// By id; lower for higher scores.
    priorities: Vec<u32>,
    longest: usize,
}

impl Pieces {
    #[inline]
    fn find(&self, text: &[u8]) -> Option<u32> {
        if text.len() > self.longest {
            None
        } else {
            self.lookup.find(&self.texts, text)
        }
    }
}

impl Rules for Pieces {
    #[inline]
    fn join(&self, _: u32, _: u32, text: &[u8]) -> Option<Join> {
        let symbol = self.find(text)?;
        Some(Join {
            priority: self.priorities.get(symbol as usize).copied()?,
            symbol,
        })
    }
}

impl SentencePiece {
    /// Reads vocabulary and scores.
    pub(crate) fn new(raw: &RawTokenizer<'_>, vocab: &Vocab) -> SentencePiece {
        let mut texts = Strings::with_capacity(vocab.len());
        let mut lookup = Lookup::with_capacity(vocab.len());
        let mut longest = 0;
        for id in vocab.ids() {
            let usable = !matches!(
                vocab.kind(id),
                TokenKind::Control | TokenKind::Unknown | TokenKind::Byte(_)
            );
            texts.push(if usable {
                vocab.text(id).as_bytes()
            } else {
                b""
            });
            if usable {
                longest = longest.max(vocab.text(id).len());
                lookup.insert(&texts, id);
            }
        }
        let score = |id: u32| {
            raw.scores
                .as_ref()
                .and_then(|scores| scores.get(id as usize))
                .copied()
                .unwrap_or(0.0)
        };
        SentencePiece {
            space_cuts: SpaceCuts::new(&texts),
            pieces: Pieces {
                texts,
                lookup,
                priorities: vocab.ids().map(|id| priority(score(id))).collect(),
                longest,
            },
            bytes: vocab.byte_tokens(),
            unknown: vocab.ids.unknown,
            add_space_prefix: raw.add_space_prefix.unwrap_or(true),
            whole: WholeTokens::new(vocab.len()),
        }
    }

    /// Appends the tokens of ordinary text; `after_special` says that it begins the text or follows a special token.
    pub(crate) fn encode(&self, text: &str, after_special: bool, out: &mut Vec<u32>) {
        let mut marked = String::with_capacity(text.len() + text.len() / 2);
        if self.add_space_prefix && after_special {
            marked.push_str(MARKED_SPACE);
        }
        for (index, word) in text.split(' ').enumerate() {
            if index > 0 {
                marked.push_str(MARKED_SPACE);
            }
            marked.push_str(word);
        }
        let mut merger = Merger::default();
        self.space_cuts
            .split(&marked, |word| self.encode_word(word, &mut merger, out));
    }

    fn encode_word(&self, word: &str, merger: &mut Merger, out: &mut Vec<u32>) {
        if word.len() > LONGEST_WORD_BYTES {
            let (head, tail) = word.split_at(word.floor_char_boundary(LONGEST_WORD_BYTES));
            self.encode_word(head, merger, out);
            return self.encode_word(tail, merger, out);
        }
        let token = self.pieces.find(word.as_bytes());
        if let Some(id) = token.filter(|id| self.whole.is_reached(*id)) {
            out.push(id);
            return;
        }
        let start = out.len();
        self.merge_word(word, merger, out);
        if let Some(id) = token {
            self.whole.record(id, out.get(start..).unwrap_or_default());
        }
    }

    fn merge_word(&self, word: &str, merger: &mut Merger, out: &mut Vec<u32>) {
        merger.clear();
        for (start, c) in word.char_indices() {
            let mut buffer = [0; 4];
            let letter = c.encode_utf8(&mut buffer).as_bytes();
            merger.push(start, self.pieces.find(letter).unwrap_or(NO_SYMBOL));
        }
        merger.run(&self.pieces, word.as_bytes());
        for (symbol, range) in merger.pieces(word.len()) {
            if symbol != NO_SYMBOL {
                out.push(symbol);
                continue;
            }
            let bytes = word.as_bytes().get(range).unwrap_or_default();
            out.extend(
                bytes
                    .iter()
                    .filter_map(|byte| self.bytes[*byte as usize].or(self.unknown)),
            );
        }
    }
}

/// Turns a score into a number that is lower for higher scores and below `u32::MAX`.
fn priority(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits();
    // Positive numbers ascend with their bits, negative ones descend; zero has one form after the addition.
    let ascending = if bits >> 31 == 0 {
        bits | 1 << 31
    } else {
        !bits
    };
    (!ascending).min(u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_scores_come_first() {
        let scores = [
            f32::INFINITY,
            1e9,
            1.0,
            0.0,
            -0.5,
            -1.0,
            -1e9,
            f32::NEG_INFINITY,
        ];
        let priorities: Vec<u32> = scores.into_iter().map(priority).collect();
        assert!(priorities.is_sorted(), "{priorities:?}");
        assert!(
            priorities.windows(2).all(|pair| pair[0] < pair[1]),
            "{priorities:?}"
        );
        assert_eq!(priority(0.0), priority(-0.0));
        assert!(priorities.iter().all(|priority| *priority < u32::MAX));
    }
}
