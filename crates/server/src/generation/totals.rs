//! Tokens and times of one HTTP request, over all its choices, in the clients' forms.

use std::time::Duration;

use dynalm_engine::{Finish, Usage};
use serde::Serialize;

use crate::request_context::RequestFacts;

/// Sums over choices, and what a running stream can say before it has ended.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    usage: Usage,
    /// Prompt tokens computed, each choice counted.
    prompt_n: usize,
    prefill: Duration,
    decode: Duration,
    /// Tokens seen so far, and the moments of the first and the last since the request's arrival.
    n_tokens: usize,
    first_token: Duration,
    last_token: Duration,
}

impl Totals {
    /// One token arrived `after` the request did.
    pub(crate) fn note_token(&mut self, after: Duration, facts: &RequestFacts) {
        if self.n_tokens == 0 {
            self.first_token = after;
            facts.note_first_token(after);
        }
        self.n_tokens += 1;
        self.last_token = after;
    }

    /// One choice ended. `of_prompt`: it is its prompt's first, which stands for the prompt's tokens.
    pub(crate) fn add(&mut self, finish: &Finish, of_prompt: bool) {
        let counted = counted(finish.usage, of_prompt);
        self.usage.prompt_tokens += counted.prompt_tokens;
        self.usage.cached_tokens += counted.cached_tokens;
        self.usage.completion_tokens += counted.completion_tokens;
        self.prompt_n += finish
            .usage
            .prompt_tokens
            .saturating_sub(finish.usage.cached_tokens);
        self.prefill += finish.timings.prefill;
        self.decode += finish.timings.decode;
    }

    /// OpenAI's `usage`.
    pub(crate) fn usage(&self) -> UsageBody {
        UsageBody {
            prompt_tokens: self.usage.prompt_tokens,
            completion_tokens: self.usage.completion_tokens,
            total_tokens: self.usage.prompt_tokens + self.usage.completion_tokens,
            prompt_tokens_details: PromptTokensDetails {
                cached_tokens: self.usage.cached_tokens,
            },
        }
    }

    /// llama-server's `timings` of the whole request.
    pub(crate) fn timings(&self) -> TimingsBody {
        TimingsBody::new(
            self.usage.cached_tokens,
            Span {
                n: self.prompt_n,
                time: self.prefill,
            },
            Span {
                n: self.usage.completion_tokens,
                time: self.decode,
            },
        )
    }

    /// `timings` of a stream that still runs, as seen from here: the wait for the first token stands for the prompt,
    /// of which `n_prompt_tokens` are known; what came from the cache is known only at the end.
    pub(crate) fn running_timings(&self, n_prompt_tokens: usize) -> TimingsBody {
        let decode = self.last_token.saturating_sub(self.first_token);
        TimingsBody::new(
            0,
            Span {
                n: n_prompt_tokens,
                time: self.first_token,
            },
            Span {
                n: self.n_tokens,
                time: decode,
            },
        )
    }
}

/// What a choice adds to `usage`: a prompt counts once, however many choices it has.
pub(crate) fn counted(usage: Usage, of_prompt: bool) -> Usage {
    if of_prompt {
        usage
    } else {
        Usage {
            prompt_tokens: 0,
            cached_tokens: 0,
            ..usage
        }
    }
}

/// OpenAI's `usage`.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct UsageBody {
    completion_tokens: usize,
    prompt_tokens: usize,
    total_tokens: usize,
    prompt_tokens_details: PromptTokensDetails,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct PromptTokensDetails {
    cached_tokens: usize,
}

/// llama-server's `timings`, times in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct TimingsBody {
    cache_n: usize,
    prompt_n: usize,
    prompt_ms: f64,
    prompt_per_token_ms: f64,
    prompt_per_second: f64,
    predicted_n: usize,
    predicted_ms: f64,
    predicted_per_token_ms: f64,
    predicted_per_second: f64,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    n: usize,
    time: Duration,
}

impl Span {
    fn ms(self) -> f64 {
        self.time.as_secs_f64() * 1e3
    }

    fn per_token_ms(self) -> f64 {
        if self.n == 0 {
            0.0
        } else {
            self.ms() / self.n as f64
        }
    }

    fn per_second(self) -> f64 {
        if self.time.is_zero() {
            0.0
        } else {
            self.n as f64 / self.time.as_secs_f64()
        }
    }
}

impl TimingsBody {
    fn new(cache_n: usize, prompt: Span, predicted: Span) -> Self {
        Self {
            cache_n,
            prompt_n: prompt.n,
            prompt_ms: prompt.ms(),
            prompt_per_token_ms: prompt.per_token_ms(),
            prompt_per_second: prompt.per_second(),
            predicted_n: predicted.n,
            predicted_ms: predicted.ms(),
            predicted_per_token_ms: predicted.per_token_ms(),
            predicted_per_second: predicted.per_second(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynalm_engine::{FinishReason, Timings};

    fn finish(cached_tokens: usize) -> Finish {
        let usage = Usage {
            prompt_tokens: 10,
            cached_tokens,
            completion_tokens: 4,
        };
        let timings = Timings {
            prefill: Duration::from_millis(100),
            decode: Duration::from_millis(200),
            ..Timings::default()
        };
        Finish {
            reason: FinishReason::Length,
            text: String::new(),
            usage,
            timings,
        }
    }

    #[test]
    fn a_prompt_counts_once_and_every_answer_counts() {
        let mut totals = Totals::default();
        totals.add(&finish(2), true);
        totals.add(&finish(10), false);
        let usage = serde_json::to_value(totals.usage()).unwrap();
        let expected = serde_json::json!({
            "completion_tokens": 8, "prompt_tokens": 10, "total_tokens": 18,
            "prompt_tokens_details": {"cached_tokens": 2},
        });
        assert_eq!(usage, expected);
        let timings = serde_json::to_value(totals.timings()).unwrap();
        assert_eq!(timings["prompt_n"], 8);
        assert_eq!(timings["prompt_ms"], 200.0);
        assert_eq!(timings["predicted_per_second"], 20.0);
    }

    #[test]
    fn nothing_done_gives_zeros_and_no_division_by_zero() {
        let timings = serde_json::to_value(Totals::default().timings()).unwrap();
        assert!(
            timings
                .as_object()
                .unwrap()
                .values()
                .all(|value| value.as_f64() == Some(0.0)),
            "{timings}"
        );
    }

    #[test]
    fn a_running_stream_has_timings_as_seen_from_here() {
        let facts = RequestFacts::default();
        let mut totals = Totals::default();
        for ms in [50, 60, 70] {
            totals.note_token(Duration::from_millis(ms), &facts);
        }
        let timings = serde_json::to_value(totals.running_timings(5)).unwrap();
        assert_eq!(
            (&timings["prompt_n"], &timings["predicted_n"]),
            (&5.into(), &3.into())
        );
        assert_eq!(timings["predicted_ms"], 20.0);
        assert_eq!(facts.first_token(), Some(Duration::from_millis(50)));
    }
}
