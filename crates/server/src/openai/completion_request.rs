//! The body of `POST /v1/completions`, checked.

use dynalm_engine::Sampling;
use serde_json::Value;

use crate::api_error::{ApiError, ApiResult, ErrorKind};
use crate::config::LimitsConfig;
use crate::model::ServedModel;
use crate::request::fields::Fields;
use crate::request::options::{GenerationOptions, parse_options};
use crate::request::prompt::{Prompt, parse_prompts};
use crate::request::refused::check_completion;
use crate::request::sampling::parse_sampling;

/// Most alternatives beside each token.
const MAX_LOGPROBS: i64 = 20;

/// A completion request whose every field is in range.
#[derive(Debug, Clone)]
pub(crate) struct CompletionRequest {
    pub(crate) options: GenerationOptions,
    pub(crate) sampling: Sampling,
    pub(crate) prompts: Vec<Prompt>,
    /// Log-probabilities with so many alternatives.
    pub(crate) logprobs: Option<usize>,
    /// The prompt is repeated before the answer.
    pub(crate) echo: bool,
}

impl CompletionRequest {
    /// Reads the body.
    pub(crate) fn parse(
        body: &Value,
        model: &ServedModel,
        limits: &LimitsConfig,
    ) -> ApiResult<Self> {
        let fields = Fields::new(body, "")?;
        model.check_name(fields.string("model")?)?;
        check_completion(&fields)?;
        let options = parse_options(&fields, limits.max_choices)?;
        let prompts = parse_prompts(
            fields.require("prompt")?,
            model.vocab_size(),
            limits.max_choices,
        )?;
        if prompts.len() * options.n > limits.max_choices {
            let message = format!(
                "'n' times the number of prompts must be at most {}, got {} times {}",
                limits.max_choices,
                options.n,
                prompts.len()
            );
            return Err(ApiError::field("n", message));
        }
        let logprobs = fields.count("logprobs", 0..=MAX_LOGPROBS)?;
        let echo = fields.boolean("echo")?.unwrap_or(false);
        if echo && logprobs.is_some() {
            // It would ask for the prompt's own log-probabilities.
            let message = "'echo' together with 'logprobs' is not supported by this server";
            return Err(ApiError {
                param: Some("echo".to_owned()),
                ..ApiError::new(ErrorKind::NotSupported, message)
            });
        }
        let sampling = parse_sampling(&fields, model.vocab_size(), model.tokenizer())?;
        Ok(Self {
            options,
            sampling,
            prompts,
            logprobs,
            echo,
        })
    }
}
