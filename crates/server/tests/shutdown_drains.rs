//! Shutdown: running answers end, new requests are turned away, and a deadline bounds it.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::client::{Stream, frames, head};
use support::{Server, Setup, get, model, open_stream, post, request};
use tokio::net::TcpStream;

const CHAT: &str = "/v1/chat/completions";

fn ask() -> Value {
    json!({"messages": [{"role": "user", "content": "x"}], "temperature": 0, "stream": true})
}

fn slow(model: dynalm_engine::fake_model::FakeModel, drain_deadline: Duration) -> Setup {
    let mut setup = Setup {
        model: model.delay(Duration::from_millis(20)),
        ..Setup::default()
    };
    setup.config.limits.drain_deadline = drain_deadline;
    setup
}

/// A stream that has begun, as text so far.
async fn begin(server: &Server) -> (Stream<TcpStream>, Vec<u8>) {
    let mut stream = open_stream(server.address, CHAT, ask()).await;
    assert_eq!(stream.head().await.0, 200);
    let first = stream.chunk().await.unwrap();
    (stream, first)
}

async fn rest(stream: &mut Stream<TcpStream>, mut text: Vec<u8>) -> String {
    while let Some(chunk) = stream.chunk().await {
        text.extend(chunk);
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn running_streams_end_while_new_requests_are_turned_away() {
    let mut server = slow(model::answering("Paris is it."), Duration::from_secs(30))
        .start()
        .await;
    let (mut stream, first) = begin(&server).await;
    server.ask_to_stop();
    let unready = async {
        while get(server.address, "/health").await.status != 503 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(support::PATIENCE, unready)
        .await
        .unwrap();
    let answer = post(server.address, CHAT, ask()).await;
    assert_eq!(
        (answer.status, answer.error().0.as_str()),
        (503, "unavailable_error")
    );
    assert_eq!(answer.headers["connection"], "close");
    let text = rest(&mut stream, first).await;
    assert_eq!(
        frames(&text).last().unwrap()["choices"][0]["finish_reason"],
        "stop"
    );
    let address = server.address;
    server.stopped().await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn past_the_deadline_streams_are_told_and_ended() {
    let mut server = slow(model::endless(), Duration::from_millis(100))
        .start()
        .await;
    let (mut stream, first) = begin(&server).await;
    server.ask_to_stop();
    let text = rest(&mut stream, first).await;
    assert!(
        text.contains("unavailable_error") && !text.contains("[DONE]"),
        "{text}"
    );
    server.stopped().await;
}

#[tokio::test]
async fn an_idle_server_stops_at_once_though_a_client_keeps_its_connection() {
    let mut server = Setup::default().start().await;
    let socket = TcpStream::connect(server.address).await.unwrap();
    let mut idle = Stream::send(socket, &head("GET", "/health", &[], None), b"").await;
    assert_eq!(idle.answer().await.status, 200);
    server.ask_to_stop();
    server.stopped().await;
    assert!(idle.is_closed().await);
}

#[tokio::test]
async fn a_local_client_may_ask_for_it_but_no_proxy_and_no_browser() {
    let server = Setup::default().start().await;
    for header in [
        ("x-forwarded-for", "10.0.0.1"),
        ("origin", "http://localhost"),
    ] {
        let answer = request(server.address, "POST", "/admin/shutdown", &[header], None).await;
        assert_eq!(
            (answer.status, answer.error().0.as_str()),
            (403, "permission_error")
        );
    }
    assert_eq!(get(server.address, "/health").await.status, 200);
    assert_eq!(
        request(server.address, "GET", "/admin/shutdown", &[], None)
            .await
            .status,
        405
    );
    assert_eq!(
        request(server.address, "POST", "/admin/shutdown", &[], None)
            .await
            .status,
        202
    );
    server.stopped().await;
}

#[tokio::test]
async fn a_server_that_still_loads_says_so_and_then_answers() {
    let (ready, engine) = Setup::default().app();
    drop(ready);
    let app = dynalm_server::App::loading(dynalm_server::ServerConfig {
        metrics: true,
        ..Default::default()
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(dynalm_server::serve(
        listener,
        app.clone(),
        std::future::pending(),
    ));
    for path in ["/health", "/v1/models", "/metrics"] {
        let answer = get(address, path).await;
        assert_eq!(
            (answer.status, answer.error().0.as_str()),
            (503, "unavailable_error"),
            "{path}"
        );
    }
    assert_eq!(post(address, CHAT, ask()).await.status, 503);
    assert!(get(address, "/").await.text().contains("loading"));
    app.set_model(engine, Some(model::template(model::TEMPLATE)), "late");
    assert_eq!(
        get(address, "/health").await.json(),
        json!({"status": "ok"})
    );
    assert_eq!(post(address, CHAT, ask()).await.status, 200);
}
