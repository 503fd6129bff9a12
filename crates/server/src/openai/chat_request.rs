//! The body of `POST /v1/chat/completions`, checked, and its way to a prompt.

use dynalm_engine::Sampling;
use dynalm_text::{ChatInput, EncodeOptions, TemplateError};
use serde_json::{Map, Value};

use super::messages::{Messages, parse_messages};
use crate::api_error::{ApiError, ApiResult, ErrorKind};
use crate::config::LimitsConfig;
use crate::model::ServedModel;
use crate::request::fields::Fields;
use crate::request::options::{GenerationOptions, parse_options};
use crate::request::refused::check_chat;
use crate::request::sampling::parse_sampling;

/// Most alternatives beside each token, OpenAI's limit.
const MAX_TOP_LOGPROBS: i64 = 20;

/// Where a model's thinking goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReasoningFormat {
    /// It stays in `content`, tags and all.
    None,
    /// To `reasoning_content`.
    Separate,
    /// To `reasoning_content`, and it stays in `content`.
    Both,
}

/// A chat request whose every field is in range.
#[derive(Debug, Clone)]
pub(crate) struct ChatRequest {
    pub(crate) options: GenerationOptions,
    pub(crate) sampling: Sampling,
    /// Log-probabilities with so many alternatives.
    pub(crate) logprobs: Option<usize>,
    pub(crate) reasoning_format: ReasoningFormat,
    messages: Messages,
    /// Text of a trailing assistant message, from which the answer goes on.
    continued: Option<String>,
    add_generation_prompt: bool,
    template_kwargs: Map<String, Value>,
}

/// A prompt ready for the engine.
#[derive(Debug, Clone)]
pub(crate) struct ChatPrompt {
    pub(crate) tokens: Vec<u32>,
    /// The prompt ends inside a `<think>` block.
    pub(crate) inside_thinking: bool,
}

impl ChatRequest {
    /// Reads the body.
    pub(crate) fn parse(
        body: &Value,
        model: &ServedModel,
        limits: &LimitsConfig,
    ) -> ApiResult<Self> {
        let fields = Fields::new(body, "")?;
        model.check_name(fields.string("model")?)?;
        check_chat(&fields)?;
        let mut messages = parse_messages(fields.require("messages")?)?;
        let (continued, add_generation_prompt) = parse_continuation(&fields, &mut messages)?;
        Ok(Self {
            options: parse_options(&fields, limits.max_choices)?,
            sampling: parse_sampling(&fields, model.vocab_size(), model.tokenizer())?,
            logprobs: parse_logprobs(&fields)?,
            reasoning_format: parse_reasoning_format(&fields)?,
            template_kwargs: parse_template_kwargs(&fields)?,
            messages,
            continued,
            add_generation_prompt,
        })
    }

    /// Renders the template and tokenizes the result. Cost grows with the prompt: not for an async thread.
    pub(crate) fn prompt(&self, model: &ServedModel) -> ApiResult<ChatPrompt> {
        let Some(template) = model.template() else {
            let message = "this model has no chat template; use /v1/completions, or start the server with a template";
            return Err(ApiError::new(ErrorKind::NotSupported, message));
        };
        let input = ChatInput {
            messages: Value::Array(self.messages.items.clone()),
            tools: None,
            add_generation_prompt: self.add_generation_prompt,
            kwargs: self.template_kwargs.clone(),
            now: None,
        };
        let mut text = template.render(&input).map_err(template_error)?;
        let continued = self.continued.as_deref().unwrap_or_default();
        text.push_str(continued);
        Ok(ChatPrompt {
            inside_thinking: is_inside_thinking(&text, continued),
            tokens: tokenize(&text, model),
        })
    }
}

/// Whatever makes a template fail came with the messages: it was compiled when the model was loaded.
fn template_error(error: TemplateError) -> ApiError {
    let message = match error {
        TemplateError::Refused { message } => {
            format!("the chat template refused the messages: {message}")
        }
        other => format!("the chat template cannot take the messages: {other}"),
    };
    ApiError::field("messages", message)
}

