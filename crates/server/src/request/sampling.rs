//! Sampling parameters of the OpenAI and llama-server dialects, read into [`Sampling`].

use dynalm_engine::Sampling;
use dynalm_text::{EncodeOptions, Tokenizer};
use serde_json::Value;

use super::fields::{Fields, whole_number, wrong};
use crate::api_error::{ApiError, ApiResult};

/// Most entries of `logit_bias`; each is added to the logits of every step.
const MAX_LOGIT_BIASES: usize = 1024;

/// Text to token ids.
type Encode<'a> = &'a dyn Fn(&str) -> Vec<u32>;

/// Reads all sampling fields; those absent keep the engine's defaults, which are llama-server's.
pub(crate) fn parse_sampling(
    fields: &Fields<'_>,
    vocab_size: usize,
    tokenizer: &Tokenizer,
) -> ApiResult<Sampling> {
    let default = Sampling::default();
    Ok(Sampling {
        temperature: fields
            .number("temperature", 0.0..=100.0)?
            .unwrap_or(default.temperature),
        // Zero and below mean no limit, as in llama-server.
        top_k: match fields.integer("top_k", -1..=i64::from(i32::MAX))? {
            Some(top_k) => usize::try_from(top_k).unwrap_or(0),
            None => default.top_k,
        },
        top_p: fields.number("top_p", 0.0..=1.0)?.unwrap_or(default.top_p),
        min_p: fields.number("min_p", 0.0..=1.0)?.unwrap_or(default.min_p),
        repeat_penalty: fields
            .number("repeat_penalty", 0.01..=100.0)?
            .unwrap_or(default.repeat_penalty),
        repeat_last_n: fields
            .count("repeat_last_n", 0..=i64::from(i32::MAX))?
            .unwrap_or(default.repeat_last_n),
        presence_penalty: fields
            .number("presence_penalty", -2.0..=2.0)?
            .unwrap_or(default.presence_penalty),
        frequency_penalty: fields
            .number("frequency_penalty", -2.0..=2.0)?
            .unwrap_or(default.frequency_penalty),
        seed: parse_seed(fields)?,
        logit_bias: match fields.get("logit_bias") {
            Some(value) => parse_logit_bias(value, vocab_size, &|text| {
                tokenizer.encode(
                    text,
                    EncodeOptions {
                        add_special: false,
                        parse_special: true,
                    },
                )
            })?,
            None => Vec::new(),
        },
    })
}

/// -1 asks for a random seed, as in llama-server.
fn parse_seed(fields: &Fields<'_>) -> ApiResult<Option<u64>> {
    // llama-server's own clients send the unsigned 2^32 - 1 for "random"; it is a seed like any other here.
    if let Some(seed) = fields.get("seed").and_then(Value::as_u64) {
        return Ok(Some(seed));
    }
    let seed = fields.integer("seed", i64::MIN..=i64::MAX)?;
    Ok(seed.filter(|&seed| seed != -1).map(i64::cast_unsigned))
}

/// `{"id": bias}` as in OpenAI's API, or llama-server's `[[id or text, bias or false]]`, where `false` bans.
/// Text stands for each of its tokens.
fn parse_logit_bias(
    value: &Value,
    vocab_size: usize,
    encode: Encode<'_>,
) -> ApiResult<Vec<(u32, f32)>> {
    let mut biases = Vec::new();
    match value {
        Value::Object(entries) => {
            for (key, bias) in entries {
                let bias = parse_bias(bias)?;
                match key.trim().parse::<i64>() {
                    Ok(id) => biases.push((checked_token(id, vocab_size)?, bias)),
                    Err(_) => push_text(&mut biases, key, bias, encode),
                }
            }
        }
        Value::Array(pairs) => {
            for pair in pairs {
                match pair.as_array().map(Vec::as_slice) {
                    Some([Value::String(text), bias]) => {
                        push_text(&mut biases, text, parse_bias(bias)?, encode)
                    }
                    Some([id, bias]) if whole_number(id).is_some() => {
                        let id = whole_number(id).unwrap_or_default();
                        biases.push((checked_token(id, vocab_size)?, parse_bias(bias)?));
                    }
                    _ => {
                        return Err(wrong(
                            "logit_bias",
                            "an object or an array of [token, bias] pairs",
                            pair,
                        ));
                    }
                }
            }
        }
        other => {
            return Err(wrong(
                "logit_bias",
                "an object or an array of [token, bias] pairs",
                other,
            ));
        }
    }
    if biases.len() > MAX_LOGIT_BIASES {
        let message = format!(
            "'logit_bias' must hold at most {MAX_LOGIT_BIASES} tokens, got {}",
            biases.len()
        );
        return Err(ApiError::field("logit_bias", message));
    }
    Ok(biases)
}

