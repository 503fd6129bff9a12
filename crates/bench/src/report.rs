//! What was measured.

use serde::Serialize;

use crate::{Spread, Work};

/// What was measured. Rates are in units per second, times in milliseconds, sizes in bytes; what was not measured is absent
/// (`null`), never 0.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of this program.
    pub version: &'static str,
    /// The model.
    pub model: ModelReport,
    /// The machine.
    pub machine: MachineReport,
    /// From opening the file to a model that can run.
    pub load_ms: f64,
    /// Resident memory once loaded.
    pub resident_bytes: Option<u64>,
    /// The most resident memory over the whole run.
    pub peak_resident_bytes: Option<u64>,
    /// Prompts alone.
    pub prefill: Vec<PrefillResult>,
    /// Answers alone.
    pub decode: Vec<DecodeResult>,
    /// From a request to its first token.
    pub first_token: Vec<FirstTokenResult>,
}

/// The model.
#[derive(Debug, Clone, Serialize)]
pub struct ModelReport {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: std::path::PathBuf,
    /// Its architecture.
    pub arch: String,
    /// Its parameters.
    pub n_params: u64,
    /// Its file's size.
    pub file_bytes: u64,
    /// What a token costs.
    pub work: Work,
}

/// The machine, as measured between the repeats.
#[derive(Debug, Clone, Serialize)]
pub struct MachineReport {
    /// The processor.
    pub cpu: String,
    /// Instruction set of the kernels.
    pub isa: &'static str,
    /// Threads that computed.
    pub threads: usize,
    /// Type of the stored keys and values.
    pub kv_type: String,
    /// int8 multiply-adds a second of all threads.
    pub int8_peak: Option<Spread>,
    /// Bytes a second that all threads read from memory.
    pub read_bandwidth: Option<Spread>,
}

/// A prompt of one length.
#[derive(Debug, Clone, Serialize)]
pub struct PrefillResult {
    /// Its length.
    pub n_tokens: usize,
    /// Tokens a second.
    pub tok_s: Spread,
    /// Share of the int8 peak that the layers' matrices reached.
    pub int8_share: Option<f64>,
}

/// Tokens of one or several users, one a step each.
#[derive(Debug, Clone, Serialize)]
pub struct DecodeResult {
    /// Users stepped together.
    pub users: usize,
    /// Tokens of each.
    pub n_tokens: usize,
    /// Tokens a second of all users together.
    pub tok_s: Spread,
    /// Share of the read bandwidth at which the weights were read.
    pub bandwidth_share: Option<f64>,
}

/// A request to an idle engine.
#[derive(Debug, Clone, Serialize)]
pub struct FirstTokenResult {
    /// Length of its prompt.
    pub n_tokens: usize,
    /// From submission to the first token.
    pub ms: Spread,
}
