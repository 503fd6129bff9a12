//! Probabilities relative to the best token's: `exp(logit - best)`.
//!
//! Own exponential, for two reasons: over a whole vocabulary it must vectorize, and it must not differ between
//! machines, as the libraries' do, because a draw depends on the last bit. Only multiplications, additions and bit
//! operations; the compiler contracts none of them.

/// Logits worked on together.
pub(crate) const CHUNK: usize = 64;

/// `exp(x)` for `x <= 0`, relative error below 4e-7; 0 below -87, where the result would be denormal; 0 for
/// not-a-number.
pub(crate) fn exp(x: f32) -> f32 {
    // exp(x) = 2^n * exp(r) with |r| <= ln(2) / 2; adding and subtracting 1.5 * 2^23 rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let is_tiny = x.is_nan() | (x < -87.0);
    let x = if is_tiny { 0.0 } else { x };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor's series to the sixth power.
    let series = 1.0 / 120.0 + r * (1.0 / 720.0);
    let series = 1.0 / 24.0 + r * series;
    let series = 1.0 / 6.0 + r * series;
    let series = 0.5 + r * series;
    let series = 1.0 + r * (1.0 + r * series);
    // The rounded integer is in the low bits of `shifted`; moved up it becomes the exponent.
    let scale = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    if is_tiny { 0.0 } else { series * scale }
}

/// Weights of up to [`CHUNK`] logits; 0 for what may not be chosen.
pub(crate) fn chunk_weights(logits: &[f32], best_logit: f32) -> [f32; CHUNK] {
    let mut weights = [0.0; CHUNK];
    for (weight, &logit) in weights.iter_mut().zip(logits) {
        *weight = exp(logit - best_logit);
    }
    weights
}

/// Sum of all weights.
pub(crate) fn mass(logits: &[f32], best_logit: f32) -> f64 {
    const LANES: usize = 8;
    let mut total = 0.0;
    for chunk in logits.chunks(CHUNK) {
        let mut lanes = [0.0; LANES];
        for part in chunk_weights(chunk, best_logit).as_chunks::<LANES>().0 {
            for (lane, weight) in lanes.iter_mut().zip(part) {
                *lane += weight;
            }
        }
        total += lanes.iter().map(|&lane| f64::from(lane)).sum::<f64>();
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_close_everywhere() {
        for step in 0..870_000 {
            let x = -(step as f32) / 10_000.0;
            let expected = f64::from(x).exp();
            let error = (f64::from(exp(x)) - expected).abs() / expected;
            assert!(error < 4e-7, "exp({x}): relative error {error}");
        }
        assert_eq!(exp(0.0), 1.0);
        for x in [-87.5, -1e30, f32::NEG_INFINITY, f32::NAN] {
            assert_eq!(exp(x), 0.0, "exp({x})");
        }
    }

    #[test]
    fn the_mass_is_the_sum_whatever_the_length() {
        for n in [0, 1, 63, 64, 65, 1000] {
            let logits: Vec<f32> = (0..n).map(|i| (i * 37 % 101) as f32 / 10.0).collect();
            let expected: f64 = logits
                .iter()
                .map(|&logit| (f64::from(logit) - 10.0).exp())
                .sum();
            assert!((mass(&logits, 10.0) - expected).abs() <= 1e-6 * expected);
        }
        assert_eq!(mass(&[f32::NAN, f32::NEG_INFINITY, 2.0], 2.0), 1.0);
    }
}
