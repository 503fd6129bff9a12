//! Draws against the distributions they should follow, computed the long way.

use super::*;

const LOGITS: [f32; 8] = [1.0, 3.0, 2.5, -1.0, 0.5, 3.0, 2.0, -4.0];

/// Every parameter off, temperature 1.
fn open() -> Sampling {
    Sampling {
        temperature: 1.0,
        top_k: 0,
        top_p: 1.0,
        min_p: 0.0,
        seed: Some(1),
        ..Sampling::default()
    }
}

fn draws(sampling: &Sampling, logits: &[f32], context: &[u32], n: usize) -> Vec<u64> {
    let mut sampler = Sampler::new(sampling.clone(), &[]);
    let mut scratch = Scratch::default();
    let mut counts = vec![0; logits.len()];
    for _ in 0..n {
        counts[sampler
            .sample(logits, context, &mut scratch)
            .expect("a token") as usize] += 1;
    }
    counts
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
    logits.iter().map(|logit| logit.exp() / total).collect()
}

/// The analytic distribution, with full sorts and in the order of the documentation.
fn expected(sampling: &Sampling, logits: &[f32]) -> Vec<f64> {
    let logits: Vec<f64> = logits.iter().map(|&logit| f64::from(logit)).collect();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if sampling.top_k > 0 {
        order.truncate(sampling.top_k);
    }
    let probs = softmax(&order.iter().map(|&token| logits[token]).collect::<Vec<_>>());
    let mut reached = 0.0;
    let n_top_p = probs.iter().take_while(|&&prob| {
        let wanted = reached < f64::from(sampling.top_p);
        reached += prob;
        wanted
    });
    let n_top_p = n_top_p.count().max(1);
    let n_min_p = probs
        .iter()
        .filter(|&&prob| prob >= f64::from(sampling.min_p) * probs[0])
        .count();
    order.truncate(n_top_p.min(n_min_p));
    let tempered: Vec<f64> = order
        .iter()
        .map(|&token| logits[token] / f64::from(sampling.temperature))
        .collect();
    let mut distribution = vec![0.0; logits.len()];
    for (&token, prob) in order.iter().zip(softmax(&tempered)) {
        distribution[token] = prob;
    }
    distribution
}

/// Chi-square of the counts, against the 99.99 % quantile (Wilson and Hilferty's approximation).
fn assert_follows(counts: &[u64], distribution: &[f64], what: &str) {
    let n: u64 = counts.iter().sum();
    let mut chi_square = 0.0;
    let mut freedom = -1.0;
    for (&count, &prob) in counts.iter().zip(distribution) {
        if prob == 0.0 {
            assert_eq!(count, 0, "{what}: a token that was cut off was drawn");
            continue;
        }
        let expected = prob * n as f64;
        chi_square += (count as f64 - expected).powi(2) / expected;
        freedom += 1.0;
    }
    if freedom > 0.0 {
        let spread: f64 = 2.0 / (9.0 * freedom);
        let limit = freedom * (1.0 - spread + 3.72 * spread.sqrt()).powi(3);
        assert!(
            chi_square < limit,
            "{what}: chi-square {chi_square} of at most {limit}: {counts:?} {distribution:?}"
        );
    }
}

#[test]
fn draws_follow_the_analytic_distribution() {
    for (what, sampling) in [
        ("open", open()),
        (
            "hot",
            Sampling {
                temperature: 2.0,
                ..open()
            },
        ),
        (
            "cold",
            Sampling {
                temperature: 0.5,
                ..open()
            },
        ),
        ("top-k", Sampling { top_k: 3, ..open() }),
        (
            "top-k above the vocabulary",
            Sampling {
                top_k: 100,
                ..open()
            },
        ),
        (
            "top-p",
            Sampling {
                top_p: 0.8,
                ..open()
            },
        ),
        (
            "top-p 0",
            Sampling {
                top_p: 0.0,
                ..open()
            },
        ),
        (
            "min-p",
            Sampling {
                min_p: 0.3,
                ..open()
            },
        ),
        (
            "min-p 1",
            Sampling {
                min_p: 1.0,
                ..open()
            },
        ),
        (
            "top-k, top-p",
            Sampling {
                top_k: 5,
                top_p: 0.7,
                ..open()
            },
        ),
        (
            "all",
            Sampling {
                temperature: 1.5,
                top_k: 5,
                top_p: 0.95,
                min_p: 0.1,
                ..open()
            },
        ),
    ] {
        assert_follows(
            &draws(&sampling, &LOGITS, &[], 20_000),
            &expected(&sampling, &LOGITS),
            what,
        );
    }
}

