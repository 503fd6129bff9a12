//! Chooses the next token from one row of logits.
//!
//! ```text
//! logits + bias (banned: -inf) -> penalties over the last tokens
//! temperature 0:  the largest, of equals the lowest id
//! else:           top-k -> top-p -> min-p -> / temperature -> softmax -> one draw
//! ```
//!
//! The order is llama-server's: top-p and min-p see probabilities before the temperature. Nothing sorts the
//! vocabulary: with top-k one pass keeps the best few, and top-p without it sorts only around its cut.

mod select;
#[cfg(test)]
mod tests;
mod weights;

use crate::random::Random;
use crate::{Sampling, TokenLogprob, TokenLogprobs};
use select::{Candidate, best, descending, largest};
use weights::{CHUNK, chunk_weights, exp, mass};

/// No token can be chosen: all are banned, or the logits are not numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no token can be chosen: every logit is minus infinity or not a finite number")]
pub(crate) struct NoCandidate;

/// Buffers that all samplers of an engine share.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    logits: Vec<f32>,
    candidates: Vec<Candidate>,
    weights: Vec<f32>,
    window: Vec<u32>,
}

/// The sampler of one sequence: its parameters and its random numbers.
#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    random: Random,
}

impl Sampler {
    /// `banned` tokens are never chosen. The parameters have been validated.
    pub(crate) fn new(mut sampling: Sampling, banned: &[u32]) -> Self {
        sampling
            .logit_bias
            .extend(banned.iter().map(|&token| (token, f32::NEG_INFINITY)));
        let seed = sampling.seed.unwrap_or_else(Random::fresh_seed);
        Self {
            random: Random::new(seed),
            sampling,
        }
    }

    /// The next token after `context` (prompt and answer so far).
    ///
    /// # Errors
    /// [`NoCandidate`].
    pub(crate) fn sample(
        &mut self,
        logits: &[f32],
        context: &[u32],
        scratch: &mut Scratch,
    ) -> Result<u32, NoCandidate> {
        let mut adjusted = std::mem::take(&mut scratch.logits);
        let logits = if self.sampling.logit_bias.is_empty() && !self.sampling.has_penalties() {
            logits
        } else {
            adjusted.clear();
            adjusted.extend_from_slice(logits);
            self.adjust(&mut adjusted, context, &mut scratch.window);
            &adjusted
        };
        let token = if self.sampling.temperature == 0.0 {
            largest(logits).map(|best| best.token).ok_or(NoCandidate)
        } else {
            self.draw(logits, scratch)
        };
        scratch.logits = adjusted;
        token
    }

    /// Bias, then penalties for the tokens of the window.
    fn adjust(&self, logits: &mut [f32], context: &[u32], window: &mut Vec<u32>) {
        let sampling = &self.sampling;
        for &(token, bias) in &sampling.logit_bias {
            logits[token as usize] += bias;
        }
        if !sampling.has_penalties() {
            return;
        }
        window.clear();
        window.extend_from_slice(&context[context.len().saturating_sub(sampling.repeat_last_n)..]);
        window.sort_unstable();
        for repeated in window.chunk_by(|a, b| a == b) {
            let logit = &mut logits[repeated[0] as usize];
            // Dividing a negative logit would make its token more likely.
            let penalty = sampling.repeat_penalty;
            *logit = if *logit > 0.0 {
                *logit / penalty
            } else {
                *logit * penalty
            };
            *logit -=
                repeated.len() as f32 * sampling.frequency_penalty + sampling.presence_penalty;
        }
    }

    fn draw(&mut self, logits: &[f32], scratch: &mut Scratch) -> Result<u32, NoCandidate> {
        let Scratch {
            candidates,
            weights,
            ..
        } = scratch;
        let best_logit = self.candidates(logits, candidates)?;
        weights.clear();
        weights.extend(
            candidates
                .iter()
                .map(|c| exp((c.logit - best_logit) / self.sampling.temperature)),
        );
        let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
        let mut left = self.random.next_unit() * total;
        let chosen = weights.iter().position(|&weight| {
            left -= f64::from(weight);
            left < 0.0
        });
        // Rounding can leave a rest at the end: then the last one that has a weight at all.
        let chosen = chosen.or_else(|| weights.iter().rposition(|&weight| weight > 0.0));
        chosen
            .map(|index| candidates[index].token)
            .ok_or(NoCandidate)
    }

