//! One request while it is being served: its tokens, its sampler, its text on the way out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dynalm_text::Tokenizer;
use tokio::sync::mpsc::UnboundedSender;

use crate::answer_text::AnswerText;
use crate::engine::{Permit, Submission};
use crate::generation::CancelFlag;
use crate::sampler::{NoCandidate, Sampler, Scratch, logprobs};
use crate::stop::Released;
use crate::{Event, Finish, FinishReason, StopCause, Timings, TokenEvent, TokenLogprobs, Usage};

/// A sequence. Dropping it frees its place among the accepted requests.
pub(crate) struct Sequence {
    /// Name for the log.
    pub(crate) id: String,
    /// Prompt and answer so far.
    tokens: Vec<u32>,
    n_prompt_tokens: usize,
    /// Tokens of the prompt that have been computed at least once.
    n_prompt_computed: usize,
    /// Tokens of the answer, at most.
    max_completion_tokens: usize,
    n_completion_tokens: usize,
    sampler: Sampler,
    n_logprobs: Option<usize>,
    /// Ends the answer when sampled; empty where the request ignores them.
    end_tokens: Vec<u32>,
    /// The one that was sampled.
    end_token: Option<u32>,
    text: AnswerText,
    events: UnboundedSender<Event>,
    cancelled: CancelFlag,
    deadline: Option<Instant>,
    times: Times,
    _permit: Permit,
}

/// Moments in a sequence's life.
#[derive(Debug, Clone, Copy)]
struct Times {
    submitted: Instant,
    started: Option<Instant>,
    first_token: Option<Instant>,
    last_token: Option<Instant>,
}

/// What a token was to the one who waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenDelay {
    /// The first one: time since submission.
    First(Duration),
    /// A later one: time since the one before.
    Next(Duration),
}

/// A sequence that has ended, before its caller knows.
pub(crate) struct Ended {
    events: UnboundedSender<Event>,
    pub(crate) finish: Finish,
}

impl Ended {
    /// Sends the last event.
    pub(crate) fn tell(self) {
        // Nobody may be there any more: that is how most cancelled requests end.
        let _ = self.events.send(Event::Finished(self.finish));
    }
}

impl Sequence {
    /// `n_ctx`: tokens of prompt and answer together that it may have.
    pub(crate) fn new(submission: Submission, tokenizer: &Arc<Tokenizer>, n_ctx: usize) -> Self {
        let Submission {
            request,
            events,
            cancelled,
            submitted,
            permit,
        } = submission;
        let room = n_ctx - request.prompt.len().min(n_ctx);
        let end_tokens = tokenizer.end_tokens().to_vec();
        let (banned, end_tokens) = if request.ignore_eos {
            (end_tokens, Vec::new())
        } else {
            (Vec::new(), end_tokens)
        };
        Self {
            id: request.id,
            n_prompt_tokens: request.prompt.len(),
            n_prompt_computed: 0,
            tokens: request.prompt,
            max_completion_tokens: request.max_tokens.map_or(room, |limit| limit.min(room)),
            n_completion_tokens: 0,
            sampler: Sampler::new(request.sampling, &banned),
            n_logprobs: request.logprobs,
            end_tokens,
            end_token: None,
            text: AnswerText::new(tokenizer, request.stop, request.special_tokens_in_text),
            events,
            cancelled,
            deadline: request.deadline,
            times: Times {
                submitted,
                started: None,
                first_token: None,
                last_token: None,
            },
            _permit: permit,
        }
    }

    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    /// Notes that the first `n_tokens` tokens are computed; how many of the prompt's are so for the first time.
    pub(crate) fn note_computed(&mut self, n_tokens: usize) -> usize {
        let n_before = self.n_prompt_computed;
        self.n_prompt_computed = n_before.max(n_tokens.min(self.n_prompt_tokens));
        self.n_prompt_computed - n_before
    }

    /// Whether another token is wanted at all; a request for none ends with its prefill.
    pub(crate) fn wants_token(&self) -> bool {
        self.n_completion_tokens < self.max_completion_tokens
    }

