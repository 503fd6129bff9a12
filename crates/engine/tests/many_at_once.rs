//! Requests together give what each gives alone, whatever shares their steps and however small the pool is.

mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use dynalm_engine::{EngineConfig, FinishReason, Request, Sampling};
use support::{ask, engine, greedy, read, talker};

/// Eight requests of different lengths, some of them sampled.
fn eight() -> Vec<Request> {
    (0..8_usize)
        .map(|index| {
            let prompt: Vec<u32> = (0..5 + index * 37)
                .map(|position| ((position * 7 + index) % 250) as u32)
                .collect();
            let sampling = if index % 2 == 0 {
                Sampling::greedy()
            } else {
                Sampling {
                    temperature: 1.0,
                    seed: Some(index as u64),
                    repeat_penalty: 1.2,
                    ..Sampling::default()
                }
            };
            Request {
                sampling,
                ..greedy(&prompt, 40 + index * 5)
            }
        })
        .collect()
}

fn config(max_sequences: usize, prefill_chunk: usize) -> EngineConfig {
    EngineConfig {
        max_sequences,
        prefill_chunk,
        max_step_rows: 64,
        ..EngineConfig::default()
    }
}

/// Texts of the eight, each alone on an engine with room for everything.
fn alone() -> Vec<String> {
    let engine = engine(talker(64), config(8, 16));
    eight()
        .into_iter()
        .map(|request| ask(&engine, request).text)
        .collect()
}

#[test]
fn eight_at_once_equal_each_alone() {
    let engine = engine(talker(200), config(8, 16));
    let generations: Vec<_> = eight()
        .into_iter()
        .map(|request| engine.submit(request).expect("accepted"))
        .collect();
    let texts: Vec<String> = generations
        .into_iter()
        .map(|generation| read(generation).text)
        .collect();
    assert_eq!(texts, alone());
    let stats = engine.stats();
    assert_eq!((stats.preemptions, stats.kv_blocks_used), (0, 0));
    assert!(stats.step_sequences > stats.steps, "they did share steps");
}

#[test]
fn a_pool_too_small_for_all_preempts_and_still_gives_each_text() {
    // The longest needs 11 blocks; all of them together about 60.
    let engine = engine(talker(12), config(8, 16));
    let generations: Vec<_> = eight()
        .into_iter()
        .map(|request| engine.submit(request).expect("accepted"))
        .collect();
    for (generation, alone) in generations.into_iter().zip(alone()) {
        let answer = read(generation);
        assert_eq!(
            answer.finish.reason,
            FinishReason::Length,
            "none fails for lack of blocks"
        );
        assert_eq!(answer.text, alone);
    }
    let stats = engine.stats();
    assert!(stats.preemptions > 0, "the pool was meant to be too small");
    assert_eq!(stats.kv_blocks_used, 0);
    let prompts: usize = eight().iter().map(|request| request.prompt.len()).sum();
    assert_eq!(
        stats.prompt_tokens, prompts as u64,
        "what is computed twice counts once"
    );
}

#[test]
fn new_requests_join_running_ones() {
    let engine = engine(talker(64).delay(Duration::from_millis(1)), config(8, 16));
    let long = engine.submit(greedy(&[1, 2, 3], 300)).expect("accepted");
    let short = ask(&engine, greedy(&[4, 5, 6], 5));
    assert_eq!(short.finish.reason, FinishReason::Length);
    assert!(!engine.is_idle(), "the long one is still running");
    assert_eq!(read(long).finish.usage.completion_tokens, 300);
}

#[test]
fn the_same_seed_gives_the_same_text_and_another_seed_another() {
    let engine = engine(talker(64), config(8, 16));
    let seeded = |seed| Request {
        sampling: Sampling {
            temperature: 1.5,
            top_k: 0,
            seed,
            ..Sampling::default()
        },
        ..greedy(&[1, 2, 3], 30)
    };
    let first = ask(&engine, seeded(Some(5))).text;
    assert_eq!(ask(&engine, seeded(Some(5))).text, first);
    assert_ne!(ask(&engine, seeded(Some(6))).text, first);
    assert_ne!(
        ask(&engine, seeded(None)).text,
        ask(&engine, seeded(None)).text
    );
}

#[test]
fn an_idle_engine_takes_no_steps() {
    let model = talker(64);
    let steps = model.step_counter();
    let engine = engine(model, config(8, 16));
    ask(&engine, greedy(&[1], 3));
    let n_steps = steps.load(Ordering::SeqCst);
    assert_eq!(n_steps, 3, "the prompt's step gives the first token");
    std::thread::yield_now();
    assert_eq!(steps.load(Ordering::SeqCst), n_steps);
}
