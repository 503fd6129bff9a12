//! What is wrong with a request is said with a status, a type and the field at fault, and nothing reaches the engine.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use serde_json::{Value, json};
use support::{Setup, get, model, post, request};

const CHAT: &str = "/v1/chat/completions";
const COMPLETIONS: &str = "/v1/completions";

fn chat(more: Value) -> Value {
    let mut body = json!({"messages": [{"role": "user", "content": "x"}]});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn chat_fields_out_of_range_are_named() {
    let server = Setup::default().start().await;
    let image = json!([{"type": "image_url", "image_url": {"url": "data:"}}]);
    for (more, status, param) in [
        (json!({"temperature": -1}), 400, "temperature"),
        (json!({"temperature": "hot"}), 400, "temperature"),
        (json!({"top_p": 1.5}), 400, "top_p"),
        (json!({"min_p": -0.1}), 400, "min_p"),
        (json!({"top_k": 1.5}), 400, "top_k"),
        (json!({"presence_penalty": 3}), 400, "presence_penalty"),
        (json!({"frequency_penalty": -3}), 400, "frequency_penalty"),
        (json!({"repeat_penalty": 0}), 400, "repeat_penalty"),
        (json!({"repeat_last_n": -5}), 400, "repeat_last_n"),
        (json!({"seed": "x"}), 400, "seed"),
        (json!({"stop": 5}), 400, "stop"),
        (json!({"n": 0}), 400, "n"),
        (json!({"n": 65}), 400, "n"),
        (json!({"max_tokens": -2}), 400, "max_tokens"),
        (
            json!({"max_completion_tokens": 1e12}),
            400,
            "max_completion_tokens",
        ),
        (json!({"stream": 1}), 400, "stream"),
        (json!({"top_logprobs": 3}), 400, "top_logprobs"),
        (
            json!({"logprobs": true, "top_logprobs": 21}),
            400,
            "top_logprobs",
        ),
        (json!({"logit_bias": {"999999": 1}}), 400, "logit_bias"),
        (json!({"messages": []}), 400, "messages"),
        (
            json!({"messages": [{"role": "robot", "content": "x"}]}),
            400,
            "messages[0].role",
        ),
        (
            json!({"messages": [{"role": "user", "content": 7}]}),
            400,
            "messages[0].content",
        ),
        (json!({"tools": "x"}), 400, "tools"),
        (json!({"n_keep": -7}), 400, "n_keep"),
        (json!({"n_discard": -1}), 400, "n_discard"),
        (
            json!({"messages": [{"role": "user", "content": image}]}),
            501,
            "messages[0].content[0]",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "f"}}]}),
            501,
            "tools",
        ),
        (json!({"tool_choice": "required"}), 501, "tool_choice"),
        (
            json!({"response_format": {"type": "json_object"}}),
            501,
            "response_format",
        ),
        (json!({"grammar": "root ::= \"a\""}), 501, "grammar"),
        (
            json!({"json_schema": {"type": "object"}}),
            501,
            "json_schema",
        ),
        (json!({"mirostat": 1}), 501, "mirostat"),
        (json!({"model": "no-such-model"}), 404, "model"),
    ] {
        let answer = post(server.address, CHAT, chat(more.clone())).await;
        let expected = match status {
            400 => "invalid_request_error",
            404 => "not_found_error",
            _ => "not_supported_error",
        };
        assert_eq!(
            (answer.status, answer.error()),
            (status, (expected.to_owned(), Some(param.to_owned()))),
            "{more}"
        );
    }
    assert_eq!(server.engine.stats().requests.accepted, 0);
}

#[tokio::test]
async fn completion_fields_out_of_range_are_named() {
    let server = Setup::default().start().await;
    for (body, status, param) in [
        (json!({}), 400, "prompt"),
        (json!({"prompt": {}}), 400, "prompt"),
        (json!({"prompt": []}), 400, "prompt"),
        (json!({"prompt": [model::VOCAB_SIZE]}), 400, "prompt[0]"),
        (json!({"prompt": [1, -1]}), 400, "prompt[1]"),
        (json!({"prompt": vec!["x"; 65]}), 400, "prompt"),
        (json!({"prompt": vec!["x"; 20], "n": 4}), 400, "n"),
        (json!({"prompt": "x", "logprobs": true}), 400, "logprobs"),
        (json!({"prompt": "x", "echo": "yes"}), 400, "echo"),
        (json!({"prompt": "x", "suffix": "y"}), 501, "suffix"),
        (json!({"prompt": "x", "best_of": 2}), 501, "best_of"),
        (
            json!({"prompt": "x", "echo": true, "logprobs": 1}),
            501,
            "echo",
        ),
    ] {
        let answer = post(server.address, COMPLETIONS, body.clone()).await;
        assert_eq!(
            (answer.status, answer.error().1.as_deref()),
            (status, Some(param)),
            "{body}"
        );
    }
}

