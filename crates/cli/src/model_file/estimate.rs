//! Memory that a model will need.

use dynalm_gguf::Metadata;
use dynalm_model::{KvType, ModelConfig};
use serde::Serialize;

/// Memory in bytes.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Estimate {
    /// Context of one user, in tokens.
    pub(crate) context_len: u64,
    /// Users at once.
    pub(crate) users: u64,
    /// Weights.
    pub(crate) weight_bytes: u64,
    /// Keys and values of all users' full contexts.
    pub(crate) kv_bytes: u64,
    /// Buffers of a step, tokenizer, the program.
    pub(crate) other_bytes: u64,
    /// All of it.
    pub(crate) total_bytes: u64,
}

/// The program itself and its threads.
const BASE_BYTES: u64 = 40 << 20;
/// Rows that a step computes at most.
const STEP_ROWS: u64 = 512;

/// Estimates the memory for `users` contexts of `context_len` tokens (that of the training where it is 0).
pub(crate) fn estimate(
    metadata: &Metadata,
    weight_bytes: u64,
    context_len: usize,
    users: u32,
    kv_type: KvType,
) -> Option<Estimate> {
    let config = ModelConfig::from_gguf(metadata).ok()?;
    let trained = config.context_len as u64;
    let context_len = if context_len == 0 {
        trained
    } else {
        (context_len as u64).min(trained)
    };
    let per_token = config.kv_bytes_per_token(kv_type);
    let kv_bytes = per_token
        .saturating_mul(context_len)
        .saturating_mul(u64::from(users));
    // Hidden state, attention and FFN rows as f32 and as int8, and one row of logits a user.
    let row_bytes = (config.hidden_size as u64).saturating_mul(4 * 16);
    let logits = (config.vocab_size as u64)
        .saturating_mul(4)
        .saturating_mul(u64::from(users));
    let other_bytes = BASE_BYTES
        .saturating_add(STEP_ROWS.saturating_mul(row_bytes))
        .saturating_add(logits);
    let total_bytes = weight_bytes
        .saturating_add(kv_bytes)
        .saturating_add(other_bytes);
    Some(Estimate {
        context_len,
        users: u64::from(users),
        weight_bytes,
        kv_bytes,
        other_bytes,
        total_bytes,
    })
}
