//! Plain number types: blocks of one element.

use bytemuck::{Pod, Zeroable};

use crate::Block;

/// The bits of an f16.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct F16(u16);

/// The bits of a bfloat16.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Bf16(u16);

impl Block for f32 {
    const LEN: usize = 1;

    fn dequantize(&self, values: &mut [f32]) {
        values[0] = *self;
    }

    fn quantize(values: &[f32]) -> Self {
        values[0]
    }
}

impl Block for F16 {
    const LEN: usize = 1;

    fn dequantize(&self, values: &mut [f32]) {
        values[0] = from_f16(self.0);
    }

    fn quantize(values: &[f32]) -> Self {
        Self(half::f16::from_f32(values[0]).to_bits())
    }
}

impl Block for Bf16 {
    const LEN: usize = 1;

    fn dequantize(&self, values: &mut [f32]) {
        values[0] = f32::from_bits(u32::from(self.0) << 16);
    }

    fn quantize(values: &[f32]) -> Self {
        Self(half::bf16::from_f32(values[0]).to_bits())
    }
}

/// The value of f16 bits.
pub(crate) fn from_f16(bits: u16) -> f32 {
    half::f16::from_bits(bits).to_f32()
}

/// The f16 nearest to a scale, as bits; the largest one rather than infinity.
pub(crate) fn to_f16(scale: f64) -> u16 {
    let max = f64::from(half::f16::MAX);
    half::f16::from_f64(scale.clamp(-max, max)).to_bits()
}

/// The f16 nearest to a scale but not nearer to zero, as bits (again the largest rather than infinity).
///
/// For scales of scales: where f16 is coarse, under 6e-5, one rounded down would clip the largest scale.
pub(crate) fn to_f16_outward(scale: f64) -> u16 {
    let bits = to_f16(scale);
    let is_short = f64::from(from_f16(bits)).abs() < scale.abs();
    let is_largest = bits & 0x7fff == half::f16::MAX.to_bits();
    if is_short && !is_largest {
        bits + 1
    } else {
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_round_to_f16_without_infinities() {
        assert_eq!(from_f16(to_f16(1e30)), 65504.0);
        assert_eq!(from_f16(to_f16(-1e30)), -65504.0);
        assert_eq!(from_f16(to_f16(0.1)), 0.099975586);
    }

    #[test]
    fn outward_rounding_never_falls_short() {
        assert_eq!(from_f16(to_f16_outward(0.1)), 0.10003662);
        assert_eq!(from_f16(to_f16_outward(-0.1)), -0.10003662);
        assert_eq!(from_f16(to_f16_outward(1e-30)), 5.9604645e-8);
        assert_eq!(from_f16(to_f16_outward(-1e-30)), -5.9604645e-8);
        assert_eq!(from_f16(to_f16_outward(0.5)), 0.5);
        assert_eq!(from_f16(to_f16_outward(0.0)), 0.0);
        assert_eq!(from_f16(to_f16_outward(1e30)), 65504.0);
    }
}
