//! `POST /v1/completions`.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use dynalm_engine::Request;
use dynalm_text::Tokenizer;

use super::chat_stream::StreamSettings;
use super::completion_request::CompletionRequest;
use super::completion_stream::{CompletionBody, CompletionChoice, CompletionStream};
use super::logprobs::CompletionLogprobs;
use super::{Envelope, finish_reason};
use crate::api_error::ApiResult;
use crate::app::App;
use crate::generation::collect::{Collected, collect};
use crate::generation::stream::stream_response;
use crate::generation::{Choices, deadline};
use crate::json_response::json_response;
use crate::model::ServedModel;
use crate::request_context::RequestContext;

/// The prompts as token ids, and per choice the text to be repeated before the answer.
struct Prepared {
    prompts: Vec<Vec<u32>>,
    echoes: Vec<Option<String>>,
}

/// The handler.
pub(crate) async fn completions(
    State(app): State<App>,
    Extension(context): Extension<RequestContext>,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Response> {
    let model = app.ready()?;
    let body = app.read_body(&headers, body).await?;
    let (request, prepared) = {
        let (app, model) = (app.clone(), model.clone());
        app.clone()
            .prepare(move || {
                let request =
                    CompletionRequest::parse(&body.json()?, &model, &app.config().limits)?;
                let prepared = tokenize(&request, model.tokenizer());
                Ok((request, prepared))
            })
            .await?
    };
    answer(&app, &model, &context, request, prepared).await
}

fn tokenize(request: &CompletionRequest, tokenizer: &Tokenizer) -> Prepared {
    let echoes = request.prompts.iter().flat_map(|prompt| {
        let echo = request.echo.then(|| prompt.text(tokenizer));
        std::iter::repeat_n(echo, request.options.n)
    });
    Prepared {
        echoes: echoes.collect(),
        prompts: request
            .prompts
            .iter()
            .map(|prompt| prompt.tokenize(tokenizer))
            .collect(),
    }
}

async fn answer(
    app: &App,
    model: &ServedModel,
    context: &RequestContext,
    request: CompletionRequest,
    prepared: Prepared,
) -> ApiResult<Response> {
    let options = request.options;
    let settings = StreamSettings {
        include_usage: options.include_usage,
        timings_per_token: options.timings_per_token,
        n_prompt_tokens: prepared.prompts.iter().map(Vec::len).sum(),
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
        prepared.prompts,
        &template,
        options.n,
    )?;
    let envelope = Envelope::new(format!("cmpl-{}", app.next_id()), model);
    let tokenizer = Arc::clone(model.tokenizer());
    if options.stream {
        let encoder = CompletionStream::new(envelope, tokenizer, prepared.echoes, settings);
        return Ok(stream_response(
            choices,
            encoder,
            app.config().stream.ping_interval,
        ));
    }
    let (collected, totals) = collect(choices, prepared.echoes.len()).await?;
    let wants_logprobs = request.logprobs.is_some();
    let choices: Vec<_> = collected
        .into_iter()
        .zip(prepared.echoes)
        .enumerate()
        .map(|(index, (choice, echo))| CompletionChoice {
            index,
            logprobs: wants_logprobs.then(|| logprobs(&choice, &tokenizer)),
            finish_reason: Some(finish_reason(&choice.reason)),
            text: echo.unwrap_or_default() + &choice.text,
        })
        .collect();
    Ok(json_response(&CompletionBody::new(
        &envelope,
        &choices,
        Some(totals.usage()),
        Some(totals.timings()),
    )))
}

fn logprobs(choice: &Collected, tokenizer: &Tokenizer) -> CompletionLogprobs {
    let mut logprobs = CompletionLogprobs::default();
    let mut offset = 0;
    for token in &choice.logprobs {
        offset = logprobs.push(tokenizer, token.token, &token.logprobs, offset);
    }
    logprobs
}
