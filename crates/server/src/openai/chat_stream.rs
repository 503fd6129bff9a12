//! The chunks of a streamed chat completion.

use std::sync::Arc;

use dynalm_engine::{Finish, TokenEvent};
use dynalm_text::Tokenizer;
use serde::Serialize;

use super::chat_request::ReasoningFormat;
use super::chat_response::AnswerForm;
use super::logprobs::{ChatLogprobs, chat_logprobs};
use super::{Envelope, finish_reason};
use crate::api_error::ApiError;
use crate::generation::stream::StreamEncoder;
use crate::generation::totals::{TimingsBody, Totals, UsageBody};
use crate::model::fingerprint;
use crate::reasoning::{Parts, ReasoningSplitter};
use crate::sse;

/// Writes `chat.completion.chunk` frames: per choice a role chunk, its text, and a last one with `finish_reason`;
/// then the usage, if asked for, and `[DONE]`.
pub(super) struct ChatStream {
    envelope: Envelope,
    tokenizer: Arc<Tokenizer>,
    form: AnswerForm,
    choices: Vec<ChoiceState>,
    unfinished: usize,
    settings: StreamSettings,
}

/// What a client asked of its stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamSettings {
    pub(super) include_usage: bool,
    pub(super) timings_per_token: bool,
    /// Tokens of all prompts.
    pub(super) n_prompt_tokens: usize,
}

struct ChoiceState {
    role_sent: bool,
    splitter: ReasoningSplitter,
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: &'a [ChunkChoice<'a>],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageBody>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timings: Option<TimingsBody>,
}

#[derive(Serialize)]
struct ChunkChoice<'a> {
    index: usize,
    delta: Delta<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<ChatLogprobs>,
    finish_reason: Option<&'static str>,
}

/// Untagged: the first delta has a null content, which later ones leave out.
#[derive(Serialize)]
#[serde(untagged)]
enum Delta<'a> {
    Role {
        role: &'static str,
        content: Option<()>,
    },
    Content {
        content: &'a str,
    },
    Reasoning {
        reasoning_content: &'a str,
    },
    Empty {},
}

impl ChatStream {
    pub(super) fn new(
        envelope: Envelope,
        tokenizer: Arc<Tokenizer>,
        form: AnswerForm,
        n_choices: usize,
        settings: StreamSettings,
    ) -> Self {
        let state = || ChoiceState {
            role_sent: false,
            splitter: form.splitter(),
        };
        let choices = std::iter::repeat_with(state).take(n_choices).collect();
        Self {
            envelope,
            tokenizer,
            form,
            choices,
            unfinished: n_choices,
            settings,
        }
    }

    fn chunk(&self, choice: ChunkChoice<'_>, timings: Option<TimingsBody>, out: &mut Vec<u8>) {
        self.write(&[choice], None, timings, out);
    }

    fn write(
        &self,
        choices: &[ChunkChoice<'_>],
        usage: Option<UsageBody>,
        timings: Option<TimingsBody>,
        out: &mut Vec<u8>,
    ) {
        let chunk = Chunk {
            id: &self.envelope.id,
            object: "chat.completion.chunk",
            created: self.envelope.created,
            model: &self.envelope.model,
            system_fingerprint: fingerprint(),
            choices,
            usage,
            timings,
        };
        sse::data(out, &chunk);
    }

    fn send_role(&mut self, index: usize, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.choices[index].role_sent, true) {
            let delta = Delta::Role {
                role: "assistant",
                content: None,
            };
            self.chunk(
                ChunkChoice {
                    index,
                    delta,
                    logprobs: None,
                    finish_reason: None,
                },
                None,
                out,
            );
        }
    }

    /// Text of both kinds; log-probabilities ride on the first chunk there is.
    fn send_parts(
        &self,
        index: usize,
        parts: &Parts,
        mut logprobs: Option<ChatLogprobs>,
        timings: Option<TimingsBody>,
        out: &mut Vec<u8>,
    ) {
        if !parts.reasoning.is_empty() {
            let delta = Delta::Reasoning {
                reasoning_content: &parts.reasoning,
            };
            self.chunk(
                ChunkChoice {
                    index,
                    delta,
                    logprobs: logprobs.take(),
                    finish_reason: None,
                },
                timings,
                out,
            );
        }
        if !parts.content.is_empty() || logprobs.is_some() {
            let delta = Delta::Content {
                content: &parts.content,
            };
            self.chunk(
                ChunkChoice {
                    index,
                    delta,
                    logprobs,
                    finish_reason: None,
                },
                timings,
                out,
            );
        }
    }

    fn split(&mut self, index: usize, text: &str) -> Parts {
        let parts = self.choices[index].splitter.push(text);
        self.with_whole_content(parts, text)
    }

    fn with_whole_content(&self, mut parts: Parts, text: &str) -> Parts {
        if self.form.reasoning_format == ReasoningFormat::Both {
            parts.content = text.to_owned();
        }
        parts
    }
}

impl StreamEncoder for ChatStream {
    const CONTENT_TYPE: &'static str = sse::CONTENT_TYPE;

    fn token(&mut self, index: usize, token: &TokenEvent, totals: &Totals, out: &mut Vec<u8>) {
        self.send_role(index, out);
        let parts = self.split(index, &token.text);
        let logprobs = token
            .logprob
            .as_ref()
            .map(|found| chat_logprobs(&self.tokenizer, std::iter::once((token.token, found))));
        let timings = self
            .settings
            .timings_per_token
            .then(|| totals.running_timings(self.settings.n_prompt_tokens));
        self.send_parts(index, &parts, logprobs, timings, out);
    }

    fn finish(&mut self, index: usize, finish: &Finish, totals: &Totals, out: &mut Vec<u8>) {
        self.send_role(index, out);
        let parts = self.split(index, &finish.text);
        self.send_parts(index, &parts, None, None, out);
        let rest = self.choices[index].splitter.finish();
        let rest = self.with_whole_content(rest, "");
        self.send_parts(index, &rest, None, None, out);
        self.unfinished = self.unfinished.saturating_sub(1);
        let is_last = self.unfinished == 0 && !self.settings.include_usage;
        let reason = Some(finish_reason(&finish.reason));
        let choice = ChunkChoice {
            index,
            delta: Delta::Empty {},
            logprobs: None,
            finish_reason: reason,
        };
        self.chunk(choice, is_last.then(|| totals.timings()), out);
    }

    fn end(&mut self, totals: &Totals, out: &mut Vec<u8>) {
        if self.settings.include_usage {
            self.write(&[], Some(totals.usage()), Some(totals.timings()), out);
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
