//! Requests in, token streams out.
//!
//! One thread owns every sequence and the KV blocks and repeats one **step**: choose rows of any number of
//! sequences at any phase, one forward pass over them, sample, send. Knows no HTTP and no tensors.
//!
//! ```
//! use std::sync::Arc;
//! use dynalm_engine::{Engine, EngineConfig, Event, Request, fake_model::FakeModel};
//!
//! # fn example(tokenizer: Arc<dynalm_text::Tokenizer>) -> Result<(), Box<dyn std::error::Error>> {
//! let model = Box::new(FakeModel::new(tokenizer.vocab_size(), 64));
//! let engine = Engine::start_with(model, tokenizer, FakeModel::info(2048), EngineConfig::default())?;
//! let mut generation = engine.submit(Request { max_tokens: Some(16), ..Request::new(vec![1, 2, 3]) })?;
//! let mut text = String::new();
//! while let Some(event) = generation.next_blocking() {
//!     match event {
//!         Event::Token(token) => text += &token.text,
//!         Event::Finished(finish) => text += &finish.text,
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: [`Request`], [`Sampling`], [`Event`], [`Engine`]; then `core` (the step), `scheduler` (which rows),
//! `block_pool` (which blocks), `sequence`, `sampler`, `answer_text` and `stop` (what goes out).

mod answer_text;
mod block_pool;
mod config;
mod core;
mod engine;
mod error;
mod event;
pub mod fake_model;
mod generation;
#[allow(
    dead_code,
    reason = "loaded_model.rs joins as soon as dynalm_model exports Model"
)]
mod memory;
mod random;
mod request;
mod sampler;
mod sampling;
mod scheduler;
mod sequence;
mod stats;
mod step_model;
mod stop;

pub use config::{EngineConfig, EngineInfo, ModelInfo};
pub use dynalm_model::KvType;
pub use engine::Engine;
pub use error::{EngineError, SubmitError};
pub use event::{
    Event, Finish, FinishReason, StopCause, Timings, TokenEvent, TokenLogprob, TokenLogprobs, Usage,
};
pub use generation::Generation;
pub use memory::available_bytes;
pub use request::{MAX_LOGPROBS, MAX_STOP_BYTES, MAX_STOP_STRINGS, Request};
pub use sampling::Sampling;
pub use stats::{EngineStats, Histogram, LATENCY_BOUNDS, RequestCounts};
pub use step_model::{StepError, StepModel};
