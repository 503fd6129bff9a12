//! What quantizing promises for any values: no panic, finite results, and an error within a bound that follows from
//! the number of levels and the largest value in the block.
#![allow(clippy::unwrap_used)] // also the helper functions are tests

use dynalm_gguf::GgmlType;
use dynalm_quant::{SUPPORTED, dequantize, quantize};
use proptest::prelude::*;

/// Largest error allowed, in units of the largest magnitude in the block: one and a half of the format's steps.
///
/// Half a step is rounding. Up to a whole one is lost at the ends of the range, which the least-squares fit may give
/// up a part of for the others' sake, and where scales are themselves rounded.
fn bound(t: GgmlType) -> f32 {
    let step = match t {
        GgmlType::F32 => 0.0,
        GgmlType::F16 => 1.0 / 1024.0,
        GgmlType::BF16 => 1.0 / 128.0,
        GgmlType::Q4_0 => 1.0 / 8.0,
        GgmlType::Q5_0 => 1.0 / 16.0,
        GgmlType::Q8_0 => 1.0 / 127.0,
        GgmlType::Q3_K => 1.0 / 4.0,
        GgmlType::Q6_K => 1.0 / 32.0,
        GgmlType::Q2_K => 2.0 / 3.0,
        GgmlType::Q4_1 | GgmlType::Q4_K => 2.0 / 15.0,
        GgmlType::Q5_1 | GgmlType::Q5_K => 2.0 / 31.0,
        GgmlType::IQ4_NL | GgmlType::IQ4_XS => 24.0 / 127.0,
        other => panic!("{other} needs a bound"),
    };
    1.5 * step
}

/// Under this no bound holds: the smallest f16 times the largest product of scale and level (Q6_K's 128 and 32).
const FLOOR: f32 = 4096.0 / (1 << 24) as f32;

fn round_trip(t: GgmlType, values: &[f32]) -> Vec<f32> {
    let bytes = quantize(t, values).unwrap();
    let mut back = vec![f32::NAN; values.len()];
    dequantize(t, &bytes, &mut back).unwrap();
    back
}

fn check(t: GgmlType, values: &[f32]) {
    let block = usize::try_from(t.block_len()).unwrap().max(32);
    for (values, back) in values
        .chunks(block)
        .zip(round_trip(t, values).chunks(block))
    {
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs()));
        for (&v, &b) in values.iter().zip(back) {
            let error = (v - b).abs();
            assert!(
                error <= bound(t) * largest + FLOOR,
                "{t}: {v} became {b}, largest {largest}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn errors_are_bounded_whatever_the_values(values in rows()) {
        for &t in SUPPORTED {
            check(t, &values);
        }
    }

    #[test]
    fn any_finite_values_stay_finite(bits in prop::collection::vec(any::<u32>(), 256)) {
        let finite = |bits| Some(f32::from_bits(bits)).filter(|v: &f32| v.is_finite()).unwrap_or(f32::MAX);
        let values: Vec<f32> = bits.into_iter().map(finite).collect();
        for &t in SUPPORTED.iter().filter(|&&t| t != GgmlType::F16 && t != GgmlType::BF16) {
            prop_assert!(round_trip(t, &values).iter().all(|v| v.is_finite()), "{}", t);
        }
    }

    /// Any bytes are some numbers: dequantize has no block that it cannot read.
    #[test]
    fn any_bytes_can_be_dequantized(bytes in prop::collection::vec(any::<u8>(), 256)) {
        for &t in SUPPORTED {
            let (len, size) = (usize::try_from(t.block_len()).unwrap(), usize::try_from(t.block_bytes()).unwrap());
            prop_assert_eq!(dequantize(t, &bytes[..size], &mut vec![0.0; len]), Ok(()));
        }
    }
}

#[test]
fn zeros_stay_zeros() {
    for &t in SUPPORTED {
        assert_eq!(round_trip(t, &[0.0; 512]), [0.0; 512], "{t}");
    }
}

#[test]
fn a_constant_stays_one() {
    for &t in SUPPORTED {
        for constant in [1.0f32, -1.0, 0.37, -250.0, 3e-4] {
            let back = round_trip(t, &[constant; 256]);
            assert!(
                back.iter().all(|&b| b == back[0]),
                "{t}: {constant} became several values"
            );
            // A scale in f16, or in six bits times an f16, loses this much and no more.
            let error = (back[0] - constant).abs();
            assert!(
                error <= 0.004 * constant.abs() + 2e-5,
                "{t}: {constant} became {}",
                back[0]
            );
        }
    }
}

#[test]
fn tiny_values_become_zeros_or_stay_tiny() {
    for &t in SUPPORTED {
        for tiny in [1e-8f32, 1e-30, f32::MIN_POSITIVE, f32::from_bits(1)] {
            let values: Vec<f32> = (0..256)
                .map(|i| if i % 3 == 0 { -tiny } else { tiny })
                .collect();
            assert!(
                round_trip(t, &values).iter().all(|v| v.abs() <= FLOOR),
                "{t} {tiny}"
            );
        }
    }
}

#[test]
fn huge_values_saturate() {
    for &t in SUPPORTED.iter().filter(|t| t.block_len() > 1) {
        let mut values = [0.5f32; 256];
        (values[3], values[100]) = (f32::MAX, f32::MIN);
        let back = round_trip(t, &values);
        assert!(back.iter().all(|v| v.is_finite()), "{t}");
        assert!(
            back[3] >= 65504.0 && back[100] <= 0.0,
            "{t}: {} {}",
            back[3],
            back[100]
        );
    }
}

#[test]
fn an_outlier_keeps_its_size() {
    for &t in SUPPORTED {
        for outlier in [40.0f32, -40.0] {
            let mut values: Vec<f32> = (0..256)
                .map(|i| ((i * 37 % 101) as f32 - 50.0) / 500.0)
                .collect();
            values[77] = outlier;
            check(t, &values);
            let kept = round_trip(t, &values)[77] / outlier;
            assert!((kept - 1.0).abs() < 0.02, "{t}: kept {kept}");
        }
    }
}

/// 256 values of one of the kinds that weights come in, and some that they should not.
fn rows() -> impl Strategy<Value = Vec<f32>> {
    let magnitude = (-6f32..4.0).prop_map(|exponent| 10f32.powf(exponent));
    let uniform = prop::collection::vec(-1f32..1.0, 256);
    let one_sign = prop::collection::vec(0.5f32..1.0, 256);
    let signs = prop::collection::vec(prop::sample::select(vec![-1f32, 1.0]), 256);
    let mixed_scales = prop::collection::vec((-8f32..0.0, any::<bool>()), 256).prop_map(|v| {
        v.into_iter()
            .map(|(e, negative)| {
                if negative {
                    -10f32.powf(e)
                } else {
                    10f32.powf(e)
                }
            })
            .collect()
    });
    let outliers = (
        prop::collection::vec(-0.01f32..0.01, 256),
        prop::collection::vec((0usize..256, -1f32..1.0), 1..5),
    )
        .prop_map(|(mut v, outliers)| {
            outliers.into_iter().for_each(|(i, x)| v[i] = x);
            v
        });
    let sparse = prop::collection::vec(prop_oneof![9 => Just(0f32), 1 => -1f32..1.0], 256);
    let kinds = prop_oneof![uniform, one_sign, signs, mixed_scales, outliers, sparse];
    (kinds, magnitude, any::<bool>()).prop_map(|(values, magnitude, negate)| {
        values
            .into_iter()
            .map(|v: f32| {
                if negate {
                    -v * magnitude
                } else {
                    v * magnitude
                }
            })
            .collect()
    })
}
