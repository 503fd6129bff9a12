//! HTTP for downloads. Redirects are followed by hand, because the hub's token must reach the hub's host and no other.

use std::io::{self, Read};
use std::time::Duration;

use ureq::http::{HeaderMap, Uri};
use ureq::tls::{PemItem, RootCerts, TlsConfig};

/// A host that does not answer within this is given up, so that a second source gets its turn.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Headers of an answer; hubs sign addresses in well under a second.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// The hub needs one, content networks another; more than a handful is a loop.
const MAX_REDIRECTS: usize = 8;
/// A listing of a large repository is some hundred kilobytes.
const MAX_TEXT_BYTES: u64 = 16 << 20;

/// Why a request brought nothing.
#[derive(Debug)]
pub(crate) enum HttpError {
    /// No connection, or none in time.
    Unreachable {
        /// The host that was asked.
        host: String,
        /// What the system says.
        reason: String,
    },
    /// The server refused.
    Status {
        /// Its code.
        code: u16,
        /// What was asked for.
        url: String,
        /// Seconds to wait, where the server says so.
        retry_after: Option<u64>,
    },
    /// The bytes are not those that the hub or the catalogue promises.
    Damaged {
        /// The file.
        name: String,
        /// The SHA-256 of what came.
        found: String,
        /// The SHA-256 that was promised.
        expected: String,
    },
    /// Redirects in a loop, to nowhere, or from https to http.
    Redirect(String),
}

impl std::fmt::Display for HttpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HttpError::Unreachable { host, reason } => {
                write!(f, "{host} cannot be reached: {reason}")
            }
            HttpError::Status {
                code: code @ (401 | 403),
                url,
                ..
            } => {
                write!(
                    f,
                    "{url}: refused ({code}): there is no such model, or it is private or gated; "
                )?;
                write!(f, "accept its terms on its page and set HF_TOKEN")
            }
            HttpError::Status { code: 404, url, .. } => write!(f, "{url}: not found (404)"),
            HttpError::Status { code: 429, url, .. } => {
                write!(f, "{url}: too many requests (429), try again later")
            }
            HttpError::Status { code, url, .. } => write!(f, "{url}: the server answered {code}"),
            HttpError::Damaged {
                name,
                found,
                expected,
            } => {
                write!(
                    f,
                    "{name}: the download is damaged and was removed: sha256 {found}, expected {expected}"
                )
            }
            HttpError::Redirect(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for HttpError {}

impl HttpError {
    /// Whether the same request may well succeed a little later.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            HttpError::Unreachable { .. } => true,
            HttpError::Status { code, .. } => matches!(code, 408 | 425 | 429 | 500 | 502..=504),
            HttpError::Damaged { .. } | HttpError::Redirect(_) => false,
        }
    }
}

/// The part of a file to ask for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Range {
    /// First byte.
    pub(crate) start: u64,
    /// Only if the file still has this entity tag; else the whole file.
    pub(crate) if_range: Option<String>,
}

/// An answer whose body was not read yet.
pub(crate) struct Answer {
    /// 200, 206 or 416.
    pub(crate) code: u16,
    /// Length of the whole file, where it is told.
    pub(crate) total: Option<u64>,
    /// First byte of this body in the file.
    pub(crate) start: u64,
    /// The entity tag of the host that sends the bytes.
    pub(crate) etag: Option<String>,
    /// The SHA-256 that the hub states for the file.
    pub(crate) sha256: Option<String>,
    /// The bytes.
    pub(crate) body: Box<dyn Read + Send>,
}

/// A client for one hub.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: ureq::Agent,
    endpoint: String,
    token: Option<String>,
}

