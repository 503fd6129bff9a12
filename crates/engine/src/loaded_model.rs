//! A [`Model`] with its KV cache as the engine's model, and the engine's usual start.

use std::sync::Arc;

use dynalm_model::{BLOCK_TOKENS, Batch, KvCache, Model};
use dynalm_text::Tokenizer;

use crate::memory::{available_bytes, kv_blocks};
use crate::{Engine, EngineConfig, EngineError, ModelInfo, StepError, StepModel};

struct LoadedModel {
    model: Model,
    kv: KvCache,
}

impl StepModel for LoadedModel {
    fn vocab_size(&self) -> usize {
        self.model.config().vocab_size
    }

    fn n_blocks(&self) -> usize {
        self.kv.n_blocks()
    }

    fn block_bytes(&self) -> u64 {
        self.kv.bytes_per_block()
    }

    fn forward(&mut self, batch: &Batch<'_>) -> Result<&[f32], StepError> {
        Ok(self.model.forward(&mut self.kv, batch)?)
    }

    fn copy_block(&mut self, from: u32, to: u32) {
        self.kv.copy_block(from, to);
    }
}

impl Engine {
    /// Starts serving a model. The KV cache is reserved here, as large as [`EngineConfig::kv_bytes`] says.
    ///
    /// # Errors
    /// [`EngineError`] for a setting out of range, too little memory, or where no thread can be started.
    pub fn start(
        model: Model,
        tokenizer: Arc<Tokenizer>,
        config: EngineConfig,
    ) -> Result<Self, EngineError> {
        config.validate()?;
        let model_config = model.config();
        let block_bytes = model_config.kv_bytes_per_token(config.kv_type) * BLOCK_TOKENS as u64;
        let n_blocks = kv_blocks(
            &config,
            block_bytes,
            model_config.context_len,
            available_bytes(),
        )?;
        let kv = model
            .new_kv(n_blocks, config.kv_type)
            .map_err(|error| EngineError::Model(error.into()))?;
        let info = ModelInfo {
            arch: model_config.arch.to_owned(),
            quantization: String::new(),
            n_params: model.n_params(),
            weight_bytes: model.weight_bytes(),
            n_ctx_train: model_config.context_len,
            isa: model.isa().to_owned(),
            threads: model.threads(),
        };
        let engine =
            Self::start_with(Box::new(LoadedModel { model, kv }), tokenizer, info, config)?;
        tracing::info!(info = ?engine.info(), "the engine has started");
        Ok(engine)
    }
}
