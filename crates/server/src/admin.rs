//! `POST /admin/shutdown`: for `dynalm stop`, from this machine only.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use crate::api_error::{ApiError, ApiResult, ErrorKind};
use crate::app::App;
use crate::json_response::json_response_with;
use crate::request_context::Peer;

/// Begins a drain and answers 202 at once.
pub(crate) async fn shutdown(
    State(app): State<App>,
    peer: Option<Extension<Peer>>,
    headers: HeaderMap,
) -> ApiResult<Response> {
    // A proxy on this machine makes strangers look local, and so does a browser on it.
    let relayed = ["x-forwarded-for", "forwarded", "via"]
        .iter()
        .any(|name| headers.contains_key(*name))
        || headers.contains_key(header::ORIGIN);
    if relayed || !peer.is_some_and(|Extension(peer)| peer.is_local()) {
        let message = "/admin/shutdown answers this machine only, and neither proxies nor browsers";
        return Err(ApiError::new(ErrorKind::Permission, message));
    }
    app.begin_drain();
    Ok(json_response_with(
        StatusCode::ACCEPTED,
        &json!({"status": "draining"}),
    ))
}