/// Most templates write the begin-of-text token themselves; the tokenizer must not put a second one.
fn tokenize(text: &str, model: &ServedModel) -> Vec<u32> {
    let tokenizer = model.tokenizer();
    let bos = tokenizer.bos().and_then(|bos| tokenizer.token_text(bos));
    let has_bos = bos.is_some_and(|bos| !bos.is_empty() && text.starts_with(bos));
    tokenizer.encode(
        text,
        EncodeOptions {
            add_special: !has_bos,
            parse_special: true,
        },
    )
}

/// Some templates open the block for the model, and a continued message may stop within it.
fn is_inside_thinking(text: &str, continued: &str) -> bool {
    match continued.rfind("<think>") {
        Some(at) => !continued[at..].contains("</think>"),
        None => continued.is_empty() && text.trim_end().ends_with("<think>"),
    }
}

/// By default the answer goes on from a trailing assistant message, as llama-server does it.
fn parse_continuation(
    fields: &Fields<'_>,
    messages: &mut Messages,
) -> ApiResult<(Option<String>, bool)> {
    let add_prompt = fields.boolean("add_generation_prompt")?;
    let go_on = fields.boolean("continue_final_message")?;
    if go_on == Some(true) && add_prompt == Some(true) {
        let message = "'continue_final_message' and 'add_generation_prompt' must not both be true";
        return Err(ApiError::field("continue_final_message", message));
    }
    if go_on == Some(true) && !messages.ends_with_assistant() {
        let message =
            "'continue_final_message' needs an assistant message at the end of 'messages'";
        return Err(ApiError::field("continue_final_message", message));
    }
    if go_on.unwrap_or(add_prompt.is_none()) {
        // The prompt that would start an answer comes first, the answer's beginning after it.
        let continued = messages.take_trailing_assistant();
        return Ok((continued, true));
    }
    Ok((None, add_prompt.unwrap_or(true)))
}

fn parse_logprobs(fields: &Fields<'_>) -> ApiResult<Option<usize>> {
    let wanted = fields.boolean("logprobs")?.unwrap_or(false);
    let top = fields.count("top_logprobs", 0..=MAX_TOP_LOGPROBS)?;
    match (wanted, top) {
        (true, top) => Ok(Some(top.unwrap_or(0))),
        (false, None | Some(0)) => Ok(None),
        (false, Some(_)) => Err(ApiError::field(
            "top_logprobs",
            "'top_logprobs' needs 'logprobs' to be true",
        )),
    }
}

fn parse_reasoning_format(fields: &Fields<'_>) -> ApiResult<ReasoningFormat> {
    match fields.string("reasoning_format")? {
        None | Some("auto" | "deepseek") => Ok(ReasoningFormat::Separate),
        Some("none") => Ok(ReasoningFormat::None),
        Some("deepseek-legacy") => Ok(ReasoningFormat::Both),
        Some(_) => Err(ApiError::field(
            "reasoning_format",
            "'reasoning_format' must be one of none, auto, deepseek, deepseek-legacy",
        )),
    }
}

