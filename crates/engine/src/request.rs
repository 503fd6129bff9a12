//! What a caller asks for: token ids in, limits, and how to sample.

use std::time::Instant;

use crate::{Sampling, SubmitError};

/// Most stop strings in a request. Each is searched for in every piece of text.
pub const MAX_STOP_STRINGS: usize = 64;
/// Longest stop string, in bytes: as much text may be held back in a stream.
pub const MAX_STOP_BYTES: usize = 1024;
/// Most alternatives that a request may ask for beside each token.
pub const MAX_LOGPROBS: usize = 100;

/// One stream of tokens to be generated.
///
/// Cheap to build: [`Request::new`] and then the fields that differ. Everything is checked by
/// [`Engine::submit`](crate::Engine::submit), which names the field and its range when it refuses.
#[derive(Debug, Clone)]
pub struct Request {
    /// Token ids of the prompt, begin-of-text included where the model wants one.
    pub prompt: Vec<u32>,
    /// How the next token is chosen.
    pub sampling: Sampling,
    /// Most tokens to generate, an end-of-generation token included. `None`: until the context is full.
    pub max_tokens: Option<usize>,
    /// The answer ends before the first of these strings; none of them is ever in the text.
    pub stop: Vec<String>,
    /// End-of-generation tokens are never chosen.
    pub ignore_eos: bool,
    /// Log-probabilities wanted: of each chosen token and of this many most likely ones beside it
    /// (0: the chosen one alone; at most [`MAX_LOGPROBS`]).
    pub logprobs: Option<usize>,
    /// The request fails with [`DeadlineExceeded`](crate::FinishReason::DeadlineExceeded) when it has
    /// not ended by then, queued or running.
    pub deadline: Option<Instant>,
    /// Control tokens that the model generates appear in the text in the vocabulary's spelling.
    pub special_tokens_in_text: bool,
    /// Name of the request in the log.
    pub id: String,
}

impl Request {
    /// A request with default sampling and no limits but the context.
    pub fn new(prompt: Vec<u32>) -> Self {
        Self {
            prompt,
            sampling: Sampling::default(),
            max_tokens: None,
            stop: Vec::new(),
            ignore_eos: false,
            logprobs: None,
            deadline: None,
            special_tokens_in_text: false,
            id: String::new(),
        }
    }

    /// Checks everything that does not need the queue.
    ///
    /// # Errors
    /// Any of [`SubmitError`] but `QueueFull` and `Draining`.
    pub fn validate(&self, n_ctx: usize, vocab_size: usize) -> Result<(), SubmitError> {
        if self.prompt.is_empty() {
            return Err(SubmitError::EmptyPrompt);
        }
        if self.prompt.len() >= n_ctx {
            return Err(SubmitError::PromptTooLong {
                n_prompt_tokens: self.prompt.len(),
                n_ctx,
            });
        }
        if let Some(position) = self
            .prompt
            .iter()
            .position(|&token| token as usize >= vocab_size)
        {
            return Err(SubmitError::TokenOutOfRange {
                token: self.prompt[position],
                position,
                vocab_size,
            });
        }
        self.validate_stop()?;
        if self.logprobs.is_some_and(|n| n > MAX_LOGPROBS) {
            return Err(SubmitError::invalid(
                "logprobs",
                format!("must be between 0 and {MAX_LOGPROBS}"),
            ));
        }
        self.sampling.validate(vocab_size)
    }

    fn validate_stop(&self) -> Result<(), SubmitError> {
        if self.stop.len() > MAX_STOP_STRINGS {
            return Err(SubmitError::invalid(
                "stop",
                format!(
                    "must hold at most {MAX_STOP_STRINGS} strings, found {}",
                    self.stop.len()
                ),
            ));
        }
        for stop in &self.stop {
            if stop.is_empty() || stop.len() > MAX_STOP_BYTES {
                return Err(SubmitError::invalid(
                    "stop",
                    format!(
                        "each string must have 1 to {MAX_STOP_BYTES} bytes, found {}",
                        stop.len()
                    ),
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Request)) -> SubmitError {
        let mut request = Request::new(vec![1, 2, 3]);
        change(&mut request);
        request.validate(16, 100).expect_err("must be refused")
    }

    #[test]
    fn a_plain_request_is_valid() {
        assert_eq!(Request::new(vec![1, 2, 3]).validate(16, 100), Ok(()));
        assert_eq!(Request::new(vec![1; 15]).validate(16, 100), Ok(()));
    }

    #[test]
    fn each_fault_is_named() {
        assert_eq!(refused(|r| r.prompt.clear()), SubmitError::EmptyPrompt);
        assert_eq!(
            refused(|r| r.prompt = vec![1; 16]),
            SubmitError::PromptTooLong {
                n_prompt_tokens: 16,
                n_ctx: 16
            }
        );
        assert_eq!(
            refused(|r| r.prompt = vec![1, 100]),
            SubmitError::TokenOutOfRange {
                token: 100,
                position: 1,
                vocab_size: 100
            }
        );
        for (error, field, range) in [
            (
                refused(|r| r.stop = vec![String::new()]),
                "stop",
                "1 to 1024",
            ),
            (
                refused(|r| r.stop = vec!["x".repeat(1025)]),
                "stop",
                "1 to 1024",
            ),
            (
                refused(|r| r.stop = vec!["x".into(); 65]),
                "stop",
                "at most 64",
            ),
            (refused(|r| r.logprobs = Some(101)), "logprobs", "0 and 100"),
            (refused(|r| r.sampling.top_p = 1.5), "top_p", "0 and 1"),
        ] {
            let text = error.to_string();
            assert!(text.contains(field) && text.contains(range), "{text}");
        }
    }
}
