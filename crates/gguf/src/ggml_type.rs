//! Tensor element types as the file format numbers them.

use std::fmt;

/// A tensor's element type: its number in the file, its name, and the size of its blocks.
///
/// All types that the format documents are known here, so that a file can be listed and a refusal can name
/// the type; whether a type can be computed with is decided elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, non_camel_case_types)] // the names are the format's own
#[repr(u32)]
pub enum GgmlType {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q8_1 = 9,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    Q8_K = 15,
    IQ2_XXS = 16,
    IQ2_XS = 17,
    IQ3_XXS = 18,
    IQ1_S = 19,
    IQ4_NL = 20,
    IQ3_S = 21,
    IQ2_S = 22,
    IQ4_XS = 23,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
    IQ1_M = 29,
    BF16 = 30,
    TQ1_0 = 34,
    TQ2_0 = 35,
    MXFP4 = 39,
    NVFP4 = 40,
    Q1_0 = 41,
    Q2_0 = 42,
}

/// One row per type: type, name, elements per block, bytes per block.
type Row = (GgmlType, &'static str, u64, u64);

#[rustfmt::skip] // a table
const TABLE: &[Row] = {
    use GgmlType::*;
    &[
        (F32, "F32", 1, 4),            (F16, "F16", 1, 2),            (BF16, "BF16", 1, 2),
        (Q4_0, "Q4_0", 32, 18),        (Q4_1, "Q4_1", 32, 20),        (Q5_0, "Q5_0", 32, 22),
        (Q5_1, "Q5_1", 32, 24),        (Q8_0, "Q8_0", 32, 34),        (Q8_1, "Q8_1", 32, 36),
        (Q2_K, "Q2_K", 256, 84),       (Q3_K, "Q3_K", 256, 110),      (Q4_K, "Q4_K", 256, 144),
        (Q5_K, "Q5_K", 256, 176),      (Q6_K, "Q6_K", 256, 210),      (Q8_K, "Q8_K", 256, 292),
        (IQ2_XXS, "IQ2_XXS", 256, 66), (IQ2_XS, "IQ2_XS", 256, 74),   (IQ2_S, "IQ2_S", 256, 82),
        (IQ3_XXS, "IQ3_XXS", 256, 98), (IQ3_S, "IQ3_S", 256, 110),    (IQ1_S, "IQ1_S", 256, 50),
        (IQ1_M, "IQ1_M", 256, 56),     (IQ4_NL, "IQ4_NL", 32, 18),    (IQ4_XS, "IQ4_XS", 256, 136),
        (TQ1_0, "TQ1_0", 256, 54),     (TQ2_0, "TQ2_0", 256, 66),     (MXFP4, "MXFP4", 32, 17),
        (NVFP4, "NVFP4", 64, 36),      (Q1_0, "Q1_0", 128, 18),       (Q2_0, "Q2_0", 64, 18),
        (I8, "I8", 1, 1),              (I16, "I16", 1, 2),            (I32, "I32", 1, 4),
        (I64, "I64", 1, 8),            (F64, "F64", 1, 8),
    ]
};

impl GgmlType {
    /// The type with this number in a file, if the format defines it (removed numbers are not defined).
    #[must_use]
    pub fn from_id(id: u32) -> Option<Self> {
        Self::all().find(|t| t.id() == id)
    }

    /// The type of this name, for example `Q4_K`; case does not matter.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::all().find(|t| t.name().eq_ignore_ascii_case(name))
    }

    /// Every type known here.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    /// The number that stands for this type in a file.
    #[must_use]
    pub fn id(self) -> u32 {
        self as u32
    }

    /// The name, for example `Q4_K`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Elements in one quant block (1 for plain numbers).
    #[must_use]
    pub fn block_len(self) -> u64 {
        self.row().2
    }

    /// Bytes of one quant block.
    #[must_use]
    pub fn block_bytes(self) -> u64 {
        self.row().3
    }

    /// Bytes of a row of `n` elements; `None` if `n` is not a whole number of blocks or the product overflows.
    #[must_use]
    pub fn row_bytes(self, n: u64) -> Option<u64> {
        let blocks = n.checked_div(self.block_len())?;
        (n.checked_rem(self.block_len())? == 0).then(|| blocks.checked_mul(self.block_bytes()))?
    }

    fn row(self) -> &'static Row {
        TABLE
            .iter()
            .find(|row| row.0 == self)
            .expect("every type has its row: the unit test below goes through all")
    }
}

impl fmt::Display for GgmlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_lead_back_to_the_type() {
        assert_eq!(GgmlType::all().count(), 35);
        for t in GgmlType::all() {
            assert_eq!(GgmlType::from_id(t.id()), Some(t));
            assert_eq!(GgmlType::from_name(t.name()), Some(t));
            assert_eq!(format!("{t:?}"), t.to_string());
        }
        for removed in [4, 5, 31, 32, 33, 36, 37, 38, 43, u32::MAX] {
            assert_eq!(GgmlType::from_id(removed), None);
        }
    }

    #[test]
    fn row_bytes_wants_whole_blocks_and_does_not_wrap() {
        assert_eq!(GgmlType::Q4_K.row_bytes(512), Some(288));
        assert_eq!(GgmlType::Q4_K.row_bytes(500), None);
        assert_eq!(GgmlType::F32.row_bytes(0), Some(0));
        assert_eq!(GgmlType::F32.row_bytes(u64::MAX), None);
        assert_eq!(GgmlType::Q8_0.row_bytes(u64::MAX - 31), None);
    }
}
