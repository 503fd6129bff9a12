//! The outermost layer: request id, panic guard, access log, count of requests being answered.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use crate::api_error::ApiError;
use crate::app::App;
use crate::lifecycle::InFlight;
use crate::request_context::{RequestContext, RequestFacts, acceptable_id};

const REQUEST_ID: &str = "x-request-id";

/// The middleware.
pub(crate) async fn observe(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let context = RequestContext {
        id: request_id(&app, request.headers()),
        started: Instant::now(),
        facts: Arc::new(RequestFacts::default()),
    };
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unknown", MatchedPath::as_str);
    let mut record = Record {
        context: context.clone(),
        method: request.method().clone(),
        route: Arc::from(route),
        status: None,
        completed: false,
        app: app.clone(),
        _in_flight: app.lifecycle().enter(),
    };
    request.extensions_mut().insert(context.clone());
    let response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(panic) => {
            tracing::error!(request_id = %context.id, panic = panic_text(&*panic), "a handler panicked");
            ApiError::internal().into_response()
        }
    };
    record.status = Some(response.status().as_u16());
    finish(response, record)
}

/// Adds the headers, and lets the record live as long as the body.
fn finish(response: Response, record: Record) -> Response {
    let (mut parts, body) = response.into_parts();
    if let Ok(id) = HeaderValue::from_str(&record.context.id) {
        parts.headers.insert(REQUEST_ID, id);
    }
    parts
        .headers
        .insert(header::SERVER, HeaderValue::from_static("dynalm"));
    parts.headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    Response::from_parts(parts, Body::new(ObservedBody { body, record }))
}

fn request_id(app: &App, headers: &HeaderMap) -> Arc<str> {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|id| id.to_str().ok())
        .filter(|id| acceptable_id(id));
    given.map_or_else(|| Arc::from(format!("req-{}", app.next_id())), Arc::from)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// One line of the access log, written when dropped: the answer is out, or the client is gone.
struct Record {
    context: RequestContext,
    method: Method,
    /// The route's pattern, not the path: paths may hold anything.
    route: Arc<str>,
    /// `None`: the client left before there was an answer.
    status: Option<u16>,
    /// The body was taken to its end.
    completed: bool,
    app: App,
    _in_flight: InFlight,
}

impl Record {
    fn outcome(&self) -> &'static str {
        match self.status {
            None => "client gone",
            Some(_) if !self.completed => "client gone",
            Some(_) if self.context.facts.failed() => "failed",
            Some(_) => "done",
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let facts = &self.context.facts;
        // 499 is what other servers log for a client that left.
        let status = self.status.unwrap_or(499);
        self.app.metrics().count(&self.route, status);
        tracing::info!(
            target: "dynalm_server::access",
            request_id = %self.context.id,
            method = %self.method,
            route = %self.route,
            status,
            outcome = self.outcome(),
            prompt_tokens = facts.prompt_tokens(),
            cached_tokens = facts.cached_tokens(),
            completion_tokens = facts.completion_tokens(),
            ttft_ms = facts.first_token().map(|after| after.as_secs_f64() * 1e3),
            duration_ms = self.context.started.elapsed().as_secs_f64() * 1e3,
        );
    }
}

/// A body that takes its record with it.
struct ObservedBody {
    body: Body,
    record: Record,
}

impl HttpBody for ObservedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(cx);
        if matches!(frame, Poll::Ready(None)) || (frame.is_ready() && self.body.is_end_stream()) {
            self.record.completed = true;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ServerConfig;
    use axum::Router;
    use axum::middleware::from_fn_with_state;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    async fn panicking() -> &'static str {
        panic!("on purpose")
    }

    fn app_with_routes() -> (App, Router) {
        let app = App::loading(ServerConfig::default());
        let router = Router::new()
            .route("/panics", get(panicking))
            .route("/works", get(|| async { "fine" }))
            .layer(from_fn_with_state(app.clone(), observe));
        (app, router)
    }

    async fn status(router: &Router, path: &str) -> (u16, String) {
        let request = Request::builder()
            .uri(path)
            .header(REQUEST_ID, "mine")
            .body(Body::empty())
            .unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()[REQUEST_ID], "mine");
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_panic_is_a_500_that_tells_nothing_and_the_next_request_works() {
        let (app, router) = app_with_routes();
        let (code, body) = status(&router, "/panics").await;
        assert_eq!(code, 500);
        assert!(
            body.contains("server_error") && !body.contains("on purpose"),
            "{body}"
        );
        assert_eq!(status(&router, "/works").await, (200, "fine".to_owned()));
        assert_eq!(app.lifecycle().in_flight(), 0);
    }

    #[tokio::test]
    async fn a_request_counts_until_its_body_is_gone() {
        let (app, router) = app_with_routes();
        let request = Request::builder()
            .uri("/works")
            .body(Body::empty())
            .unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(app.lifecycle().in_flight(), 1);
        drop(response);
        assert_eq!(app.lifecycle().in_flight(), 0);
    }
}
