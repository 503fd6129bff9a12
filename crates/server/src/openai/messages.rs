//! Chat messages: checked, and brought into the one form that chat templates are written for.

use serde_json::{Map, Value, json};

use crate::api_error::{ApiError, ApiResult};
use crate::request::fields::{Fields, wrong};

/// Messages ready for a template.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Messages {
    /// Objects of role, content, and where given name, reasoning_content, tool_calls, tool_call_id.
    pub(crate) items: Vec<Value>,
}

impl Messages {
    /// Takes the last message off if it is an assistant's text, and returns that text: the answer is to go on from it.
    pub(crate) fn take_trailing_assistant(&mut self) -> Option<String> {
        let last = self.items.last()?;
        if last["role"] != "assistant" || last.get("tool_calls").is_some() {
            return None;
        }
        let text = last["content"].as_str().unwrap_or_default().to_owned();
        self.items.pop();
        Some(text)
    }

    /// True if the last message is an assistant's.
    pub(crate) fn ends_with_assistant(&self) -> bool {
        self.items
            .last()
            .is_some_and(|last| last["role"] == "assistant")
    }
}

/// Reads `messages`: roles, contents and tool calls of the wrong form are 400, contents other than text 501.
pub(crate) fn parse_messages(value: &Value) -> ApiResult<Messages> {
    let items = match value {
        Value::Array(items) if items.is_empty() => {
            return Err(ApiError::field("messages", "'messages' must not be empty"));
        }
        Value::Array(items) => items,
        other => return Err(wrong("messages", "an array of messages", other)),
    };
    let messages = items
        .iter()
        .enumerate()
        .map(|(index, item)| parse_message(item, &format!("messages[{index}]")));
    let items: Vec<Value> = messages.collect::<ApiResult<_>>()?;
    if let [.., before, last] = items.as_slice()
        && before["role"] == "assistant"
        && last["role"] == "assistant"
    {
        return Err(ApiError::field(
            "messages",
            "'messages' must not end with two assistant messages",
        ));
    }
    Ok(Messages { items })
}

fn parse_message(item: &Value, path: &str) -> ApiResult<Value> {
    let fields = Fields::new(item, path)?;
    let given = fields.require("role")?;
    let role = match given.as_str() {
        // Templates know the older name.
        Some("developer" | "system") => "system",
        Some(role @ ("user" | "assistant" | "tool")) => role,
        _ => {
            return Err(wrong(
                &fields.path_of("role"),
                "one of system, developer, user, assistant, tool",
                given,
            ));
        }
    };
    let mut message = Map::new();
    message.insert("role".to_owned(), role.into());
    message.insert("content".to_owned(), parse_content(&fields, role)?);
    if let Some(name) = fields.string("name")? {
        message.insert("name".to_owned(), name.into());
    }
    match role {
        "assistant" => {
            if let Some(reasoning) = fields.string("reasoning_content")? {
                message.insert("reasoning_content".to_owned(), reasoning.into());
            }
            if let Some(calls) = parse_tool_calls(&fields)? {
                message.insert("tool_calls".to_owned(), calls);
            }
        }
        "tool" => {
            if let Some(id) = fields.string("tool_call_id")? {
                message.insert("tool_call_id".to_owned(), id.into());
            }
        }
        _ => {}
    }
    Ok(Value::Object(message))
}

/// A string, or text parts joined by line breaks. Only an assistant may have said nothing.
fn parse_content(fields: &Fields<'_>, role: &str) -> ApiResult<Value> {
    let path = fields.path_of("content");
    match fields.get("content") {
        None if role == "assistant" => Ok("".into()),
        None => Err(ApiError::field(
            &path,
            format!("'{path}' is required for role {role}"),
        )),
        Some(Value::String(text)) => Ok(text.as_str().into()),
        Some(Value::Array(parts)) => {
            let texts = parts
                .iter()
                .enumerate()
                .map(|(index, part)| parse_part(part, &format!("{path}[{index}]")));
            Ok(texts.collect::<ApiResult<Vec<_>>>()?.join("\n").into())
        }
        Some(other) => Err(wrong(&path, "a string or an array of text parts", other)),
    }
}

fn parse_part<'a>(part: &'a Value, path: &str) -> ApiResult<&'a str> {
    let fields = Fields::new(part, path)?;
    let kind = fields.require("type")?;
    match kind.as_str() {
        Some("text") => match fields.require("text")? {
            Value::String(text) => Ok(text),
            other => Err(wrong(&fields.path_of("text"), "a string", other)),
        },
        Some("refusal") => Ok(fields.string("refusal")?.unwrap_or_default()),
        Some(
            "image_url" | "input_image" | "input_audio" | "input_video" | "video_url" | "file",
        ) => Err(ApiError::unsupported_field(path)),
        _ => Err(wrong(&fields.path_of("type"), "text", kind)),
    }
}

