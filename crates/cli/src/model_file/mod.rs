//! What a model file's header tells without reading a weight: what it is, what it needs, whether it runs here.

mod estimate;

use std::collections::BTreeMap;
use std::path::Path;

use dynalm_gguf::{GgufError, GgufFile, Header, Metadata, TensorInfo};
use dynalm_model::{ModelConfig, SUPPORTED_ARCHITECTURES};
use serde::Serialize;

pub(crate) use estimate::{Estimate, estimate};

/// What a header tells.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Report {
    /// Architecture, as the file names it.
    pub(crate) arch: String,
    /// The model's own name.
    pub(crate) name: Option<String>,
    /// Quantization of the whole, such as `Q4_K_M`.
    pub(crate) quantization: String,
    /// Tensor types, most bytes first.
    pub(crate) types: Vec<TypeShare>,
    /// Number of parameters.
    pub(crate) n_params: u64,
    /// Size of the file, all shards together where they are here.
    pub(crate) file_bytes: u64,
    /// Context the model was trained for.
    pub(crate) context_len: Option<u64>,
    /// Why it cannot be run; absent where it can.
    pub(crate) refused: Option<String>,
}

/// One tensor type of a file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TypeShare {
    /// Its name.
    #[serde(rename = "type")]
    pub(crate) name: String,
    /// Tensors of it.
    pub(crate) n_tensors: usize,
    /// Their bytes.
    pub(crate) n_bytes: u64,
}

/// How much of a file is read before its header is looked at for the first time.
pub(crate) const FIRST_LOOK_BYTES: u64 = 256 << 10;
/// No header is longer.
pub(crate) const MAX_HEADER_BYTES: u64 = dynalm_gguf::limits::HEADER_BYTES;

/// Judges a file by its first bytes; `None` where they end inside the header.
///
/// # Errors
/// Not a GGUF file, or one whose header is wrong: with key or tensor and offset.
pub(crate) fn judge(prefix: &[u8], file_len: u64) -> Result<Option<Report>, GgufError> {
    match Header::parse(prefix, file_len) {
        Ok(header) => Ok(Some(report(header.metadata(), header.tensors(), file_len))),
        Err(GgufError::NeedMore { .. }) if (prefix.len() as u64) < file_len => Ok(None),
        Err(error) => Err(error),
    }
}

/// Judges a file that is here.
///
/// # Errors
/// As [`judge`].
pub(crate) fn report_of_path(path: &Path) -> Result<Report, GgufError> {
    Ok(report_of_file(&GgufFile::open(path)?))
}

/// Judges an open file.
pub(crate) fn report_of_file(file: &GgufFile) -> Report {
    let mut report = report(file.metadata(), file.tensors(), file.file_bytes());
    if report.refused.is_none() {
        report.refused = dynalm_model::check_supported(file)
            .err()
            .map(|error| chain(&error));
    }
    report
}

fn report(metadata: &Metadata, tensors: &[TensorInfo], file_bytes: u64) -> Report {
    let arch = metadata.architecture().unwrap_or("unknown").to_owned();
    let context_len = metadata
        .opt_u64(&format!("{arch}.context_length"))
        .ok()
        .flatten();
    let types = types(tensors);
    Report {
        name: metadata
            .opt_str("general.name")
            .ok()
            .flatten()
            .map(str::to_owned),
        quantization: quantization(metadata, &types),
        n_params: tensors
            .iter()
            .map(TensorInfo::n_elements)
            .fold(0, u64::saturating_add),
        file_bytes,
        context_len,
        refused: refusal(metadata, tensors),
        types,
        arch,
    }
}

/// What the header alone speaks against: architecture, tensor types, numbers.
fn refusal(metadata: &Metadata, tensors: &[TensorInfo]) -> Option<String> {
    let arch = match metadata.architecture() {
        Ok(arch) => arch,
        Err(error) => return Some(error.to_string()),
    };
    if !SUPPORTED_ARCHITECTURES.contains(&arch) {
        let arch = crate::terminal::printable(arch);
        let known = SUPPORTED_ARCHITECTURES.join(", ");
        return Some(format!(
            "architecture `{arch}` is not supported; supported are {known}"
        ));
    }
    if let Some(tensor) = tensors
        .iter()
        .find(|tensor| !dynalm_quant::is_supported(tensor.ggml_type))
    {
        return Some(format!(
            "tensor {}: type {} is not supported",
            tensor.name, tensor.ggml_type
        ));
    }
    ModelConfig::from_gguf(metadata)
        .err()
        .map(|error| chain(&error))
}

/// An error with all its causes on one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

fn types(tensors: &[TensorInfo]) -> Vec<TypeShare> {
    let mut shares: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for tensor in tensors {
        let share = shares.entry(tensor.ggml_type.name()).or_default();
        share.0 += 1;
        share.1 = share.1.saturating_add(tensor.n_bytes);
    }
    let mut types: Vec<TypeShare> = shares
        .into_iter()
        .map(|(name, (n_tensors, n_bytes))| TypeShare {
            name: name.to_owned(),
            n_tensors,
            n_bytes,
        })
        .collect();
    types.sort_by_key(|share| std::cmp::Reverse(share.n_bytes));
    types
}

/// Names of `general.file_type`, by number.
const FILE_TYPES: &[(u64, &str)] = &[
    (0, "F32"),
    (1, "F16"),
    (2, "Q4_0"),
    (3, "Q4_1"),
    (7, "Q8_0"),
    (8, "Q5_0"),
    (9, "Q5_1"),
    (10, "Q2_K"),
    (11, "Q3_K_S"),
    (12, "Q3_K_M"),
    (13, "Q3_K_L"),
    (14, "Q4_K_S"),
    (15, "Q4_K_M"),
    (16, "Q5_K_S"),
    (17, "Q5_K_M"),
    (18, "Q6_K"),
    (19, "IQ2_XXS"),
    (20, "IQ2_XS"),
    (21, "Q2_K_S"),
    (22, "IQ3_XS"),
    (23, "IQ3_XXS"),
    (24, "IQ1_S"),
    (25, "IQ4_NL"),
    (26, "IQ3_S"),
    (27, "IQ3_M"),
    (28, "IQ2_S"),
    (29, "IQ2_M"),
    (30, "IQ4_XS"),
    (31, "IQ1_M"),
    (32, "BF16"),
    (36, "TQ1_0"),
    (37, "TQ2_0"),
    (38, "MXFP4"),
];

fn quantization(metadata: &Metadata, types: &[TypeShare]) -> String {
    let number = metadata.opt_u64("general.file_type").ok().flatten();
    let named = FILE_TYPES
        .iter()
        .find(|(id, _)| Some(*id) == number)
        .map(|(_, name)| (*name).to_owned());
    named
        .or_else(|| types.first().map(|share| share.name.clone()))
        .unwrap_or_default()
}
