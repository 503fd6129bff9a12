//! From a checked request to token events, whatever the dialect: submitting, merging the choices of one request,
//! counting, and the two ways out (one body, or a stream).

pub(crate) mod collect;
pub(crate) mod stream;
pub(crate) mod totals;

use std::time::{Duration, Instant};

use dynalm_engine::{Engine, Event, Finish, FinishReason, Request, SubmitError};
use futures_util::{StreamExt, stream::BoxStream, stream::SelectAll};

use crate::api_error::{ApiError, ApiResult, ErrorKind};
use crate::request_context::RequestContext;
use totals::Totals;

/// What happened to one of the choices.
pub(crate) type ChoiceEvent = (usize, Event);

/// The choices of one HTTP request, running side by side. Dropping it cancels all of them.
pub(crate) struct Choices {
    merged: SelectAll<BoxStream<'static, ChoiceEvent>>,
    context: RequestContext,
    /// Choices per prompt: the first of each counts the prompt's tokens.
    n: usize,
    totals: Totals,
}

impl Choices {
    /// Hands `n` requests per prompt to the engine: choice `prompt_idx * n + i`, with the seed raised by `i` so that
    /// the choices differ. If one is refused, those before it are cancelled.
    pub(crate) fn submit(
        engine: &Engine,
        context: &RequestContext,
        prompts: Vec<Vec<u32>>,
        template: &Request,
        n: usize,
    ) -> ApiResult<Self> {
        let mut merged = SelectAll::new();
        for prompt in prompts {
            for choice in 0..n {
                let index = merged.len();
                let mut request = Request {
                    prompt: prompt.clone(),
                    ..template.clone()
                };
                request.sampling.seed = request
                    .sampling
                    .seed
                    .map(|seed| seed.wrapping_add(choice as u64));
                request.id = format!("{}/{index}", context.id);
                let generation = engine
                    .submit(request)
                    .map_err(|error| submit_error(error, engine))?;
                let events =
                    futures_util::stream::unfold(generation, move |mut generation| async move {
                        let event = generation.next().await?;
                        Some(((index, event), generation))
                    });
                merged.push(events.boxed());
            }
        }
        Ok(Self {
            merged,
            context: context.clone(),
            n,
            totals: Totals::default(),
        })
    }

    /// The next event of any choice; `None` once all have ended.
    pub(crate) async fn next(&mut self) -> Option<ChoiceEvent> {
        let (index, event) = self.merged.next().await?;
        match &event {
            Event::Token(_) => self
                .totals
                .note_token(self.context.started.elapsed(), &self.context.facts),
            Event::Finished(finish) => {
                let of_prompt = index.is_multiple_of(self.n);
                self.totals.add(finish, of_prompt);
                self.context
                    .facts
                    .add_usage(totals::counted(finish.usage, of_prompt));
            }
        }
        Some((index, event))
    }

    /// An event that is there already, so that several tokens can share one write.
    pub(crate) fn next_ready(&mut self) -> Option<ChoiceEvent> {
        futures_util::FutureExt::now_or_never(self.next()).flatten()
    }

    /// What has been counted so far.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The request that the choices belong to.
    pub(crate) fn context(&self) -> &RequestContext {
        &self.context
    }
}

/// When a request that arrived at `started` runs out of time.
pub(crate) fn deadline(started: Instant, timeout: Duration) -> Option<Instant> {
    started.checked_add(timeout)
}

/// The error that an ending stands for, or `None` for an answer.
pub(crate) fn finish_error(finish: &Finish, context: &RequestContext) -> Option<ApiError> {
    match &finish.reason {
        FinishReason::Stop(_) | FinishReason::Length => None,
        FinishReason::DeadlineExceeded => Some(ApiError::new(
            ErrorKind::Timeout,
            "the request's time ran out, queued plus running",
        )),
        FinishReason::Cancelled => Some(ApiError::new(
            ErrorKind::Unavailable,
            "the server is shutting down",
        )),
        FinishReason::Failed(cause) => {
            tracing::error!(request_id = %context.id, cause, "generation failed");
            Some(ApiError::internal())
        }
    }
}

/// The one place where the engine's refusals become answers.
fn submit_error(error: SubmitError, engine: &Engine) -> ApiError {
    let message = error.to_string();
    match error {
        SubmitError::QueueFull { .. } => {
            let kind = ErrorKind::RateLimited {
                retry_after: expected_wait(engine),
            };
            ApiError::new(kind, message)
        }
        SubmitError::PromptTooLong {
            n_prompt_tokens,
            n_ctx,
        } => ApiError::new(
            ErrorKind::ContextExceeded {
                n_prompt_tokens,
                n_ctx,
            },
            message,
        ),
        SubmitError::EmptyPrompt => ApiError::field("prompt", message),
        SubmitError::TokenOutOfRange { .. } => ApiError::field("prompt", message),
        SubmitError::Invalid { field, message } => {
            ApiError::field(field, format!("'{field}' {message}"))
        }
        SubmitError::Draining => {
            ApiError::new(ErrorKind::Unavailable, "the server is shutting down")
        }
    }
}

/// How long a refused client should wait: the mean wait in the queue so far, between 1 and 60 seconds.
fn expected_wait(engine: &Engine) -> Duration {
    let wait = engine.stats().queue_wait;
    let mean = if wait.count == 0 {
        0.0
    } else {
        wait.sum / wait.count as f64
    };
    Duration::from_secs_f64(mean.clamp(1.0, 60.0).ceil())
}
