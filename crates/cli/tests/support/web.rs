//! A web server on loopback, scripted by a closure.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// What was asked.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// First byte of a `Range: bytes=N-`.
    pub fn range(&self) -> Option<usize> {
        self.header("range")?
            .strip_prefix("bytes=")?
            .strip_suffix('-')?
            .parse()
            .ok()
    }
}

/// What to answer.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Close the connection after so many bytes of the body.
    pub cut: Option<usize>,
    /// Then keep it open and silent instead, until the server ends.
    pub hold: bool,
    /// The length to claim instead of the body's.
    pub claimed: Option<u64>,
}

impl Reply {
    pub fn status(status: u16) -> Reply {
        Reply {
            status,
            ..Reply::default()
        }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Reply {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// A whole file, or the rest of it, as an honest server sends it.
    pub fn file(asked: &Asked, bytes: &[u8], etag: &str) -> Reply {
        let unchanged = asked.header("if-range").is_none_or(|wanted| wanted == etag);
        let start = asked.range().filter(|_| unchanged);
        let reply = match start {
            Some(start) if start >= bytes.len() => {
                Reply::status(416).with("Content-Range", format!("bytes */{}", bytes.len()))
            }
            Some(start) => Reply {
                body: bytes[start..].to_vec(),
                ..Reply::status(206)
            }
            .with(
                "Content-Range",
                format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len()),
            ),
            None => Reply {
                body: bytes.to_vec(),
                ..Reply::status(200)
            },
        };
        reply.with("ETag", etag)
    }

    pub fn cut(mut self, n: usize) -> Reply {
        self.cut = Some(n);
        self
    }
}

/// A running server; it ends with the test.
pub struct Web {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
}

impl Web {
    /// Serves what `script` answers to the n-th request.
    pub fn start(script: impl Fn(usize, &Asked) -> Reply + Send + 'static) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (asked, stop) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicBool::new(false)),
        );
        let (seen, stopped) = (Arc::clone(&asked), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                // One after the other: the client makes one request at a time.
                let _ = answer(&stream, &seen, &stopped, &script);
            }
        });
        Web { url, asked, stop }
    }

    /// All that was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn answer(
    stream: &TcpStream,
    seen: &Mutex<Vec<Asked>>,
    stopped: &AtomicBool,
    script: &impl Fn(usize, &Asked) -> Reply,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let path = line.split_whitespace().nth(1).unwrap_or("").to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let asked = Asked { path, headers };
    let n = {
        let mut seen = seen.lock().expect("no panic");
        seen.push(asked.clone());
        seen.len() - 1
    };
    let reply = script(n, &asked);
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    let length = reply.claimed.unwrap_or(reply.body.len() as u64);
    head.push_str(&format!("Content-Length: {length}\r\n\r\n"));
    let mut stream = stream;
    stream.write_all(head.as_bytes())?;
    stream.write_all(&reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())])?;
    stream.flush()?;
    while reply.hold && !stopped.load(Ordering::Relaxed) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(())
}
