//! From messages to token ids.

use anyhow::Context;
use dynalm_text::{ChatInput, EncodeOptions};
use serde::{Deserialize, Serialize};

use super::load::Session;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    /// `system`, `user` or `assistant`.
    pub(crate) role: String,
    /// Its text.
    pub(crate) content: String,
}

/// What was said so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Conversation {
    /// The system message.
    pub(crate) system: Option<String>,
    /// The turns, user first.
    pub(crate) turns: Vec<Message>,
}

impl Conversation {
    /// A conversation with nothing said yet.
    pub(crate) fn new(system: Option<String>) -> Conversation {
        Conversation {
            system,
            turns: Vec::new(),
        }
    }

    /// Adds a turn.
    pub(crate) fn push(&mut self, role: &str, content: impl Into<String>) {
        self.turns.push(Message {
            role: role.to_owned(),
            content: content.into(),
        });
    }

    /// The token ids that ask for the next assistant turn. Without a template (base models, `raw`) the turns are one text
    /// that the model goes on with.
    ///
    /// # Errors
    /// The template refused the messages.
    pub(crate) fn tokens(&self, session: &Session, raw: bool) -> anyhow::Result<Vec<u32>> {
        let Some(template) = session.template.as_ref().filter(|_| !raw) else {
            return Ok(session
                .tokenizer
                .encode(&self.plain_text(), EncodeOptions::default()));
        };
        let system = self
            .system
            .iter()
            .map(|text| serde_json::json!({"role": "system", "content": text}));
        let turns = self
            .turns
            .iter()
            .map(|turn| serde_json::json!({"role": turn.role, "content": turn.content}));
        let input = ChatInput {
            messages: serde_json::Value::Array(system.chain(turns).collect()),
            add_generation_prompt: true,
            ..ChatInput::default()
        };
        let text = template
            .render(&input)
            .context("the model's chat template refused the messages")?;
        Ok(encode_rendered(session, &text))
    }

    fn plain_text(&self) -> String {
        let texts = self
            .system
            .iter()
            .chain(self.turns.iter().map(|turn| &turn.content));
        texts.map(String::as_str).collect::<Vec<_>>().join("")
    }
}

/// Encodes a template's text, whose special tokens are written out. The begin-of-text token is added only where the
/// template did not write it: two of them confuse a model.
fn encode_rendered(session: &Session, text: &str) -> Vec<u32> {
    let tokenizer = &session.tokenizer;
    let bos = tokenizer
        .bos()
        .and_then(|id| tokenizer.token_text(id))
        .filter(|bos| !bos.is_empty());
    let add_special = bos.is_none_or(|bos| !text.starts_with(bos));
    tokenizer.encode(
        text,
        EncodeOptions {
            add_special,
            parse_special: true,
        },
    )
}
