//! `POST /v1/chat/completions` as a stream of events.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::client::frames;
use support::{Setup, model, open_stream, post};

const PATH: &str = "/v1/chat/completions";

fn ask(more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Where?"}], "temperature": 0, "stream": true});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

/// What one choice of a stream says under `key`.
fn said(frames: &[Value], index: u64, key: &str) -> String {
    let choices = frames
        .iter()
        .flat_map(|frame| frame["choices"].as_array().unwrap());
    let deltas = choices
        .filter(|choice| choice["index"] == index)
        .map(|choice| &choice["delta"][key]);
    deltas.filter_map(Value::as_str).collect()
}

#[tokio::test]
async fn the_role_comes_first_then_text_then_the_reason_then_done() {
    let server = Setup::default().start().await;
    let answer = post(server.address, PATH, ask(json!({}))).await;
    assert_eq!(
        answer.headers["content-type"],
        "text/event-stream; charset=utf-8"
    );
    assert_eq!(answer.headers["x-accel-buffering"], "no");
    let frames = frames(&answer.text());
    assert_eq!(
        frames[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": null})
    );
    assert_eq!(said(&frames, 0, "content"), "Paris is it.");
    let last = frames.last().unwrap();
    assert_eq!(
        (
            &last["choices"][0]["delta"],
            &last["choices"][0]["finish_reason"]
        ),
        (&json!({}), &json!("stop"))
    );
    assert_eq!(last["timings"]["predicted_n"], 13);
    for frame in &frames {
        assert_eq!(
            (&frame["object"], &frame["id"]),
            (&json!("chat.completion.chunk"), &frames[0]["id"])
        );
        assert!(frame.get("usage").is_none());
    }
    for frame in &frames[..frames.len() - 1] {
        assert!(frame["choices"][0]["finish_reason"].is_null());
    }
}

#[tokio::test]
async fn usage_comes_last_and_only_if_asked_for() {
    let server = Setup::default().start().await;
    let body = ask(json!({"stream_options": {"include_usage": true}, "n": 2}));
    let frames = frames(&post(server.address, PATH, body).await.text());
    let last = frames.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["completion_tokens"], 26);
    assert!(last["timings"].is_object());
    for index in 0..2 {
        assert_eq!(said(&frames, index, "content"), "Paris is it.");
        assert_eq!(said(&frames, index, "role"), "assistant");
    }
}

#[tokio::test]
async fn stop_strings_never_leak() {
    let server = Setup::default().start().await;
    for (stop, content) in [
        ("is it", "Paris "),
        ("it.", "Paris is "),
        ("it!", "Paris is it."),
        ("Paris", ""),
    ] {
        let frames = frames(
            &post(server.address, PATH, ask(json!({"stop": [stop]})))
                .await
                .text(),
        );
        assert_eq!(said(&frames, 0, "content"), content);
        for frame in &frames {
            let piece = frame["choices"][0]["delta"]["content"]
                .as_str()
                .unwrap_or_default();
            assert!(!piece.contains('i') || content.contains(piece), "{piece}");
        }
    }
}

#[tokio::test]
async fn characters_are_sent_whole_and_broken_ones_replaced() {
    let server = Setup::answering("h\u{e9} \u{1f600}!").start().await;
    let found = frames(&post(server.address, PATH, ask(json!({}))).await.text());
    assert_eq!(said(&found, 0, "content"), "h\u{e9} \u{1f600}!");

    let broken = Setup {
        model: model::answering_bytes(b"a\xff\xf0\x9f"),
        ..Setup::default()
    }
    .start()
    .await;
    let found = frames(&post(broken.address, PATH, ask(json!({}))).await.text());
    let content = said(&found, 0, "content");
    assert!(
        content.starts_with("a\u{fffd}") && content.chars().skip(1).all(|c| c == '\u{fffd}'),
        "{content}"
    );
}

#[tokio::test]
async fn thinking_is_streamed_apart() {
    let server = Setup::answering("<think>why</think> because").start().await;
    let found = frames(&post(server.address, PATH, ask(json!({}))).await.text());
    assert_eq!(
        (
            said(&found, 0, "reasoning_content"),
            said(&found, 0, "content")
        ),
        ("why".into(), "because".into())
    );
    let body = ask(json!({"reasoning_format": "deepseek-legacy"}));
    let found = frames(&post(server.address, PATH, body).await.text());
    assert_eq!(said(&found, 0, "reasoning_content"), "why");
    assert_eq!(said(&found, 0, "content"), "<think>why</think> because");
}

#[tokio::test]
async fn every_token_has_its_logprobs_and_timings_on_demand() {
    let server = Setup::answering("\u{e9}a").start().await;
    let body = ask(json!({"logprobs": true, "top_logprobs": 1, "timings_per_token": true}));
    let found = frames(&post(server.address, PATH, body).await.text());
    let entries: Vec<&Value> = found
        .iter()
        .filter_map(|frame| frame["choices"][0]["logprobs"]["content"].as_array())
        .flatten()
        .collect();
    let bytes: Vec<&Value> = entries.iter().map(|entry| &entry["bytes"][0]).collect();
    assert_eq!(bytes, [0xc3, 0xa9, 0x61]);
    let timed: Vec<_> = found
        .iter()
        .filter_map(|frame| frame["timings"]["predicted_n"].as_u64())
        .collect();
    assert_eq!(timed[..3], [1, 2, 3]);
}

#[tokio::test]
async fn silence_is_filled_with_comments_after_early_headers() {
    let mut setup = Setup {
        model: model::answering("hi").delay(Duration::from_millis(300)),
        ..Setup::default()
    };
    setup.config.stream.ping_interval = Some(Duration::from_millis(20));
    let server = setup.start().await;
    let mut stream = open_stream(server.address, PATH, ask(json!({}))).await;
    assert_eq!(stream.head().await.0, 200);
    assert_eq!(
        server.engine.stats().completion_tokens,
        0,
        "headers do not wait for the first token"
    );
    let mut text = stream.chunk().await.unwrap();
    assert_eq!(text, b": ping\n\n");
    while let Some(chunk) = stream.chunk().await {
        text.extend(chunk);
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.matches(": ping\n\n").count() > 3, "{text}");
    assert_eq!(said(&frames(&text), 0, "content"), "hi");
}

#[tokio::test]
async fn a_fault_after_the_first_byte_is_a_data_frame() {
    let poison = model::byte_token(b'!');
    let server = Setup {
        model: model::answering("ab!cd").panic_on(poison),
        ..Setup::default()
    }
    .start()
    .await;
    let answer = post(server.address, PATH, ask(json!({}))).await;
    assert_eq!(answer.status, 200);
    let text = answer.text();
    let last = text
        .trim_end()
        .rsplit("\n\n")
        .next()
        .unwrap()
        .strip_prefix("data: ")
        .unwrap();
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(
        (&error["error"]["type"], &error["error"]["code"]),
        (&json!("server_error"), &json!(500))
    );
    assert!(!text.contains("[DONE]"));
}

#[tokio::test]
async fn eight_streams_run_at_once() {
    let server = Setup::default().start().await;
    let streams = (0..8).map(|_| {
        let address = server.address;
        tokio::spawn(async move { post(address, PATH, ask(json!({}))).await.text() })
    });
    for stream in streams.collect::<Vec<_>>() {
        assert_eq!(
            said(&frames(&stream.await.unwrap()), 0, "content"),
            "Paris is it."
        );
    }
    server.idle().await;
}
