//! `GET /metrics`: the engine's and the server's figures for Prometheus.

mod exposition;
mod names;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use crate::api_error::{ApiError, ApiResult, ErrorKind};
use crate::app::App;

/// The text format's version, by the Prometheus exposition format 0.0.4.
const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// HTTP requests by route and status. Routes are patterns of ours, so there are few.
#[derive(Debug, Default)]
pub(crate) struct HttpMetrics {
    requests: Mutex<BTreeMap<(String, u16), u64>>,
}

impl HttpMetrics {
    /// Counts one answer.
    pub(crate) fn count(&self, route: &str, status: u16) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry((route.to_owned(), status)).or_default() += 1;
    }

    fn snapshot(&self) -> BTreeMap<(String, u16), u64> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The handler; 501 unless the operator switched it on.
pub(crate) async fn metrics(State(app): State<App>) -> ApiResult<Response> {
    if !app.config().metrics {
        let message = "this server was started without metrics; start it with --metrics";
        return Err(ApiError::new(ErrorKind::NotSupported, message));
    }
    // Figures are wanted while draining as well, so only a model that is not there yet is in the way.
    let Some(model) = app.model() else {
        return Err(ApiError::new(ErrorKind::Unavailable, "Loading model"));
    };
    let facts = names::ServerFacts {
        http_requests: app.metrics().snapshot(),
        in_flight: app.lifecycle().in_flight(),
        resident_bytes: resident_bytes(),
        model: model.name(),
    };
    let text = names::exposition(&model.engine().stats(), model.engine().info(), &facts);
    Ok((
        [(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE))],
        text,
    )
        .into_response())
}

/// Resident memory of this process, where the system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
