//! What can be wrong with a request to (de)quantize.

use dynalm_gguf::GgmlType;

/// Why data was not converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what the messages say they are
pub enum QuantError {
    #[error("type {0} is not supported")]
    Unsupported(GgmlType),
    #[error("{len} {unit} are not a whole number of blocks of {block}")]
    PartialBlock {
        len: usize,
        block: usize,
        unit: &'static str,
    },
    #[error("{n_values} values do not fit {n_bytes} bytes of {ggml_type}")]
    LengthMismatch {
        ggml_type: GgmlType,
        n_values: usize,
        n_bytes: usize,
    },
    #[error("blocks must be aligned to {align} bytes")]
    Misaligned { align: usize },
    #[error("value {index} is not finite, which {ggml_type} cannot hold")]
    NotFinite { ggml_type: GgmlType, index: usize },
}
