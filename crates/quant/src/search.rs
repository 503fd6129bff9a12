//! Choosing scales: the (weighted) least-squares fit over a range of candidates.
//!
//! For a candidate scale the integers follow by rounding; for given integers the best scale has a closed form.
//! So: try some scales around the one that just covers the range, round, refit, and keep the pair with the least
//! error. All of it in f64, where no square of an f32 overflows or vanishes.

/// The integers that a format can hold.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levels {
    pub(crate) min: i32,
    pub(crate) max: i32,
}

/// The level nearest to `value / scale`; 0 (or the nearest to it) where the scale is zero.
pub(crate) fn round_to(value: f32, scale: f32, levels: Levels) -> i32 {
    let q = if scale == 0.0 {
        0.0
    } else {
        f64::from(value) / f64::from(scale)
    };
    (q.round_ties_even() as i32).clamp(levels.min, levels.max)
}

/// How many candidates lie on each side of the plain scale, and how far apart, in levels.
const CANDIDATES: i32 = 10;
const CANDIDATE_STEP: f64 = 0.1;

/// The scale for `value = scale * q`, `q` in `levels`; its sign is chosen too (levels reach one further below
/// zero than above, so the largest magnitude goes there).
pub(crate) fn symmetric(values: &[f32], levels: Levels, weight: impl Fn(f32) -> f64) -> f64 {
    let quantizer = |inverse: f64, v: f64| {
        (v * inverse)
            .round_ties_even()
            .clamp(levels.min.into(), levels.max.into())
    };
    fit_scale(
        values,
        f64::from(levels.min),
        CANDIDATE_STEP,
        quantizer,
        weight,
    )
}

/// The scale for `value = scale * level` where `nearest(1 / scale, value)` gives the level.
///
/// `extreme` is the level of the largest magnitude, with its sign; candidates map the largest value to it and to
/// numbers around it that are `step` apart.
pub(crate) fn fit_scale(
    values: &[f32],
    extreme: f64,
    step: f64,
    nearest: impl Fn(f64, f64) -> f64,
    weight: impl Fn(f32) -> f64,
) -> f64 {
    let largest = f64::from(
        values
            .iter()
            .fold(0f32, |m, &v| if v.abs() > m.abs() { v } else { m }),
    );
    if largest == 0.0 {
        return 0.0;
    }
    // The error of the best scale for given levels is `sum(w v v) - gain`.
    let (mut best_gain, mut best_scale) = (0.0, 0.0);
    for candidate in -CANDIDATES..=CANDIDATES {
        for sign in [1.0, -1.0] {
            let inverse = sign * (extreme + step * f64::from(candidate)) / largest;
            let (mut sum_vq, mut sum_qq) = (0.0, 0.0);
            for &v in values {
                let (w, v) = (weight(v), f64::from(v));
                let q = nearest(inverse, v);
                sum_vq += w * v * q;
                sum_qq += w * q * q;
            }
            if sum_qq > 0.0 && sum_vq * sum_vq / sum_qq > best_gain {
                best_gain = sum_vq * sum_vq / sum_qq;
                best_scale = sum_vq / sum_qq;
            }
        }
    }
    best_scale
}

/// Scale and minimum for `value = scale * q + min`, `q` in `0..=max_level` and `min <= min_limit` (zero for the
/// formats that store a minimum to be taken off).
pub(crate) fn affine(
    values: &[f32],
    max_level: i32,
    weight: impl Fn(f32) -> f64,
    min_limit: f64,
) -> (f64, f64) {
    let levels = f64::from(max_level);
    let low = values
        .iter()
        .fold(f64::INFINITY, |m, &v| m.min(v.into()))
        .min(min_limit);
    let high = values
        .iter()
        .fold(f64::NEG_INFINITY, |m, &v| m.max(v.into()));
    if high <= low {
        return (0.0, low);
    }
    let error = |scale: f64, min: f64, inverse: f64, offset: f64| -> f64 {
        let residual = |&v: &f32| {
            let q = ((f64::from(v) - offset) * inverse)
                .round_ties_even()
                .clamp(0.0, levels);
            weight(v) * (f64::from(v) - min - scale * q).powi(2)
        };
        values.iter().map(residual).sum()
    };
    let plain = (high - low) / levels;
    let mut best = (plain, low);
    let mut best_error = error(plain, low, 1.0 / plain, low);
    for step in -CANDIDATES..=CANDIDATES {
        let inverse = (levels + CANDIDATE_STEP * f64::from(step)) / (high - low);
        let (scale, min) = fit_line(values, inverse, low, levels, &weight, min_limit);
        let fitted = error(scale, min, inverse, low);
        if fitted < best_error {
            (best, best_error) = ((scale, min), fitted);
        }
    }
    best
}

/// The least-squares line through (level, value) for the levels that `inverse` and `low` give, its value at level
/// zero at most `min_limit`.
fn fit_line(
    values: &[f32],
    inverse: f64,
    low: f64,
    levels: f64,
    weight: &impl Fn(f32) -> f64,
    min_limit: f64,
) -> (f64, f64) {
    let (mut sum_w, mut sum_q, mut sum_qq, mut sum_v, mut sum_vq) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for &v in values {
        let (w, v) = (weight(v), f64::from(v));
        let q = ((v - low) * inverse).round_ties_even().clamp(0.0, levels);
        sum_w += w;
        sum_q += w * q;
        sum_qq += w * q * q;
        sum_v += w * v;
        sum_vq += w * v * q;
    }
    let determinant = sum_w * sum_qq - sum_q * sum_q;
    if determinant > 0.0 {
        let min = (sum_qq * sum_v - sum_q * sum_vq) / determinant;
        if min <= min_limit {
            return ((sum_w * sum_vq - sum_q * sum_v) / determinant, min);
        }
    }
    // The line would be above the limit, or all levels are equal: with the minimum held there, only the slope is free.
    let min = low.min(min_limit);
    let scale = if sum_qq > 0.0 {
        (sum_vq - min * sum_q) / sum_qq
    } else {
        0.0
    };
    (scale, min)
}
