//! `GET /v1/models` and `GET /v1/models/{id}`.

use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;

use crate::api_error::ApiResult;
use crate::app::App;
use crate::json_response::json_response;
use crate::model::ServedModel;

#[derive(Serialize)]
struct ModelList<'a> {
    object: &'static str,
    data: Vec<ModelEntry<'a>>,
}

#[derive(Serialize)]
struct ModelEntry<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    meta: ModelMeta<'a>,
}

/// llama-server's facts about the model, and its quantization.
#[derive(Serialize)]
struct ModelMeta<'a> {
    n_vocab: usize,
    /// Tokens that one request may have, prompt and answer.
    n_ctx: usize,
    n_ctx_train: usize,
    n_params: u64,
    /// Bytes of weights.
    size: u64,
    architecture: &'a str,
    quantization: &'a str,
}

/// The list: the one model, once per name.
pub(crate) async fn list(State(app): State<App>) -> ApiResult<Response> {
    let model = app.ready()?;
    let data = model
        .names()
        .iter()
        .map(|name| entry(&model, name))
        .collect();
    Ok(json_response(&ModelList {
        object: "list",
        data,
    }))
}

/// One of them. The id may contain slashes.
pub(crate) async fn get(State(app): State<App>, Path(id): Path<String>) -> ApiResult<Response> {
    let model = app.ready()?;
    match model.names().iter().find(|name| **name == id) {
        Some(name) => Ok(json_response(&entry(&model, name))),
        None => Err(model.unknown(&id)),
    }
}

fn entry<'a>(model: &'a ServedModel, name: &'a str) -> ModelEntry<'a> {
    let info = model.engine().info();
    ModelEntry {
        id: name,
        object: "model",
        created: model.created(),
        owned_by: "dynalm",
        meta: ModelMeta {
            n_vocab: info.vocab_size,
            n_ctx: info.n_ctx,
            n_ctx_train: info.n_ctx_train,
            n_params: info.n_params,
            size: info.weight_bytes,
            architecture: &info.arch,
            quantization: &info.quantization,
        },
    }
}
