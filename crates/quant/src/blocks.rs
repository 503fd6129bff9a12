//! Block layouts as plain data, byte for byte as they lie in a file (little endian).
//!
//! A row is cut into quant blocks of 32 elements, or 256 for the K formats and IQ4_XS. `u16` scales hold the
//! bits of an f16. In the formulas `q` is the stored unsigned integer of an element.

use bytemuck::{Pod, Zeroable};

use crate::QuantError;

#[cfg(target_endian = "big")]
compile_error!(
    "quant blocks are little-endian data that is used in place: big-endian processors are not supported"
);

/// Elements of a K-quant block.
pub const QK_K: usize = 256;
/// Elements of the other blocks.
pub const QK: usize = 32;

/// Declares a block struct and holds its size to the format's.
macro_rules! block {
    ($(#[$doc:meta])* $name:ident: $bytes:literal { $($(#[$field_doc:meta])* $field:ident: $t:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
        #[repr(C)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $t,)*
        }

        const _: () = assert!(size_of::<$name>() == $bytes);
    };
}

block! {
    /// 4 bits, 32 elements: `d * (q - 8)`.
    BlockQ4_0: 18 {
        /// Scale (f16).
        d: u16,
        /// Low nibbles are elements 0 to 15, high nibbles 16 to 31.
        qs: [u8; 16],
    }
}

block! {
    /// 4 bits, 32 elements: `d * q + m`.
    BlockQ4_1: 20 {
        /// Scale (f16).
        d: u16,
        /// Minimum (f16).
        m: u16,
        /// Low nibbles are elements 0 to 15, high nibbles 16 to 31.
        qs: [u8; 16],
    }
}

block! {
    /// 5 bits, 32 elements: `d * (q - 16)`.
    BlockQ5_0: 22 {
        /// Scale (f16).
        d: u16,
        /// The fifth bits, element `i` in bit `i`.
        qh: [u8; 4],
        /// The low four bits: low nibbles are elements 0 to 15, high nibbles 16 to 31.
        qs: [u8; 16],
    }
}

block! {
    /// 5 bits, 32 elements: `d * q + m`.
    BlockQ5_1: 24 {
        /// Scale (f16).
        d: u16,
        /// Minimum (f16).
        m: u16,
        /// The fifth bits, element `i` in bit `i`.
        qh: [u8; 4],
        /// The low four bits: low nibbles are elements 0 to 15, high nibbles 16 to 31.
        qs: [u8; 16],
    }
}

block! {
    /// 8 bits, 32 elements: `d * q`.
    BlockQ8_0: 34 {
        /// Scale (f16).
        d: u16,
        /// The elements.
        qs: [i8; 32],
    }
}

block! {
    /// 2 bits, 256 elements in 16 groups of 16: `d * (scale & 15) * q - dmin * (scale >> 4)`.
    BlockQ2K: 84 {
        /// A byte per group: low nibble scale, high nibble minimum.
        scales: [u8; 16],
        /// Per half of 128 elements 32 bytes; bits `2j` of byte `i` are element `32 j + i` of the half.
        qs: [u8; 64],
        /// Scale of the scales (f16).
        d: u16,
        /// Scale of the minimums (f16).
        dmin: u16,
    }
}

block! {
    /// 3 bits, 256 elements in 16 groups of 16: `d * (scale - 32) * (q - 4)`.
    BlockQ3K: 110 {
        /// The third bits: bit `j` of byte `i` is element `32 j + i`.
        hmask: [u8; 32],
        /// The low two bits, as in [`BlockQ2K`].
        qs: [u8; 64],
        /// Sixteen 6-bit scales, see [`BlockQ3K::scale`].
        scales: [u8; 12],
        /// Scale of the scales (f16).
        d: u16,
    }
}

block! {
    /// 4 bits, 256 elements in 8 groups of 32: `d * scale * q - dmin * min`.
    BlockQ4K: 144 {
        /// Scale of the scales (f16).
        d: u16,
        /// Scale of the minimums (f16).
        dmin: u16,
        /// Eight pairs of 6-bit scale and minimum, see [`scale_min`].
        scales: [u8; 12],
        /// 32 bytes per two groups: low nibbles the first group, high nibbles the second.
        qs: [u8; 128],
    }
}

block! {
    /// 5 bits, 256 elements in 8 groups of 32: `d * scale * q - dmin * min`.
    BlockQ5K: 176 {
        /// Scale of the scales (f16).
        d: u16,
        /// Scale of the minimums (f16).
        dmin: u16,
        /// Eight pairs of 6-bit scale and minimum, see [`scale_min`].
        scales: [u8; 12],
        /// The fifth bits: bit `g` of byte `i` is element `i` of group `g`.
        qh: [u8; 32],
        /// The low four bits, as in [`BlockQ4K`].
        qs: [u8; 128],
    }
}

