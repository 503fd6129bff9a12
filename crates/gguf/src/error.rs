//! What can be wrong with a file.

use std::path::PathBuf;

/// Why a GGUF file was refused, or a key could not be read as asked.
///
/// Offsets are bytes from the beginning of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the fields are what the messages say they are
pub enum GgufError {
    #[error("cannot read {}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    #[error("in {}: {source}", path.display())]
    Shard {
        path: PathBuf,
        source: Box<GgufError>,
    },

    #[error("not a GGUF file: it begins with {found:02x?} instead of \"GGUF\"")]
    NotGguf { found: Vec<u8> },
    #[error("big-endian GGUF file: only little-endian files are supported")]
    BigEndian,
    #[error("GGUF version {version} is not supported (versions 2 and 3 are)")]
    UnsupportedVersion { version: u32 },

    /// Only from [`crate::Header::parse`]: the prefix given ends before the header does.
    #[error(
        "the header goes on after the {have} bytes given: at least {need} are needed to read {what}"
    )]
    NeedMore { have: u64, need: u64, what: String },
    #[error(
        "{what} at byte offset {offset} needs {needed} bytes but only {left} are left in the file: truncated?"
    )]
    Truncated {
        what: String,
        offset: u64,
        needed: u64,
        left: u64,
    },
    #[error("{what} at byte offset {offset}: {found} is over the limit of {limit}")]
    OverLimit {
        what: String,
        offset: u64,
        found: u64,
        limit: u64,
    },

    #[error("{what} at byte offset {offset} is not valid UTF-8")]
    InvalidUtf8 { what: String, offset: u64 },
    #[error("{what} at byte offset {offset} is empty")]
    EmptyName { what: String, offset: u64 },
    #[error("key {key:?} at byte offset {offset} occurs twice")]
    DuplicateKey { key: String, offset: u64 },
    #[error("key {key:?}: value type {type_id} at byte offset {offset} is unknown")]
    UnknownValueType {
        key: String,
        type_id: u32,
        offset: u64,
    },
    #[error(
        "key {key:?}: array of arrays at byte offset {offset}; nested arrays are not supported"
    )]
    NestedArray { key: String, offset: u64 },
    #[error("key {key:?}: {found} at byte offset {offset} is neither 0 nor 1 as a bool must be")]
    InvalidBool { key: String, found: u8, offset: u64 },

    #[error("key {key:?} is missing")]
    MissingKey { key: String },
    #[error("key {key:?}: expected {expected}, found {found}")]
    WrongType {
        key: String,
        expected: &'static str,
        found: &'static str,
    },
    #[error("key {key:?}: {value} does not fit {expected}")]
    ValueOutOfRange {
        key: String,
        value: String,
        expected: &'static str,
    },
    #[error("key \"general.alignment\": {alignment} is not a power of two between 1 and {limit}")]
    InvalidAlignment { alignment: u64, limit: u64 },

    #[error("tensor {tensor:?} at byte offset {offset} occurs twice")]
    DuplicateTensor { tensor: String, offset: u64 },
    #[error("tensor {tensor:?}: type {type_id} at byte offset {offset} is unknown")]
    UnknownTensorType {
        tensor: String,
        type_id: u32,
        offset: u64,
    },
    #[error("tensor {tensor:?}: {n_dims} dimensions at byte offset {offset}; there must be 1 to 4")]
    InvalidDimensionCount {
        tensor: String,
        n_dims: u32,
        offset: u64,
    },
    #[error("tensor {tensor:?}: dimensions {dims:?} at byte offset {offset} include zero")]
    ZeroDimension {
        tensor: String,
        dims: Vec<u64>,
        offset: u64,
    },
    #[error(
        "tensor {tensor:?}: the size of {ggml_type} dimensions {dims:?} at byte offset {offset} overflows"
    )]
    SizeOverflow {
        tensor: String,
        ggml_type: crate::GgmlType,
        dims: Vec<u64>,
        offset: u64,
    },
    #[error(
        "tensor {tensor:?} at byte offset {offset}: rows of {columns} elements are not a whole number of {ggml_type} blocks of {block_len}"
    )]
    PartialBlock {
        tensor: String,
        ggml_type: crate::GgmlType,
        columns: u64,
        block_len: u64,
        offset: u64,
    },
    #[error(
        "tensor {tensor:?}: data offset {data_offset} (at byte offset {offset}) is not a multiple of the alignment {alignment}"
    )]
    MisalignedTensor {
        tensor: String,
        data_offset: u64,
        alignment: u64,
        offset: u64,
    },
    #[error(
        "tensor {tensor:?}: data at byte offset {offset} with {n_bytes} bytes needs a file of {needed} bytes, but it has {file_len}: truncated?"
    )]
    TensorOutOfFile {
        tensor: String,
        offset: u64,
        n_bytes: u64,
        needed: u128,
        file_len: u64,
    },
    #[error("tensor {tensor:?}: data at byte offset {offset} overlaps that of tensor {other:?}")]
    OverlappingTensors {
        tensor: String,
        other: String,
        offset: u64,
    },

    #[error("{} is shard {number} of {count}: give the first shard of the set", path.display())]
    NotFirstShard {
        path: PathBuf,
        number: u64,
        count: u64,
    },
    #[error("{} says it is the first of {count} shards, so its name must end in -00001-of-{count:05}.gguf", path.display())]
    ShardName { path: PathBuf, count: u64 },
    #[error("key {key:?}: {found} does not fit the set, which has {expected}")]
    ShardMismatch {
        key: &'static str,
        found: u64,
        expected: u64,
    },
}
