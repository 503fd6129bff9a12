//! The engine's thread: takes requests, and repeats the step until none is left.
//!
//! A step is four calls: `schedule`, `forward`, `sample`, `emit`. Whatever a step does to its own sequences, the thread
//! lives on: a panic in the forward pass ends the sequences of that step, a panic while one sequence is sampled or sent
//! ends that one, and one anywhere else ends all and starts over with an empty pool.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Instant;

use dynalm_model::{Batch, LogitsWanted, SequenceRows};
use dynalm_text::Tokenizer;

use crate::engine::{Shared, Submission};
use crate::sampler::Scratch;
use crate::scheduler::{Plan, PlannedRows, Scheduler, SeqId, StepLimits};
use crate::sequence::{Ended, Sequence, TokenDelay};
use crate::{EngineStats, FinishReason, StepModel, TokenLogprobs};

/// Everything the thread owns.
pub(crate) struct Core {
    model: Box<dyn StepModel>,
    tokenizer: Arc<Tokenizer>,
    shared: Arc<Shared>,
    limits: StepLimits,
    scheduler: Scheduler,
    sequences: BTreeMap<SeqId, Sequence>,
    scratch: Scratch,
    next_id: u64,
    /// The thread's own figures; a copy is published after each step.
    stats: EngineStats,
    /// Ends not yet told: the figures are published first, so that whoever hears of an end finds it counted.
    ended: Vec<Ended>,
}

/// What sampling gave for one sequence.
type Sampled = Result<(u32, Option<TokenLogprobs>), FinishReason>;

impl Core {
    pub(crate) fn new(
        model: Box<dyn StepModel>,
        tokenizer: Arc<Tokenizer>,
        shared: Arc<Shared>,
        limits: StepLimits,
    ) -> Self {
        let scheduler = Scheduler::new(limits, shared.info().kv_blocks as u32);
        Self {
            model,
            tokenizer,
            shared,
            limits,
            scheduler,
            sequences: BTreeMap::new(),
            scratch: Scratch::default(),
            next_id: 0,
            stats: EngineStats::default(),
            ended: Vec::new(),
        }
    }

