//! Which path leads where.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{from_fn_with_state, map_response};
use axum::routing::{MethodRouter, get, post};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::api_error::{ApiError, ErrorKind};
use crate::app::App;
use crate::edge::gate::{self, Gate};
use crate::edge::hosts::HostPolicy;
use crate::edge::observe;
use crate::openai::{chat, completions, models};
use crate::{admin, health, index_page, metrics};

/// Routes of the API that are not built yet: 501 by name rather than 404, so that a client learns that the server
/// knows what it asked for.
const NOT_YET_POST: &[&str] = &[
    "/v1/responses",
    "/v1/embeddings",
    "/embeddings",
    "/embedding",
    "/v1/rerank",
    "/v1/reranking",
    "/rerank",
    "/reranking",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/completion",
    "/completions",
    "/infill",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/slots/{id_slot}",
    "/api/generate",
    "/api/chat",
    "/api/embed",
    "/api/show",
];
const NOT_YET_GET: &[&str] = &[
    "/slots",
    "/api/tags",
    "/api/ps",
    "/api/version",
    "/docs",
    "/openapi.json",
];
const NOT_YET_BOTH: &[&str] = &["/props", "/lora-adapters"];

/// The whole server as a service.
pub(crate) fn router(app: App, policy: HostPolicy) -> Router {
    let mut router = Router::new()
        .route("/", get(index_page::index))
        .route("/health", get(health::health))
        .route("/v1/health", get(health::health))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/models", get(models::list))
        .route("/models", get(models::list))
        // Ids may contain slashes, as those of model hubs do.
        .route("/v1/models/{*id}", get(models::get))
        .route("/models/{*id}", get(models::get))
        .route("/v1/chat/completions", post(chat::chat_completions))
        .route("/chat/completions", post(chat::chat_completions))
        .route("/v1/completions", post(completions::completions))
        .route("/admin/shutdown", post(admin::shutdown));
    for path in NOT_YET_POST {
        router = router.route(path, MethodRouter::new().post(not_supported));
    }
    for path in NOT_YET_GET {
        router = router.route(path, MethodRouter::new().get(not_supported));
    }
    for path in NOT_YET_BOTH {
        router = router.route(
            path,
            MethodRouter::new().get(not_supported).post(not_supported),
        );
    }
    let gate = Gate {
        app: app.clone(),
        policy: Arc::new(policy),
    };
    let router = router
        .fallback(unknown_route)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(from_fn_with_state(gate, gate::pass));
    let router = match cors_layer(&app.config().access.cors_origins) {
        Some(cors) => router.layer(cors),
        None => router,
    };
    let router = router.layer(from_fn_with_state(app.clone(), observe::observe));
    let closing = app.clone();
    router
        .layer(map_response(move |response| {
            close_when_draining(closing.clone(), response)
        }))
        .with_state(app)
}

/// Keep-alive connections end with their next answer once a drain has begun.
async fn close_when_draining(
    app: App,
    mut response: axum::response::Response,
) -> axum::response::Response {
    if app.lifecycle().is_draining() {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn cors_layer(origins: &[String]) -> Option<CorsLayer> {
    if origins.is_empty() {
        return None;
    }
    let origin = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| origin.parse().ok()))
    };
    let layer = CorsLayer::new()
        .allow_origin(origin)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([HeaderName::from_static("x-request-id")]);
    Some(layer)
}

async fn not_supported(request: Request) -> ApiError {
    ApiError::new(
        ErrorKind::NotSupported,
        format!("{} is not supported by this server", request.uri().path()),
    )
}

async fn unknown_route(request: Request) -> ApiError {
    let path: String = request.uri().path().chars().take(100).collect();
    ApiError::new(
        ErrorKind::NotFound,
        format!("there is no {} {path}", request.method()),
    )
}

async fn method_not_allowed(request: Request) -> ApiError {
    let message = format!(
        "{} does not take {}",
        request.uri().path(),
        request.method()
    );
    ApiError::new(ErrorKind::MethodNotAllowed, message)
}
