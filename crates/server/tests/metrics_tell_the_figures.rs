//! `GET /metrics`.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use serde_json::json;
use support::{Setup, get, post};

const LLAMA_SERVER: [&str; 15] = [
    "prompt_tokens_total",
    "prompt_tokens_cached_total",
    "prompt_seconds_total",
    "tokens_predicted_total",
    "tokens_predicted_seconds_total",
    "n_decode_total",
    "n_tokens_max",
    "spec_decode_num_draft_tokens_total",
    "spec_decode_num_accepted_tokens_total",
    "spec_decode_num_drafts_total",
    "prompt_tokens_seconds",
    "predicted_tokens_seconds",
    "requests_processing",
    "requests_deferred",
    "n_busy_slots_per_decode",
];

fn value(text: &str, series: &str) -> f64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {text}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn it_is_501_unless_switched_on() {
    let server = Setup::config(|config| config.metrics = false).start().await;
    let answer = get(server.address, "/metrics").await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (501, "not_supported_error")
    );
}

#[tokio::test]
async fn work_is_counted_under_all_names() {
    let server = Setup::default().start().await;
    let body = json!({"prompt": "abc\n", "temperature": 0, "max_tokens": 5});
    assert_eq!(
        post(server.address, "/v1/completions", body).await.status,
        200
    );
    assert_eq!(
        post(server.address, "/v1/completions", json!({"prompt": 5}))
            .await
            .status,
        400
    );
    server
        .until(|engine| engine.stats().requests.length == 1)
        .await;
    let answer = get(server.address, "/metrics").await;
    assert_eq!(
        answer.headers["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = answer.text();
    for name in LLAMA_SERVER {
        assert!(value(&text, &format!("llamacpp:{name}")) >= 0.0);
    }
    assert_eq!(text.matches("\nllamacpp:").count(), LLAMA_SERVER.len());
    assert_eq!(value(&text, "llamacpp:prompt_tokens_total"), 5.0);
    assert_eq!(value(&text, "dynalm_completion_tokens_total"), 5.0);
    assert_eq!(
        value(&text, "dynalm_requests_total{outcome=\"length\"}"),
        1.0
    );
    assert_eq!(
        value(&text, "dynalm_time_to_first_token_seconds_count"),
        1.0
    );
    assert_eq!(
        value(&text, "dynalm_inter_token_seconds_bucket{le=\"+Inf\"}"),
        4.0
    );
    assert_eq!(
        value(
            &text,
            "dynalm_http_requests_total{route=\"/v1/completions\",status=\"400\"}"
        ),
        1.0
    );
    assert_eq!(
        value(
            &text,
            "vllm:num_requests_waiting{model_name=\"test-model\"}"
        ),
        0.0
    );
    assert!(value(&text, "process_resident_memory_bytes") > 0.0);
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok() && !series.is_empty(), "{line}");
    }
}