    /// Runs until shutdown. Sleeps while there is nothing to do; whoever changes that unparks the thread.
    pub(crate) fn run(mut self, inbox: &Receiver<Submission>) {
        loop {
            let stop = self.shared.is_shut_down();
            while let Ok(submission) = inbox.try_recv() {
                self.admit(submission);
            }
            if stop {
                self.end_all(&FinishReason::Cancelled);
                return;
            }
            if self.sequences.is_empty() {
                std::thread::park();
                continue;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| self.step())) {
                self.start_over(&describe(&*panic));
            }
        }
    }

    fn admit(&mut self, submission: Submission) {
        let sequence = Sequence::new(submission, &self.tokenizer, self.shared.info().n_ctx);
        let seq = SeqId(self.next_id);
        self.next_id += 1;
        self.scheduler.add(seq, sequence.tokens().len());
        self.sequences.insert(seq, sequence);
    }

    fn step(&mut self) {
        let began = Instant::now();
        self.end_interrupted(began);
        let plan = self.schedule(began);
        if !plan.rows.is_empty() {
            self.compute(&plan);
            self.count(&plan, began);
        }
        self.publish();
    }

    /// Ends the sequences that were cancelled or whose deadline has passed, in whatever phase.
    fn end_interrupted(&mut self, now: Instant) {
        let interrupted: Vec<(SeqId, FinishReason)> = self
            .sequences
            .iter()
            .filter_map(|(&seq, sequence)| sequence.interruption(now).map(|reason| (seq, reason)))
            .collect();
        for (seq, reason) in interrupted {
            self.end(seq, reason);
        }
    }

    fn schedule(&mut self, now: Instant) -> Plan {
        let plan = self.scheduler.plan();
        for rows in &plan.rows {
            if let Some(wait) = self
                .sequences
                .get_mut(&rows.seq)
                .and_then(|sequence| sequence.start(now))
            {
                self.stats.queue_wait.observe(wait.as_secs_f64());
            }
        }
        for seq in &plan.preempted {
            self.stats.preemptions += 1;
            tracing::debug!(
                request = self.name(*seq),
                "preempted: the KV blocks have run out"
            );
        }
        plan
    }

    /// The forward pass, then each sequence's token.
    fn compute(&mut self, plan: &Plan) {
        let Self {
            model,
            scheduler,
            sequences,
            scratch,
            ..
        } = self;
        let vocab_size = model.vocab_size();
        let sampled = match forward(&mut **model, scheduler, sequences, &plan.rows) {
            Ok(logits) => sample(logits, vocab_size, &plan.rows, sequences, scratch),
            Err(message) => return self.fail_step(plan, &message),
        };
        self.scheduler.commit(plan);
        for rows in &plan.rows {
            if let Some(sequence) = self.sequences.get_mut(&rows.seq) {
                self.stats.prompt_tokens += sequence.note_computed(rows.start + rows.n_rows) as u64;
            }
        }
        self.emit(sampled);
    }

    /// Sends the tokens, and ends the sequences that are complete with them.
    fn emit(&mut self, sampled: Vec<(SeqId, Sampled)>) {
        for (seq, sampled) in sampled {
            let Some(sequence) = self.sequences.get_mut(&seq) else {
                continue;
            };
            let reason = match sampled {
                Ok((token, logprob)) => {
                    match sequence.clock_token(Instant::now()) {
                        TokenDelay::First(delay) => {
                            self.stats.time_to_first_token.observe(delay.as_secs_f64())
                        }
                        TokenDelay::Next(delay) => {
                            self.stats.inter_token.observe(delay.as_secs_f64())
                        }
                    }
                    self.stats.completion_tokens += 1;
                    catch_unwind(AssertUnwindSafe(|| sequence.emit(token, logprob)))
                        .unwrap_or_else(|panic| Some(broken(&sequence.id, &describe(&*panic))))
                }
                Err(reason) => Some(reason),
            };
            match reason {
                Some(reason) => self.end(seq, reason),
                None => self.scheduler.push_token(seq),
            }
        }
    }

    /// Ends the sequences that were in a broken step. The others go on: their blocks were not in it.
    fn fail_step(&mut self, plan: &Plan, message: &str) {
        self.stats.failed_steps += 1;
        let requests: Vec<&str> = plan.rows.iter().map(|rows| self.name(rows.seq)).collect();
        tracing::error!(?requests, "{message}");
        for rows in &plan.rows {
            self.end(rows.seq, FinishReason::Failed(message.to_owned()));
        }
    }

    /// After a panic outside any one sequence's part: nothing that was scheduled can be trusted.
    fn start_over(&mut self, message: &str) {
        tracing::error!("the engine panicked between steps and starts over: {message}");
        self.stats.failed_steps += 1;
        self.end_all(&FinishReason::Failed(message.to_owned()));
        self.scheduler = Scheduler::new(self.limits, self.shared.info().kv_blocks as u32);
        self.publish();
    }

    fn end_all(&mut self, reason: &FinishReason) {
        let all: Vec<SeqId> = self.sequences.keys().copied().collect();
        for seq in all {
            self.end(seq, reason.clone());
        }
        self.publish();
    }

    fn end(&mut self, seq: SeqId, reason: FinishReason) {
        self.scheduler.remove(seq);
        let Some(sequence) = self.sequences.remove(&seq) else {
            return;
        };
        let stats = &mut self.stats;
        stats.max_sequence_tokens = stats
            .max_sequence_tokens
            .max(sequence.tokens().len() as u64);
        let request = sequence.id.clone();
        let ended = sequence.finish(reason, Instant::now());
        let finish = &ended.finish;
        tracing::debug!(request, reason = ?finish.reason, usage = ?finish.usage, "ended");
        stats.prefill_seconds += finish.timings.prefill.as_secs_f64();
        stats.decode_seconds += finish.timings.decode.as_secs_f64();
        match finish.reason {
            FinishReason::Stop(_) => stats.requests.stopped += 1,
            FinishReason::Length => stats.requests.length += 1,
            FinishReason::Cancelled => stats.requests.cancelled += 1,
            FinishReason::DeadlineExceeded => stats.requests.deadline += 1,
            FinishReason::Failed(_) => stats.requests.failed += 1,
        }
        self.ended.push(ended);
    }

    fn count(&mut self, plan: &Plan, began: Instant) {
        let n_rows: usize = plan.rows.iter().map(|rows| rows.n_rows).sum();
        let stats = &mut self.stats;
        stats.steps += 1;
        stats.rows += n_rows as u64;
        stats.step_sequences += plan.rows.len() as u64;
        stats.last_step_rows = n_rows;
        stats.step_time.observe(began.elapsed().as_secs_f64());
    }

    /// Publishes the figures, then tells the ends.
    fn publish(&mut self) {
        self.stats.running = self.scheduler.n_running();
        self.stats.kv_blocks_used = self.scheduler.n_blocks_used();
        self.shared.publish(&self.stats);
        for ended in self.ended.drain(..) {
            ended.tell();
        }
    }

    fn name(&self, seq: SeqId) -> &str {
        self.sequences.get(&seq).map_or("", |sequence| &sequence.id)
    }
}