#[test]
fn large_vocabularies_follow_it_too() {
    let logits: Vec<f32> = (0..600_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 16) as f32 / 65_536.0 * 12.0)
        .collect();
    for (what, sampling) in [
        (
            "top-p",
            Sampling {
                top_p: 0.9,
                temperature: 0.7,
                ..open()
            },
        ),
        (
            "large top-k",
            Sampling {
                top_k: 150,
                top_p: 0.5,
                ..open()
            },
        ),
        (
            "min-p before top-p",
            Sampling {
                top_p: 0.6,
                min_p: 0.5,
                ..open()
            },
        ),
    ] {
        assert_follows(
            &draws(&sampling, &logits, &[], 60_000),
            &expected(&sampling, &logits),
            what,
        );
    }
}

#[test]
fn greedy_takes_the_lowest_of_equals_and_needs_no_seed() {
    let greedy = Sampling {
        temperature: 0.0,
        seed: None,
        ..Sampling::default()
    };
    assert_eq!(draws(&greedy, &LOGITS, &[], 10)[1], 10);
}

#[test]
fn penalties_are_those_of_the_reference() {
    let sampling = Sampling {
        repeat_penalty: 2.0,
        presence_penalty: 0.5,
        frequency_penalty: 0.25,
        repeat_last_n: 4,
        ..open()
    };
    let sampler = Sampler::new(sampling, &[]);
    let mut logits = LOGITS;
    // The first token of the context is outside the window.
    sampler.adjust(&mut logits, &[6, 1, 3, 1, 1], &mut Vec::new());
    let mut wanted = LOGITS;
    wanted[1] = 3.0 / 2.0 - 3.0 * 0.25 - 0.5;
    wanted[3] = -2.0 - 0.25 - 0.5;
    assert_eq!(logits, wanted);
}

#[test]
fn bias_comes_before_everything_and_bans() {
    let sampling = Sampling {
        logit_bias: vec![(1, f32::NEG_INFINITY), (7, 100.0)],
        top_k: 1,
        ..open()
    };
    assert_eq!(draws(&sampling, &LOGITS, &[], 50)[7], 50);
    let mut banned = Sampler::new(Sampling::greedy(), &[1, 5]);
    assert_eq!(banned.sample(&LOGITS, &[], &mut Scratch::default()), Ok(2));
}

#[test]
fn logits_that_are_no_numbers_are_an_error() {
    for sampling in [open(), Sampling::greedy(), Sampling { top_k: 2, ..open() }] {
        let mut sampler = Sampler::new(sampling, &[]);
        let mut scratch = Scratch::default();
        assert_eq!(
            sampler.sample(&[f32::NAN; 4], &[], &mut scratch),
            Err(NoCandidate)
        );
        assert_eq!(
            sampler.sample(&[f32::NEG_INFINITY; 4], &[], &mut scratch),
            Err(NoCandidate)
        );
        assert_eq!(sampler.sample(&[f32::NAN, 1.0], &[], &mut scratch), Ok(1));
    }
}

#[test]
fn the_same_seed_draws_the_same_tokens() {
    let tokens = |seed| {
        let mut sampler = Sampler::new(
            Sampling {
                seed: Some(seed),
                ..open()
            },
            &[],
        );
        let mut scratch = Scratch::default();
        (0..50)
            .map(|_| sampler.sample(&LOGITS, &[], &mut scratch).expect("a token"))
            .collect::<Vec<_>>()
    };
    assert_eq!(tokens(3), tokens(3));
    assert_ne!(tokens(3), tokens(4));
}

#[test]
fn extreme_temperatures_stay_in_bounds() {
    assert_eq!(
        draws(
            &Sampling {
                temperature: f32::MIN_POSITIVE,
                top_k: 1,
                ..open()
            },
            &LOGITS,
            &[],
            20
        )[1],
        20
    );
    let cold = draws(
        &Sampling {
            temperature: 1e-30,
            ..open()
        },
        &LOGITS,
        &[],
        200,
    );
    assert_eq!(cold[1] + cold[5], 200);
    assert_follows(
        &draws(
            &Sampling {
                temperature: 100.0,
                ..open()
            },
            &LOGITS,
            &[],
            20_000,
        ),
        &expected(
            &Sampling {
                temperature: 100.0,
                ..open()
            },
            &LOGITS,
        ),
        "hottest",
    );
}

#[test]
fn logprobs_are_the_log_softmax_of_the_raw_logits() {
    let found = logprobs(&LOGITS, 4, 3, &mut Scratch::default()).expect("numbers");
    let probs = softmax(&LOGITS.map(f64::from));
    assert!((f64::from(found.logprob) - probs[4].ln()).abs() < 1e-6);
    assert_eq!(
        found.top.iter().map(|top| top.token).collect::<Vec<_>>(),
        [1, 5, 2]
    );
    for top in &found.top {
        assert!((f64::from(top.logprob) - probs[top.token as usize].ln()).abs() < 1e-6);
    }
    assert!(
        logprobs(&LOGITS, 4, 0, &mut Scratch::default())
            .expect("numbers")
            .top
            .is_empty()
    );
}
