//! Receiving a JSON body within the limits of size, time and nesting.

use std::sync::Arc;
use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, header},
};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::api_error::{ApiError, ApiResult, ErrorKind};
use crate::config::LimitsConfig;

/// A body, and its share of the memory that all bodies together may hold. Dropping it gives the share back.
#[derive(Debug)]
pub(crate) struct ReceivedBody {
    bytes: Vec<u8>,
    /// `None` while nothing has arrived.
    share: Option<OwnedSemaphorePermit>,
}

impl ReceivedBody {
    /// The body as JSON.
    pub(crate) fn json(&self) -> ApiResult<Value> {
        parse_json(&self.bytes)
    }
}

/// Reads the whole body. 413 over `max_bytes`, 415 if it is compressed, 400 after the body timeout, 429 if `held` (a
/// permit per byte) has run out: memory is taken only for bytes that have arrived, and never without bound.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    limits: &LimitsConfig,
    held: &Arc<Semaphore>,
) -> ApiResult<ReceivedBody> {
    // A compressed body could unpack to any size; no client of these APIs sends one.
    let encoding = headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(ApiError::new(
            ErrorKind::UnsupportedEncoding,
            "the body must not be compressed",
        ));
    }
    let declared = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limits.max_body_bytes as u64) {
        return Err(too_large(limits.max_body_bytes));
    }
    let timeout = limits.body_timeout;
    match tokio::time::timeout(timeout, receive(body, limits.max_body_bytes, held)).await {
        Ok(received) => received,
        Err(_) => Err(ApiError::invalid(format!(
            "the body did not arrive within {} s",
            timeout.as_secs_f64()
        ))),
    }
}

async fn receive(
    mut body: Body,
    max_bytes: usize,
    held: &Arc<Semaphore>,
) -> ApiResult<ReceivedBody> {
    let mut received = ReceivedBody {
        bytes: Vec::new(),
        share: None,
    };
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| ApiError::invalid("the body ended early or was malformed"))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if data.len() > max_bytes - received.bytes.len() {
            return Err(too_large(max_bytes));
        }
        let share = u32::try_from(data.len())
            .ok()
            .and_then(|n| Arc::clone(held).try_acquire_many_owned(n).ok());
        let Some(share) = share else {
            return Err(too_much_held());
        };
        match &mut received.share {
            Some(whole) => whole.merge(share),
            none => *none = Some(share),
        }
        received.bytes.extend_from_slice(&data);
    }
    Ok(received)
}

/// Parses JSON. serde_json refuses nesting deeper than 128 levels, so neither parsing, walking nor dropping the
/// value can exhaust the stack.
fn parse_json(bytes: &[u8]) -> ApiResult<Value> {
    if bytes.is_empty() {
        return Err(ApiError::invalid(
            "the body is empty; a JSON object is expected",
        ));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))
}

fn too_much_held() -> ApiError {
    let kind = ErrorKind::RateLimited {
        retry_after: Duration::from_secs(1),
    };
    ApiError::new(
        kind,
        "the server holds too many large requests at the moment",
    )
}

fn too_large(max_bytes: usize) -> ApiError {
    ApiError::new(
        ErrorKind::BodyTooLarge,
        format!("the body is larger than {max_bytes} bytes"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn deep_nesting_is_refused_and_not_a_crash() {
        for opening in ["[", "{\"a\":"] {
            let error = parse_json(opening.repeat(100_000).as_bytes()).unwrap_err();
            assert!(
                error.message.contains("recursion limit"),
                "{}",
                error.message
            );
        }
    }

    #[test]
    fn faults_are_located() {
        assert!(
            parse_json(b"{\"a\": }")
                .unwrap_err()
                .message
                .contains("line 1 column 7")
        );
        assert!(parse_json(b"\"\xff\"").is_err());
        assert!(parse_json(b"").unwrap_err().message.contains("empty"));
        assert!(parse_json(b"\"\\ud800\"").is_err());
    }

    #[tokio::test]
    async fn bodiesshare_one_bounded_memory() {
        let (limits, held) = (LimitsConfig::default(), Arc::new(Semaphore::new(10)));
        let read = |text: &'static str| {
            let held = Arc::clone(&held);
            let limits = limits.clone();
            async move { read_body(&HeaderMap::new(), Body::from(text), &limits, &held).await }
        };
        let first = read("1234567").await.unwrap();
        assert!(matches!(
            read("8901").await.unwrap_err().kind,
            ErrorKind::RateLimited { .. }
        ));
        assert_eq!(read("89").await.unwrap().json().unwrap(), 89);
        drop(first);
        assert_eq!(held.available_permits(), 10);
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse_json(&bytes);
        }
    }
}
