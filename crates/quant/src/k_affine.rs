//! Q2_K, Q4_K and Q5_K: groups with a scale and a minimum to be taken off, both small integers times an f16.

use crate::Block;
use crate::blocks::{BlockQ2K, BlockQ4K, BlockQ5K, QK_K, scale_min};
use crate::float::{from_f16, to_f16_outward};
use crate::search::{Levels, affine, round_to};

impl Block for BlockQ2K {
    const LEN: usize = QK_K;

    fn dequantize(&self, values: &mut [f32]) {
        let (d, dmin) = (from_f16(self.d), from_f16(self.dmin));
        for (g, values) in values.chunks_exact_mut(16).enumerate() {
            let scale = d * f32::from(self.scales[g] & 15);
            let min = dmin * f32::from(self.scales[g] >> 4);
            for (i, v) in values.iter_mut().enumerate() {
                *v = scale * f32::from(two_bits(&self.qs, 16 * g + i)) - min;
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let groups = Groups::<16>::fit(values, 3, 15);
        let mut block = Self {
            scales: [0; 16],
            qs: [0; 64],
            d: groups.d,
            dmin: groups.dmin,
        };
        for g in 0..16 {
            block.scales[g] = groups.scales[g] | groups.mins[g] << 4;
        }
        for (i, q) in groups.levels(values, 3).enumerate() {
            set_two_bits(&mut block.qs, i, q);
        }
        block
    }
}

impl Block for BlockQ4K {
    const LEN: usize = QK_K;

    fn dequantize(&self, values: &mut [f32]) {
        let (d, dmin) = (from_f16(self.d), from_f16(self.dmin));
        for (g, values) in values.chunks_exact_mut(32).enumerate() {
            let (scale, min) = scale_min(&self.scales, g);
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            for (i, v) in values.iter_mut().enumerate() {
                *v = scale * f32::from(low_bits(&self.qs, g, i)) - min;
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let groups = Groups::<8>::fit(values, 15, 63);
        let mut block = Self {
            d: groups.d,
            dmin: groups.dmin,
            scales: groups.packed_scales(),
            qs: [0; 128],
        };
        for (i, q) in groups.levels(values, 15).enumerate() {
            set_low_bits(&mut block.qs, i / 32, i % 32, q);
        }
        block
    }
}

impl Block for BlockQ5K {
    const LEN: usize = QK_K;

    fn dequantize(&self, values: &mut [f32]) {
        let (d, dmin) = (from_f16(self.d), from_f16(self.dmin));
        for (g, values) in values.chunks_exact_mut(32).enumerate() {
            let (scale, min) = scale_min(&self.scales, g);
            let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
            for (i, v) in values.iter_mut().enumerate() {
                let q = low_bits(&self.qs, g, i) | ((self.qh[i] >> g) & 1) << 4;
                *v = scale * f32::from(q) - min;
            }
        }
    }

    fn quantize(values: &[f32]) -> Self {
        let groups = Groups::<8>::fit(values, 31, 63);
        let scales = groups.packed_scales();
        let mut block = Self {
            d: groups.d,
            dmin: groups.dmin,
            scales,
            qh: [0; 32],
            qs: [0; 128],
        };
        for (i, q) in groups.levels(values, 31).enumerate() {
            set_low_bits(&mut block.qs, i / 32, i % 32, q);
            block.qh[i % 32] |= (q >> 4) << (i / 32);
        }
        block
    }
}

/// Two bits of element `i` of 256: per half 32 bytes, each with four elements that are 32 apart.
pub(crate) fn two_bits(qs: &[u8; 64], i: usize) -> u8 {
    (qs[32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32))) & 3
}

/// Sets what [`two_bits`] reads (in zeroed bytes).
pub(crate) fn set_two_bits(qs: &mut [u8; 64], i: usize, q: u8) {
    qs[32 * (i / 128) + i % 32] |= (q & 3) << (2 * (i % 128 / 32));
}

/// Four bits of element `i` of group `g`: two groups share 32 bytes.
fn low_bits(qs: &[u8; 128], g: usize, i: usize) -> u8 {
    (qs[32 * (g / 2) + i] >> (4 * (g % 2))) & 15
}

fn set_low_bits(qs: &mut [u8; 128], g: usize, i: usize, q: u8) {
    qs[32 * (g / 2) + i] |= (q & 15) << (4 * (g % 2));
}

/// Scales and minimums of the `N` groups of a block, rounded to integers times one f16 each.
struct Groups<const N: usize> {
    d: u16,
    dmin: u16,
    scales: [u8; N],
    mins: [u8; N],
}

impl<const N: usize> Groups<N> {
    fn fit(values: &[f32], max_level: i32, max_scale: u8) -> Self {
        let mut scales = [0f64; N];
        let mut mins = [0f64; N];
        for (g, values) in values.chunks_exact(QK_K / N).enumerate() {
            // Large weights matter more, but not without bound: root mean square plus magnitude.
            let mean_square =
                values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / values.len() as f64;
            let rms = mean_square.sqrt();
            let (scale, min) = affine(values, max_level, |v| rms + f64::from(v.abs()), 0.0);
            (scales[g], mins[g]) = (scale, -min);
        }
        let (d, scales) = round_group(&scales, max_scale);
        let (dmin, mins) = round_group(&mins, max_scale);
        Self {
            d,
            dmin,
            scales,
            mins,
        }
    }

    /// The level of each value under the rounded scales.
    fn levels<'a>(&'a self, values: &'a [f32], max: i32) -> impl Iterator<Item = u8> + 'a {
        let (d, dmin) = (from_f16(self.d), from_f16(self.dmin));
        values.iter().enumerate().map(move |(i, &v)| {
            let g = i / (QK_K / N);
            let (scale, min) = (
                d * f32::from(self.scales[g]),
                dmin * f32::from(self.mins[g]),
            );
            round_to(v + min, scale, Levels { min: 0, max }) as u8
        })
    }
}

impl Groups<8> {
    /// The twelve bytes that [`scale_min`] reads.
    fn packed_scales(&self) -> [u8; 12] {
        let mut packed = [0; 12];
        for g in 0..4 {
            packed[g] = self.scales[g] | (self.scales[g + 4] >> 4) << 6;
            packed[g + 4] = self.mins[g] | (self.mins[g + 4] >> 4) << 6;
            packed[g + 8] = (self.scales[g + 4] & 15) | (self.mins[g + 4] & 15) << 4;
        }
        packed
    }
}

/// Non-negative numbers as integers up to `max` times an f16.
fn round_group<const N: usize>(numbers: &[f64; N], max: u8) -> (u16, [u8; N]) {
    let largest = numbers.iter().fold(0f64, |m, &x| m.max(x));
    let d = to_f16_outward(largest / f64::from(max));
    let unit = f64::from(from_f16(d));
    let rounded = numbers.map(|x| {
        if unit > 0.0 {
            (x / unit).round_ties_even().clamp(0.0, max.into()) as u8
        } else {
            0
        }
    });
    (d, rounded)
}
