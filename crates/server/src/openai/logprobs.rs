//! Log-probabilities in the forms of the two routes.

use dynalm_engine::TokenLogprobs;
use dynalm_text::Tokenizer;
use serde::{Serialize, Serializer};

/// `logprobs` of a chat choice.
#[derive(Debug, Serialize)]
pub(super) struct ChatLogprobs {
    content: Vec<ChatLogprob>,
}

/// One token with its alternatives.
#[derive(Debug, Serialize)]
struct ChatLogprob {
    #[serde(flatten)]
    token: TokenEntry,
    top_logprobs: Vec<TokenEntry>,
}

/// One token: id, text (with U+FFFD where its bytes are no text), bytes.
#[derive(Debug, Serialize)]
struct TokenEntry {
    id: u32,
    token: String,
    bytes: Vec<u8>,
    logprob: f32,
}

impl TokenEntry {
    fn new(tokenizer: &Tokenizer, id: u32, logprob: f32) -> Self {
        let bytes = tokenizer.piece(id, true);
        Self {
            id,
            token: String::from_utf8_lossy(&bytes).into_owned(),
            bytes,
            logprob: finite(logprob),
        }
    }
}

/// JSON has no infinity; OpenAI uses this number for "as good as impossible".
fn finite(logprob: f32) -> f32 {
    if logprob.is_finite() {
        logprob
    } else {
        -9999.0
    }
}

/// `logprobs` of a chat choice or chunk.
pub(super) fn chat_logprobs<'a>(
    tokenizer: &Tokenizer,
    tokens: impl Iterator<Item = (u32, &'a TokenLogprobs)>,
) -> ChatLogprobs {
    let content = tokens.map(|(id, logprobs)| ChatLogprob {
        token: TokenEntry::new(tokenizer, id, logprobs.logprob),
        top_logprobs: logprobs
            .top
            .iter()
            .map(|top| TokenEntry::new(tokenizer, top.token, top.logprob))
            .collect(),
    });
    ChatLogprobs {
        content: content.collect(),
    }
}

/// `logprobs` of a completion choice or chunk: four arrays of one length.
#[derive(Debug, Default, Serialize)]
pub(super) struct CompletionLogprobs {
    tokens: Vec<String>,
    token_logprobs: Vec<f32>,
    /// Null where no alternatives were asked for.
    top_logprobs: Option<Vec<TopLogprobs>>,
    text_offset: Vec<usize>,
}

impl CompletionLogprobs {
    /// Appends a token that begins `offset` characters into the text, and returns where the next one begins.
    pub(super) fn push(
        &mut self,
        tokenizer: &Tokenizer,
        token: u32,
        logprobs: &TokenLogprobs,
        offset: usize,
    ) -> usize {
        let text = |id| String::from_utf8_lossy(&tokenizer.piece(id, true)).into_owned();
        let chosen = text(token);
        let next = offset + chosen.chars().count();
        self.tokens.push(chosen);
        self.token_logprobs.push(finite(logprobs.logprob));
        self.text_offset.push(offset);
        if !logprobs.top.is_empty() {
            let top = logprobs
                .top
                .iter()
                .map(|top| (text(top.token), finite(top.logprob)));
            self.top_logprobs
                .get_or_insert_default()
                .push(TopLogprobs::new(top));
        }
        next
    }
}

/// An object of texts and log-probabilities, best first.
#[derive(Debug)]
struct TopLogprobs(Vec<(String, f32)>);

impl TopLogprobs {
    /// Of tokens with the same text (bytes that are no text look alike) the likeliest stays.
    fn new(tokens: impl Iterator<Item = (String, f32)>) -> Self {
        let mut top: Vec<(String, f32)> = Vec::new();
        for (text, logprob) in tokens {
            if !top.iter().any(|(known, _)| *known == text) {
                top.push((text, logprob));
            }
        }
        Self(top)
    }
}

impl Serialize for TopLogprobs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(text, logprob)| (text, logprob)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_keep_their_order_and_have_one_entry_per_text() {
        let top = [
            ("b", -0.5),
            ("\u{fffd}", -1.0),
            ("a", -2.0),
            ("\u{fffd}", -3.0),
        ];
        let top = TopLogprobs::new(
            top.map(|(text, logprob)| (text.to_owned(), logprob))
                .into_iter(),
        );
        assert_eq!(
            serde_json::to_string(&top).unwrap(),
            "{\"b\":-0.5,\"\u{fffd}\":-1.0,\"a\":-2.0}"
        );
    }

    #[test]
    fn what_json_cannot_say_is_a_number_all_the_same() {
        assert_eq!(finite(f32::NEG_INFINITY), -9999.0);
        assert_eq!(finite(-1.5), -1.5);
    }
}
