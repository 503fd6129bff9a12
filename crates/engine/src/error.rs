//! Why the engine does not start, and why it does not take a request.

/// Why an engine could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A field of [`EngineConfig`](crate::EngineConfig) is out of its range.
    #[error("{field} {message}")]
    InvalidConfig {
        /// The field's name.
        field: &'static str,
        /// Its range and what was found.
        message: String,
    },
    /// Not even one block of the KV cache fits.
    #[error(
        "not enough memory for the KV cache: {available_bytes} bytes are available for it, one block takes {needed_bytes}"
    )]
    NotEnoughMemory {
        /// Bytes of the smallest possible cache.
        needed_bytes: u64,
        /// Bytes that may be used.
        available_bytes: u64,
    },
    /// The model refused.
    #[error("the model could not be set up")]
    Model(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The operating system gave no thread.
    #[error("the engine's thread could not be started")]
    Thread(#[source] std::io::Error),
}

/// Why a request was refused; nothing of it is kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// As many requests wait as may wait.
    #[error("the queue is full: {limit} requests are waiting already")]
    QueueFull {
        /// Requests that may wait.
        limit: usize,
    },
    /// The prompt leaves no room for one more token.
    #[error(
        "the prompt has {n_prompt_tokens} tokens, which does not fit the context of {n_ctx} tokens"
    )]
    PromptTooLong {
        /// Tokens in the prompt.
        n_prompt_tokens: usize,
        /// Tokens of prompt and answer together that a request may have.
        n_ctx: usize,
    },
    /// A prompt needs at least one token.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// A token id that the vocabulary does not have.
    #[error(
        "token {token} at position {position} is out of range: the vocabulary has {vocab_size} tokens"
    )]
    TokenOutOfRange {
        /// The id.
        token: u32,
        /// Where it was found, in the prompt or in the list of biases.
        position: usize,
        /// Tokens in the vocabulary.
        vocab_size: usize,
    },
    /// A field is out of its range.
    #[error("{field} {message}")]
    Invalid {
        /// The field's name, as in [`Request`](crate::Request) and [`Sampling`](crate::Sampling).
        field: &'static str,
        /// Its range and what was found.
        message: String,
    },
    /// The engine is draining or has shut down.
    #[error("the engine takes no more requests: it is shutting down")]
    Draining,
}

impl SubmitError {
    pub(crate) fn invalid(field: &'static str, message: String) -> Self {
        Self::Invalid { field, message }
    }
}
