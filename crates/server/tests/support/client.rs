//! HTTP/1.1 by hand over any stream: nothing is retried, pooled or corrected.

use std::collections::HashMap;
use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::PATIENCE;

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The error's type and field, after a check that its code is the status.
    pub fn error(&self) -> (String, Option<String>) {
        let error = &self.json()["error"];
        assert_eq!(error["code"], self.status, "{error}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty()),
            "{error}"
        );
        (
            error["type"].as_str().unwrap().to_owned(),
            error["param"].as_str().map(str::to_owned),
        )
    }
}

pub async fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, &[], None).await
}

pub async fn post(address: SocketAddr, path: &str, body: Value) -> Answer {
    request(
        address,
        "POST",
        path,
        &[],
        Some(body.to_string().as_bytes()),
    )
    .await
}

/// One request on a connection of its own.
pub async fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: Option<&[u8]>,
) -> Answer {
    let socket = TcpStream::connect(address).await.unwrap();
    let mut stream = Stream::send(
        socket,
        &head(method, path, headers, body),
        body.unwrap_or_default(),
    )
    .await;
    stream.answer().await
}

/// A POST whose answer is read piece by piece.
pub async fn open_stream(address: SocketAddr, path: &str, body: Value) -> Stream<TcpStream> {
    let body = body.to_string();
    let socket = TcpStream::connect(address).await.unwrap();
    Stream::send(
        socket,
        &head("POST", path, &[], Some(body.as_bytes())),
        body.as_bytes(),
    )
    .await
}

/// The text of a request's head. `Host` is the loopback's unless given.
pub fn head(method: &str, path: &str, headers: &[(&str, &str)], body: Option<&[u8]>) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !headers
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        head.push_str("host: localhost\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if let Some(body) = body {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    head + "\r\n"
}

/// A connection with an answer on its way.
pub struct Stream<S> {
    socket: BufReader<S>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream<S> {
    /// Sends a request. A server may refuse before it has read everything, so failing to write is not an error yet.
    pub async fn send(socket: S, head: &str, body: &[u8]) -> Self {
        let mut socket = BufReader::new(socket);
        let _ = socket.write_all(head.as_bytes()).await;
        let _ = socket.write_all(body).await;
        Self { socket }
    }

    /// Status and headers.
    pub async fn head(&mut self) -> (u16, HashMap<String, String>) {
        let status_line = self.line().await;
        let status = status_line
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok());
        let mut headers = HashMap::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        (
            status.unwrap_or_else(|| panic!("no status in {status_line:?}")),
            headers,
        )
    }

    /// The whole answer, chunked or of known length; the connection stays open.
    pub async fn answer(&mut self) -> Answer {
        let (status, headers) = self.head().await;
        let mut body = Vec::new();
        if headers
            .get("transfer-encoding")
            .is_some_and(|encoding| encoding == "chunked")
        {
            while let Some(chunk) = self.chunk().await {
                body.extend(chunk);
            }
        } else if let Some(length) = headers.get("content-length") {
            body.resize(length.parse().unwrap(), 0);
            timeout(PATIENCE, self.socket.read_exact(&mut body))
                .await
                .unwrap()
                .unwrap();
        }
        Answer {
            status,
            headers,
            body,
        }
    }

    /// The next chunk of a chunked body; `None` at its end.
    pub async fn chunk(&mut self) -> Option<Vec<u8>> {
        let size = usize::from_str_radix(&self.line().await, 16).unwrap();
        let mut chunk = vec![0; size];
        timeout(PATIENCE, self.socket.read_exact(&mut chunk))
            .await
            .unwrap()
            .unwrap();
        self.line().await;
        (size > 0).then_some(chunk)
    }

    /// True once the server has closed the connection.
    pub async fn is_closed(&mut self) -> bool {
        matches!(
            timeout(PATIENCE, self.socket.read(&mut [0; 64])).await,
            Ok(Ok(0) | Err(_))
        )
    }

    /// Sends more on the same connection.
    pub async fn send_more(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).await.unwrap();
    }

    async fn line(&mut self) -> String {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let byte = timeout(PATIENCE, self.socket.read_u8())
                .await
                .expect("an answer must come");
            line.push(byte.unwrap_or_else(|error| {
                panic!("{error} after {:?}", String::from_utf8_lossy(&line))
            }));
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).unwrap()
    }
}

/// The data frames of a stream's text, parsed; `[DONE]` is checked to be the last, comments are left out.
pub fn frames(text: &str) -> Vec<Value> {
    let mut data: Vec<&str> = text
        .split("\n\n")
        .filter_map(|frame| frame.strip_prefix("data: "))
        .collect();
    assert_eq!(data.pop(), Some("[DONE]"), "{text}");
    data.into_iter()
        .map(|frame| serde_json::from_str(frame).unwrap())
        .collect()
}
