//! Text from a stream of tokens.

use std::sync::Arc;

use crate::tokenizer::Tokenizer;

/// Turns tokens into text one by one. A character whose bytes are spread over several tokens is held back until it
/// is whole; bytes that cannot become a character are replaced by U+FFFD. All pieces together are the same as the
/// bytes of all tokens decoded at once.
#[derive(Debug)]
pub struct Detokenizer {
    tokenizer: Arc<Tokenizer>,
    special: bool,
    /// The beginning of a character, at most three bytes between calls.
    held: Vec<u8>,
}

impl Detokenizer {
    /// Begins a text. Control tokens add nothing to it.
    pub fn new(tokenizer: Arc<Tokenizer>) -> Self {
        Detokenizer {
            tokenizer,
            special: false,
            held: Vec::new(),
        }
    }

    /// Shows control tokens by their text.
    #[must_use]
    pub fn with_special(mut self, special: bool) -> Self {
        self.special = special;
        self
    }

    /// The text that is complete with this token; may be empty.
    pub fn push(&mut self, id: u32) -> String {
        self.tokenizer
            .append_piece(id, self.special, &mut self.held);
        let mut text = String::new();
        let mut done = 0;
        for chunk in self.held.utf8_chunks() {
            text.push_str(chunk.valid());
            done += chunk.valid().len();
            let invalid = chunk.invalid();
            let is_at_end = done + invalid.len() == self.held.len();
            if invalid.is_empty() || (is_at_end && may_become_a_character(invalid)) {
                break;
            }
            text.push(char::REPLACEMENT_CHARACTER);
            done += invalid.len();
        }
        self.held.drain(..done);
        text
    }

    /// Ends the text: what is held back can no longer become a character.
    pub fn finish(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.held).into_owned();
        self.held.clear();
        text
    }
}

/// Whether more bytes could complete these.
fn may_become_a_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
