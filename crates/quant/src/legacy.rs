//! Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0: blocks of 32 with one f16 scale, and an f16 minimum in the `_1` ones.

use crate::Block;
use crate::blocks::{BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, QK};
use crate::float::{from_f16, to_f16};
use crate::search::{Levels, affine, round_to, symmetric};

/// Sixteen bytes of nibbles: element `i` in the low one of byte `i`, element `i + 16` in the high one.
pub(crate) fn nibble(qs: &[u8], i: usize) -> u8 {
    (qs[i % 16] >> (4 * (i / 16))) & 15
}

/// Sets what [`nibble`] reads (in zeroed bytes).
pub(crate) fn set_nibble(qs: &mut [u8], i: usize, q: u8) {
    qs[i % 16] |= (q & 15) << (4 * (i / 16));
}

/// The fifth bit of element `i`, in its place.
fn fifth_bit(qh: [u8; 4], i: usize) -> u8 {
    (((u32::from_le_bytes(qh) >> i) & 1) as u8) << 4
}

fn set_fifth_bit(qh: &mut [u8; 4], i: usize, q: u8) {
    qh[i / 8] |= ((q >> 4) & 1) << (i % 8);
}

impl Block for BlockQ4_0 {
    const LEN: usize = QK;

    fn dequantize(&self, values: &mut [f32]) {
        let d = from_f16(self.d);
        for (i, v) in values.iter_mut().enumerate() {
            *v = f32::from(nibble(&self.qs, i) as i8 - 8) * d;
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let levels = Levels { min: -8, max: 7 };
        let mut block = Self {
            d: to_f16(symmetric(values, levels, |_| 1.0)),
            qs: [0; 16],
        };
        let d = from_f16(block.d);
        for (i, &v) in values.iter().enumerate() {
            set_nibble(&mut block.qs, i, (round_to(v, d, levels) + 8) as u8);
        }
        block
    }
}

impl Block for BlockQ4_1 {
    const LEN: usize = QK;

    fn dequantize(&self, values: &mut [f32]) {
        let (d, m) = (from_f16(self.d), from_f16(self.m));
        for (i, v) in values.iter_mut().enumerate() {
            *v = f32::from(nibble(&self.qs, i)) * d + m;
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let levels = Levels { min: 0, max: 15 };
        let (scale, min) = affine(values, levels.max, |_| 1.0, f64::INFINITY);
        let mut block = Self {
            d: to_f16(scale),
            m: to_f16(min),
            qs: [0; 16],
        };
        let (d, m) = (from_f16(block.d), from_f16(block.m));
        for (i, &v) in values.iter().enumerate() {
            set_nibble(&mut block.qs, i, round_to(v - m, d, levels) as u8);
        }
        block
    }
}

impl Block for BlockQ5_0 {
    const LEN: usize = QK;

    fn dequantize(&self, values: &mut [f32]) {
        let d = from_f16(self.d);
        for (i, v) in values.iter_mut().enumerate() {
            let q = nibble(&self.qs, i) | fifth_bit(self.qh, i);
            *v = f32::from(q as i8 - 16) * d;
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let levels = Levels { min: -16, max: 15 };
        let mut block = Self {
            d: to_f16(symmetric(values, levels, |_| 1.0)),
            qh: [0; 4],
            qs: [0; 16],
        };
        let d = from_f16(block.d);
        for (i, &v) in values.iter().enumerate() {
            let q = (round_to(v, d, levels) + 16) as u8;
            set_nibble(&mut block.qs, i, q);
            set_fifth_bit(&mut block.qh, i, q);
        }
        block
    }
}

impl Block for BlockQ5_1 {
    const LEN: usize = QK;

    fn dequantize(&self, values: &mut [f32]) {
        let (d, m) = (from_f16(self.d), from_f16(self.m));
        for (i, v) in values.iter_mut().enumerate() {
            let q = nibble(&self.qs, i) | fifth_bit(self.qh, i);
            *v = f32::from(q) * d + m;
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let levels = Levels { min: 0, max: 31 };
        let (scale, min) = affine(values, levels.max, |_| 1.0, f64::INFINITY);
        let mut block = Self {
            d: to_f16(scale),
            m: to_f16(min),
            qh: [0; 4],
            qs: [0; 16],
        };
        let (d, m) = (from_f16(block.d), from_f16(block.m));
        for (i, &v) in values.iter().enumerate() {
            let q = round_to(v - m, d, levels) as u8;
            set_nibble(&mut block.qs, i, q);
            set_fifth_bit(&mut block.qh, i, q);
        }
        block
    }
}

impl Block for BlockQ8_0 {
    const LEN: usize = QK;

    fn dequantize(&self, values: &mut [f32]) {
        let d = from_f16(self.d);
        for (v, &q) in values.iter_mut().zip(&self.qs) {
            *v = f32::from(q) * d;
        }
    }

    /// At 8 bits a search gains nothing: the largest magnitude becomes 127.
    fn quantize(values: &[f32]) -> Self {
        let levels = Levels {
            min: -127,
            max: 127,
        };
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        let mut block = Self {
            d: to_f16(f64::from(largest) / 127.0),
            qs: [0; 32],
        };
        let d = from_f16(block.d);
        for (q, &v) in block.qs.iter_mut().zip(values) {
            *q = round_to(v, d, levels) as i8;
        }
        block
    }
}
