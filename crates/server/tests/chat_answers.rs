//! `POST /v1/chat/completions` without a stream.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use serde_json::{Value, json};
use support::{Setup, model, post};

const PATH: &str = "/v1/chat/completions";

fn ask(more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "Where?"}], "temperature": 0});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn an_answer_has_the_form_that_clients_expect() {
    let server = Setup::default().start().await;
    let answer = post(server.address, PATH, ask(json!({"model": "test-model"}))).await;
    assert_eq!(
        (answer.status, answer.headers["content-type"].as_str()),
        (200, "application/json")
    );
    let body = answer.json();
    assert!(body["id"].as_str().unwrap().starts_with("chatcmpl-"));
    assert_eq!(
        (&body["object"], &body["model"]),
        (&json!("chat.completion"), &json!("test-model"))
    );
    assert!(body["created"].as_u64().unwrap() > 1_600_000_000);
    assert!(
        body["system_fingerprint"]
            .as_str()
            .unwrap()
            .starts_with("dynalm-")
    );
    let choice = json!([{
        "index": 0, "message": {"role": "assistant", "content": "Paris is it."}, "logprobs": null, "finish_reason": "stop",
    }]);
    assert_eq!(body["choices"], choice);
    let usage = &body["usage"];
    // "<s>" is put by the tokenizer, as this template does not write it.
    let prompt = "<user\nWhere?>\n<assistant\n".len() + 1;
    assert_eq!(
        (
            usage["prompt_tokens"].as_u64(),
            usage["completion_tokens"].as_u64()
        ),
        (Some(prompt as u64), Some(13))
    );
    assert_eq!(usage["total_tokens"].as_u64(), Some(prompt as u64 + 13));
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 0);
    assert_eq!(body["timings"]["predicted_n"], 13);
    assert_eq!(body["timings"]["prompt_n"], prompt);
    assert!(body["timings"]["prompt_ms"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn the_alias_without_version_answers_too() {
    let server = Setup::default().start().await;
    assert_eq!(
        post(server.address, "/chat/completions", ask(json!({})))
            .await
            .status,
        200
    );
}

#[tokio::test]
async fn limits_and_stop_strings_end_an_answer() {
    let server = Setup::default().start().await;
    for (more, content, reason) in [
        (json!({"max_tokens": 5}), "Paris", "length"),
        (
            json!({"max_tokens": 9, "max_completion_tokens": 3}),
            "Par",
            "length",
        ),
        (json!({"stop": " is"}), "Paris", "stop"),
        (json!({"stop": ["zzz", "it"]}), "Paris is ", "stop"),
        (
            json!({"logit_bias": {(model::byte_token(b'P').to_string()): -100}, "max_tokens": 1}),
            "",
            "length",
        ),
    ] {
        let body = post(server.address, PATH, ask(more.clone())).await.json();
        let choice = &body["choices"][0];
        assert_eq!(choice["finish_reason"], reason, "{more}");
        if more.get("logit_bias").is_some() {
            assert_ne!(choice["message"]["content"], "P");
        } else {
            assert_eq!(choice["message"]["content"], content, "{more}");
        }
    }
}

#[tokio::test]
async fn several_choices_are_answered_and_their_prompt_counts_once() {
    let server = Setup::default().start().await;
    let one = post(server.address, PATH, ask(json!({}))).await.json();
    let three = post(server.address, PATH, ask(json!({"n": 3, "seed": 7})))
        .await
        .json();
    let indices: Vec<_> = three["choices"]
        .as_array()
        .unwrap()
        .iter()
        .map(|choice| choice["index"].as_u64())
        .collect();
    assert_eq!(indices, [Some(0), Some(1), Some(2)]);
    assert_eq!(
        three["usage"]["prompt_tokens"],
        one["usage"]["prompt_tokens"]
    );
    assert_eq!(three["usage"]["completion_tokens"], 3 * 13);
}

#[tokio::test]
async fn the_same_seed_gives_the_same_answer_and_choices_differ() {
    let server = Setup {
        model: model::endless().never(&[model::END]),
        ..Setup::default()
    }
    .start()
    .await;
    let body = ask(
        json!({"temperature": 5, "top_k": 0, "min_p": 0, "top_p": 1, "seed": 7, "n": 2, "max_tokens": 24}),
    );
    let contents = |body: Value| -> Vec<String> {
        let choices = body["choices"].as_array().unwrap().clone();
        choices
            .iter()
            .map(|choice| choice["message"]["content"].as_str().unwrap().to_owned())
            .collect()
    };
    let first = contents(post(server.address, PATH, body.clone()).await.json());
    let second = contents(post(server.address, PATH, body).await.json());
    assert_eq!(first, second);
    assert_ne!(first[0], first[1]);
}

#[tokio::test]
async fn logprobs_come_with_every_token() {
    let server = Setup::default().start().await;
    let body = post(
        server.address,
        PATH,
        ask(json!({"logprobs": true, "top_logprobs": 2, "max_tokens": 2})),
    )
    .await
    .json();
    let content = body["choices"][0]["logprobs"]["content"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(content.len(), 2);
    assert_eq!(
        (&content[0]["token"], &content[0]["bytes"]),
        (&json!("P"), &json!([80]))
    );
    assert_eq!(content[0]["id"], model::byte_token(b'P'));
    assert_eq!(content[0]["top_logprobs"].as_array().unwrap().len(), 2);
    assert_eq!(content[0]["top_logprobs"][0]["token"], "P");
    let logprob = content[0]["logprob"].as_f64().unwrap();
    assert!(logprob < 0.0 && content[0]["top_logprobs"][0]["logprob"].as_f64() == Some(logprob));
}

#[tokio::test]
async fn an_answer_goes_on_from_a_trailing_assistant_message() {
    let server = Setup::default().start().await;
    let messages =
        json!([{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "Paris"}]);
    let body = post(server.address, PATH, ask(json!({"messages": messages})))
        .await
        .json();
    assert_eq!(body["choices"][0]["message"]["content"], " is it.");
}

#[tokio::test]
async fn thinking_comes_apart_from_the_answer() {
    let server = Setup::answering("<think> why </think> because")
        .start()
        .await;
    let message = |body: Value| body["choices"][0]["message"].clone();
    let body = post(server.address, PATH, ask(json!({}))).await.json();
    assert_eq!(
        message(body),
        json!({"role": "assistant", "content": "because", "reasoning_content": "why"})
    );
    let body = post(
        server.address,
        PATH,
        ask(json!({"reasoning_format": "none"})),
    )
    .await
    .json();
    assert_eq!(
        message(body),
        json!({"role": "assistant", "content": "<think> why </think> because"})
    );

    let opened = Setup::answering("why</think>because").start().await;
    let body = ask(json!({"chat_template_kwargs": {"thinking": true}}));
    let body = post(opened.address, PATH, body).await.json();
    assert_eq!(
        message(body),
        json!({"role": "assistant", "content": "because", "reasoning_content": "why"})
    );
}

#[tokio::test]
async fn a_template_that_refuses_gives_400_with_its_words() {
    let server = Setup::default().start().await;
    let body = json!({"messages": [{"role": "user", "content": "forbidden"}]});
    let answer = post(server.address, PATH, body).await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.error(),
        (
            "invalid_request_error".to_owned(),
            Some("messages".to_owned())
        )
    );
    assert!(answer.text().contains("not that"));
}

#[tokio::test]
async fn a_model_without_template_says_so() {
    let server = Setup {
        template: None,
        ..Setup::default()
    }
    .start()
    .await;
    let answer = post(server.address, PATH, ask(json!({}))).await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (501, "not_supported_error")
    );
}

#[tokio::test]
async fn a_step_that_panics_gives_500_and_others_go_on() {
    let poison = model::byte_token(b'!');
    let server = Setup {
        model: model::answering("ok").panic_on(poison),
        ..Setup::default()
    }
    .start()
    .await;
    let bad = json!({"messages": [{"role": "user", "content": "bang!"}], "temperature": 0});
    let answer = post(server.address, PATH, bad).await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (500, "server_error")
    );
    let body = post(server.address, PATH, ask(json!({}))).await.json();
    assert_eq!(body["choices"][0]["message"]["content"], "ok");
}

#[tokio::test]
async fn a_template_that_writes_the_begin_token_does_not_get_a_second() {
    let template = "{{ bos_token }}{{ messages[0].content }}";
    let server = Setup {
        template: Some(template),
        ..Setup::default()
    }
    .start()
    .await;
    let body = post(server.address, PATH, ask(json!({}))).await.json();
    assert_eq!(body["usage"]["prompt_tokens"], 1 + "Where?".len());
}