    /// Tokens that top-k, top-p and min-p leave, in an order that depends on nothing but the logits; the best logit.
    fn candidates(
        &self,
        logits: &[f32],
        candidates: &mut Vec<Candidate>,
    ) -> Result<f32, NoCandidate> {
        let Sampling {
            top_k,
            top_p,
            min_p,
            ..
        } = self.sampling;
        let floor = |best_logit: f32| {
            if min_p > 0.0 {
                best_logit + min_p.ln()
            } else {
                f32::MIN
            }
        };
        candidates.clear();
        if top_k > 0 && top_k < logits.len() {
            best(logits, top_k, candidates);
            let best = candidates
                .first()
                .filter(|best| best.logit.is_finite())
                .ok_or(NoCandidate)?;
            let best_logit = best.logit;
            if top_p < 1.0 {
                let total: f64 = candidates
                    .iter()
                    .map(|c| f64::from(exp(c.logit - best_logit)))
                    .sum();
                keep_mass(candidates, 0, f64::from(top_p) * total, best_logit);
            }
            candidates.retain(|candidate| candidate.logit >= floor(best_logit));
            return Ok(best_logit);
        }
        let best_logit = largest(logits).ok_or(NoCandidate)?.logit;
        if top_p < 1.0 {
            top_p_of_all(
                logits,
                f64::from(top_p),
                best_logit,
                floor(best_logit),
                candidates,
            );
        } else {
            candidates.extend(Candidate::all(logits).filter(|c| c.logit >= floor(best_logit)));
        }
        Ok(best_logit)
    }
}

/// Cuts after the first candidate, from `from` on, with which the mass reaches `wanted`.
fn keep_mass(candidates: &mut Vec<Candidate>, from: usize, wanted: f64, best_logit: f32) {
    let mut reached = 0.0;
    let last = candidates[from..].iter().position(|candidate| {
        reached += f64::from(exp(candidate.logit - best_logit));
        reached >= wanted
    });
    if let Some(last) = last {
        candidates.truncate(from + last + 1);
    }
}

/// Top-p over a whole vocabulary in linear time: one pass sums the mass by the distance from the best logit, which
/// tells the bucket that the cut falls into. All above it stay as they are; only that bucket is sorted.
///
/// Tokens below `floor`, which min-p would cut anyway, count for the mass but are not kept.
fn top_p_of_all(
    logits: &[f32],
    top_p: f64,
    best_logit: f32,
    floor: f32,
    candidates: &mut Vec<Candidate>,
) {
    const BUCKETS: usize = 256;
    const BUCKETS_PER_UNIT: f32 = 8.0;
    let bucket = |logit: f32| (((best_logit - logit) * BUCKETS_PER_UNIT) as usize).min(BUCKETS - 1);
    let mut masses = [0.0; BUCKETS];
    for chunk in logits.chunks(CHUNK) {
        for (&logit, weight) in chunk.iter().zip(chunk_weights(chunk, best_logit)) {
            masses[bucket(logit)] += f64::from(weight);
        }
    }
    let mut wanted = top_p * masses.iter().sum::<f64>();
    let cut = masses.iter().position(|&mass| {
        let reached = wanted <= mass;
        if !reached {
            wanted -= mass;
        }
        reached
    });
    let cut = cut.unwrap_or(BUCKETS - 1);
    let kept = || Candidate::all(logits).filter(|candidate| candidate.logit >= floor);
    candidates.extend(kept().filter(|candidate| bucket(candidate.logit) < cut));
    let n_above = candidates.len();
    candidates.extend(kept().filter(|candidate| bucket(candidate.logit) == cut));
    candidates[n_above..].sort_unstable_by(descending);
    keep_mass(candidates, n_above, wanted, best_logit);
}

/// Log-probabilities of one row: of `token`, and of the `n_top` most likely tokens, best first.
///
/// # Errors
/// [`NoCandidate`] where the logits are no numbers.
pub(crate) fn logprobs(
    logits: &[f32],
    token: u32,
    n_top: usize,
    scratch: &mut Scratch,
) -> Result<TokenLogprobs, NoCandidate> {
    let best_logit = largest(logits).ok_or(NoCandidate)?.logit;
    let log_total = mass(logits, best_logit).ln();
    let logprob = |logit: f32| (f64::from(logit) - f64::from(best_logit) - log_total) as f32;
    best(logits, n_top, &mut scratch.candidates);
    let top = scratch
        .candidates
        .iter()
        .map(|c| TokenLogprob {
            token: c.token,
            logprob: logprob(c.logit),
        })
        .collect();
    Ok(TokenLogprobs {
        logprob: logprob(logits[token as usize]),
        top,
    })
}
