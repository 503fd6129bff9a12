//! What a client is told when a request fails: one type, mapped to status and body in one place.

use std::time::Duration;

use axum::{
    body::Body,
    http::{HeaderValue, Response, StatusCode, header},
    response::IntoResponse,
};
use serde_json::{Value, json};

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// Bad JSON, wrong type or range, unknown role, a template's refusal.
    InvalidRequest,
    /// The prompt does not fit.
    ContextExceeded {
        n_prompt_tokens: usize,
        n_ctx: usize,
    },
    /// A key is asked for and none or a wrong one came.
    Authentication,
    /// Known or anonymous, but not allowed here.
    Permission,
    /// No such route or model.
    NotFound,
    /// The route exists for other methods.
    MethodNotAllowed,
    /// The body is over the cap.
    BodyTooLarge,
    /// The body is compressed, or otherwise encoded.
    UnsupportedEncoding,
    /// The queue is full.
    RateLimited { retry_after: Duration },
    /// A fault of ours.
    Internal,
    /// A route or field that is switched off or not built yet.
    NotSupported,
    /// Loading or draining.
    Unavailable,
    /// The deadline passed.
    Timeout,
}

/// An error on its way to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    /// Decides status and type.
    pub(crate) kind: ErrorKind,
    /// One sentence for a person, without paths or secrets.
    pub(crate) message: String,
    /// The request's field at fault.
    pub(crate) param: Option<String>,
}

/// The result of everything that a request can make fail.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            param: None,
        }
    }

    /// 400 that names the field.
    pub(crate) fn field(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::InvalidRequest,
            message: message.into(),
            param: Some(param.into()),
        }
    }

    /// 400 without a field.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidRequest, message)
    }

    /// 501 that names the field.
    pub(crate) fn unsupported_field(param: impl Into<String>) -> Self {
        let param = param.into();
        let message = format!("'{param}' is not supported by this server");
        Self {
            kind: ErrorKind::NotSupported,
            message,
            param: Some(param),
        }
    }

    /// 500. The cause belongs in the log, not in the answer.
    pub(crate) fn internal() -> Self {
        Self::new(
            ErrorKind::Internal,
            "internal error; the server's log has it under this request's id",
        )
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self.kind {
            ErrorKind::InvalidRequest | ErrorKind::ContextExceeded { .. } => {
                StatusCode::BAD_REQUEST
            }
            ErrorKind::Authentication => StatusCode::UNAUTHORIZED,
            ErrorKind::Permission => StatusCode::FORBIDDEN,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ErrorKind::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::UnsupportedEncoding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorKind::RateLimited { .. } => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorKind::NotSupported => StatusCode::NOT_IMPLEMENTED,
            ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    pub(crate) fn error_type(&self) -> &'static str {
        match self.kind {
            ErrorKind::InvalidRequest
            | ErrorKind::BodyTooLarge
            | ErrorKind::UnsupportedEncoding => "invalid_request_error",
            ErrorKind::ContextExceeded { .. } => "exceed_context_size_error",
            ErrorKind::Authentication => "authentication_error",
            ErrorKind::Permission => "permission_error",
            ErrorKind::NotFound | ErrorKind::MethodNotAllowed => "not_found_error",
            ErrorKind::RateLimited { .. } => "rate_limit_error",
            ErrorKind::Internal => "server_error",
            ErrorKind::NotSupported => "not_supported_error",
            ErrorKind::Unavailable => "unavailable_error",
            ErrorKind::Timeout => "timeout_error",
        }
    }

    /// The error object of the OpenAI and llama-server dialects, for a body or a data frame.
    pub(crate) fn body(&self) -> Value {
        let mut error = json!({
            "message": self.message,
            "type": self.error_type(),
            "code": self.status().as_u16(),
            "param": self.param,
        });
        if let ErrorKind::ContextExceeded {
            n_prompt_tokens,
            n_ctx,
        } = self.kind
        {
            error["n_prompt_tokens"] = n_prompt_tokens.into();
            error["n_ctx"] = n_ctx.into();
        }
        json!({ "error": error })
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> axum::response::Response {
        let mut response = Response::new(Body::from(self.body().to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        match self.kind {
            ErrorKind::Authentication => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            ErrorKind::RateLimited { retry_after } => {
                headers.insert(
                    header::RETRY_AFTER,
                    HeaderValue::from(retry_after.as_secs().max(1)),
                );
            }
            ErrorKind::Unavailable => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_type_follow_the_contract() {
        let context = ErrorKind::ContextExceeded {
            n_prompt_tokens: 9,
            n_ctx: 8,
        };
        let limited = ErrorKind::RateLimited {
            retry_after: Duration::ZERO,
        };
        for (kind, status, error_type) in [
            (ErrorKind::InvalidRequest, 400, "invalid_request_error"),
            (context, 400, "exceed_context_size_error"),
            (ErrorKind::Authentication, 401, "authentication_error"),
            (ErrorKind::Permission, 403, "permission_error"),
            (ErrorKind::NotFound, 404, "not_found_error"),
            (ErrorKind::MethodNotAllowed, 405, "not_found_error"),
            (ErrorKind::BodyTooLarge, 413, "invalid_request_error"),
            (limited, 429, "rate_limit_error"),
            (ErrorKind::Internal, 500, "server_error"),
            (ErrorKind::NotSupported, 501, "not_supported_error"),
            (ErrorKind::Unavailable, 503, "unavailable_error"),
            (ErrorKind::Timeout, 504, "timeout_error"),
        ] {
            let error = ApiError::new(kind, "why");
            assert_eq!(
                (error.status().as_u16(), error.error_type()),
                (status, error_type)
            );
            let body = error.body();
            assert_eq!(body["error"]["code"], status);
            assert_eq!(body["error"]["message"], "why");
            assert!(body["error"]["param"].is_null());
        }
    }

    #[test]
    fn the_context_error_carries_both_numbers() {
        let error = ApiError::new(
            ErrorKind::ContextExceeded {
                n_prompt_tokens: 9,
                n_ctx: 8,
            },
            "too long",
        );
        assert_eq!(error.body()["error"]["n_prompt_tokens"], 9);
        assert_eq!(error.body()["error"]["n_ctx"], 8);
    }

    #[test]
    fn a_full_queue_says_when_to_come_back() {
        let kind = ErrorKind::RateLimited {
            retry_after: Duration::from_millis(1),
        };
        let response = ApiError::new(kind, "full").into_response();
        assert_eq!(response.headers()[header::RETRY_AFTER], "1");
    }
}
