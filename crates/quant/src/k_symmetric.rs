//! Q3_K and Q6_K: groups of 16 with a signed scale, a small integer times an f16.

use crate::Block;
use crate::blocks::{BlockQ3K, BlockQ6K, QK_K};
use crate::float::{from_f16, to_f16_outward};
use crate::k_affine::{set_two_bits, two_bits};
use crate::search::{Levels, round_to, symmetric};

impl Block for BlockQ3K {
    const LEN: usize = QK_K;

    fn dequantize(&self, values: &mut [f32]) {
        let d = from_f16(self.d);
        for (g, values) in values.chunks_exact_mut(16).enumerate() {
            let scale = d * f32::from(self.scale(g));
            for (i, v) in values.iter_mut().enumerate() {
                let i = 16 * g + i;
                let high = (self.hmask[i % 32] >> (i / 32)) & 1;
                *v = scale * f32::from((two_bits(&self.qs, i) | high << 2) as i8 - 4);
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let levels = Levels { min: -4, max: 3 };
        let (d, scales) = fit_groups(values, levels, Levels { min: -32, max: 31 });
        let mut block = Self {
            hmask: [0; 32],
            qs: [0; 64],
            scales: [0; 12],
            d,
        };
        for (g, scale) in scales.iter().enumerate() {
            let stored = (scale + 32) as u8;
            block.scales[g % 8] |= (stored & 15) << (4 * (g / 8));
            block.scales[8 + g % 4] |= (stored >> 4) << (2 * (g / 4));
        }
        for (i, &v) in values.iter().enumerate() {
            let q = (round_to(v, from_f16(d) * f32::from(scales[i / 16]), levels) + 4) as u8;
            set_two_bits(&mut block.qs, i, q);
            block.hmask[i % 32] |= (q >> 2) << (i / 32);
        }
        block
    }
}

impl Block for BlockQ6K {
    const LEN: usize = QK_K;

    fn dequantize(&self, values: &mut [f32]) {
        let d = from_f16(self.d);
        for (g, values) in values.chunks_exact_mut(16).enumerate() {
            let scale = d * f32::from(self.scales[g]);
            for (i, v) in values.iter_mut().enumerate() {
                let i = 16 * g + i;
                let (byte, shift) = low_place(i);
                let q = (self.ql[byte] >> shift) & 15 | two_bits(&self.qh, i) << 4;
                *v = scale * f32::from(q as i8 - 32);
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let levels = Levels { min: -32, max: 31 };
        let (d, scales) = fit_groups(
            values,
            levels,
            Levels {
                min: -128,
                max: 127,
            },
        );
        let mut block = Self {
            ql: [0; 128],
            qh: [0; 64],
            scales,
            d,
        };
        for (i, &v) in values.iter().enumerate() {
            let q = (round_to(v, from_f16(d) * f32::from(scales[i / 16]), levels) + 32) as u8;
            let (byte, shift) = low_place(i);
            block.ql[byte] |= (q & 15) << shift;
            set_two_bits(&mut block.qh, i, q >> 4);
        }
        block
    }
}

/// Byte and shift of the low four bits of element `i` of a Q6_K block.
fn low_place(i: usize) -> (usize, usize) {
    (64 * (i / 128) + i % 64, 4 * (i % 128 / 64))
}

/// A scale per group of 16, as an integer in `scale_levels` times an f16.
fn fit_groups(values: &[f32], levels: Levels, scale_levels: Levels) -> (u16, [i8; 16]) {
    let mut scales = [0f32; 16];
    for (scale, values) in scales.iter_mut().zip(values.chunks_exact(16)) {
        // Large weights matter more: their square, and a little for the others.
        let mean_square =
            values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / values.len() as f64;
        *scale = symmetric(values, levels, |v| {
            0.25 * mean_square + f64::from(v).powi(2)
        }) as f32;
    }
    let largest = scales
        .iter()
        .fold(0f32, |m, &s| if s.abs() > m.abs() { s } else { m });
    let d = to_f16_outward(f64::from(largest) / f64::from(scale_levels.min));
    (
        d,
        scales.map(|s| round_to(s, from_f16(d), scale_levels) as i8),
    )
}
