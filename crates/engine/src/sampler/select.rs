//! The largest of many logits without sorting them all.

use std::cmp::Ordering;

/// A token that may be chosen. Its logit is neither minus infinity nor not-a-number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) token: u32,
    pub(crate) logit: f32,
}

impl Candidate {
    /// All that may be chosen, by ascending id.
    pub(crate) fn all(logits: &[f32]) -> impl Iterator<Item = Self> + '_ {
        (0..)
            .zip(logits)
            .map(|(token, &logit)| Self { token, logit })
            .filter(|c| c.logit > f32::NEG_INFINITY)
    }
}

/// Best first; of equals the lowest id.
pub(crate) fn descending(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.total_cmp(&a.logit).then(a.token.cmp(&b.token))
}

/// Logits looked at together: few enough to stay in registers, enough for any vector width.
const LANES: usize = 32;

/// The largest of some logits; not-a-number is passed over. Written for the compiler to vectorize.
fn maximum(logits: &[f32]) -> f32 {
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = logits.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, &logit) in lanes.iter_mut().zip(chunk) {
            *lane = if logit > *lane { logit } else { *lane };
        }
    }
    lanes.iter().chain(rest).fold(
        f32::NEG_INFINITY,
        |best, &logit| if logit > best { logit } else { best },
    )
}

/// The largest logit, of equals the one with the lowest id; `None` where no logit is finite or one is infinite.
pub(crate) fn largest(logits: &[f32]) -> Option<Candidate> {
    let logit = maximum(logits);
    let token = logits.iter().position(|&other| other == logit)?;
    logit.is_finite().then_some(Candidate {
        token: token as u32,
        logit,
    })
}

/// Logits that [`best`] passes over at once.
const CHUNK: usize = 64;

/// Up to here [`best`] keeps a sorted list while it passes over the logits; beyond, it selects.
const SMALL: usize = 128;

/// The `n` best tokens, best first, into `best`.
pub(crate) fn best(logits: &[f32], n: usize, best: &mut Vec<Candidate>) {
    best.clear();
    if n == 0 {
        return;
    }
    if n > SMALL {
        best.extend(Candidate::all(logits));
        if n < best.len() {
            best.select_nth_unstable_by(n, descending);
            best.truncate(n);
        }
        best.sort_unstable_by(descending);
        return;
    }
    // In logits of any usual shape few chunks hold a logit above the worst of the list, and that test vectorizes: the
    // pass costs little more than reading.
    let mut worst = f32::NEG_INFINITY;
    for (chunk_idx, chunk) in logits.chunks(CHUNK).enumerate() {
        if !chunk
            .iter()
            .fold(false, |any, &logit| any | (logit > worst))
        {
            continue;
        }
        for (offset, &logit) in chunk.iter().enumerate() {
            if logit > worst {
                // Ids ascend, so an equal logit goes behind those that are there.
                let place = best.partition_point(|other| other.logit >= logit);
                best.truncate(n - 1);
                best.insert(
                    place,
                    Candidate {
                        token: (chunk_idx * CHUNK + offset) as u32,
                        logit,
                    },
                );
                if best.len() == n {
                    worst = best[n - 1].logit;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The plain twin.
    fn sorted(logits: &[f32]) -> Vec<Candidate> {
        let mut all: Vec<Candidate> = Candidate::all(logits).collect();
        all.sort_by(descending);
        all
    }

    #[test]
    fn equals_go_by_id_and_non_numbers_are_passed_over() {
        let logits = [f32::NAN, 1.0, 3.0, f32::NEG_INFINITY, 3.0];
        assert_eq!(largest(&logits).map(|c| c.token), Some(2));
        let mut found = Vec::new();
        best(&logits, 5, &mut found);
        assert_eq!(found.iter().map(|c| c.token).collect::<Vec<_>>(), [2, 4, 1]);
        assert_eq!(largest(&[f32::NAN, f32::NEG_INFINITY]), None);
        assert_eq!(largest(&[1.0, f32::INFINITY]), None);
        assert_eq!(largest(&[]), None);
    }

    proptest! {
        #[test]
        fn selection_agrees_with_sorting(
            logits in prop::collection::vec((-40_i8..40).prop_map(|x| f32::from(x) / 4.0), 1..600),
            n in 1..300_usize,
        ) {
            let expected = sorted(&logits);
            prop_assert_eq!(largest(&logits), expected.first().copied());
            let mut found = Vec::new();
            best(&logits, n, &mut found);
            prop_assert_eq!(&found[..], &expected[..n.min(expected.len())]);
        }
    }
}
