//! Host and Origin checks, CORS, request ids, and the page at the root.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use support::{Setup, get, request};

#[tokio::test]
async fn a_foreign_host_name_is_refused_on_a_loopback_bind() {
    let server = Setup::default().start().await;
    for (host, status) in [
        ("localhost", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:1", 200),
        ("evil.example", 403),
    ] {
        let answer = request(server.address, "GET", "/health", &[("host", host)], None).await;
        assert_eq!(answer.status, status, "{host}");
        if status == 403 {
            assert_eq!(answer.error().0, "permission_error");
        }
    }
    let named =
        Setup::config(|config| config.access.allowed_hosts = vec!["models.example".to_owned()])
            .start()
            .await;
    let answer = request(
        named.address,
        "GET",
        "/health",
        &[("host", "models.example:80")],
        None,
    )
    .await;
    assert_eq!(answer.status, 200);
}

#[tokio::test]
async fn cors_is_off_unless_asked_for() {
    let preflight = [
        ("origin", "https://app.example"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "authorization"),
    ];
    let server = Setup::default().start().await;
    let answer = request(
        server.address,
        "OPTIONS",
        "/v1/chat/completions",
        &preflight,
        None,
    )
    .await;
    assert_eq!(answer.status, 403);
    let answer = request(server.address, "GET", "/health", &[], None).await;
    assert!(
        answer
            .headers
            .keys()
            .all(|name| !name.starts_with("access-control"))
    );

    let asked =
        Setup::config(|config| config.access.cors_origins = vec!["https://app.example".to_owned()])
            .start()
            .await;
    let answer = request(
        asked.address,
        "OPTIONS",
        "/v1/chat/completions",
        &preflight,
        None,
    )
    .await;
    assert_eq!(
        (
            answer.status,
            answer.headers["access-control-allow-origin"].as_str()
        ),
        (200, "https://app.example")
    );
    assert_eq!(
        answer.headers["access-control-allow-headers"],
        "authorization"
    );
    let answer = request(asked.address, "GET", "/health", &[preflight[0]], None).await;
    assert_eq!(
        answer.headers["access-control-allow-origin"],
        "https://app.example"
    );
    let answer = request(
        asked.address,
        "GET",
        "/health",
        &[("origin", "https://other.example")],
        None,
    )
    .await;
    assert_eq!(answer.status, 403);
}

#[tokio::test]
async fn request_ids_go_in_and_out() {
    let server = Setup::default().start().await;
    let answer = request(
        server.address,
        "GET",
        "/health",
        &[("x-request-id", "mine-1")],
        None,
    )
    .await;
    assert_eq!(answer.headers["x-request-id"], "mine-1");
    let answer = request(
        server.address,
        "GET",
        "/nowhere",
        &[("x-request-id", "not \"mine\"")],
        None,
    )
    .await;
    assert!(answer.headers["x-request-id"].starts_with("req-"));
    let other = get(server.address, "/health").await;
    assert_ne!(
        answer.headers["x-request-id"],
        other.headers["x-request-id"]
    );
}

#[tokio::test]
async fn the_page_says_what_runs_here() {
    let server = Setup::default().start().await;
    let answer = get(server.address, "/").await;
    assert_eq!(answer.headers["content-type"], "text/html; charset=utf-8");
    assert!(answer.headers["content-security-policy"].starts_with("default-src 'none'"));
    assert!(answer.text().contains("test-model") && answer.text().contains("/v1/chat/completions"));
    assert!(!answer.text().contains("{{"));
}