block! {
    /// 6 bits, 256 elements in 16 groups of 16: `d * scale * (q - 32)`.
    BlockQ6K: 210 {
        /// The low four bits. Per half of 128 elements 64 bytes: low nibbles elements 0 to 63, high nibbles 64 to 127.
        ql: [u8; 128],
        /// The high two bits. Per half 32 bytes: bits `2j` of byte `i` are element `32 j + i` of the half.
        qh: [u8; 64],
        /// A scale per group.
        scales: [i8; 16],
        /// Scale of the scales (f16).
        d: u16,
    }
}

block! {
    /// 4 bits that stand for the 16 values of [`KVALUES_IQ4NL`], 32 elements: `d * KVALUES_IQ4NL[q]`.
    BlockIQ4NL: 18 {
        /// Scale (f16).
        d: u16,
        /// Low nibbles are elements 0 to 15, high nibbles 16 to 31.
        qs: [u8; 16],
    }
}

block! {
    /// As [`BlockIQ4NL`], 256 elements in 8 groups of 32: `d * (scale - 32) * KVALUES_IQ4NL[q]`.
    BlockIQ4XS: 136 {
        /// Scale of the scales (f16).
        d: u16,
        /// The high two bits of the eight 6-bit scales, group `g` in bits `2g`.
        scales_h: u16,
        /// The low four bits of the scales, two groups a byte, low nibble first.
        scales_l: [u8; 4],
        /// 16 bytes per group: low nibbles elements 0 to 15, high nibbles 16 to 31.
        qs: [u8; 128],
    }
}

/// What the 4-bit numbers of IQ4_NL and IQ4_XS stand for: denser around zero, where most weights are.
pub const KVALUES_IQ4NL: [i8; 16] = [
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113,
];

impl BlockQ3K {
    /// The 6-bit scale of group `g` (0 to 15), with its offset of 32 taken off: -32 to 31.
    ///
    /// # Panics
    /// If `g` is over 15.
    #[must_use]
    pub fn scale(&self, g: usize) -> i8 {
        let low = (self.scales[g % 8] >> (4 * (g / 8))) & 15;
        let high = (self.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
        (low | high << 4) as i8 - 32
    }
}

impl BlockIQ4XS {
    /// The 6-bit scale of group `g` (0 to 7), with its offset of 32 taken off: -32 to 31.
    ///
    /// # Panics
    /// If `g` is over 7.
    #[must_use]
    pub fn scale(&self, g: usize) -> i8 {
        let low = (self.scales_l[g / 2] >> (4 * (g % 2))) & 15;
        let high = ((self.scales_h >> (2 * g)) & 3) as u8;
        (low | high << 4) as i8 - 32
    }
}

/// The 6-bit scale and minimum of group `g` (0 to 7) of a [`BlockQ4K`] or [`BlockQ5K`].
///
/// Groups 0 to 3 have theirs in the low six bits of bytes `g` and `g + 4`; the others have their low four bits
/// in the nibbles of byte `g + 4` and their high two bits in the top of the first eight bytes.
///
/// # Panics
/// If `g` is over 7.
#[must_use]
pub fn scale_min(scales: &[u8; 12], g: usize) -> (u8, u8) {
    if g < 4 {
        (scales[g] & 63, scales[g + 4] & 63)
    } else {
        let scale = (scales[g + 4] & 15) | (scales[g - 4] >> 6) << 4;
        let min = (scales[g + 4] >> 4) | (scales[g] >> 6) << 4;
        (scale, min)
    }
}

/// Looks at bytes as blocks, without copying.
///
/// # Errors
/// If the bytes are not a whole number of blocks, or not aligned for them (2 bytes; tensors in a file are).
pub fn cast_blocks<B: Pod>(bytes: &[u8]) -> Result<&[B], QuantError> {
    let block_bytes = size_of::<B>();
    if !bytes.len().is_multiple_of(block_bytes) {
        return Err(QuantError::PartialBlock {
            len: bytes.len(),
            block: block_bytes,
            unit: "bytes",
        });
    }
    bytemuck::try_cast_slice(bytes).map_err(|_| QuantError::Misaligned {
        align: align_of::<B>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cast_checks_length_and_alignment() {
        let words = [0u16; 19];
        let bytes: &[u8] = bytemuck::cast_slice(&words);
        assert_eq!(cast_blocks::<BlockQ4_0>(&bytes[..36]).unwrap().len(), 2);
        assert!(matches!(
            cast_blocks::<BlockQ4_0>(&bytes[..37]),
            Err(QuantError::PartialBlock { .. })
        ));
        assert!(matches!(
            cast_blocks::<BlockQ4_0>(&bytes[1..37]),
            Err(QuantError::Misaligned { .. })
        ));
    }
}
