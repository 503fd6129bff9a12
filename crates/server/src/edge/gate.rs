//! Who may pass: the `Host` and `Origin` check, then the key.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::hosts::HostPolicy;
use super::keys::presented_key;
use crate::api_error::{ApiError, ErrorKind};
use crate::app::App;

/// Paths that answer without a key, so that probes and browsers can tell that a server is there.
const PUBLIC_PATHS: &[&str] = &["/", "/health", "/v1/health"];

/// The middleware's state.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) app: App,
    pub(crate) policy: Arc<HostPolicy>,
}

/// The middleware.
pub(crate) async fn pass(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    if let Err(message) = gate.policy.check(request.uri(), request.headers()) {
        return ApiError::new(ErrorKind::Permission, message).into_response();
    }
    // A preflight carries no key. Where CORS was asked for it has been answered already.
    if request.method() == Method::OPTIONS {
        let allow = [(
            header::ALLOW,
            HeaderValue::from_static("GET, HEAD, POST, OPTIONS"),
        )];
        return (StatusCode::NO_CONTENT, allow).into_response();
    }
    if !PUBLIC_PATHS.contains(&request.uri().path()) && !has_key(&gate.app, request.headers()) {
        return ApiError::new(ErrorKind::Authentication, "Invalid API Key").into_response();
    }
    next.run(request).await
}

fn has_key(app: &App, headers: &HeaderMap) -> bool {
    let keys = &app.config().access.api_keys;
    keys.is_empty() || presented_key(headers).is_some_and(|key| keys.accepts(key))
}