fn push_text(biases: &mut Vec<(u32, f32)>, text: &str, bias: f32, encode: Encode<'_>) {
    // One more than allowed is enough to be refused; a long text need not be tokenized for it.
    if text.len() <= 1024 && biases.len() <= MAX_LOGIT_BIASES {
        biases.extend(encode(text).into_iter().map(|token| (token, bias)));
    } else {
        biases.resize(MAX_LOGIT_BIASES + 1, (0, 0.0));
    }
}

fn checked_token(id: i64, vocab_size: usize) -> ApiResult<u32> {
    match u32::try_from(id) {
        Ok(token) if (token as usize) < vocab_size => Ok(token),
        _ => Err(ApiError::field(
            "logit_bias",
            format!(
                "'logit_bias' names token {id}; ids go from 0 to {}",
                vocab_size.saturating_sub(1)
            ),
        )),
    }
}

fn parse_bias(value: &Value) -> ApiResult<f32> {
    match value {
        Value::Bool(false) => Ok(f32::NEG_INFINITY),
        Value::Number(bias) => match bias.as_f64() {
            Some(bias) if (-100.0..=100.0).contains(&bias) => Ok(bias as f32),
            _ => Err(wrong(
                "logit_bias",
                "a number from -100 to 100 for each token, or false",
                value,
            )),
        },
        other => Err(wrong(
            "logit_bias",
            "a number from -100 to 100 for each token, or false",
            other,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// One token per byte.
    fn parse(value: &Value) -> ApiResult<Vec<(u32, f32)>> {
        parse_logit_bias(value, 256, &|text| text.bytes().map(u32::from).collect())
    }

    #[test]
    fn biases_come_as_an_object_or_as_pairs() {
        assert_eq!(
            parse(&json!({"5": -100, " 7": 1.5, "ab": 2})).unwrap(),
            [(5, -100.0), (7, 1.5), (97, 2.0), (98, 2.0)]
        );
        assert_eq!(
            parse(&json!([[5, 1], ["a", false]])).unwrap(),
            [(5, 1.0), (97, f32::NEG_INFINITY)]
        );
    }

    #[test]
    fn faults_are_refused() {
        for value in [
            json!({"256": 1}),
            json!({"-1": 1}),
            json!({"1": 101}),
            json!({"1": true}),
            json!({"1": "x"}),
            json!(5),
            json!([5]),
            json!([[5]]),
            json!([[5, 1, 2]]),
            json!([[1.5, 1]]),
            json!([[300, 1]]),
            json!({"x".repeat(2000): 1}),
            json!((0..1100).map(|id| json!([id % 256, 1])).collect::<Vec<_>>()),
        ] {
            assert_eq!(
                parse(&value).unwrap_err().param.as_deref(),
                Some("logit_bias"),
                "{value}"
            );
        }
    }

    #[test]
    fn seeds_of_any_sign_are_taken_and_minus_one_is_random() {
        let seed = |value: Value| parse_seed(&Fields::new(&json!({"seed": value}), "").unwrap());
        assert_eq!(seed(json!(7)).unwrap(), Some(7));
        assert_eq!(seed(json!(-1)).unwrap(), None);
        assert_eq!(seed(json!(u64::MAX)).unwrap(), Some(u64::MAX));
        assert!(seed(json!(-2)).unwrap().is_some());
        assert!(seed(json!(1.5)).is_err());
    }

    proptest! {
        #[test]
        fn an_accepted_bias_is_in_range(id in -300_i64..600, bias in -200.0..200.0_f64) {
            let accepted = parse(&json!([[id, bias]])).is_ok();
            prop_assert_eq!(accepted, (0..256).contains(&id) && (-100.0..=100.0).contains(&bias));
        }
    }
}
