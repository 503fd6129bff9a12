//! From tokens to the text a caller may see: whole characters, no stop strings.

use std::sync::Arc;

use dynalm_text::{Detokenizer, Tokenizer};

use crate::stop::{Released, StopMatcher};

/// The text of one answer on its way out.
pub(crate) struct AnswerText {
    detokenizer: Detokenizer,
    /// Control tokens appear in the vocabulary's spelling.
    with_special: bool,
    stop: StopMatcher,
}

impl AnswerText {
    pub(crate) fn new(tokenizer: &Arc<Tokenizer>, stop: Vec<String>, with_special: bool) -> Self {
        Self {
            detokenizer: Detokenizer::new(Arc::clone(tokenizer)).with_special(with_special),
            with_special,
            stop: StopMatcher::new(stop),
        }
    }

    /// One more token of the answer.
    pub(crate) fn push(&mut self, token: u32) -> Released {
        let text = self.detokenizer.push(token);
        self.stop.push(&text)
    }

    /// The end of an answer that no stop string has ended: everything still held back. An unfinished character
    /// becomes U+FFFD. An end token shows only where control tokens do.
    pub(crate) fn finish(&mut self, end_token: Option<u32>) -> Released {
        let end_token = end_token.filter(|_| self.with_special);
        let mut text = end_token.map_or_else(String::new, |token| self.detokenizer.push(token));
        text.push_str(&self.detokenizer.finish());
        let Released { text, stop } = self.stop.push(&text);
        let rest = if stop.is_none() {
            self.stop.finish()
        } else {
            String::new()
        };
        Released {
            text: text + &rest,
            stop,
        }
    }
}