#[tokio::test]
async fn what_is_not_json_is_refused() {
    let server = Setup::default().start().await;
    for body in [
        "",
        "{",
        "[]",
        "null",
        "\"x\"",
        "{\"messages\": [}",
        "\u{feff}{}",
    ] {
        let answer = request(server.address, "POST", CHAT, &[], Some(body.as_bytes())).await;
        assert_eq!(
            (answer.status, answer.error().0.as_str()),
            (400, "invalid_request_error"),
            "{body}"
        );
    }
    let nested = "[".repeat(100_000);
    let answer = request(server.address, "POST", CHAT, &[], Some(nested.as_bytes())).await;
    assert_eq!(answer.status, 400);
    let answer = request(
        server.address,
        "POST",
        CHAT,
        &[("content-encoding", "gzip")],
        Some(b"{}"),
    )
    .await;
    assert_eq!(answer.status, 415);
}

#[tokio::test]
async fn unknown_fields_and_neutral_ones_are_passed_over() {
    let server = Setup::default().start().await;
    let body = chat(json!({
        "user": "ann", "store": true, "metadata": {"a": 1}, "service_tier": "auto", "something_new": [1],
        "tools": [], "tool_choice": "auto", "response_format": {"type": "text"}, "logit_bias": null, "stop": null,
        "temperature": null, "mirostat": 0, "cache_prompt": true, "typical_p": 1, "stream_options": null,
    }));
    assert_eq!(post(server.address, CHAT, body).await.status, 200);
}

#[tokio::test]
async fn a_prompt_over_the_context_is_refused_with_both_numbers() {
    let server = Setup::default().start().await;
    let answer = post(
        server.address,
        COMPLETIONS,
        json!({"prompt": "x".repeat(600)}),
    )
    .await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (400, "exceed_context_size_error")
    );
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["n_prompt_tokens"], &error["n_ctx"]),
        (&json!(601), &json!(512))
    );
    assert!(error["message"].as_str().unwrap().contains("601"));
}

#[tokio::test]
async fn unknown_routes_methods_and_later_routes_are_told_apart() {
    let server = Setup::default().start().await;
    for (method, path, status, error_type) in [
        ("GET", "/nowhere", 404, "not_found_error"),
        ("POST", "/v1/nowhere", 404, "not_found_error"),
        ("GET", "/v1/models/other", 404, "not_found_error"),
        ("GET", "/v1/chat/completions", 405, "not_found_error"),
        ("POST", "/health", 405, "not_found_error"),
        ("DELETE", "/v1/models", 405, "not_found_error"),
        ("POST", "/v1/embeddings", 501, "not_supported_error"),
        ("POST", "/v1/responses", 501, "not_supported_error"),
        ("POST", "/v1/messages", 501, "not_supported_error"),
        ("POST", "/v1/rerank", 501, "not_supported_error"),
        ("POST", "/completion", 501, "not_supported_error"),
        ("POST", "/tokenize", 501, "not_supported_error"),
        ("POST", "/slots/3?action=save", 501, "not_supported_error"),
        ("GET", "/slots", 501, "not_supported_error"),
        ("GET", "/props", 501, "not_supported_error"),
        ("POST", "/api/chat", 501, "not_supported_error"),
        ("GET", "/api/tags", 501, "not_supported_error"),
        ("GET", "/openapi.json", 501, "not_supported_error"),
    ] {
        let answer = request(
            server.address,
            method,
            path,
            &[],
            (method == "POST").then_some(b"{}"),
        )
        .await;
        assert_eq!(
            (answer.status, answer.error().0.as_str()),
            (status, error_type),
            "{method} {path}"
        );
        assert!(
            status != 405 || answer.headers.contains_key("allow"),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn models_are_listed_and_found_by_any_of_their_names() {
    let mut setup = Setup::default();
    setup.config.model_aliases = vec!["group/alias".to_owned()];
    let server = setup.start().await;
    let list = get(server.address, "/v1/models").await.json();
    assert_eq!(list["object"], "list");
    let entry = &list["data"][0];
    assert_eq!(
        (&entry["id"], &entry["object"], &entry["owned_by"]),
        (&json!("test-model"), &json!("model"), &json!("dynalm"))
    );
    assert_eq!(
        (&entry["meta"]["n_ctx"], &entry["meta"]["n_vocab"]),
        (&json!(512), &json!(model::VOCAB_SIZE))
    );
    assert_eq!(
        get(server.address, "/v1/models/test-model").await.json(),
        *entry
    );
    assert_eq!(
        get(server.address, "/models/group/alias").await.json()["id"],
        "group/alias"
    );
    let answer = post(
        server.address,
        CHAT,
        chat(json!({"model": "group/alias", "max_tokens": 1})),
    )
    .await;
    assert_eq!(answer.json()["model"], "test-model");
}

#[tokio::test]
async fn any_model_name_is_answered_where_the_operator_wants_it() {
    let server = Setup::config(|config| config.accept_any_model = true)
        .start()
        .await;
    assert_eq!(
        post(server.address, CHAT, chat(json!({"model": "gpt-9"})))
            .await
            .status,
        200
    );
}
