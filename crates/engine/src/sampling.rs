//! How the next token is chosen: parameters and their ranges.

use crate::SubmitError;

/// Parameters of the sampler. They apply in this order: logit bias, penalties, top-k, top-p, min-p,
/// temperature. The defaults are llama-server's.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// Divides the logits before the draw; 0 takes the most likely token (of equals the lowest id).
    /// 0 to 100, default 0.8.
    pub temperature: f32,
    /// Only this many most likely tokens stay; 0 keeps all. Default 40.
    pub top_k: usize,
    /// The most likely tokens stay that together reach this probability; 1 keeps all. 0 to 1, default 0.95.
    pub top_p: f32,
    /// Tokens stay whose probability is at least this share of the best one's; 0 keeps all. 0 to 1, default 0.05.
    pub min_p: f32,
    /// Logits of tokens in the window are divided (negative ones multiplied) by this; 1 is off. 0.01 to 100, default 1.
    pub repeat_penalty: f32,
    /// The penalties' window: the last tokens of prompt and answer; 0 turns all penalties off. Default 64.
    pub repeat_last_n: usize,
    /// Subtracted from the logits of tokens in the window. -100 to 100, default 0.
    pub presence_penalty: f32,
    /// Subtracted from the logits of tokens in the window once per occurrence. -100 to 100, default 0.
    pub frequency_penalty: f32,
    /// Start of the random numbers: the same seed gives the same text, whatever else is being served.
    /// `None` takes a new one for each request.
    pub seed: Option<u64>,
    /// Added to the logits of single tokens; negative infinity bans a token.
    pub logit_bias: Vec<(u32, f32)>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            repeat_last_n: 64,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            seed: None,
            logit_bias: Vec::new(),
        }
    }
}

impl Sampling {
    /// Always the most likely token.
    pub fn greedy() -> Self {
        Self {
            temperature: 0.0,
            ..Self::default()
        }
    }

    /// Checks each field against its range.
    ///
    /// # Errors
    /// [`SubmitError::Invalid`] with the field's name and range, [`SubmitError::TokenOutOfRange`] for a biased token.
    pub fn validate(&self, vocab_size: usize) -> Result<(), SubmitError> {
        for (field, value, low, high) in [
            ("temperature", self.temperature, 0.0, 100.0),
            ("top_p", self.top_p, 0.0, 1.0),
            ("min_p", self.min_p, 0.0, 1.0),
            ("repeat_penalty", self.repeat_penalty, 0.01, 100.0),
            ("presence_penalty", self.presence_penalty, -100.0, 100.0),
            ("frequency_penalty", self.frequency_penalty, -100.0, 100.0),
        ] {
            if !(low..=high).contains(&value) {
                return Err(SubmitError::invalid(
                    field,
                    format!("must be between {low} and {high}, found {value}"),
                ));
            }
        }
        if self.logit_bias.len() > vocab_size {
            return Err(SubmitError::invalid(
                "logit_bias",
                format!(
                    "must hold at most {vocab_size} tokens, found {}",
                    self.logit_bias.len()
                ),
            ));
        }
        for (position, &(token, bias)) in self.logit_bias.iter().enumerate() {
            if token as usize >= vocab_size {
                return Err(SubmitError::TokenOutOfRange {
                    token,
                    position,
                    vocab_size,
                });
            }
            if bias.is_nan() || bias == f32::INFINITY {
                return Err(SubmitError::invalid(
                    "logit_bias",
                    format!(
                        "each value must be a number below infinity, found {bias} for token {token}"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Whether any penalty changes a logit.
    pub(crate) fn has_penalties(&self) -> bool {
        self.repeat_last_n > 0
            && (self.repeat_penalty != 1.0
                || self.presence_penalty != 0.0
                || self.frequency_penalty != 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        assert_eq!(Sampling::default().validate(10), Ok(()));
        assert_eq!(Sampling::greedy().validate(10), Ok(()));
    }

    #[test]
    fn each_field_out_of_range_is_named_with_its_range() {
        let base = Sampling::default;
        let cases: Vec<(&str, &str, Sampling)> = vec![
            (
                "temperature",
                "0 and 100",
                Sampling {
                    temperature: -0.1,
                    ..base()
                },
            ),
            (
                "temperature",
                "0 and 100",
                Sampling {
                    temperature: f32::NAN,
                    ..base()
                },
            ),
            (
                "temperature",
                "0 and 100",
                Sampling {
                    temperature: f32::INFINITY,
                    ..base()
                },
            ),
            (
                "top_p",
                "0 and 1",
                Sampling {
                    top_p: 1.01,
                    ..base()
                },
            ),
            (
                "min_p",
                "0 and 1",
                Sampling {
                    min_p: -1.0,
                    ..base()
                },
            ),
            (
                "repeat_penalty",
                "0.01 and 100",
                Sampling {
                    repeat_penalty: 0.0,
                    ..base()
                },
            ),
            (
                "presence_penalty",
                "-100 and 100",
                Sampling {
                    presence_penalty: 101.0,
                    ..base()
                },
            ),
            (
                "frequency_penalty",
                "-100 and 100",
                Sampling {
                    frequency_penalty: -101.0,
                    ..base()
                },
            ),
            (
                "logit_bias",
                "below infinity",
                Sampling {
                    logit_bias: vec![(1, f32::NAN)],
                    ..base()
                },
            ),
            (
                "logit_bias",
                "at most 10",
                Sampling {
                    logit_bias: vec![(1, 0.0); 11],
                    ..base()
                },
            ),
        ];
        for (field, range, sampling) in cases {
            let error = sampling.validate(10).expect_err(field).to_string();
            assert!(error.contains(field) && error.contains(range), "{error}");
        }
        let sampling = Sampling {
            logit_bias: vec![(10, 1.0)],
            ..base()
        };
        assert!(matches!(
            sampling.validate(10),
            Err(SubmitError::TokenOutOfRange { token: 10, .. })
        ));
        let banned = Sampling {
            logit_bias: vec![(1, f32::NEG_INFINITY)],
            ..base()
        };
        assert_eq!(banned.validate(10), Ok(()));
    }
}
