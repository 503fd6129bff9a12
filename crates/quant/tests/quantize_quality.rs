//! How near quantized values stay to the originals: against fixed bounds, and against the reference engine's files.
#![allow(clippy::unwrap_used)] // also the helper functions are tests

use std::path::Path;

use dynalm_gguf::{GgmlType, GgufFile};
use dynalm_quant::{SUPPORTED, dequantize, quantize};

/// Root mean square error on normally distributed values, in units of theirs: 3 % above what was measured when the
/// search was written.
#[test]
fn error_on_normal_values() {
    let limits = [
        (GgmlType::F32, 0.0),
        (GgmlType::F16, 0.000215),
        (GgmlType::BF16, 0.00172),
        (GgmlType::Q8_0, 0.00537),
        (GgmlType::Q6_K, 0.0178),
        (GgmlType::Q5_K, 0.0365),
        (GgmlType::Q5_1, 0.0343),
        (GgmlType::Q5_0, 0.0401),
        (GgmlType::Q4_K, 0.0723),
        (GgmlType::Q4_1, 0.0703),
        (GgmlType::Q4_0, 0.0808),
        (GgmlType::IQ4_NL, 0.0757),
        (GgmlType::IQ4_XS, 0.0764),
        (GgmlType::Q3_K, 0.152),
        (GgmlType::Q2_K, 0.279),
    ];
    assert_eq!(limits.len(), SUPPORTED.len());
    let values = gaussian(64 * 256, 1);
    for (t, limit) in limits {
        let error = relative_error(&values, &round_trip(t, &values));
        assert!(error <= limit, "{t}: {error} is over {limit}");
    }
}

/// The committed golden models hold one model in every type: ours must be as near to the original (in F16) as the
/// reference engine's, with 2 % to spare.
#[test]
fn error_against_the_reference_engine() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/golden/quant");
    let original = GgufFile::open(&folder.join("quant-F16.gguf")).unwrap();
    let mut compared = 0;
    for &t in SUPPORTED.iter().filter(|&&t| t != GgmlType::F16) {
        let Ok(file) = GgufFile::open(&folder.join(format!("quant-{t}.gguf"))) else {
            continue;
        };
        for name in ["blk.0.attn_q.weight", "blk.0.ffn_down.weight"] {
            let values = tensor(&original, name);
            let theirs = relative_error(&values, &tensor(&file, name));
            let ours = relative_error(&values, &round_trip(t, &values));
            assert!(
                ours <= 1.02 * theirs,
                "{t} {name}: {ours} is over the reference's {theirs}"
            );
        }
        compared += 1;
    }
    assert!(
        compared >= 11,
        "only {compared} types found in {}",
        folder.display()
    );
}

fn tensor(file: &GgufFile, name: &str) -> Vec<f32> {
    let tensor = file.tensor(name).unwrap();
    let mut values = vec![0.0; usize::try_from(tensor.n_elements()).unwrap()];
    dequantize(tensor.ggml_type, file.data(tensor), &mut values).unwrap();
    values
}

fn round_trip(t: GgmlType, values: &[f32]) -> Vec<f32> {
    let mut back = vec![f32::NAN; values.len()];
    dequantize(t, &quantize(t, values).unwrap(), &mut back).unwrap();
    back
}

/// Root mean square of the error, in units of that of the values.
fn relative_error(values: &[f32], back: &[f32]) -> f64 {
    let square = |x: f64| x * x;
    let error: f64 = values
        .iter()
        .zip(back)
        .map(|(&a, &b)| square(f64::from(a) - f64::from(b)))
        .sum();
    (error / values.iter().map(|&v| square(f64::from(v))).sum::<f64>()).sqrt()
}

/// Values of about normal distribution (sums of twelve uniform ones), the same each time.
fn gaussian(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..n)
        .map(|_| (0..12).map(|_| uniform()).sum::<f32>() - 6.0)
        .collect()
}
