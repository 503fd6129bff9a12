//! Text to tokens and back, and conversations to text.
//!
//! Knows the tokenizer keys of a GGUF file; knows no tensors, no model and no request.

mod chat;
mod detokenizer;
mod tokenizer;

pub use chat::{ChatInput, ChatTemplate, Limits as TemplateLimits, TemplateError};
pub use detokenizer::Detokenizer;
pub use tokenizer::{DecodeOptions, EncodeOptions, Tokenizer, TokenizerError, TokenizerKind};
