//! What belongs to one HTTP request from its arrival to the last byte of its answer.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dynalm_engine::Usage;

/// Who is at the other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Over TCP.
    Tcp(SocketAddr),
    /// Over a unix socket: a process of this machine.
    Unix,
}

impl Peer {
    /// True for a process of this machine.
    pub(crate) fn is_local(self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix => true,
        }
    }
}

/// Handed to every handler.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// The client's `X-Request-Id`, or one of ours.
    pub(crate) id: Arc<str>,
    /// When the headers had arrived.
    pub(crate) started: Instant,
    /// What the access log will say.
    pub(crate) facts: Arc<RequestFacts>,
}

/// Figures that a handler leaves for the access log.
#[derive(Debug, Default)]
pub(crate) struct RequestFacts {
    prompt_tokens: AtomicU64,
    cached_tokens: AtomicU64,
    completion_tokens: AtomicU64,
    first_token: OnceLock<Duration>,
    failed: AtomicBool,
}

impl RequestFacts {
    pub(crate) fn add_usage(&self, usage: Usage) {
        self.prompt_tokens
            .fetch_add(usage.prompt_tokens as u64, Ordering::Relaxed);
        self.cached_tokens
            .fetch_add(usage.cached_tokens as u64, Ordering::Relaxed);
        self.completion_tokens
            .fetch_add(usage.completion_tokens as u64, Ordering::Relaxed);
    }

    /// The first of a request's choices counts.
    pub(crate) fn note_first_token(&self, after: Duration) {
        let _ = self.first_token.set(after);
    }

    /// The answer broke off after its status had been sent.
    pub(crate) fn note_failure(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens.load(Ordering::Relaxed)
    }

    pub(crate) fn cached_tokens(&self) -> u64 {
        self.cached_tokens.load(Ordering::Relaxed)
    }

    pub(crate) fn completion_tokens(&self) -> u64 {
        self.completion_tokens.load(Ordering::Relaxed)
    }

    pub(crate) fn first_token(&self) -> Option<Duration> {
        self.first_token.get().copied()
    }

    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// Makes identifiers that cannot be guessed from one another: a keyed hash of a counter.
#[derive(Debug, Default)]
pub(crate) struct IdSource {
    keys: [RandomState; 2],
    next: AtomicU64,
}

impl IdSource {
    /// 32 hexadecimal digits.
    pub(crate) fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!(
            "{:016x}{:016x}",
            self.keys[0].hash_one(number),
            self.keys[1].hash_one(number)
        )
    }
}

/// A client's request id, if it may stand in logs and headers: up to 128 visible ASCII characters without quotes.
pub(crate) fn acceptable_id(value: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@".contains(&byte);
    (1..=128).contains(&value.len()) && value.bytes().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ() {
        let ids = IdSource::default();
        let (first, second) = (ids.next(), ids.next());
        assert_eq!(first.len(), 32);
        assert_ne!(first, second);
        assert_ne!(IdSource::default().next(), IdSource::default().next());
    }

    #[test]
    fn client_ids_must_be_plain() {
        assert!(acceptable_id("req-1_a.b:c"));
        assert!(!acceptable_id(""));
        assert!(!acceptable_id("a b"));
        assert!(!acceptable_id("a\"b"));
        assert!(!acceptable_id(&"x".repeat(129)));
    }

    #[test]
    fn only_this_machine_is_local() {
        for (address, local) in [
            ("127.0.0.1:1", true),
            ("[::1]:1", true),
            ("[::ffff:127.0.0.1]:1", true),
            ("10.0.0.1:1", false),
        ] {
            assert_eq!(
                Peer::Tcp(address.parse().unwrap()).is_local(),
                local,
                "{address}"
            );
        }
        assert!(Peer::Unix.is_local());
    }
}
