//! What every handler sees: the model, the settings, the state of the server.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::http::HeaderMap;
use dynalm_engine::Engine;
use dynalm_text::ChatTemplate;
use tokio::sync::Semaphore;

use crate::api_error::{ApiError, ApiResult, ErrorKind};
use crate::config::ServerConfig;
use crate::lifecycle::Lifecycle;
use crate::metrics::HttpMetrics;
use crate::model::ServedModel;
use crate::request::body::{ReceivedBody, read_body};
use crate::request_context::IdSource;

/// One server: cheap to clone, nothing in it is global. Several listeners may share it.
#[derive(Clone)]
pub struct App {
    shared: Arc<Shared>,
}

struct Shared {
    config: ServerConfig,
    model: OnceLock<ServedModel>,
    lifecycle: Lifecycle,
    metrics: HttpMetrics,
    ids: IdSource,
    /// Bounds the prompts that are rendered and tokenized at once.
    preparing: Semaphore,
    /// Bounds the bytes of all bodies that have not been turned into token ids yet.
    held_bytes: Arc<Semaphore>,
}

impl App {
    /// A server of a loaded model. `model_name` is its name in answers; the configuration may add further ones.
    /// Without a `template` the chat route answers 501.
    pub fn new(
        engine: Engine,
        template: Option<Arc<ChatTemplate>>,
        model_name: impl Into<String>,
        config: ServerConfig,
    ) -> Self {
        let app = Self::loading(config);
        app.set_model(engine, template, model_name);
        app
    }

    /// A server whose model is still being loaded: it answers 503 until [`App::set_model`].
    pub fn loading(config: ServerConfig) -> Self {
        let preparing =
            Semaphore::new(config.limits.max_preparing.clamp(1, Semaphore::MAX_PERMITS));
        let held_bytes = config.limits.max_held_bytes.min(Semaphore::MAX_PERMITS);
        let held_bytes = Arc::new(Semaphore::new(held_bytes));
        let shared = Shared {
            config,
            model: OnceLock::new(),
            lifecycle: Lifecycle::new(),
            metrics: HttpMetrics::default(),
            ids: IdSource::default(),
            preparing,
            held_bytes,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Begins to serve. Has an effect once only.
    pub fn set_model(
        &self,
        engine: Engine,
        template: Option<Arc<ChatTemplate>>,
        model_name: impl Into<String>,
    ) {
        let mut names = vec![model_name.into()];
        names.extend(self.shared.config.model_aliases.iter().cloned());
        let model = ServedModel::new(engine, template, names, self.shared.config.accept_any_model);
        if self.shared.lifecycle.is_draining() {
            model.engine().drain();
        }
        if self.shared.model.set(model).is_err() {
            tracing::warn!("a second model was given to a server of one; it is not used");
        }
    }

    /// Refuses new requests from now on; running ones go on. What `/admin/shutdown` does, and the shutdown future
    /// given to [`serve`](crate::serve).
    pub fn begin_drain(&self) {
        self.shared.lifecycle.begin_drain();
        if let Some(model) = self.shared.model.get() {
            model.engine().drain();
        }
    }

    /// The settings.
    pub fn config(&self) -> &ServerConfig {
        &self.shared.config
    }

    /// The model, or 503 while loading or draining.
    pub(crate) fn ready(&self) -> ApiResult<ServedModel> {
        if self.shared.lifecycle.is_draining() {
            return Err(ApiError::new(
                ErrorKind::Unavailable,
                "the server is shutting down",
            ));
        }
        self.model()
            .cloned()
            .ok_or_else(|| ApiError::new(ErrorKind::Unavailable, "Loading model"))
    }

    /// The model, if it is loaded.
    pub(crate) fn model(&self) -> Option<&ServedModel> {
        self.shared.model.get()
    }

    pub(crate) fn lifecycle(&self) -> &Lifecycle {
        &self.shared.lifecycle
    }

    pub(crate) fn metrics(&self) -> &HttpMetrics {
        &self.shared.metrics
    }

    /// 32 hexadecimal digits that were not given out before.
    pub(crate) fn next_id(&self) -> String {
        self.shared.ids.next()
    }

    /// Receives a body within the limits.
    pub(crate) async fn read_body(
        &self,
        headers: &HeaderMap,
        body: Body,
    ) -> ApiResult<ReceivedBody> {
        read_body(
            headers,
            body,
            &self.shared.config.limits,
            &self.shared.held_bytes,
        )
        .await
    }

    /// Runs work that grows with a prompt (parsing, rendering, tokenizing) where it does not hold up other requests.
    /// A panic in it ends this request only.
    pub(crate) async fn prepare<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> ApiResult<T> + Send + 'static,
    ) -> ApiResult<T> {
        let _permit = self
            .shared
            .preparing
            .acquire()
            .await
            .map_err(|_| ApiError::internal())?;
        match tokio::task::spawn_blocking(work).await {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                // Caught and logged with the request's id further out.
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ApiError::new(
                    ErrorKind::Unavailable,
                    "the server is shutting down",
                )),
            },
        }
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}
