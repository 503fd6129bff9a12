//! The one thing the engine asks of a model: rows in, logits out, over numbered KV blocks.
//!
//! The engine never sees a tensor; with a stand-in model all of it is tested without one.

use dynalm_model::Batch;

/// Why a step failed.
pub type StepError = Box<dyn std::error::Error + Send + Sync>;

/// A model together with its KV cache.
pub trait StepModel: Send {
    /// Tokens in the vocabulary: floats in each row of logits.
    fn vocab_size(&self) -> usize;

    /// KV blocks there are; ids are `0..n_blocks`.
    fn n_blocks(&self) -> usize;

    /// Bytes of one KV block.
    fn block_bytes(&self) -> u64;

    /// One forward pass: writes the rows' keys and values into their blocks and returns the logits of the
    /// rows that want them, `[n_rows_wanted, vocab_size]` in batch order.
    ///
    /// # Errors
    /// Whatever keeps the pass from ending; the blocks of the batch's sequences are then undefined, all others intact.
    fn forward(&mut self, batch: &Batch<'_>) -> Result<&[f32], StepError>;

    /// Copies the keys and values of one block to another.
    fn copy_block(&mut self, from: u32, to: u32);
}
