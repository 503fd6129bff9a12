//! Limits and switches that all generating routes of the OpenAI and llama-server dialects share.

use dynalm_engine::{MAX_STOP_BYTES, MAX_STOP_STRINGS};
use serde_json::Value;

use super::fields::{Fields, wrong};
use crate::api_error::{ApiError, ApiResult};

/// What to generate and how to send it, beside prompt and sampling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GenerationOptions {
    /// Most tokens per choice; `None`: until the context is full.
    pub(crate) max_tokens: Option<usize>,
    /// Stop strings.
    pub(crate) stop: Vec<String>,
    /// Generate on past end tokens.
    pub(crate) ignore_eos: bool,
    /// Choices per prompt, at least 1.
    pub(crate) n: usize,
    /// Server-sent events instead of one body.
    pub(crate) stream: bool,
    /// A last chunk with `usage`.
    pub(crate) include_usage: bool,
    /// `timings` in every chunk.
    pub(crate) timings_per_token: bool,
}

/// Reads the shared fields. `max_choices` bounds `n`.
pub(crate) fn parse_options(
    fields: &Fields<'_>,
    max_choices: usize,
) -> ApiResult<GenerationOptions> {
    let stream = fields.boolean("stream")?.unwrap_or(false);
    let n_high = i64::try_from(max_choices).unwrap_or(i64::MAX);
    check_without_effect(fields)?;
    Ok(GenerationOptions {
        max_tokens: parse_max_tokens(fields)?,
        stop: parse_stop(fields)?,
        ignore_eos: fields.boolean("ignore_eos")?.unwrap_or(false),
        n: fields.count("n", 1..=n_high)?.unwrap_or(1),
        stream,
        include_usage: parse_stream_options(fields, stream)?,
        timings_per_token: fields.boolean("timings_per_token")?.unwrap_or(false),
    })
}

/// Fields that cannot change an answer of this server, so that only their types matter: `cache_prompt` (what is
/// reused is exact, so the answer is the same), `n_keep` and `n_discard` (the context is never shifted), and the
/// settings of samplers that are off.
fn check_without_effect(fields: &Fields<'_>) -> ApiResult<()> {
    fields.boolean("cache_prompt")?;
    fields.integer("n_keep", -1..=i64::from(i32::MAX))?;
    fields.integer("n_discard", 0..=i64::from(i32::MAX))?;
    fields.integer("dry_allowed_length", -1..=i64::from(i32::MAX))?;
    fields.integer("dry_penalty_last_n", -1..=i64::from(i32::MAX))?;
    for name in [
        "dry_base",
        "dynatemp_exponent",
        "mirostat_tau",
        "mirostat_eta",
        "xtc_threshold",
    ] {
        fields.number(name, f64::MIN..=f64::MAX)?;
    }
    fields.array("dry_sequence_breakers")?;
    Ok(())
}

/// `max_completion_tokens` is the newer name; where both are given the smaller holds. -1 means no limit.
fn parse_max_tokens(fields: &Fields<'_>) -> ApiResult<Option<usize>> {
    let mut limit: Option<usize> = None;
    for name in ["max_completion_tokens", "max_tokens", "n_predict"] {
        let given = fields.count(name, -1..=i64::from(i32::MAX))?;
        limit = match (limit, given) {
            (Some(limit), Some(given)) => Some(limit.min(given)),
            (limit, given) => limit.or(given),
        };
    }
    Ok(limit)
}

fn parse_stop(fields: &Fields<'_>) -> ApiResult<Vec<String>> {
    let items = match fields.get("stop") {
        None => return Ok(Vec::new()),
        Some(Value::String(word)) => return check_stop_words(vec![word.clone()]),
        Some(Value::Array(items)) => items,
        Some(other) => return Err(wrong("stop", "a string or an array of strings", other)),
    };
    let words = items.iter().enumerate().map(|(index, item)| match item {
        Value::String(word) => Ok(word.clone()),
        other => Err(wrong(&format!("stop[{index}]"), "a string", other)),
    });
    check_stop_words(words.collect::<ApiResult<_>>()?)
}

