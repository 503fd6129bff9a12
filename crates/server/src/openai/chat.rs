//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use dynalm_engine::Request;

use super::Envelope;
use super::chat_request::{ChatPrompt, ChatRequest};
use super::chat_response::{AnswerForm, chat_response};
use super::chat_stream::{ChatStream, StreamSettings};
use crate::api_error::ApiResult;
use crate::app::App;
use crate::generation::collect::collect;
use crate::generation::stream::stream_response;
use crate::generation::{Choices, deadline};
use crate::json_response::json_response;
use crate::model::ServedModel;
use crate::request_context::RequestContext;

/// The handler.
pub(crate) async fn chat_completions(
    State(app): State<App>,
    Extension(context): Extension<RequestContext>,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Response> {
    let model = app.ready()?;
    let body = app.read_body(&headers, body).await?;
    let (request, prompt) = {
        let (app, model) = (app.clone(), model.clone());
        app.clone()
            .prepare(move || {
                let request = ChatRequest::parse(&body.json()?, &model, &app.config().limits)?;
                let prompt = request.prompt(&model)?;
                Ok((request, prompt))
            })
            .await?
    };
    answer(&app, &model, &context, request, prompt).await
}

async fn answer(
    app: &App,
    model: &ServedModel,
    context: &RequestContext,
    request: ChatRequest,
    prompt: ChatPrompt,
) -> ApiResult<Response> {
    let options = request.options;
    let form = AnswerForm {
        reasoning_format: request.reasoning_format,
        inside_thinking: prompt.inside_thinking,
        logprobs: request.logprobs.is_some(),
    };
    let settings = StreamSettings {
        include_usage: options.include_usage,
        timings_per_token: options.timings_per_token,
        n_prompt_tokens: prompt.tokens.len(),
    };
    let template = Request {
        sampling: request.sampling,
        max_tokens: options.max_tokens,
        stop: options.stop,
        ignore_eos: options.ignore_eos,
        logprobs: request.logprobs,
        deadline: deadline(context.started, app.config().limits.request_timeout),
        ..Request::new(Vec::new())
    };
    let choices = Choices::submit(
        model.engine(),
        context,
        vec![prompt.tokens],
        &template,
        options.n,
    )?;
    let envelope = Envelope::new(format!("chatcmpl-{}", app.next_id()), model);
    let tokenizer = Arc::clone(model.tokenizer());
    if options.stream {
        let encoder = ChatStream::new(envelope, tokenizer, form, options.n, settings);
        return Ok(stream_response(
            choices,
            encoder,
            app.config().stream.ping_interval,
        ));
    }
    let (collected, totals) = collect(choices, options.n).await?;
    Ok(json_response(&chat_response(
        &envelope, &collected, &totals, form, &tokenizer,
    )))
}
