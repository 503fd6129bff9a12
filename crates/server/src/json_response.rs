//! Answers that are one JSON object.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::api_error::ApiError;

/// 200 with `value` as its body.
pub(crate) fn json_response(value: &impl Serialize) -> Response {
    json_response_with(StatusCode::OK, value)
}

/// Any status with `value` as its body.
pub(crate) fn json_response_with(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            let mut response = Response::new(Body::from(bytes));
            *response.status_mut() = status;
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            response
        }
        Err(error) => {
            // Only a map with keys that are no strings can fail, and no type of ours has one.
            tracing::error!(%error, "an answer could not be serialized");
            ApiError::internal().into_response()
        }
    }
}