/// `reasoning_effort` reaches the template under its own name; `none` also switches thinking off where a template
/// knows `enable_thinking`. What `chat_template_kwargs` says itself wins.
fn parse_template_kwargs(fields: &Fields<'_>) -> ApiResult<Map<String, Value>> {
    let mut kwargs = Map::new();
    match fields.string("reasoning_effort")? {
        None => {}
        Some("none") => {
            kwargs.insert("reasoning_effort".to_owned(), "none".into());
            kwargs.insert("enable_thinking".to_owned(), false.into());
        }
        Some(effort @ ("minimal" | "low" | "medium" | "high" | "xhigh")) => {
            kwargs.insert("reasoning_effort".to_owned(), effort.into());
        }
        Some(_) => {
            let message =
                "'reasoning_effort' must be one of none, minimal, low, medium, high, xhigh";
            return Err(ApiError::field("reasoning_effort", message));
        }
    }
    if let Some(given) = fields.object("chat_template_kwargs")? {
        const OWN: [&str; 3] = ["messages", "tools", "add_generation_prompt"];
        if let Some(name) = OWN.iter().find(|name| given.map().contains_key(**name)) {
            let message = format!("'chat_template_kwargs' must not set '{name}'");
            return Err(ApiError::field("chat_template_kwargs", message));
        }
        kwargs.extend(given.map().clone());
    }
    Ok(kwargs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with<T>(body: &Value, read: impl Fn(&Fields<'_>) -> ApiResult<T>) -> ApiResult<T> {
        read(&Fields::new(body, "").unwrap())
    }

    #[test]
    fn top_logprobs_needs_logprobs() {
        assert_eq!(with(&json!({}), parse_logprobs).unwrap(), None);
        assert_eq!(
            with(&json!({"logprobs": true}), parse_logprobs).unwrap(),
            Some(0)
        );
        assert_eq!(
            with(
                &json!({"logprobs": true, "top_logprobs": 5}),
                parse_logprobs
            )
            .unwrap(),
            Some(5)
        );
        assert!(with(&json!({"top_logprobs": 5}), parse_logprobs).is_err());
        assert!(
            with(
                &json!({"logprobs": true, "top_logprobs": 21}),
                parse_logprobs
            )
            .is_err()
        );
        assert!(with(&json!({"logprobs": 3}), parse_logprobs).is_err());
    }

    #[test]
    fn a_trailing_assistant_message_is_continued_unless_told_otherwise() {
        let messages = || {
            let list =
                json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "The"}]);
            parse_messages(&list).unwrap()
        };
        let parse = |body: Value| with(&body, |fields| parse_continuation(fields, &mut messages()));
        assert_eq!(parse(json!({})).unwrap(), (Some("The".to_owned()), true));
        assert_eq!(
            parse(json!({"continue_final_message": true})).unwrap(),
            (Some("The".to_owned()), true)
        );
        assert_eq!(
            parse(json!({"continue_final_message": false})).unwrap(),
            (None, true)
        );
        assert_eq!(
            parse(json!({"add_generation_prompt": false})).unwrap(),
            (None, false)
        );
        assert!(
            parse(json!({"continue_final_message": true, "add_generation_prompt": true})).is_err()
        );
        let mut question = parse_messages(&json!([{"role": "user", "content": "x"}])).unwrap();
        let body = json!({"continue_final_message": true});
        assert!(
            with(&body, |fields| parse_continuation(
                fields,
                &mut question.clone()
            ))
            .is_err()
        );
        assert_eq!(
            with(&json!({}), |fields| parse_continuation(
                fields,
                &mut question.clone()
            ))
            .unwrap(),
            (None, true)
        );
        assert_eq!(question.take_trailing_assistant(), None);
    }

    #[test]
    fn reasoning_settings_reach_the_template() {
        let kwargs = with(&json!({"reasoning_effort": "none"}), parse_template_kwargs).unwrap();
        assert_eq!(
            Value::Object(kwargs),
            json!({"reasoning_effort": "none", "enable_thinking": false})
        );
        let body =
            json!({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": true}});
        assert_eq!(
            with(&body, parse_template_kwargs).unwrap()["enable_thinking"],
            true
        );
        assert!(with(&json!({"reasoning_effort": "huge"}), parse_template_kwargs).is_err());
        assert!(
            with(
                &json!({"chat_template_kwargs": {"messages": []}}),
                parse_template_kwargs
            )
            .is_err()
        );
        assert!(with(&json!({"reasoning_format": "x"}), parse_reasoning_format).is_err());
    }

    #[test]
    fn an_opened_block_is_noticed() {
        assert!(is_inside_thinking("<|assistant|><think>\n", ""));
        assert!(!is_inside_thinking(
            "<|user|>what is <think> for<|assistant|>",
            ""
        ));
        assert!(is_inside_thinking("<think>so", "<think>so"));
        assert!(!is_inside_thinking(
            "<think>so</think>a",
            "<think>so</think>a"
        ));
    }
}
