//! What a caller receives: tokens as they are chosen, then one end.

use std::time::Duration;

/// One thing that happened to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A token was chosen. An end-of-generation token is not reported so: it ends the answer.
    Token(TokenEvent),
    /// The request ended; the last event.
    Finished(Finish),
}

/// One token of the answer.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenEvent {
    /// Its id.
    pub token: u32,
    /// The text that became certain with it. Empty while a character is incomplete or while the text
    /// could still become a stop string; the concatenation of all events' texts is the answer.
    pub text: String,
    /// Log-probabilities, where the request asked for them.
    pub logprob: Option<TokenLogprobs>,
}

/// Natural-log probabilities at one position, from the model's logits before any sampling parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprobs {
    /// That of the chosen token.
    pub logprob: f32,
    /// The most likely tokens, best first, as many as were asked for.
    pub top: Vec<TokenLogprob>,
}

/// A token and its natural-log probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenLogprob {
    /// The token's id.
    pub token: u32,
    /// Its log-probability.
    pub logprob: f32,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Why.
    pub reason: FinishReason,
    /// Text that was still held back.
    pub text: String,
    /// Tokens counted.
    pub usage: Usage,
    /// Where the time went.
    pub timings: Timings,
}

/// Why a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishReason {
    /// The answer is complete.
    Stop(StopCause),
    /// `max_tokens` or the context's end was reached.
    Length,
    /// The caller cancelled, or the engine shut down.
    Cancelled,
    /// The request's deadline passed.
    DeadlineExceeded,
    /// Something broke while this request was in a step; what, in words for a log.
    Failed(String),
}

/// What completed an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopCause {
    /// An end-of-generation token.
    EndToken,
    /// One of the request's stop strings, this one.
    Word(String),
}

/// Tokens of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens in the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that needed no computation because another request had left them in the cache.
    pub cached_tokens: usize,
    /// Tokens generated, an end-of-generation token included.
    pub completion_tokens: usize,
}

/// Where a request's time went. The three spans add up to its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    /// From submission to its first step.
    pub queue: Duration,
    /// From there to its first token.
    pub prefill: Duration,
    /// From there to its end.
    pub decode: Duration,
    /// From submission to the first token, where there was one.
    pub first_token: Option<Duration>,
}