/// Whether a sequence's rows are followed by a token.
fn is_sampled(rows: &PlannedRows, sequences: &BTreeMap<SeqId, Sequence>) -> bool {
    rows.reaches_end && sequences.get(&rows.seq).is_some_and(Sequence::wants_token)
}

/// One forward pass; the logits of the rows that are sampled, `[n_sampled, vocab_size]`, or what went wrong.
fn forward<'m>(
    model: &'m mut dyn StepModel,
    scheduler: &Scheduler,
    sequences: &BTreeMap<SeqId, Sequence>,
    rows: &[PlannedRows],
) -> Result<&'m [f32], String> {
    let batch: Vec<SequenceRows<'_>> = rows
        .iter()
        .map(|rows| SequenceRows {
            tokens: &sequences[&rows.seq].tokens()[rows.start..rows.start + rows.n_rows],
            start: rows.start,
            block_table: scheduler.block_table(rows.seq),
            logits: if is_sampled(rows, sequences) {
                LogitsWanted::Last
            } else {
                LogitsWanted::None
            },
        })
        .collect();
    let batch = Batch { sequences: &batch };
    catch_unwind(AssertUnwindSafe(|| {
        // Moved in, so that the logits may outlive the closure.
        let model = model;
        model.forward(&batch)
    }))
    .map_err(|panic| format!("the step panicked: {}", describe(&*panic)))?
    .map_err(|error| format!("the step failed: {error}"))
}

/// Chooses a token for each sequence whose last known token was computed.
fn sample(
    logits: &[f32],
    vocab_size: usize,
    rows: &[PlannedRows],
    sequences: &mut BTreeMap<SeqId, Sequence>,
    scratch: &mut Scratch,
) -> Vec<(SeqId, Sampled)> {
    let mut logits = logits.chunks_exact(vocab_size);
    let mut sampled = Vec::new();
    for rows in rows.iter().filter(|rows| rows.reaches_end) {
        if !is_sampled(rows, sequences) {
            sampled.push((rows.seq, Err(FinishReason::Length)));
            continue;
        }
        let Some(sequence) = sequences.get_mut(&rows.seq) else {
            continue;
        };
        let outcome = match logits.next() {
            Some(logits) => {
                match catch_unwind(AssertUnwindSafe(|| sequence.sample(logits, scratch))) {
                    Ok(token) => token.map_err(|error| broken(&sequence.id, &error.to_string())),
                    Err(panic) => Err(broken(&sequence.id, &describe(&*panic))),
                }
            }
            None => Err(broken(&sequence.id, "the model gave too few logits")),
        };
        sampled.push((rows.seq, outcome));
    }
    sampled
}

/// Logs what broke one sequence and makes it the sequence's end.
fn broken(request: &str, message: &str) -> FinishReason {
    tracing::error!(request, "{message}");
    FinishReason::Failed(message.to_owned())
}

/// The message of a panic.
fn describe(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
