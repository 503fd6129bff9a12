//! Settings of an engine, and what an engine says about itself.

use dynalm_model::{BLOCK_TOKENS, KvType};

use crate::block_pool::blocks_for;
use crate::{EngineError, StepModel};

/// Settings of an [`Engine`](crate::Engine).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineConfig {
    /// Tokens of prompt and answer together that a request may have. `None`: what the model was trained for,
    /// which is also the upper limit. Less where the KV cache holds less.
    pub context_len: Option<usize>,
    /// Element type of the KV cache. Default f16.
    pub kv_type: KvType,
    /// Bytes of the KV cache. `None`: half of the memory that is available after a headroom, at most what
    /// `max_sequences` full contexts could use, and at most 4 GiB unless one full context needs more.
    /// The pages are touched on first use, so an idle engine holds almost none of it.
    pub kv_bytes: Option<u64>,
    /// Sequences that may be computed at once; others wait. 1 to `max_step_rows`, default 64.
    pub max_sequences: usize,
    /// Requests that may wait beyond `max_sequences`. Default 256.
    pub max_queue: usize,
    /// Rows of prefill in a step while other sequences decode: it bounds how long their next token waits.
    /// 1 to `max_step_rows`, default 64.
    pub prefill_chunk: usize,
    /// Rows in a step. 1 to 65536, default 512.
    pub max_step_rows: usize,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            context_len: None,
            kv_type: KvType::default(),
            kv_bytes: None,
            max_sequences: 64,
            max_queue: 256,
            prefill_chunk: 64,
            max_step_rows: 512,
        }
    }
}

impl EngineConfig {
    /// Checks each field against its range.
    ///
    /// # Errors
    /// [`EngineError::InvalidConfig`] with field and range.
    pub fn validate(&self) -> Result<(), EngineError> {
        let check = |field, value: usize, low: usize, high: usize| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(EngineError::InvalidConfig {
                field,
                message: format!("must be between {low} and {high}, found {value}"),
            })
        };
        check("max_step_rows", self.max_step_rows, 1, 65_536)?;
        check("max_sequences", self.max_sequences, 1, self.max_step_rows)?;
        check("prefill_chunk", self.prefill_chunk, 1, self.max_step_rows)?;
        check("max_queue", self.max_queue, 0, 1_000_000)?;
        match self.context_len {
            Some(context_len) => check("context_len", context_len, 2, usize::MAX),
            None => Ok(()),
        }
    }
}

/// What a model is, for [`EngineInfo`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelInfo {
    /// Architecture as the file names it.
    pub arch: String,
    /// Quantization label, such as `Q4_K_M`; empty where unknown.
    pub quantization: String,
    /// Parameters.
    pub n_params: u64,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Tokens of context the model was trained for.
    pub n_ctx_train: usize,
    /// Instruction set of the kernels.
    pub isa: String,
    /// Threads of the kernels.
    pub threads: usize,
}

/// What an engine is; does not change while it lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineInfo {
    /// Architecture as the file names it.
    pub arch: String,
    /// Quantization label, such as `Q4_K_M`; empty where unknown.
    pub quantization: String,
    /// Parameters.
    pub n_params: u64,
    /// Bytes of the weights.
    pub weight_bytes: u64,
    /// Tokens in the vocabulary.
    pub vocab_size: usize,
    /// Tokens of context the model was trained for.
    pub n_ctx_train: usize,
    /// Tokens of prompt and answer together that a request may have.
    pub n_ctx: usize,
    /// Element type of the KV cache.
    pub kv_type: KvType,
    /// Blocks of the KV cache.
    pub kv_blocks: usize,
    /// Tokens in a block.
    pub kv_block_tokens: usize,
    /// Bytes of the KV cache.
    pub kv_bytes: u64,
    /// Sequences computed at once.
    pub max_sequences: usize,
    /// Requests that may wait beyond those.
    pub max_queue: usize,
    /// Instruction set of the kernels.
    pub isa: String,
    /// Threads of the kernels.
    pub threads: usize,
}

impl EngineInfo {
    /// # Errors
    /// [`EngineError::NotEnoughMemory`] where the cache does not hold a context that was asked for.
    pub(crate) fn new(
        model: &dyn StepModel,
        info: ModelInfo,
        config: &EngineConfig,
    ) -> Result<Self, EngineError> {
        let kv_blocks = model.n_blocks();
        let kv_tokens = kv_blocks * BLOCK_TOKENS;
        let n_ctx = config
            .context_len
            .unwrap_or(info.n_ctx_train)
            .min(info.n_ctx_train);
        // A context that nobody asked for may shrink to what the cache holds, down to one token and its answer.
        let needed = if config.context_len.is_some() {
            n_ctx
        } else {
            2
        };
        if kv_tokens < needed {
            return Err(EngineError::NotEnoughMemory {
                needed_bytes: blocks_for(needed) as u64 * model.block_bytes(),
                available_bytes: kv_blocks as u64 * model.block_bytes(),
            });
        }
        Ok(Self {
            arch: info.arch,
            quantization: info.quantization,
            n_params: info.n_params,
            weight_bytes: info.weight_bytes,
            vocab_size: model.vocab_size(),
            n_ctx_train: info.n_ctx_train,
            n_ctx: n_ctx.min(kv_tokens),
            kv_type: config.kv_type,
            kv_blocks,
            kv_block_tokens: BLOCK_TOKENS,
            kv_bytes: kv_blocks as u64 * model.block_bytes(),
            max_sequences: config.max_sequences,
            max_queue: config.max_queue,
            isa: info.isa,
            threads: info.threads,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_valid_and_faults_are_named() {
        assert!(EngineConfig::default().validate().is_ok());
        let base = EngineConfig::default;
        for (field, config) in [
            (
                "max_sequences",
                EngineConfig {
                    max_sequences: 0,
                    ..base()
                },
            ),
            (
                "max_sequences",
                EngineConfig {
                    max_sequences: 513,
                    ..base()
                },
            ),
            (
                "prefill_chunk",
                EngineConfig {
                    prefill_chunk: 0,
                    ..base()
                },
            ),
            (
                "max_step_rows",
                EngineConfig {
                    max_step_rows: 0,
                    ..base()
                },
            ),
            (
                "max_queue",
                EngineConfig {
                    max_queue: usize::MAX,
                    ..base()
                },
            ),
            (
                "context_len",
                EngineConfig {
                    context_len: Some(1),
                    ..base()
                },
            ),
        ] {
            let error = config.validate().expect_err(field).to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }
}
