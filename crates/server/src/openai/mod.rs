//! The OpenAI dialect: chat completions, completions, models.

pub(crate) mod chat;
mod chat_request;
mod chat_response;
mod chat_stream;
mod completion_request;
mod completion_stream;
pub(crate) mod completions;
mod logprobs;
mod messages;
pub(crate) mod models;

use dynalm_engine::FinishReason;

/// `finish_reason` of an answer.
fn finish_reason(reason: &FinishReason) -> &'static str {
    match reason {
        FinishReason::Stop(_) => "stop",
        // The others are errors and never get here; a limit is the closest that the API has.
        FinishReason::Length
        | FinishReason::Cancelled
        | FinishReason::DeadlineExceeded
        | FinishReason::Failed(_) => "length",
    }
}

/// What all bodies and chunks of one answer carry.
#[derive(Debug, Clone)]
struct Envelope {
    id: String,
    created: u64,
    model: String,
}

impl Envelope {
    fn new(id: String, model: &crate::model::ServedModel) -> Self {
        Self {
            id,
            created: crate::model::unix_seconds(),
            model: model.name().to_owned(),
        }
    }
}
