//! A closed connection cancels within a step: streaming, waiting for a whole answer, or queued.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use dynalm_engine::EngineConfig;
use serde_json::{Value, json};
use std::time::Duration;
use support::{Setup, model, open_stream};

fn ask(stream: bool, n: u32) -> Value {
    json!({"messages": [{"role": "user", "content": "x"}], "temperature": 0, "stream": stream, "n": n})
}

fn slow() -> Setup {
    let engine = EngineConfig {
        context_len: Some(512),
        max_sequences: 1,
        ..EngineConfig::default()
    };
    Setup {
        model: model::endless().delay(Duration::from_millis(2)),
        engine,
        ..Setup::default()
    }
}

#[tokio::test]
async fn a_stream_that_is_left_is_cancelled() {
    let server = slow().start().await;
    let mut stream = open_stream(server.address, "/v1/chat/completions", ask(true, 1)).await;
    stream.head().await;
    stream.chunk().await;
    drop(stream);
    server
        .until(|engine| engine.is_idle() && engine.stats().requests.cancelled == 1)
        .await;
}

#[tokio::test]
async fn a_whole_answer_that_nobody_waits_for_is_cancelled() {
    let server = slow().start().await;
    let stream = open_stream(server.address, "/v1/chat/completions", ask(false, 3)).await;
    server
        .until(|engine| engine.stats().running == 1 && engine.stats().waiting == 2)
        .await;
    drop(stream);
    server
        .until(|engine| engine.is_idle() && engine.stats().requests.cancelled == 3)
        .await;
}

#[tokio::test]
async fn a_queued_request_that_is_left_never_runs() {
    let server = slow().start().await;
    let mut running = open_stream(server.address, "/v1/chat/completions", ask(true, 1)).await;
    running.head().await;
    let queued = open_stream(server.address, "/v1/chat/completions", ask(true, 1)).await;
    server
        .until(|engine| engine.stats().requests.accepted == 2)
        .await;
    drop(queued);
    server
        .until(|engine| engine.stats().waiting == 0 && engine.stats().requests.cancelled == 1)
        .await;
    assert!(running.chunk().await.is_some(), "the other one goes on");
}
