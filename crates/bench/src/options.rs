//! What to measure.

use dynalm_model::KvType;

/// What to measure.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Prompt lengths in tokens.
    pub prompt_lens: Vec<usize>,
    /// Tokens that each user decodes in one repeat.
    pub decode_tokens: usize,
    /// Numbers of users whose tokens are decoded in one step.
    pub users: Vec<usize>,
    /// Times that each measurement is repeated, after one that is not counted.
    pub repeats: usize,
    /// Threads that compute; `None` lets the model choose.
    pub threads: Option<usize>,
    /// Type of the stored keys and values.
    pub kv_type: KvType,
    /// What to call the model in the report.
    pub model_name: String,
    /// What to call the processor in the report.
    pub cpu_name: String,
}

/// Tokens that are in the cache before decoding starts.
pub(crate) const DECODE_DEPTH: usize = 32;
/// Rows of one prefill step.
pub(crate) const STEP_ROWS: usize = 512;

impl BenchOptions {
    /// Names the first option that is out of range, with the range.
    pub(crate) fn fault(&self, context_len: usize) -> Option<String> {
        let checks = [
            ("repeats", vec![self.repeats], 1, 1000),
            (
                "decode",
                vec![self.decode_tokens],
                1,
                context_len.saturating_sub(DECODE_DEPTH),
            ),
            (
                "prompt",
                self.prompt_lens.clone(),
                1,
                context_len.saturating_sub(1),
            ),
            ("users", self.users.clone(), 1, STEP_ROWS),
        ];
        checks.into_iter().find_map(|(name, values, low, high)| {
            let wrong = values
                .into_iter()
                .find(|value| !(low..=high).contains(value))?;
            Some(format!("{name}: {wrong} is out of range ({low} to {high})"))
        })
    }
}
