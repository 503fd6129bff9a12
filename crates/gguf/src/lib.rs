//! The GGUF file format (versions 2 and 3, little endian), read through a checked memory map, and written.
//!
//! Knows bytes, keys and tensors; knows nothing of what they mean to a model. Nothing in a file is believed
//! before it is checked: every length, count, offset, type and alignment, with arithmetic that cannot wrap, and
//! no memory is allocated for a number that the bytes left in the file cannot back. A file that [`GgufFile::open`]
//! accepts has tensors that lie inside it, do not overlap, and are whole rows of whole blocks.
#![warn(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation
)]

mod cursor;
mod error;
mod file;
mod ggml_type;
mod header;
mod metadata;
mod mmap;
mod tensor;
mod value;
mod writer;

pub use error::GgufError;
pub use file::GgufFile;
pub use ggml_type::GgmlType;
pub use header::{Header, limits};
pub use metadata::Metadata;
pub use tensor::TensorInfo;
pub use value::{Array, Value};
pub use writer::GgufWriter;
