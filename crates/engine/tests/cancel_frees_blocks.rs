//! A caller that cancels or goes away frees everything within a step, in whatever phase its request is.

mod support;

use std::time::{Duration, Instant};

use dynalm_engine::{Engine, EngineConfig, Event, FinishReason, Generation};
use support::{ask, engine, greedy, read, talker};

fn slow_engine(max_sequences: usize) -> Engine {
    let model = talker(16).delay(Duration::from_millis(2));
    engine(
        model,
        EngineConfig {
            max_sequences,
            prefill_chunk: 2,
            max_step_rows: 64,
            ..EngineConfig::default()
        },
    )
}

/// Waits for the condition; a step takes two milliseconds, so the limit is far away.
fn eventually(condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(30), "did not happen");
        std::thread::yield_now();
    }
}

/// Reads tokens until the first; the request is decoding then.
fn first_token(generation: &mut Generation) {
    assert!(matches!(generation.next_blocking(), Some(Event::Token(_))));
}

#[test]
fn dropping_a_decoding_request_frees_its_blocks() {
    let engine = slow_engine(2);
    let mut generation = engine.submit(greedy(&[1; 40], 400)).expect("accepted");
    first_token(&mut generation);
    assert!(engine.stats().kv_blocks_used >= 2);
    drop(generation);
    eventually(|| engine.stats().kv_blocks_used == 0 && engine.is_idle());
    assert_eq!(engine.stats().requests.cancelled, 1);
}

#[test]
fn dropping_a_request_in_prefill_frees_its_blocks() {
    let engine = slow_engine(2);
    let mut decoding = engine.submit(greedy(&[1; 4], 400)).expect("accepted");
    first_token(&mut decoding);
    // Two rows a step beside the other's decode: this prefill takes 200 steps.
    let prefilling = engine.submit(greedy(&[2; 400], 8)).expect("accepted");
    eventually(|| engine.stats().running == 2);
    drop(prefilling);
    eventually(|| engine.stats().running == 1);
    assert_eq!(
        engine.stats().requests.length,
        0,
        "it did not run to its end"
    );
    drop(decoding);
    eventually(|| engine.stats().kv_blocks_used == 0);
    assert_eq!(engine.stats().requests.cancelled, 2);
}

#[test]
fn dropping_a_queued_request_frees_its_place() {
    let engine = slow_engine(1);
    let mut running = engine.submit(greedy(&[1; 4], 400)).expect("accepted");
    first_token(&mut running);
    let queued = engine.submit(greedy(&[2; 4], 400)).expect("accepted");
    eventually(|| engine.stats().waiting == 1);
    drop(queued);
    eventually(|| engine.stats().waiting == 0);
    running.cancel();
    let answer = read(running);
    assert_eq!(answer.finish.reason, FinishReason::Cancelled);
    assert!(answer.finish.usage.completion_tokens < 400);
    assert_eq!(
        engine.stats().kv_blocks_used,
        0,
        "figures are published before an end is told"
    );
}

#[test]
fn the_others_texts_are_unharmed() {
    let engine = slow_engine(4);
    let alone = ask(&engine, greedy(&[7, 8, 9], 60)).text;
    let survivor = engine.submit(greedy(&[7, 8, 9], 60)).expect("accepted");
    for round in 0..10 {
        let mut other = engine.submit(greedy(&[round; 50], 100)).expect("accepted");
        if round % 2 == 0 {
            first_token(&mut other);
        }
    }
    assert_eq!(read(survivor).text, alone);
    eventually(|| engine.is_idle());
    assert_eq!(engine.stats().kv_blocks_used, 0);
}

#[test]
fn shutdown_cancels_what_has_not_ended() {
    let engine = slow_engine(1);
    let mut running = engine.submit(greedy(&[1; 4], 400)).expect("accepted");
    let queued = engine.submit(greedy(&[2; 4], 400)).expect("accepted");
    first_token(&mut running);
    engine.shutdown();
    assert_eq!(read(running).finish.reason, FinishReason::Cancelled);
    assert_eq!(read(queued).finish.reason, FinishReason::Cancelled);
    assert!(engine.is_idle());
    assert!(engine.submit(greedy(&[1], 1)).is_err());
    engine.shutdown();
}