/// Empty strings are dropped: they would stop before anything was said, which nobody means.
fn check_stop_words(mut words: Vec<String>) -> ApiResult<Vec<String>> {
    words.retain(|word| !word.is_empty());
    if words.len() > MAX_STOP_STRINGS {
        let message = format!(
            "'stop' must hold at most {MAX_STOP_STRINGS} strings, got {}",
            words.len()
        );
        return Err(ApiError::field("stop", message));
    }
    if let Some(long) = words.iter().find(|word| word.len() > MAX_STOP_BYTES) {
        let message = format!(
            "each string of 'stop' must have at most {MAX_STOP_BYTES} bytes, got {}",
            long.len()
        );
        return Err(ApiError::field("stop", message));
    }
    Ok(words)
}

fn parse_stream_options(fields: &Fields<'_>, stream: bool) -> ApiResult<bool> {
    let Some(options) = fields.object("stream_options")? else {
        return Ok(false);
    };
    let include_usage = options.boolean("include_usage")?.unwrap_or(false);
    if !stream && include_usage {
        return Err(ApiError::field(
            "stream_options",
            "'stream_options' needs 'stream' to be true",
        ));
    }
    Ok(include_usage)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn parse(body: &Value) -> ApiResult<GenerationOptions> {
        parse_options(&Fields::new(body, "").unwrap(), 8)
    }

    #[test]
    fn the_smaller_of_the_token_limits_holds_and_minus_one_is_none() {
        assert_eq!(parse(&json!({})).unwrap().max_tokens, None);
        assert_eq!(
            parse(&json!({"max_tokens": 5})).unwrap().max_tokens,
            Some(5)
        );
        assert_eq!(
            parse(&json!({"max_tokens": 5, "max_completion_tokens": 3}))
                .unwrap()
                .max_tokens,
            Some(3)
        );
        assert_eq!(parse(&json!({"max_tokens": -1})).unwrap().max_tokens, None);
        assert_eq!(parse(&json!({"n_predict": 0})).unwrap().max_tokens, Some(0));
        assert_eq!(
            parse(&json!({"max_tokens": -2}))
                .unwrap_err()
                .param
                .as_deref(),
            Some("max_tokens")
        );
    }

    #[test]
    fn stop_takes_a_string_or_strings_only() {
        assert_eq!(parse(&json!({"stop": "a"})).unwrap().stop, ["a"]);
        assert_eq!(
            parse(&json!({"stop": ["a", "", "b"]})).unwrap().stop,
            ["a", "b"]
        );
        assert_eq!(parse(&json!({"stop": null})).unwrap().stop, [""; 0]);
        assert_eq!(
            parse(&json!({"stop": 5})).unwrap_err().message,
            "'stop' must be a string or an array of strings, got 5"
        );
        assert_eq!(
            parse(&json!({"stop": ["a", 5]}))
                .unwrap_err()
                .param
                .as_deref(),
            Some("stop[1]")
        );
        assert!(parse(&json!({"stop": vec!["x"; 65]})).is_err());
        assert!(parse(&json!({"stop": "x".repeat(1025)})).is_err());
    }

    #[test]
    fn n_and_stream_options_are_checked() {
        assert_eq!(parse(&json!({"n": 8})).unwrap().n, 8);
        assert_eq!(
            parse(&json!({"n": 9})).unwrap_err().message,
            "'n' must be an integer from 1 to 8, got 9"
        );
        assert!(
            parse(&json!({"stream": true, "stream_options": {"include_usage": true}}))
                .unwrap()
                .include_usage
        );
        assert!(parse(&json!({"stream_options": {"include_usage": true}})).is_err());
        assert!(parse(&json!({"stream": true, "stream_options": 3})).is_err());
    }

    proptest! {
        #[test]
        fn any_value_of_any_field_is_read_or_refused(name in "stop|n|max_tokens|stream|stream_options|ignore_eos|n_keep", text in "\\PC{0,8}", number in any::<f64>()) {
            for value in [json!(text), json!(number), json!([number]), json!({ &text: number }), json!([[text]])] {
                let _ = parse(&json!({ &name: value }));
            }
        }
    }
}
