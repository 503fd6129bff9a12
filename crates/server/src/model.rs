//! The model as clients see it: engine, template, names.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dynalm_engine::Engine;
use dynalm_text::{ChatTemplate, Tokenizer};

use crate::api_error::{ApiError, ApiResult, ErrorKind};

/// A loaded model that requests can be handed to.
#[derive(Clone)]
pub(crate) struct ServedModel {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    template: Option<Arc<ChatTemplate>>,
    /// The name in answers, then further ones that requests may use. Not empty.
    names: Vec<String>,
    accept_any_name: bool,
    /// Seconds since 1970 at which the model became ready.
    created: u64,
}

impl ServedModel {
    pub(crate) fn new(
        engine: Engine,
        template: Option<Arc<ChatTemplate>>,
        names: Vec<String>,
        accept_any_name: bool,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                engine,
                template,
                names,
                accept_any_name,
                created: unix_seconds(),
            }),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    pub(crate) fn tokenizer(&self) -> &Arc<Tokenizer> {
        self.inner.engine.tokenizer()
    }

    pub(crate) fn template(&self) -> Option<&ChatTemplate> {
        self.inner.template.as_deref()
    }

    pub(crate) fn vocab_size(&self) -> usize {
        self.inner.engine.info().vocab_size
    }

    /// The name that answers carry.
    pub(crate) fn name(&self) -> &str {
        self.inner.names.first().map_or("", String::as_str)
    }

    /// All names under which the model can be asked for.
    pub(crate) fn names(&self) -> &[String] {
        &self.inner.names
    }

    pub(crate) fn created(&self) -> u64 {
        self.inner.created
    }

    /// 404 unless the model goes by this name. A request without one means the only model there is.
    pub(crate) fn check_name(&self, asked: Option<&str>) -> ApiResult<()> {
        match asked {
            None | Some("") => Ok(()),
            Some(asked)
                if self.inner.accept_any_name
                    || self.inner.names.iter().any(|name| name == asked) =>
            {
                Ok(())
            }
            Some(asked) => Err(self.unknown(asked)),
        }
    }

    /// 404 for a name.
    pub(crate) fn unknown(&self, asked: &str) -> ApiError {
        let shown: String = asked.chars().take(100).collect();
        let message = format!(
            "there is no model '{shown}' here; this server has {}",
            self.inner.names.join(", ")
        );
        ApiError {
            kind: ErrorKind::NotFound,
            message,
            param: Some("model".to_owned()),
        }
    }
}

/// Seconds since 1970, for `created`.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |elapsed| elapsed.as_secs())
}

/// What `system_fingerprint` says: whatever may change an answer of the same model and seed.
pub(crate) fn fingerprint() -> &'static str {
    concat!("dynalm-", env!("CARGO_PKG_VERSION"))
}
