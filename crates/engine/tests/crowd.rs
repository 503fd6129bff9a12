//! Many users with a pool too small for them, some of whom leave midway: nothing fails, nothing is lost, and who stays
//! gets the text of a request served alone. A short form of a soak test, from a fixed seed.

mod support;

use dynalm_engine::{Engine, EngineConfig, Event, FinishReason, Generation, Request, Sampling};
use support::{ask, engine, read, talker};

const N_USERS: u64 = 24;
const N_REQUESTS: u64 = 8;

/// A few numbers from a user's number and round: a linear congruential generator is random enough here.
fn numbers(user: u64, round: u64) -> impl FnMut(u64) -> u64 {
    let mut state = user * 1_000 + round + 1;
    move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

fn request(user: u64, round: u64) -> Request {
    let mut number = numbers(user, round);
    let prompt: Vec<u32> = (0..1 + number(150)).map(|_| number(250) as u32).collect();
    let sampling = Sampling {
        temperature: 1.0,
        seed: Some(number(1_000)),
        ..Sampling::default()
    };
    Request {
        sampling,
        max_tokens: Some(1 + number(80) as usize),
        ..Request::new(prompt)
    }
}

fn small_pool() -> Engine {
    // 24 users with up to 8 blocks each share 20.
    let config = EngineConfig {
        max_sequences: 16,
        max_step_rows: 96,
        prefill_chunk: 24,
        ..EngineConfig::default()
    };
    engine(talker(20), config)
}

/// Reads a few tokens and leaves.
fn leave_midway(mut generation: Generation, n_tokens: u64) {
    for _ in 0..n_tokens {
        if !matches!(generation.next_blocking(), Some(Event::Token(_))) {
            return;
        }
    }
}

/// One user's rounds: the texts of those that ran to their end.
fn user(engine: &Engine, user: u64) -> Vec<(u64, String)> {
    let mut texts = Vec::new();
    for round in 0..N_REQUESTS {
        let generation = engine
            .submit(request(user, round))
            .expect("the queue is long enough");
        if (user + round).is_multiple_of(5) {
            leave_midway(generation, round);
            continue;
        }
        let answer = read(generation);
        assert_eq!(answer.finish.reason, FinishReason::Length);
        texts.push((round, answer.text));
    }
    texts
}

#[test]
fn who_stays_gets_the_text_of_a_request_alone() {
    let crowd = small_pool();
    let texts: Vec<(u64, Vec<(u64, String)>)> = std::thread::scope(|scope| {
        let users: Vec<_> = (0..N_USERS)
            .map(|index| {
                (
                    index,
                    scope.spawn({
                        let crowd = &crowd;
                        move || user(crowd, index)
                    }),
                )
            })
            .collect();
        users
            .into_iter()
            .map(|(index, user)| (index, user.join().expect("no panic")))
            .collect()
    });
    crowd.shutdown();
    let stats = crowd.stats();
    assert!(stats.preemptions > 0, "the pool was meant to be too small");
    assert_eq!(
        (
            stats.requests.failed,
            stats.kv_blocks_used,
            stats.running,
            stats.waiting
        ),
        (0, 0, 0, 0)
    );
    assert_eq!(stats.requests.accepted, N_USERS * N_REQUESTS);
    assert_eq!(
        stats.requests.length + stats.requests.cancelled,
        stats.requests.accepted
    );

    let quiet = small_pool();
    for (user, rounds) in texts {
        for (round, text) in rounds {
            assert_eq!(
                ask(&quiet, request(user, round)).text,
                text,
                "user {user}, round {round}"
            );
        }
    }
}
