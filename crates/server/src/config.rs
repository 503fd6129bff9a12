//! What an operator may set, in groups, each default in one place.

use std::time::Duration;

use crate::edge::keys::ApiKeys;

/// Everything that shapes one server, beside the model and the listener.
#[derive(Debug, Clone, Default)]
pub struct ServerConfig {
    /// Who may call.
    pub access: AccessConfig,
    /// How much one client may ask for, in bytes, counts and time.
    pub limits: LimitsConfig,
    /// How streamed answers behave.
    pub stream: StreamConfig,
    /// Whether `GET /metrics` answers; else it is 501.
    pub metrics: bool,
    /// Further names under which clients may ask for the model.
    pub model_aliases: Vec<String>,
    /// Answer whatever model name a request carries, instead of 404 for a name that is not served.
    pub accept_any_model: bool,
}

/// Who may call, from where.
#[derive(Debug, Clone, Default)]
pub struct AccessConfig {
    /// Accepted keys; none means that no key is asked for.
    pub api_keys: ApiKeys,
    /// Host names accepted in the `Host` header beside the loopback ones. If any is given, the header is
    /// checked on every bind, else on loopback binds only.
    pub allowed_hosts: Vec<String>,
    /// Browser origins that may call (`*` for all). Empty: no CORS header is sent.
    pub cors_origins: Vec<String>,
}

/// Bounds on one request and one connection.
#[derive(Debug, Clone)]
pub struct LimitsConfig {
    /// Largest request body (default 8 MiB: a prompt of a million tokens is about 5 MB of text). Parsed, a body of
    /// nothing but numbers takes sixteen times its size, in at most `max_preparing` requests at once.
    pub max_body_bytes: usize,
    /// Bytes of all bodies held at once, those waiting to be parsed included (default 128 MiB); a request that would
    /// go over is answered 429.
    pub max_held_bytes: usize,
    /// Largest set of request headers (default 64 KiB).
    pub max_header_bytes: usize,
    /// Connections open at once; further ones wait to be accepted (default 1024).
    pub max_connections: usize,
    /// Choices that one request may ask for: `n` times the number of prompts (default 64).
    pub max_choices: usize,
    /// Prompts rendered and tokenized at once, off the async threads (default 4).
    pub max_preparing: usize,
    /// Time for a client to send its headers, also how long an idle connection is kept (default 60 s).
    pub header_timeout: Duration,
    /// Time for a client to send its body (default 60 s).
    pub body_timeout: Duration,
    /// Time after which a client that takes nothing of its answer is dropped (default 60 s).
    pub write_timeout: Duration,
    /// Time a request may take, queued plus running, before it is answered 504 (default one hour).
    pub request_timeout: Duration,
    /// Time that running requests get to finish once a shutdown began (default 30 s).
    pub drain_deadline: Duration,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            max_body_bytes: 8 << 20,
            max_held_bytes: 128 << 20,
            max_header_bytes: 64 << 10,
            max_connections: 1024,
            max_choices: 64,
            max_preparing: 4,
            header_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            request_timeout: Duration::from_secs(3600),
            drain_deadline: Duration::from_secs(30),
        }
    }
}

/// How streamed answers behave.
#[derive(Debug, Clone)]
pub struct StreamConfig {
    /// Silence after which a comment line is sent, so that clients do not drop the connection during a long
    /// prefill (default 15 s). `None`: no comments.
    pub ping_interval: Option<Duration>,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            ping_interval: Some(Duration::from_secs(15)),
        }
    }
}
