//! `POST /v1/completions`, whole and streamed.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use serde_json::{Value, json};
use support::client::frames;
use support::{Setup, model, post};

const PATH: &str = "/v1/completions";

fn texts(body: &Value) -> Vec<&str> {
    body["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["text"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_prompt_is_continued() {
    let server = Setup::default().start().await;
    let body = post(
        server.address,
        PATH,
        json!({"prompt": "Where?\n", "temperature": 0}),
    )
    .await
    .json();
    assert_eq!(
        (&body["object"], texts(&body)),
        (&json!("text_completion"), vec!["Paris is it."])
    );
    assert!(body["id"].as_str().unwrap().starts_with("cmpl-"));
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert!(body["choices"][0]["logprobs"].is_null());
    assert_eq!(
        body["usage"],
        json!({
            "prompt_tokens": 8, "completion_tokens": 13, "total_tokens": 21, "prompt_tokens_details": {"cached_tokens": 0},
        })
    );
    assert_eq!(body["timings"]["predicted_n"], 13);
}

#[tokio::test]
async fn prompts_come_as_text_ids_or_several_of_both() {
    let server = Setup::default().start().await;
    let line_break = model::byte_token(b'\n');
    for (prompt, n_prompt_tokens, n_answers) in [
        (json!("a\n"), 3, 1),
        (json!([line_break]), 1, 1),
        (json!([model::BEGIN, "a\n"]), 3, 1),
        (json!(["a\n", "bc\n"]), 3 + 4, 2),
        (
            json!([[line_break], "a\n", [model::BEGIN, line_break]]),
            1 + 3 + 2,
            3,
        ),
    ] {
        let body = post(
            server.address,
            PATH,
            json!({"prompt": prompt, "temperature": 0}),
        )
        .await
        .json();
        assert_eq!(texts(&body), vec!["Paris is it."; n_answers], "{prompt}");
        assert_eq!(body["usage"]["prompt_tokens"], n_prompt_tokens, "{prompt}");
    }
    let body = json!({"prompt": ["a\n", "bc\n"], "n": 2, "temperature": 0});
    let body = post(server.address, PATH, body).await.json();
    assert_eq!(texts(&body).len(), 4);
    assert_eq!(body["usage"]["prompt_tokens"], 7);
}

#[tokio::test]
async fn echo_repeats_the_prompt() {
    let server = Setup::default().start().await;
    let line_break = model::byte_token(b'\n');
    let body = json!({"prompt": ["Where?\n", [line_break]], "echo": true, "temperature": 0});
    let whole = post(server.address, PATH, body.clone()).await.json();
    assert_eq!(texts(&whole), ["Where?\nParis is it.", "\nParis is it."]);
    let mut streamed = body;
    streamed["stream"] = true.into();
    let found = frames(&post(server.address, PATH, streamed).await.text());
    let first: String = found
        .iter()
        .flat_map(|frame| frame["choices"].as_array().unwrap())
        .filter(|choice| choice["index"] == 0)
        .map(|choice| choice["text"].as_str().unwrap())
        .collect();
    assert_eq!(first, "Where?\nParis is it.");
}

#[tokio::test]
async fn a_stream_has_the_same_text_and_ends_with_usage() {
    let server = Setup::default().start().await;
    let body = json!({"prompt": "\n", "temperature": 0, "stream": true, "stream_options": {"include_usage": true}, "logprobs": 1});
    let found = frames(&post(server.address, PATH, body).await.text());
    let pieces: String = found
        .iter()
        .filter_map(|frame| frame["choices"][0]["text"].as_str())
        .collect();
    assert_eq!(pieces, "Paris is it.");
    assert_eq!(
        found[2]["choices"][0]["logprobs"]["text_offset"],
        json!([2])
    );
    let [.., end, usage] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(end["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        (&usage["choices"], &usage["usage"]["completion_tokens"]),
        (&json!([]), &json!(13))
    );
}

#[tokio::test]
async fn logprobs_are_four_arrays_of_one_length() {
    let server = Setup::default().start().await;
    let body = json!({"prompt": "\n", "temperature": 0, "max_tokens": 3, "logprobs": 2});
    let body = post(server.address, PATH, body).await.json();
    let logprobs = &body["choices"][0]["logprobs"];
    assert_eq!(logprobs["tokens"], json!(["P", "a", "r"]));
    assert_eq!(logprobs["text_offset"], json!([0, 1, 2]));
    assert_eq!(logprobs["token_logprobs"].as_array().unwrap().len(), 3);
    let top = logprobs["top_logprobs"].as_array().unwrap();
    assert!(
        top.len() == 3
            && top[0].as_object().unwrap().len() == 2
            && top[0]["P"] == logprobs["token_logprobs"][0]
    );
}

#[tokio::test]
async fn a_model_without_template_still_continues_prompts() {
    let server = Setup {
        template: None,
        ..Setup::default()
    }
    .start()
    .await;
    assert_eq!(
        post(server.address, PATH, json!({"prompt": "\n"}))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn no_tokens_may_be_asked_for() {
    let server = Setup::default().start().await;
    let body = post(
        server.address,
        PATH,
        json!({"prompt": "a\n", "max_tokens": 0, "echo": true}),
    )
    .await
    .json();
    assert_eq!(
        (texts(&body), &body["choices"][0]["finish_reason"]),
        (vec!["a\n"], &json!("length"))
    );
    assert_eq!(body["usage"]["completion_tokens"], 0);
}