/// Calls in an assistant's history. Templates expect `arguments` as an object, clients send it as a string of JSON.
fn parse_tool_calls(fields: &Fields<'_>) -> ApiResult<Option<Value>> {
    let Some(calls) = fields.array("tool_calls")? else {
        return Ok(None);
    };
    if calls.is_empty() {
        return Ok(None);
    }
    let path = fields.path_of("tool_calls");
    let calls = calls.iter().enumerate().map(|(index, call)| {
        let call = Fields::new(call, format!("{path}[{index}]"))?;
        if call.string("type")?.is_some_and(|kind| kind != "function") {
            return Err(wrong(
                &call.path_of("type"),
                "function",
                call.require("type")?,
            ));
        }
        let function = Fields::new(call.require("function")?, call.path_of("function"))?;
        let name = match function.require("name")? {
            Value::String(name) => name,
            other => return Err(wrong(&function.path_of("name"), "a string", other)),
        };
        let arguments = parse_arguments(&function)?;
        let mut parsed =
            json!({"type": "function", "function": {"name": name, "arguments": arguments}});
        if let Some(id) = call.string("id")? {
            parsed["id"] = id.into();
        }
        Ok(parsed)
    });
    Ok(Some(Value::Array(calls.collect::<ApiResult<_>>()?)))
}

fn parse_arguments(function: &Fields<'_>) -> ApiResult<Value> {
    match function.get("arguments") {
        None => Ok(json!({})),
        Some(Value::Object(arguments)) => Ok(Value::Object(arguments.clone())),
        // A model may have written arguments that do not parse; the client only repeats them.
        Some(Value::String(text)) => Ok(match serde_json::from_str::<Value>(text) {
            Ok(arguments @ Value::Object(_)) => arguments,
            _ if text.trim().is_empty() => json!({}),
            _ => Value::String(text.clone()),
        }),
        Some(other) => Err(wrong(
            &function.path_of("arguments"),
            "a string of JSON",
            other,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api_error::ErrorKind;
    use proptest::prelude::*;

    fn refused(messages: &Value) -> (ErrorKind, String) {
        let error = parse_messages(messages).unwrap_err();
        (error.kind, error.param.unwrap_or_default())
    }

    #[test]
    fn roles_and_parts_are_brought_into_one_form() {
        let messages = parse_messages(&json!([
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "ann"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "7"},
        ]));
        let expected = json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "a\nb", "name": "ann"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"type": "function", "function": {"name": "f", "arguments": {"x": 1}}, "id": "c1"}]},
            {"role": "tool", "content": "7", "tool_call_id": "c1"},
        ]);
        assert_eq!(Value::Array(messages.unwrap().items), expected);
    }

    #[test]
    fn faults_name_the_place() {
        let invalid = ErrorKind::InvalidRequest;
        for (messages, kind, param) in [
            (json!([]), invalid.clone(), "messages"),
            (json!("hi"), invalid.clone(), "messages"),
            (json!(["hi"]), invalid.clone(), "messages[0]"),
            (
                json!([{"content": "x"}]),
                invalid.clone(),
                "messages[0].role",
            ),
            (
                json!([{"role": "robot", "content": "x"}]),
                invalid.clone(),
                "messages[0].role",
            ),
            (
                json!([{"role": "user"}]),
                invalid.clone(),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": 5}]),
                invalid.clone(),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": [{"type": "smell"}]}]),
                invalid.clone(),
                "messages[0].content[0].type",
            ),
            (
                json!([{"role": "user", "content": [{"type": "image_url"}]}]),
                ErrorKind::NotSupported,
                "messages[0].content[0]",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{}]}]),
                invalid.clone(),
                "messages[0].tool_calls[0].function",
            ),
            (
                json!([{"role": "assistant", "tool_calls": {}}]),
                invalid.clone(),
                "messages[0].tool_calls",
            ),
            (
                json!([{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}]),
                invalid,
                "messages",
            ),
        ] {
            assert_eq!(refused(&messages), (kind, param.to_owned()), "{messages}");
        }
    }

    #[test]
    fn a_trailing_assistant_text_is_taken_off() {
        let messages =
            json!([{"role": "user", "content": "x"}, {"role": "assistant", "content": "The"}]);
        let mut messages = parse_messages(&messages).unwrap();
        assert!(messages.ends_with_assistant());
        assert_eq!(messages.take_trailing_assistant().as_deref(), Some("The"));
        assert_eq!(messages.items.len(), 1);
        assert_eq!(messages.take_trailing_assistant(), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "role|user|assistant|tool|text|\\PC{0,4}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            let key = "role|content|type|text|tool_calls|function|name|arguments|id";
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(key, inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_json_is_read_or_refused(value in any_json()) {
            let _ = parse_messages(&value);
            let _ = parse_messages(&json!([value]));
        }
    }
}