    /// Why the sequence has to end before its next step, if it has to.
    pub(crate) fn interruption(&self, now: Instant) -> Option<FinishReason> {
        if self.cancelled.is_set() || self.events.is_closed() {
            return Some(FinishReason::Cancelled);
        }
        self.deadline
            .is_some_and(|deadline| deadline <= now)
            .then_some(FinishReason::DeadlineExceeded)
    }

    /// Notes the first step; the time waited for it, once.
    pub(crate) fn start(&mut self, now: Instant) -> Option<Duration> {
        if self.times.started.is_some() {
            return None;
        }
        self.times.started = Some(now);
        Some(now.saturating_duration_since(self.times.submitted))
    }

    /// Chooses the next token from the logits after the last one.
    ///
    /// # Errors
    /// [`NoCandidate`].
    pub(crate) fn sample(
        &mut self,
        logits: &[f32],
        scratch: &mut Scratch,
    ) -> Result<(u32, Option<TokenLogprobs>), NoCandidate> {
        let token = self.sampler.sample(logits, &self.tokens, scratch)?;
        let logprob = self
            .n_logprobs
            .map(|n_top| logprobs(logits, token, n_top, scratch))
            .transpose()?;
        Ok((token, logprob))
    }

    /// Notes the moment of a token.
    pub(crate) fn clock_token(&mut self, now: Instant) -> TokenDelay {
        let previous = self.times.last_token.replace(now);
        if let Some(previous) = previous {
            return TokenDelay::Next(now.saturating_duration_since(previous));
        }
        self.times.first_token = Some(now);
        TokenDelay::First(now.saturating_duration_since(self.times.submitted))
    }

    /// Appends a token and sends its event; the reason where the answer is complete with it.
    pub(crate) fn emit(
        &mut self,
        token: u32,
        logprob: Option<TokenLogprobs>,
    ) -> Option<FinishReason> {
        self.tokens.push(token);
        self.n_completion_tokens += 1;
        if self.end_tokens.contains(&token) {
            self.end_token = Some(token);
            return Some(FinishReason::Stop(StopCause::EndToken));
        }
        let released = self.text.push(token);
        // A caller that has gone is found before the next step.
        let _ = self.events.send(Event::Token(TokenEvent {
            token,
            text: released.text,
            logprob,
        }));
        match released.stop {
            Some(word) => Some(FinishReason::Stop(StopCause::Word(word))),
            None if !self.wants_token() => Some(FinishReason::Length),
            None => None,
        }
    }

    /// Ends the sequence and frees its place; its caller has still to be told.
    pub(crate) fn finish(mut self, reason: FinishReason, now: Instant) -> Ended {
        let (text, reason) = self.tail(reason);
        let finish = Finish {
            reason,
            text,
            usage: self.usage(),
            timings: self.timings(now),
        };
        Ended {
            events: self.events,
            finish,
        }
    }

    /// What was held back; it may still complete a stop string.
    fn tail(&mut self, reason: FinishReason) -> (String, FinishReason) {
        if matches!(reason, FinishReason::Stop(StopCause::Word(_))) {
            return (String::new(), reason);
        }
        let Released { text, stop } = self.text.finish(self.end_token);
        (
            text,
            stop.map_or(reason, |word| FinishReason::Stop(StopCause::Word(word))),
        )
    }

    fn usage(&self) -> Usage {
        Usage {
            prompt_tokens: self.n_prompt_tokens,
            cached_tokens: 0,
            completion_tokens: self.n_completion_tokens,
        }
    }

    fn timings(&self, now: Instant) -> Timings {
        let Times {
            submitted,
            started,
            first_token,
            ..
        } = self.times;
        let started = started.unwrap_or(now);
        let decode_from = first_token.unwrap_or(now);
        Timings {
            queue: started.saturating_duration_since(submitted),
            prefill: decode_from.saturating_duration_since(started),
            decode: now.saturating_duration_since(decode_from),
            first_token: first_token.map(|first| first.saturating_duration_since(submitted)),
        }
    }
}
