//! Fields that the API has and this server does not honour yet: refused by name, never silently ignored.
//!
//! A value that asks for nothing (off, empty, the default) passes, since clients send complete sets of settings.

use serde_json::Value;

use super::fields::{Fields, wrong};
use crate::api_error::{ApiError, ApiResult};

/// The values of a field that ask for nothing.
#[derive(Debug, Clone, Copy)]
enum Neutral {
    /// Only null.
    Null,
    /// This truth value.
    Bool(bool),
    /// Numbers in this range.
    Number(f64, f64),
    /// `""`, `[]` or `{}`.
    Empty,
    /// One of these strings.
    Words(&'static [&'static str]),
    /// `["text"]` or less.
    TextOnly,
}

impl Neutral {
    fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (Self::Bool(neutral), Value::Bool(found)) => neutral == *found,
            (Self::Number(low, high), Value::Number(found)) => {
                found.as_f64().is_some_and(|f| (low..=high).contains(&f))
            }
            (Self::Empty, Value::String(text)) => text.is_empty(),
            (Self::Empty, Value::Array(items)) => items.is_empty(),
            (Self::Empty, Value::Object(fields)) => fields.is_empty(),
            (Self::Words(words), Value::String(text)) => words.contains(&text.as_str()),
            (Self::TextOnly, Value::Array(items)) => items.iter().all(|item| item == "text"),
            _ => false,
        }
    }

    /// The JSON type a value must have to be refused as unsupported rather than as wrong.
    fn expected(self) -> Option<&'static str> {
        match self {
            Self::Bool(_) => Some("true or false"),
            Self::Number(..) => Some("a number"),
            _ => None,
        }
    }

    fn has_type(self, value: &Value) -> bool {
        match self {
            Self::Bool(_) => value.is_boolean(),
            Self::Number(..) => value.is_number(),
            _ => true,
        }
    }
}

type Table = &'static [(&'static str, Neutral)];

/// Refused on every generating route.
const EVERYWHERE: Table = &[
    ("grammar", Neutral::Empty),
    ("json_schema", Neutral::Empty),
    ("samplers", Neutral::Empty),
    ("sampler_seq", Neutral::Empty),
    ("xtc_probability", Neutral::Number(0.0, 0.0)),
    ("top_n_sigma", Neutral::Number(-1.0, 0.0)),
    ("typical_p", Neutral::Number(1.0, 1.0)),
    ("dynatemp_range", Neutral::Number(0.0, 0.0)),
    ("dry_multiplier", Neutral::Number(0.0, 0.0)),
    ("mirostat", Neutral::Number(0.0, 0.0)),
    ("min_keep", Neutral::Number(0.0, 1.0)),
    ("n_probs", Neutral::Number(0.0, 0.0)),
    ("post_sampling_probs", Neutral::Bool(false)),
    ("return_tokens", Neutral::Bool(false)),
    ("return_progress", Neutral::Bool(false)),
    ("response_fields", Neutral::Empty),
    ("t_max_predict_ms", Neutral::Number(-1.0, 0.0)),
    ("id_slot", Neutral::Number(-1.0, -1.0)),
    ("lora", Neutral::Empty),
];

/// Refused on the chat route.
const CHAT: Table = &[
    ("tools", Neutral::Empty),
    ("tool_choice", Neutral::Words(&["none", "auto"])),
    ("functions", Neutral::Empty),
    ("function_call", Neutral::Words(&["none", "auto"])),
    ("modalities", Neutral::TextOnly),
    ("audio", Neutral::Null),
    ("prediction", Neutral::Null),
    ("web_search_options", Neutral::Null),
    ("reasoning_budget_tokens", Neutral::Number(-1.0, -1.0)),
    ("thinking_budget_tokens", Neutral::Number(-1.0, -1.0)),
];

/// Refused on the completions route.
const COMPLETIONS: Table = &[
    ("suffix", Neutral::Empty),
    ("best_of", Neutral::Number(1.0, 1.0)),
];

/// Checks the fields of a chat request.
pub(crate) fn check_chat(fields: &Fields<'_>) -> ApiResult<()> {
    fields.array("tools")?;
    // Without tools, which are refused below, there is nothing to run in parallel or in sequence.
    fields.boolean("parallel_tool_calls")?;
    check(fields, CHAT)?;
    check(fields, EVERYWHERE)?;
    check_response_format(fields)
}

/// Checks the fields of a completion request.
pub(crate) fn check_completion(fields: &Fields<'_>) -> ApiResult<()> {
    check(fields, COMPLETIONS)?;
    check(fields, EVERYWHERE)?;
    check_response_format(fields)
}

fn check(fields: &Fields<'_>, table: Table) -> ApiResult<()> {
    for (name, neutral) in table {
        match fields.get(name) {
            None => {}
            Some(value) if neutral.holds(value) => {}
            Some(value) => {
                let path = fields.path_of(name);
                return Err(match neutral.expected() {
                    Some(expected) if !neutral.has_type(value) => wrong(&path, expected, value),
                    _ => ApiError::unsupported_field(path),
                });
            }
        }
    }
    Ok(())
}

fn check_response_format(fields: &Fields<'_>) -> ApiResult<()> {
    let Some(format) = fields.object("response_format")? else {
        return Ok(());
    };
    match format.require("type")?.as_str() {
        Some("text") => Ok(()),
        Some("json_object" | "json_schema") => Err(ApiError::unsupported_field("response_format")),
        _ => Err(wrong(
            "response_format.type",
            "one of text, json_object, json_schema",
            format.require("type")?,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_error::ErrorKind;
    use serde_json::json;

    fn chat(body: &Value) -> ApiResult<()> {
        check_chat(&Fields::new(body, "").unwrap())
    }

    #[test]
    fn values_that_ask_for_nothing_pass() {
        let body = json!({
            "tools": [], "tool_choice": "auto", "parallel_tool_calls": true, "response_format": {"type": "text"},
            "grammar": "", "mirostat": 0, "typical_p": 1.0, "id_slot": -1, "lora": [], "audio": null,
            "modalities": ["text"], "return_progress": false, "top_n_sigma": -1, "thinking_budget_tokens": -1,
        });
        assert_eq!(chat(&body), Ok(()));
    }

    #[test]
    fn values_that_ask_for_something_are_refused_by_name() {
        for (field, value) in [
            ("tools", json!([{"type": "function"}])),
            ("tool_choice", json!("required")),
            ("response_format", json!({"type": "json_object"})),
            ("grammar", json!("root ::= \"a\"")),
            ("mirostat", json!(2)),
            ("xtc_probability", json!(0.5)),
            ("return_tokens", json!(true)),
            ("id_slot", json!(0)),
            ("modalities", json!(["text", "audio"])),
            ("samplers", json!(["top_k"])),
        ] {
            let error = chat(&json!({ field: value })).unwrap_err();
            assert_eq!(
                (error.kind, error.param.as_deref()),
                (ErrorKind::NotSupported, Some(field))
            );
        }
        let body = json!({"suffix": "x"});
        let error = check_completion(&Fields::new(&body, "").unwrap()).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("suffix"));
    }

    #[test]
    fn wrong_types_are_400() {
        for body in [
            json!({"mirostat": "x"}),
            json!({"return_tokens": 1}),
            json!({"response_format": {"type": "xml"}}),
            json!({"response_format": {}}),
            json!({"response_format": "json"}),
            json!({"parallel_tool_calls": "yes"}),
            json!({"tools": {"type": "function"}}),
        ] {
            assert_eq!(
                chat(&body).unwrap_err().kind,
                ErrorKind::InvalidRequest,
                "{body}"
            );
        }
    }
}
