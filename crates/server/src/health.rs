//! `GET /health`: whether requests are taken now.

use axum::extract::State;
use axum::response::Response;
use serde_json::json;

use crate::api_error::ApiResult;
use crate::app::App;
use crate::json_response::json_response;

/// 200 when ready; 503 while loading and while draining.
pub(crate) async fn health(State(app): State<App>) -> ApiResult<Response> {
    app.ready()?;
    Ok(json_response(&json!({"status": "ok"})))
}
