//! The chunks of a streamed completion, and the body of one that is not: both have the same choices.

use std::sync::Arc;

use dynalm_engine::{Finish, TokenEvent};
use dynalm_text::Tokenizer;
use serde::Serialize;

use super::chat_stream::StreamSettings;
use super::logprobs::CompletionLogprobs;
use super::{Envelope, finish_reason};
use crate::api_error::ApiError;
use crate::generation::stream::StreamEncoder;
use crate::generation::totals::{TimingsBody, Totals, UsageBody};
use crate::model::fingerprint;
use crate::sse;

/// A `text_completion` object: the whole answer or one chunk of it.
#[derive(Serialize)]
pub(super) struct CompletionBody<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: &'a [CompletionChoice],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<TimingsBody>,
}

/// One choice or a piece of it.
#[derive(Serialize)]
pub(super) struct CompletionChoice {
    pub(super) index: usize,
    pub(super) text: String,
    pub(super) logprobs: Option<CompletionLogprobs>,
    pub(super) finish_reason: Option<&'static str>,
}

impl<'a> CompletionBody<'a> {
    pub(super) fn new(
        envelope: &'a Envelope,
        choices: &'a [CompletionChoice],
        usage: Option<UsageBody>,
        timings: Option<TimingsBody>,
    ) -> Self {
        Self {
            id: &envelope.id,
            object: "text_completion",
            created: envelope.created,
            model: &envelope.model,
            system_fingerprint: fingerprint(),
            choices,
            usage,
            timings,
        }
    }
}

/// Writes `text_completion` frames.
pub(super) struct CompletionStream {
    envelope: Envelope,
    tokenizer: Arc<Tokenizer>,
    choices: Vec<ChoiceState>,
    unfinished: usize,
    settings: StreamSettings,
}

struct ChoiceState {
    /// The prompt's text, until it has been sent.
    echo: Option<String>,
    /// Characters of the tokens so far, for `text_offset`.
    offset: usize,
}

impl CompletionStream {
    /// `echoes`: per choice the prompt's text, if it is to be repeated.
    pub(super) fn new(
        envelope: Envelope,
        tokenizer: Arc<Tokenizer>,
        echoes: Vec<Option<String>>,
        settings: StreamSettings,
    ) -> Self {
        let unfinished = echoes.len();
        let choices = echoes
            .into_iter()
            .map(|echo| ChoiceState { echo, offset: 0 })
            .collect();
        Self {
            envelope,
            tokenizer,
            choices,
            unfinished,
            settings,
        }
    }

    fn send(
        &mut self,
        mut choice: CompletionChoice,
        timings: Option<TimingsBody>,
        out: &mut Vec<u8>,
    ) {
        if let Some(echo) = self.choices[choice.index].echo.take() {
            choice.text.insert_str(0, &echo);
        }
        sse::data(
            out,
            &CompletionBody::new(&self.envelope, &[choice], None, timings),
        );
    }
}

impl StreamEncoder for CompletionStream {
    const CONTENT_TYPE: &'static str = sse::CONTENT_TYPE;

    fn token(&mut self, index: usize, token: &TokenEvent, totals: &Totals, out: &mut Vec<u8>) {
        let logprobs = token.logprob.as_ref().map(|found| {
            let mut logprobs = CompletionLogprobs::default();
            let state = &mut self.choices[index];
            state.offset = logprobs.push(&self.tokenizer, token.token, found, state.offset);
            logprobs
        });
        if token.text.is_empty() && logprobs.is_none() {
            return;
        }
        let timings = self
            .settings
            .timings_per_token
            .then(|| totals.running_timings(self.settings.n_prompt_tokens));
        let choice = CompletionChoice {
            index,
            text: token.text.clone(),
            logprobs,
            finish_reason: None,
        };
        self.send(choice, timings, out);
    }

    fn finish(&mut self, index: usize, finish: &Finish, totals: &Totals, out: &mut Vec<u8>) {
        self.unfinished = self.unfinished.saturating_sub(1);
        let is_last = self.unfinished == 0 && !self.settings.include_usage;
        let reason = Some(finish_reason(&finish.reason));
        let choice = CompletionChoice {
            index,
            text: finish.text.clone(),
            logprobs: None,
            finish_reason: reason,
        };
        self.send(choice, is_last.then(|| totals.timings()), out);
    }

    fn end(&mut self, totals: &Totals, out: &mut Vec<u8>) {
        if self.settings.include_usage {
            let usage = CompletionBody::new(
                &self.envelope,
                &[],
                Some(totals.usage()),
                Some(totals.timings()),
            );
            sse::data(out, &usage);
        }
        sse::done(out);
    }

    fn error(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        sse::data(out, &error.body());
    }

    fn ping(&mut self, out: &mut Vec<u8>) {
        sse::ping(out);
    }
}
