//! Bounds on bodies, headers, time, queue and connections.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use std::time::Duration;

use dynalm_engine::EngineConfig;
use serde_json::{Value, json};
use support::client::{Stream, head};
use support::{Setup, get, model, open_stream, post, request};
use tokio::net::TcpStream;

const CHAT: &str = "/v1/chat/completions";

fn ask(stream: bool) -> Value {
    json!({"messages": [{"role": "user", "content": "x"}], "temperature": 0, "stream": stream})
}

#[tokio::test]
async fn a_body_over_the_cap_is_413_declared_or_not() {
    let server = Setup::config(|config| config.limits.max_body_bytes = 1000)
        .start()
        .await;
    let body = vec![b' '; 1001];
    let answer = request(server.address, "POST", CHAT, &[], Some(&body)).await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (413, "invalid_request_error")
    );

    let socket = TcpStream::connect(server.address).await.unwrap();
    let head = head("POST", CHAT, &[("transfer-encoding", "chunked")], None);
    let chunk = format!("800\r\n{}\r\n0\r\n\r\n", "x".repeat(0x800));
    let answer = Stream::send(socket, &head, chunk.as_bytes())
        .await
        .answer()
        .await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn headers_over_the_cap_are_431_and_the_server_goes_on() {
    let server = Setup::config(|config| config.limits.max_header_bytes = 8192)
        .start()
        .await;
    let answer = request(
        server.address,
        "GET",
        "/health",
        &[("x-long", &"x".repeat(20_000))],
        None,
    )
    .await;
    assert_eq!(answer.status, 431);
    assert_eq!(get(server.address, "/health").await.status, 200);
}

#[tokio::test]
async fn a_client_that_never_ends_its_headers_is_dropped() {
    let server = Setup::config(|config| config.limits.header_timeout = Duration::from_millis(100))
        .start()
        .await;
    for beginning in ["", "GET /health HTTP/1.1\r\nhost: loc", "PRI * HTTP"] {
        let socket = TcpStream::connect(server.address).await.unwrap();
        let mut stream = Stream::send(socket, beginning, b"").await;
        assert!(stream.is_closed().await, "{beginning:?}");
    }
}

#[tokio::test]
async fn a_client_that_never_ends_its_body_is_told() {
    let server = Setup::config(|config| config.limits.body_timeout = Duration::from_millis(100))
        .start()
        .await;
    let socket = TcpStream::connect(server.address).await.unwrap();
    let head = head("POST", CHAT, &[("content-length", "100")], None);
    let answer = Stream::send(socket, &head, b"{").await.answer().await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("did not arrive"));
}

#[tokio::test]
async fn a_full_queue_is_429_with_a_time_to_come_back() {
    let engine = EngineConfig {
        context_len: Some(512),
        max_sequences: 1,
        max_queue: 1,
        ..EngineConfig::default()
    };
    let server = Setup {
        model: model::endless().delay(Duration::from_millis(5)),
        engine,
        ..Setup::default()
    }
    .start()
    .await;
    let mut running = open_stream(server.address, CHAT, ask(true)).await;
    running.head().await;
    let mut queued = open_stream(server.address, CHAT, ask(true)).await;
    queued.head().await;
    let answer = post(server.address, CHAT, ask(false)).await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (429, "rate_limit_error")
    );
    assert!(answer.headers["retry-after"].parse::<u64>().unwrap() >= 1);
    // Not even a part of a request with several choices is left behind.
    drop(queued);
    server.until(|engine| engine.stats().waiting == 0).await;
    let mut two = ask(false);
    two["n"] = 2.into();
    assert_eq!(post(server.address, CHAT, two).await.status, 429);
    server.until(|engine| engine.stats().waiting == 0).await;
}

#[tokio::test]
async fn a_deadline_is_504_whole_and_a_data_frame_in_a_stream() {
    let mut setup = Setup {
        model: model::endless().delay(Duration::from_millis(20)),
        ..Setup::default()
    };
    setup.config.limits.request_timeout = Duration::from_millis(200);
    let server = setup.start().await;
    let answer = post(server.address, CHAT, ask(false)).await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (504, "timeout_error")
    );
    let text = post(server.address, CHAT, ask(true)).await.text();
    assert!(
        text.contains("\"content\":\"a\"")
            && text.contains("timeout_error")
            && !text.contains("[DONE]"),
        "{text}"
    );
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_dropped_and_its_request_cancelled() {
    let mut setup = Setup {
        model: model::endless().never(&[model::END]),
        ..Setup::default()
    };
    // A context long enough that the answer fills every buffer in between.
    setup.engine.context_len = Some(16_384);
    setup.config.limits.write_timeout = Duration::from_millis(200);
    let tiny_window = tokio::net::TcpSocket::new_v4().unwrap();
    tiny_window.set_recv_buffer_size(4096).unwrap();
    let server = setup.start().await;
    let body =
        json!({"prompt": "\n", "temperature": 0, "stream": true, "logprobs": 20}).to_string();
    let socket = tiny_window.connect(server.address).await.unwrap();
    let head = head("POST", "/v1/completions", &[], Some(body.as_bytes()));
    let _unread = Stream::send(socket, &head, body.as_bytes()).await;
    server
        .until(|engine| engine.stats().requests.accepted == 1)
        .await;
    let gone = async {
        while !get(server.address, "/metrics")
            .await
            .text()
            .contains("status=\"200\"")
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(support::PATIENCE, gone)
        .await
        .expect("the connection must be given up");
}

#[tokio::test]
async fn connections_over_the_limit_wait_for_their_turn() {
    let server = Setup::config(|config| config.limits.max_connections = 1)
        .start()
        .await;
    let socket = TcpStream::connect(server.address).await.unwrap();
    let mut first = Stream::send(socket, &head("GET", "/health", &[], None), b"").await;
    assert_eq!(first.answer().await.status, 200);
    let address = server.address;
    let second = tokio::spawn(async move { get(address, "/health").await.status });
    first
        .send_more(head("GET", "/v1/models", &[], None).as_bytes())
        .await;
    assert_eq!(first.answer().await.status, 200);
    assert!(!second.is_finished());
    drop(first);
    assert_eq!(second.await.unwrap(), 200);
}

#[tokio::test]
async fn a_huge_prompt_does_not_hold_up_others() {
    // Everything of this server runs on this test's one thread, except what must not block it.
    let server = Setup::default().start().await;
    let address = server.address;
    let huge = "a few words and more of them ".repeat(200_000);
    let huge =
        tokio::spawn(
            async move { post(address, "/v1/completions", json!({ "prompt": huge })).await },
        );
    let mut n_answers = 0;
    while !huge.is_finished() {
        assert_eq!(get(address, "/health").await.status, 200);
        n_answers += 1;
    }
    assert_eq!(huge.await.unwrap().error().0, "exceed_context_size_error");
    assert!(n_answers > 5, "{n_answers} answers in the meantime");
}
