//! Chooses the next token from one row of logits.
//!
//! ```text
//! logits + bias (banned: -inf) -> penalties over the last tokens
//! temperature 0:  the largest, of equals the lowest id
//! else:           top-k -> top-p -> min-p -> / temperature -> softmax -> one draw
//! ```
//!
//! The order is llama-server's: top-p and min-p see probabilities before the temperature. Nothing sorts the
//! vocabulary: with top-k one pass keeps the best few, without it only as many are sorted as top-p needs.

mod select;
#[cfg(test)]
mod tests;

use crate::random::Random;
use crate::{Sampling, TokenLogprob, TokenLogprobs};
use select::{Candidate, best, descending, largest};

/// No token can be chosen: all are banned, or the logits are not numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no token can be chosen: every logit is minus infinity or not a finite number")]
pub(crate) struct NoCandidate;

/// Buffers that all samplers of an engine share.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    logits: Vec<f32>,
    candidates: Vec<Candidate>,
    weights: Vec<f64>,
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
        self.candidates(logits, candidates)?;
        let best = candidates
            .iter()
            .fold(f32::NEG_INFINITY, |best, candidate| {
                best.max(candidate.logit)
            });
        weights.clear();
        weights.extend(
            candidates
                .iter()
                .map(|c| f64::from(((c.logit - best) / self.sampling.temperature).exp())),
        );
        let mut left = self.random.next_unit() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        // Rounding can leave a rest at the end: then the last one that has a weight at all.
        let chosen = chosen.or_else(|| weights.iter().rposition(|&weight| weight > 0.0));
        chosen
            .map(|index| candidates[index].token)
            .ok_or(NoCandidate)
    }

    /// Tokens that top-k, top-p and min-p leave, in an order that depends on nothing but the logits.
    fn candidates(
        &self,
        logits: &[f32],
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), NoCandidate> {
        let Sampling {
            top_k,
            top_p,
            min_p,
            ..
        } = self.sampling;
        let best_logit = largest(logits).ok_or(NoCandidate)?.logit;
        // All three keep the tokens from some logit on, so min-p, the cheapest, may come first.
        let floor = if min_p > 0.0 {
            best_logit + min_p.ln()
        } else {
            f32::MIN
        };
        let sorted = top_k > 0 && top_k < logits.len();
        if sorted {
            best(logits, top_k, candidates);
        } else {
            candidates.clear();
            candidates.extend(Candidate::all(logits).filter(|candidate| candidate.logit >= floor));
        }
        if top_p < 1.0 {
            let total = if sorted {
                mass(candidates.iter().map(|c| c.logit), best_logit)
            } else {
                mass(logits.iter().copied(), best_logit)
            };
            keep_top_p(candidates, sorted, f64::from(top_p) * total, best_logit);
        }
        candidates.retain(|candidate| candidate.logit >= floor);
        Ok(())
    }
}

/// Sum of the exponentials relative to the best logit. Not-a-number counts nothing.
fn mass(logits: impl Iterator<Item = f32>, best_logit: f32) -> f64 {
    logits
        .filter(|logit| !logit.is_nan())
        .map(|logit| f64::from((logit - best_logit).exp()))
        .sum()
}

/// Keeps the shortest prefix in descending order whose mass reaches `wanted`; sorts no more than that takes.
fn keep_top_p(candidates: &mut Vec<Candidate>, sorted: bool, wanted: f64, best_logit: f32) {
    let mut n_sorted = if sorted { candidates.len() } else { 0 };
    let mut reached = 0.0;
    for index in 0..candidates.len() {
        if index == n_sorted {
            // The next portion, four times all before it, moves to the front of the rest and is sorted.
            let rest = &mut candidates[n_sorted..];
            let portion = (4 * n_sorted).max(64).min(rest.len());
            if portion < rest.len() {
                rest.select_nth_unstable_by(portion, descending);
            }
            rest[..portion].sort_unstable_by(descending);
            n_sorted += portion;
        }
        reached += f64::from((candidates[index].logit - best_logit).exp());
        if reached >= wanted {
            candidates.truncate(index + 1);
            return;
        }
    }
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
    let log_total = mass(logits.iter().copied(), best_logit).ln();
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
