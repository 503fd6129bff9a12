//! The body of a chat completion that is not streamed.

use dynalm_text::Tokenizer;
use serde::Serialize;

use super::chat_request::ReasoningFormat;
use super::logprobs::{ChatLogprobs, chat_logprobs};
use super::{Envelope, finish_reason};
use crate::generation::collect::Collected;
use crate::generation::totals::{TimingsBody, Totals, UsageBody};
use crate::model::fingerprint;
use crate::reasoning::ReasoningSplitter;

/// A `chat.completion` object.
#[derive(Debug, Serialize)]
pub(super) struct ChatResponse<'a> {
    id: &'a str,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: Vec<ChatChoice>,
    usage: UsageBody,
    timings: TimingsBody,
}

#[derive(Debug, Serialize)]
struct ChatChoice {
    index: usize,
    message: ChatMessage,
    logprobs: Option<ChatLogprobs>,
    finish_reason: &'static str,
}

#[derive(Debug, Serialize)]
struct ChatMessage {
    role: &'static str,
    content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
}

/// How the answers' texts are to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerForm {
    pub(super) reasoning_format: ReasoningFormat,
    /// The prompt ends inside a `<think>` block.
    pub(super) inside_thinking: bool,
    /// Log-probabilities were asked for.
    pub(super) logprobs: bool,
}

impl AnswerForm {
    pub(super) fn splitter(&self) -> ReasoningSplitter {
        match self.reasoning_format {
            ReasoningFormat::None => ReasoningSplitter::disabled(),
            ReasoningFormat::Separate | ReasoningFormat::Both => {
                ReasoningSplitter::new(self.inside_thinking)
            }
        }
    }
}

/// Builds the body.
pub(super) fn chat_response<'a>(
    envelope: &'a Envelope,
    collected: &[Collected],
    totals: &Totals,
    form: AnswerForm,
    tokenizer: &Tokenizer,
) -> ChatResponse<'a> {
    let choices = collected
        .iter()
        .enumerate()
        .map(|(index, choice)| ChatChoice {
            index,
            message: message(&choice.text, form),
            logprobs: form.logprobs.then(|| {
                chat_logprobs(
                    tokenizer,
                    choice
                        .logprobs
                        .iter()
                        .map(|token| (token.token, &token.logprobs)),
                )
            }),
            finish_reason: finish_reason(&choice.reason),
        });
    ChatResponse {
        id: &envelope.id,
        object: "chat.completion",
        created: envelope.created,
        model: &envelope.model,
        system_fingerprint: fingerprint(),
        choices: choices.collect(),
        usage: totals.usage(),
        timings: totals.timings(),
    }
}

fn message(text: &str, form: AnswerForm) -> ChatMessage {
    let mut splitter = form.splitter();
    let mut parts = splitter.push(text);
    let rest = splitter.finish();
    parts.reasoning.push_str(&rest.reasoning);
    parts.content.push_str(&rest.content);
    let content = match form.reasoning_format {
        ReasoningFormat::Both => text.to_owned(),
        ReasoningFormat::None | ReasoningFormat::Separate => parts.content,
    };
    let reasoning_content = Some(parts.reasoning).filter(|reasoning| !reasoning.is_empty());
    ChatMessage {
        role: "assistant",
        content,
        reasoning_content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reasoning_format: ReasoningFormat, content: &str, reasoning: Option<&str>) {
        let form = AnswerForm {
            reasoning_format,
            inside_thinking: false,
            logprobs: false,
        };
        let message = message("<think>why</think>because", form);
        assert_eq!(
            (
                message.content.as_str(),
                message.reasoning_content.as_deref()
            ),
            (content, reasoning)
        );
    }

    #[test]
    fn thinking_goes_where_the_format_says() {
        check(ReasoningFormat::Separate, "because", Some("why"));
        check(
            ReasoningFormat::Both,
            "<think>why</think>because",
            Some("why"),
        );
        check(ReasoningFormat::None, "<think>why</think>because", None);
    }
}
