//! Receiving a JSON body within the limits of size, time and nesting.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderMap, header},
};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;

use crate::api_error::{ApiError, ApiResult, ErrorKind};

/// Reads the whole body. 413 over `max_bytes`, 415 if it is compressed, 400 after `timeout`.
pub(crate) async fn read_body(
    headers: &HeaderMap,
    body: Body,
    max_bytes: usize,
    timeout: Duration,
) -> ApiResult<Bytes> {
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
    if declared.is_some_and(|length| length > max_bytes as u64) {
        return Err(too_large(max_bytes));
    }
    match tokio::time::timeout(timeout, Limited::new(body, max_bytes).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.downcast_ref::<LengthLimitError>().is_some() => {
            Err(too_large(max_bytes))
        }
        Ok(Err(_)) => Err(ApiError::invalid("the body ended early or was malformed")),
        Err(_) => Err(ApiError::invalid(format!(
            "the body did not arrive within {} s",
            timeout.as_secs()
        ))),
    }
}

/// Parses JSON. serde_json refuses nesting deeper than 128 levels, so neither parsing, walking nor dropping the
/// value can exhaust the stack.
pub(crate) fn parse_json(bytes: &[u8]) -> ApiResult<Value> {
    if bytes.is_empty() {
        return Err(ApiError::invalid(
            "the body is empty; a JSON object is expected",
        ));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| ApiError::invalid(format!("the body is not valid JSON: {error}")))
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

    proptest! {
        #[test]
        fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = parse_json(&bytes);
        }
    }
}
