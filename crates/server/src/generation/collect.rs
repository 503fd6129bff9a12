//! The way out without a stream: all events of all choices, gathered.

use dynalm_engine::{Event, FinishReason, TokenLogprobs};

use super::totals::Totals;
use super::{Choices, finish_error};
use crate::api_error::ApiResult;

/// One finished choice.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) text: String,
    /// Token ids with their log-probabilities, where asked for.
    pub(crate) logprobs: Vec<CollectedToken>,
    pub(crate) reason: FinishReason,
}

/// One token and what is known of it.
#[derive(Debug)]
pub(crate) struct CollectedToken {
    pub(crate) token: u32,
    pub(crate) logprobs: TokenLogprobs,
}

/// Runs all choices to their ends. The first that fails decides the answer, and the others are cancelled.
pub(crate) async fn collect(
    mut choices: Choices,
    n_choices: usize,
) -> ApiResult<(Vec<Collected>, Totals)> {
    let new = || Collected {
        text: String::new(),
        logprobs: Vec::new(),
        reason: FinishReason::Cancelled,
    };
    let mut collected: Vec<Collected> = std::iter::repeat_with(new).take(n_choices).collect();
    while let Some((index, event)) = choices.next().await {
        let choice = &mut collected[index];
        match event {
            Event::Token(token) => {
                choice.text.push_str(&token.text);
                if let Some(logprobs) = token.logprob {
                    choice.logprobs.push(CollectedToken {
                        token: token.token,
                        logprobs,
                    });
                }
            }
            Event::Finished(finish) => {
                if let Some(error) = finish_error(&finish, choices.context()) {
                    return Err(error);
                }
                choice.text.push_str(&finish.text);
                choice.reason = finish.reason;
            }
        }
    }
    Ok((collected, *choices.totals()))
}
