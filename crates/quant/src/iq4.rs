//! IQ4_NL and IQ4_XS: 4-bit numbers that stand for unevenly spaced values.

use crate::Block;
use crate::blocks::{BlockIQ4NL, BlockIQ4XS, KVALUES_IQ4NL, QK, QK_K};
use crate::float::{from_f16, to_f16, to_f16_outward};
use crate::legacy::{nibble, set_nibble};
use crate::search::{Levels, fit_scale, round_to};

impl Block for BlockIQ4NL {
    const LEN: usize = QK;

    fn dequantize(&self, values: &mut [f32]) {
        let d = from_f16(self.d);
        for (i, v) in values.iter_mut().enumerate() {
            *v = d * f32::from(KVALUES_IQ4NL[usize::from(nibble(&self.qs, i))]);
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let mut block = Self {
            d: to_f16(fit(values)),
            qs: [0; 16],
        };
        set_nibbles(&mut block.qs, values, from_f16(block.d));
        block
    }
}

impl Block for BlockIQ4XS {
    const LEN: usize = QK_K;

    fn dequantize(&self, values: &mut [f32]) {
        let d = from_f16(self.d);
        for (g, values) in values.chunks_exact_mut(32).enumerate() {
            let scale = d * f32::from(self.scale(g));
            for (i, v) in values.iter_mut().enumerate() {
                *v = scale
                    * f32::from(KVALUES_IQ4NL[usize::from(nibble(&self.qs[16 * g..][..16], i))]);
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let levels = Levels { min: -32, max: 31 };
        let mut scales = [0f32; 8];
        for (scale, values) in scales.iter_mut().zip(values.chunks_exact(32)) {
            *scale = fit(values) as f32;
        }
        let largest = scales
            .iter()
            .fold(0f32, |m, &s| if s.abs() > m.abs() { s } else { m });
        let d = to_f16_outward(f64::from(largest) / f64::from(levels.min));
        let mut block = Self {
            d,
            scales_h: 0,
            scales_l: [0; 4],
            qs: [0; 128],
        };
        for (g, values) in values.chunks_exact(32).enumerate() {
            let scale = round_to(scales[g], from_f16(d), levels);
            let stored = (scale + 32) as u8;
            block.scales_l[g / 2] |= (stored & 15) << (4 * (g % 2));
            block.scales_h |= u16::from(stored >> 4) << (2 * g);
            set_nibbles(
                &mut block.qs[16 * g..][..16],
                values,
                from_f16(d) * scale as f32,
            );
        }
        block
    }
}

/// The best scale for 32 values.
fn fit(values: &[f32]) -> f64 {
    let mean_square =
        values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / values.len() as f64;
    let nearest =
        |inverse: f64, v: f64| f64::from(KVALUES_IQ4NL[usize::from(nearest_level(v * inverse))]);
    // The outer levels are some 20 units apart: steps of 1.5 look as far around as a tenth does for even levels.
    fit_scale(values, f64::from(KVALUES_IQ4NL[0]), 1.5, nearest, |v| {
        mean_square + f64::from(v).powi(2)
    })
}

fn set_nibbles(qs: &mut [u8], values: &[f32], scale: f32) {
    let inverse = if scale == 0.0 {
        0.0
    } else {
        1.0 / f64::from(scale)
    };
    for (i, &v) in values.iter().enumerate() {
        set_nibble(qs, i, nearest_level(f64::from(v) * inverse));
    }
}

/// Which of the 16 values is nearest.
fn nearest_level(x: f64) -> u8 {
    let above = KVALUES_IQ4NL
        .partition_point(|&k| f64::from(k) < x)
        .clamp(1, 15);
    let (low, high) = (
        f64::from(KVALUES_IQ4NL[above - 1]),
        f64::from(KVALUES_IQ4NL[above]),
    );
    let nearest = if x - low <= high - x {
        above - 1
    } else {
        above
    };
    nearest as u8
}
