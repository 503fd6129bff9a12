//! Tensor descriptions.

use crate::GgmlType;

/// One tensor: name, type, dimensions and where its bytes lie. All numbers have been checked against the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorInfo {
    /// Name, for example `blk.0.attn_q.weight`.
    pub name: String,
    /// Element type.
    pub ggml_type: GgmlType,
    /// One to four dimensions as the file has them, none zero: the fastest (columns, `K`) first.
    pub dims: Vec<u64>,
    /// Where the data begins, in bytes from the beginning of its shard's file.
    pub offset: u64,
    /// Size of the data in bytes.
    pub n_bytes: u64,
    /// Which file of a sharded set holds the data, counted from 0.
    pub shard: usize,
}

impl TensorInfo {
    /// Product of the dimensions.
    #[must_use]
    pub fn n_elements(&self) -> u64 {
        self.columns().saturating_mul(self.rows()) // the reader refuses products that would not fit
    }

    /// Elements of a row: the first dimension.
    #[must_use]
    pub fn columns(&self) -> u64 {
        self.dims.first().copied().unwrap_or(1)
    }

    /// Number of rows: the product of the dimensions after the first.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.dims
            .iter()
            .skip(1)
            .fold(1, |n, &d| n.saturating_mul(d))
    }
}
