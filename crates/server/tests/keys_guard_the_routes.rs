//! API keys: which routes ask for one, and which forms are taken.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use dynalm_server::ApiKeys;
use support::{Setup, request};

fn guarded() -> Setup {
    Setup::config(|config| config.access.api_keys = ApiKeys::new(["first", "second"]))
}

#[tokio::test]
async fn without_a_key_only_health_and_the_page_answer() {
    let server = guarded().start().await;
    for (method, path, status) in [
        ("GET", "/health", 200),
        ("GET", "/v1/health", 200),
        ("GET", "/", 200),
        ("OPTIONS", "/v1/chat/completions", 204),
        ("GET", "/v1/models", 401),
        ("GET", "/metrics", 401),
        ("GET", "/props", 401),
        ("GET", "/slots", 401),
        ("GET", "/nowhere", 401),
        ("POST", "/v1/chat/completions", 401),
        ("POST", "/v1/messages", 401),
        ("POST", "/completion", 401),
        ("POST", "/admin/shutdown", 401),
    ] {
        let answer = request(server.address, method, path, &[], None).await;
        assert_eq!(answer.status, status, "{method} {path}");
        if status == 401 {
            assert_eq!(answer.error(), ("authentication_error".to_owned(), None));
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
        }
    }
    let page = request(server.address, "GET", "/", &[], None).await.text();
    assert!(!page.contains("test-model"), "the page is public");
}

#[tokio::test]
async fn any_of_the_keys_opens_in_any_of_the_forms() {
    let server = guarded().start().await;
    for (name, value, status) in [
        ("authorization", "Bearer first", 200),
        ("authorization", "bearer second", 200),
        ("authorization", "second", 200),
        ("x-api-key", "first", 200),
        ("authorization", "Bearer third", 401),
        ("authorization", "Bearer firs", 401),
        ("authorization", "Bearer firstx", 401),
        ("authorization", "Bearer ", 401),
        ("x-api-key", "", 401),
        ("api-key", "first", 401),
    ] {
        let answer = request(server.address, "GET", "/v1/models", &[(name, value)], None).await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
}

#[tokio::test]
async fn no_key_is_asked_for_where_none_is_set() {
    let server = Setup::default().start().await;
    assert_eq!(
        request(server.address, "GET", "/v1/models", &[], None)
            .await
            .status,
        200
    );
    assert_eq!(
        request(server.address, "GET", "/", &[], None).await.status,
        200
    );
}