impl Client {
    /// A client that sends `token` to the host of `endpoint` and to no other.
    pub(crate) fn new(endpoint: &str, token: Option<&str>) -> Client {
        let mut config = ureq::Agent::config_builder()
            .timeout_resolve(Some(CONNECT_LIMIT))
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_recv_response(Some(ANSWER_LIMIT))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .user_agent(concat!("dynalm/", env!("CARGO_PKG_VERSION")));
        if let Some(roots) = own_roots() {
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Client {
            agent: config.build().into(),
            endpoint: endpoint.trim_end_matches('/').to_owned(),
            token: token.map(str::to_owned),
        }
    }

    /// The hub's address, without a slash at its end.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Asks for a file, or for the rest of it.
    ///
    /// # Errors
    /// No connection, a refusal, a bad redirect. 416 is an answer, since it says how long the file is.
    pub(crate) fn get(&self, url: &str, range: Option<&Range>) -> Result<Answer, HttpError> {
        let mut url = url.to_owned();
        let mut sha256 = None;
        for _ in 0..=MAX_REDIRECTS {
            let response = self.ask(&url, range)?;
            let headers = response.headers();
            if self.is_hub(&url) {
                sha256 = sha256.or_else(|| linked_sha256(headers));
            }
            let code = response.status().as_u16();
            match code {
                200 | 206 | 416 => return Ok(answer(code, sha256, response)),
                301 | 302 | 303 | 307 | 308 => url = redirect(&url, header(headers, "location"))?,
                code => {
                    let retry_after =
                        header(headers, "retry-after").and_then(|text| text.parse().ok());
                    return Err(HttpError::Status {
                        code,
                        url,
                        retry_after,
                    });
                }
            }
        }
        Err(HttpError::Redirect(format!(
            "{url}: more than {MAX_REDIRECTS} redirects"
        )))
    }

    /// Asks for a small text.
    ///
    /// # Errors
    /// As [`get`](Client::get); a text that is too long or not UTF-8 counts as a connection that broke.
    pub(crate) fn text(&self, url: &str) -> Result<String, HttpError> {
        let answer = self.get(url, None)?;
        let mut text = String::new();
        answer
            .body
            .take(MAX_TEXT_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| unreachable(url, &error))?;
        Ok(text)
    }

    fn ask(
        &self,
        url: &str,
        range: Option<&Range>,
    ) -> Result<ureq::http::Response<ureq::Body>, HttpError> {
        let mut request = self.agent.get(url).header("Accept-Encoding", "identity");
        if let Some(token) = self.token.as_deref().filter(|_| self.is_hub(url)) {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(range) = range {
            request = request.header("Range", format!("bytes={}-", range.start));
            if let Some(etag) = &range.if_range {
                request = request.header("If-Range", etag);
            }
        }
        request.call().map_err(|error| unreachable(url, &error))
    }

    /// Whether `url` is at the hub: same scheme, same host, same port.
    fn is_hub(&self, url: &str) -> bool {
        match (origin(url), origin(&self.endpoint)) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }
}

/// Certificates of `SSL_CERT_FILE`, for networks that look into TLS.
fn own_roots() -> Option<RootCerts> {
    let pem =
        std::fs::read(std::env::var_os("SSL_CERT_FILE").filter(|name| !name.is_empty())?).ok()?;
    let certificates: Vec<_> = ureq::tls::parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    (!certificates.is_empty()).then(|| RootCerts::new_with_certs(&certificates))
}

fn unreachable(url: &str, reason: &dyn std::fmt::Display) -> HttpError {
    let host = origin(url).map_or_else(|| url.to_owned(), |(_, host, _)| host);
    HttpError::Unreachable {
        host,
        reason: reason.to_string(),
    }
}

fn origin(url: &str) -> Option<(String, String, u16)> {
    let uri: Uri = url.parse().ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri
        .port_u16()
        .unwrap_or(if scheme == "https" { 443 } else { 80 });
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn linked_sha256(headers: &HeaderMap) -> Option<String> {
    let etag = header(headers, "x-linked-etag").or_else(|| header(headers, "etag"))?;
    let digest = etag
        .trim_start_matches("W/")
        .trim_matches('"')
        .to_ascii_lowercase();
    is_sha256(&digest).then_some(digest)
}

/// Whether the text has the form of a SHA-256.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn answer(code: u16, sha256: Option<String>, response: ureq::http::Response<ureq::Body>) -> Answer {
    let headers = response.headers();
    let (start, total) = match header(headers, "content-range").and_then(content_range) {
        Some(range) if code != 200 => range,
        _ => (
            0,
            header(headers, "content-length").and_then(|text| text.parse().ok()),
        ),
    };
    let total = total.filter(|_| code != 416 || headers.contains_key("content-range"));
    let etag = header(headers, "etag").map(str::to_owned);
    Answer {
        code,
        total,
        start,
        etag,
        sha256,
        body: Box::new(response.into_body().into_reader()),
    }
}

/// `bytes 10-99/100` as (10, 100); `bytes */100` as (0, 100).
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let start = match range.split_once('-') {
        Some((start, _)) => start.trim().parse().ok()?,
        None => 0,
    };
    Some((start, total.trim().parse().ok()))
}

fn redirect(from: &str, location: Option<&str>) -> Result<String, HttpError> {
    let bad = |why: &str| HttpError::Redirect(format!("{from}: {why}"));
    let location = location.ok_or_else(|| bad("a redirect without an address"))?;
    let (scheme, rest) = from.split_once("://").ok_or_else(|| bad("no address"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let target = if location.contains("://") {
        location.to_owned()
    } else if let Some(rest) = location.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else {
        let path = from.split(['?', '#']).next().unwrap_or(from);
        let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
        format!("{folder}/{location}")
    };
    match origin(&target) {
        Some((target_scheme, ..)) if scheme == "https" && target_scheme != "https" => {
            Err(bad("redirected to an address without TLS"))
        }
        Some((scheme, ..)) if scheme == "https" || scheme == "http" => Ok(target),
        _ => Err(bad("redirected to an address that is not one")),
    }
}

/// Reads on a thread of its own, so that a stalled connection is noticed: [`next`](Reading::next) gives up in time.
pub(crate) struct Reading {
    chunks: std::sync::mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl Reading {
    /// Starts to read `body`. A few chunks are read ahead at most.
    pub(crate) fn start(mut body: Box<dyn Read + Send>) -> io::Result<Reading> {
        const CHUNK_BYTES: usize = 256 << 10;
        let (sender, chunks) = std::sync::mpsc::sync_channel(4);
        std::thread::Builder::new()
            .name("download".to_owned())
            .spawn(move || {
                loop {
                    let mut chunk = vec![0; CHUNK_BYTES];
                    let read = body.read(&mut chunk).map(|n| {
                        chunk.truncate(n);
                        chunk
                    });
                    let is_last = read.as_ref().map_or(true, Vec::is_empty);
                    if sender.send(read).is_err() || is_last {
                        return;
                    }
                }
            })?;
        Ok(Reading { chunks })
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// The connection broke, or nothing came for `limit`.
    pub(crate) fn next(&self, limit: Duration) -> io::Result<Vec<u8>> {
        self.chunks.recv_timeout(limit).unwrap_or_else(|_| {
            let text = format!("nothing was received for {} s", limit.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hub_is_scheme_host_and_port() {
        let client = Client::new("https://hub.example/", Some("secret"));
        assert!(client.is_hub("https://hub.example/a/b"));
        assert!(client.is_hub("https://HUB.example:443/a"));
        for other in [
            "http://hub.example/a",
            "https://hub.example.evil/a",
            "https://hub.example:444/",
            "x",
        ] {
            assert!(!client.is_hub(other), "{other}");
        }
        assert!(!client.is_hub("https://user@other.example/https://hub.example"));
    }

    #[test]
    fn redirects_are_resolved_and_never_lose_tls() {
        let from = "https://h.example/a/b?x=/c";
        let check =
            |location: &str, to: &str| assert_eq!(redirect(from, Some(location)).unwrap(), to);
        check("https://cdn.example/z", "https://cdn.example/z");
        check("/z?y", "https://h.example/z?y");
        check("//cdn.example/z", "https://cdn.example/z");
        check("z", "https://h.example/a/z");
        assert!(redirect(from, Some("http://cdn.example/z")).is_err());
        assert!(redirect(from, Some("file:///etc/passwd")).is_err());
        assert!(redirect(from, None).is_err());
    }

    #[test]
    fn content_ranges() {
        assert_eq!(content_range("bytes 10-99/100"), Some((10, Some(100))));
        assert_eq!(content_range("bytes */100"), Some((0, Some(100))));
        assert_eq!(content_range("bytes 10-99/*"), Some((10, None)));
        assert_eq!(content_range("items 1-2/3"), None);
    }
}
