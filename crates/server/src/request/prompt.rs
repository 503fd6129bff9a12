//! A prompt as a client may give it, and its way to token ids.

use dynalm_text::{DecodeOptions, EncodeOptions, Tokenizer};
use serde_json::Value;

use super::fields::{whole_number, wrong};
use crate::api_error::{ApiError, ApiResult};

/// One prompt: text and token ids in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Prompt {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Tokens(Vec<u32>),
}

impl Prompt {
    /// Token ids. Text at the beginning gets the model's begin-of-text token; ids are taken as given.
    pub(crate) fn tokenize(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        let mut ids = Vec::new();
        for (index, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Tokens(tokens) => ids.extend_from_slice(tokens),
                Piece::Text(text) => {
                    let options = EncodeOptions {
                        add_special: index == 0,
                        parse_special: true,
                    };
                    ids.extend(tokenizer.encode(text, options));
                }
            }
        }
        ids
    }

    /// The prompt as text, for `echo`.
    pub(crate) fn text(&self, tokenizer: &Tokenizer) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Tokens(tokens) => {
                    let options = DecodeOptions {
                        special: true,
                        strip_added: false,
                    };
                    text.push_str(&String::from_utf8_lossy(&tokenizer.decode(tokens, options)));
                }
            }
        }
        text
    }
}

/// Reads `prompt`: a string, token ids, a mix of both (one prompt each), or an array of these.
pub(crate) fn parse_prompts(
    value: &Value,
    vocab_size: usize,
    max_prompts: usize,
) -> ApiResult<Vec<Prompt>> {
    let items = match value {
        Value::String(text) => {
            return Ok(vec![Prompt {
                pieces: vec![Piece::Text(text.clone())],
            }]);
        }
        Value::Array(items) if items.is_empty() => {
            return Err(ApiError::field("prompt", "'prompt' must not be empty"));
        }
        Value::Array(items) => items,
        other => return Err(wrong("prompt", EXPECTED, other)),
    };
    // Numbers at this level make it one prompt; else each item is a prompt of its own.
    if items.iter().any(Value::is_number) {
        return Ok(vec![parse_mixed(items, "prompt", vocab_size)?]);
    }
    if items.len() > max_prompts {
        let message = format!(
            "'prompt' must hold at most {max_prompts} prompts, got {}",
            items.len()
        );
        return Err(ApiError::field("prompt", message));
    }
    let prompts = items.iter().enumerate().map(|(index, item)| match item {
        Value::String(text) => Ok(Prompt {
            pieces: vec![Piece::Text(text.clone())],
        }),
        Value::Array(inner) => parse_mixed(inner, &format!("prompt[{index}]"), vocab_size),
        other => Err(wrong(&format!("prompt[{index}]"), EXPECTED, other)),
    });
    prompts.collect()
}

const EXPECTED: &str = "a string, an array of token ids, or an array of these";

fn parse_mixed(items: &[Value], path: &str, vocab_size: usize) -> ApiResult<Prompt> {
    if items.is_empty() {
        return Err(ApiError::field(path, format!("'{path}' must not be empty")));
    }
    let mut pieces: Vec<Piece> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item {
            Value::String(text) => pieces.push(Piece::Text(text.clone())),
            Value::Number(_) => {
                let token = parse_token(item, vocab_size).ok_or_else(|| {
                    let expected = format!("a token id from 0 to {}", vocab_size.saturating_sub(1));
                    wrong(&format!("{path}[{index}]"), &expected, item)
                })?;
                match pieces.last_mut() {
                    Some(Piece::Tokens(tokens)) => tokens.push(token),
                    _ => pieces.push(Piece::Tokens(vec![token])),
                }
            }
            other => {
                return Err(wrong(
                    &format!("{path}[{index}]"),
                    "a token id or a string",
                    other,
                ));
            }
        }
    }
    Ok(Prompt { pieces })
}

fn parse_token(value: &Value, vocab_size: usize) -> Option<u32> {
    let token = u32::try_from(whole_number(value)?).ok()?;
    ((token as usize) < vocab_size).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn text(text: &str) -> Prompt {
        Prompt {
            pieces: vec![Piece::Text(text.to_owned())],
        }
    }

    fn check(value: &Value, expected: &[Prompt]) {
        assert_eq!(parse_prompts(value, 100, 4).unwrap(), expected, "{value}");
    }

    #[test]
    fn all_forms_are_read() {
        let tokens = |ids: &[u32]| Prompt {
            pieces: vec![Piece::Tokens(ids.to_vec())],
        };
        check(&json!("a"), &[text("a")]);
        check(&json!(["a", "b"]), &[text("a"), text("b")]);
        check(&json!([1, 2]), &[tokens(&[1, 2])]);
        check(
            &json!([[1], [2, 3], "c"]),
            &[tokens(&[1]), tokens(&[2, 3]), text("c")],
        );
        let mixed = vec![
            Piece::Tokens(vec![1, 2]),
            Piece::Text("x".to_owned()),
            Piece::Tokens(vec![3]),
        ];
        check(&json!([1, 2, "x", 3]), &[Prompt { pieces: mixed }]);
    }

    #[test]
    fn faults_name_the_place() {
        for (value, param) in [
            (json!(5), "prompt"),
            (json!([]), "prompt"),
            (json!([[1], []]), "prompt[1]"),
            (json!([1, 100]), "prompt[1]"),
            (json!([1, -1]), "prompt[1]"),
            (json!([1.5]), "prompt[0]"),
            (json!([[1, [2]]]), "prompt[0][1]"),
            (json!([{"a": 1}]), "prompt[0]"),
            (json!([1, null]), "prompt[1]"),
            (json!(["a", "b", "c", "d", "e"]), "prompt"),
        ] {
            assert_eq!(
                parse_prompts(&value, 100, 4).unwrap_err().param.as_deref(),
                Some(param),
                "{value}"
            );
        }
    }

    proptest! {
        #[test]
        fn accepted_ids_are_in_the_vocabulary(ids in prop::collection::vec(-3_i64..120, 1..6)) {
            let accepted = parse_prompts(&json!(ids), 100, 4).is_ok();
            prop_assert_eq!(accepted, ids.iter().all(|id| (0..100).contains(id)));
        }
    }
}
