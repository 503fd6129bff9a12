//! Unix sockets, and HTTP/2 without TLS.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test may panic and clone"
)]

mod support;

use serde_json::json;
use support::client::{Stream, head};
use support::{Setup, model};

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_serves_and_may_shut_down() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.sock");
    let (app, _engine) = Setup::default().app();
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let serving = tokio::spawn(dynalm_server::serve(listener, app, std::future::pending()));
    let body = json!({"prompt": "\n", "temperature": 0}).to_string();
    let socket = tokio::net::UnixStream::connect(&path).await.unwrap();
    let mut stream = Stream::send(
        socket,
        &head("POST", "/v1/completions", &[], Some(body.as_bytes())),
        body.as_bytes(),
    )
    .await;
    assert_eq!(
        stream.answer().await.json()["choices"][0]["text"],
        "Paris is it."
    );
    let socket = tokio::net::UnixStream::connect(&path).await.unwrap();
    let mut stream = Stream::send(socket, &head("POST", "/admin/shutdown", &[], None), b"").await;
    assert_eq!(stream.answer().await.status, 202);
    tokio::time::timeout(support::PATIENCE, serving)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn http_2_without_tls_is_spoken_by_prior_knowledge() {
    use http_body_util::{BodyExt, Full};
    use hyper_util::rt::{TokioExecutor, TokioIo};

    let server = Setup {
        model: model::answering("two"),
        ..Setup::default()
    }
    .start()
    .await;
    let socket = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
            .await
            .unwrap();
    tokio::spawn(connection);
    let post = |authority: &str| {
        let body = json!({"prompt": "\n", "temperature": 0}).to_string();
        let uri = format!("http://{authority}/v1/completions");
        hyper::Request::post(uri)
            .body(Full::new(bytes::Bytes::from(body)))
            .unwrap()
    };
    let answers = [
        sender.send_request(post("localhost")),
        sender.send_request(post("localhost")),
    ];
    for answer in answers {
        let answer = answer.await.unwrap();
        assert_eq!(answer.status(), 200);
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("\"text\":\"two\""));
    }
    assert_eq!(
        sender
            .send_request(post("evil.example"))
            .await
            .unwrap()
            .status(),
        403
    );
}
