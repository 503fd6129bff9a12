//! How much a token costs: multiply-adds and bytes of weights, counted from the file's tensors.

use dynalm_gguf::{GgufFile, TensorInfo};
use serde::Serialize;

/// What one token costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Work {
    /// Multiply-adds of a prompt token: all matrices of the layers, of experts the share that is used.
    pub prefill_macs: f64,
    /// Bytes of weights that a decode step for one user reads: those matrices and the output's.
    pub decode_bytes: f64,
    /// Whether the layers have experts: then several users read more than one does.
    pub has_experts: bool,
}

impl Work {
    /// Counts the tensors of a file.
    pub fn of(file: &GgufFile) -> Work {
        let used = expert_share(file);
        let share = |tensor: &TensorInfo| {
            if tensor.name.contains("_exps") {
                used
            } else {
                1.0
            }
        };
        let matrices = || file.tensors().iter().filter(|tensor| tensor.dims.len() > 1);
        let layers = || matrices().filter(|tensor| tensor.name.starts_with("blk."));
        let head = file
            .tensor("output.weight")
            .or_else(|| file.tensor("token_embd.weight"));
        Work {
            prefill_macs: layers()
                .map(|tensor| tensor.n_elements() as f64 * share(tensor))
                .sum(),
            decode_bytes: layers()
                .map(|tensor| tensor.n_bytes as f64 * share(tensor))
                .sum::<f64>()
                + head.map_or(0.0, |tensor| tensor.n_bytes as f64),
            has_experts: layers().any(|tensor| tensor.name.contains("_exps")),
        }
    }
}

fn expert_share(file: &GgufFile) -> f64 {
    let arch = file.metadata().architecture().unwrap_or_default();
    let number = |key: &str| {
        file.metadata()
            .opt_u64(&format!("{arch}.{key}"))
            .ok()
            .flatten()
    };
    match (number("expert_used_count"), number("expert_count")) {
        (Some(used), Some(all)) if all > 0 => used as f64 / all as f64,
        _ => 1.0,
    }
}
