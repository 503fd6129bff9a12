//! The handle that callers share: submit, look at figures, drain, shut down.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use dynalm_text::Tokenizer;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::core::Core;
use crate::generation::CancelFlag;
use crate::scheduler::StepLimits;
use crate::{
    EngineConfig, EngineError, EngineInfo, EngineStats, Event, Generation, ModelInfo, Request,
    StepModel, SubmitError,
};

/// A model being served: any number of requests at once, stepped together by one thread.
///
/// Clones share the engine. It shuts down when the last clone is dropped. The thread sleeps while there is no request.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What the handle and the engine's thread both see.
#[derive(Debug)]
pub(crate) struct Shared {
    info: EngineInfo,
    /// Written by the engine's thread once a step, read for snapshots; never held for longer than a copy.
    stats: Mutex<EngineStats>,
    accepted: AtomicU64,
    refused_queue_full: AtomicU64,
    refused_invalid: AtomicU64,
    /// Requests accepted and not yet ended.
    outstanding: AtomicUsize,
    draining: AtomicBool,
    shutdown: AtomicBool,
}

struct Inner {
    shared: Arc<Shared>,
    tokenizer: Arc<Tokenizer>,
    commands: SyncSender<Submission>,
    thread: std::thread::Thread,
    /// Taken by the first to wait for the thread's end.
    join: Mutex<Option<JoinHandle<()>>>,
}

/// A request on its way to the engine's thread.
#[derive(Debug)]
pub(crate) struct Submission {
    pub(crate) request: Request,
    pub(crate) events: UnboundedSender<Event>,
    pub(crate) cancelled: CancelFlag,
    pub(crate) submitted: Instant,
    pub(crate) permit: Permit,
}

/// A place among the accepted requests, free again when dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Shared>);

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.outstanding.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn new(info: EngineInfo) -> Self {
        Self {
            info,
            stats: Mutex::default(),
            accepted: AtomicU64::new(0),
            refused_queue_full: AtomicU64::new(0),
            refused_invalid: AtomicU64::new(0),
            outstanding: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            shutdown: AtomicBool::new(false),
        }
    }

    /// Takes a place unless `limit` are taken.
    fn permit(self: &Arc<Self>, limit: usize) -> Option<Permit> {
        self.outstanding
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| {
                (n < limit).then_some(n + 1)
            })
            .ok()
            .map(|_| Permit(Arc::clone(self)))
    }

    /// Takes over the figures of the engine's thread.
    pub(crate) fn publish(&self, stats: &EngineStats) {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = *stats;
    }

    pub(crate) fn info(&self) -> &EngineInfo {
        &self.info
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.shutdown.load(Ordering::SeqCst)
    }
}

impl Engine {
    /// Starts an engine over any [`StepModel`]. Of `config`, `kv_type` and `kv_bytes` are only reported: the model
    /// comes with its cache.
    ///
    /// # Errors
    /// [`EngineError`] for a setting out of range, a cache that does not hold the context, or where no thread can be
    /// started.
    pub fn start_with(
        model: Box<dyn StepModel>,
        tokenizer: Arc<Tokenizer>,
        info: ModelInfo,
        config: EngineConfig,
    ) -> Result<Self, EngineError> {
        config.validate()?;
        let info = EngineInfo::new(&*model, info, &config)?;
        let limits = StepLimits {
            max_sequences: config.max_sequences,
            max_step_rows: config.max_step_rows,
            prefill_chunk: config.prefill_chunk,
        };
        let shared = Arc::new(Shared::new(info));
        let (commands, inbox) =
            mpsc::sync_channel::<Submission>(config.max_sequences + config.max_queue);
        let (for_thread, its_tokenizer) = (Arc::clone(&shared), Arc::clone(&tokenizer));
        let join = std::thread::Builder::new()
            .name("dynalm-engine".into())
            .spawn(move || Core::new(model, its_tokenizer, for_thread, limits).run(&inbox))
            .map_err(EngineError::Thread)?;
        let thread = join.thread().clone();
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                tokenizer,
                commands,
                thread,
                join: Mutex::new(Some(join)),
            }),
        })
    }

    /// Hands in a request. Never blocks.
    ///
    /// # Errors
    /// [`SubmitError`], naming the field and its range where the request is at fault.
    pub fn submit(&self, request: Request) -> Result<Generation, SubmitError> {
        let result = self.try_submit(request);
        let shared = &self.inner.shared;
        let counter = match &result {
            Ok(_) => &shared.accepted,
            Err(SubmitError::QueueFull { .. }) => &shared.refused_queue_full,
            Err(_) => &shared.refused_invalid,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        result
    }

    fn try_submit(&self, request: Request) -> Result<Generation, SubmitError> {
        let shared = &self.inner.shared;
        request.validate(shared.info.n_ctx, shared.info.vocab_size)?;
        let full = || SubmitError::QueueFull {
            limit: shared.info.max_queue,
        };
        let permit = shared
            .permit(shared.info.max_sequences + shared.info.max_queue)
            .ok_or_else(full)?;
        // Looked at with the permit in hand, so that whoever drains and then sees no permits can rely on it.
        if shared.draining.load(Ordering::SeqCst) {
            return Err(SubmitError::Draining);
        }
        let (events, receiver) = unbounded_channel();
        let cancelled = CancelFlag::default();
        let thread = self.inner.thread.clone();
        let generation = Generation::new(receiver, cancelled.clone(), thread, request.prompt.len());
        let submission = Submission {
            request,
            events,
            cancelled,
            submitted: Instant::now(),
            permit,
        };
        match self.inner.commands.try_send(submission) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(full()),
            Err(TrySendError::Disconnected(_)) => return Err(SubmitError::Draining),
        }
        self.inner.thread.unpark();
        Ok(generation)
    }

    /// A snapshot of counters and gauges.
    pub fn stats(&self) -> EngineStats {
        let shared = &self.inner.shared;
        let mut stats = *shared.stats.lock().unwrap_or_else(PoisonError::into_inner);
        stats.requests.accepted = shared.accepted.load(Ordering::Relaxed);
        stats.requests.refused_queue_full = shared.refused_queue_full.load(Ordering::Relaxed);
        stats.requests.refused_invalid = shared.refused_invalid.load(Ordering::Relaxed);
        stats.waiting = shared
            .outstanding
            .load(Ordering::SeqCst)
            .saturating_sub(stats.running);
        stats.kv_blocks_total = shared.info.kv_blocks;
        stats
    }

    /// What is being served, and with which limits.
    pub fn info(&self) -> &EngineInfo {
        &self.inner.shared.info
    }

    /// The model's tokenizer.
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.inner.tokenizer
    }

    /// Refuses new requests from now on; those accepted run to their end.
    pub fn drain(&self) {
        self.inner.shared.draining.store(true, Ordering::SeqCst);
    }

    /// Whether no accepted request is left.
    pub fn is_idle(&self) -> bool {
        self.inner.shared.outstanding.load(Ordering::SeqCst) == 0
    }

    /// Ends the engine after the current step, and waits for that. Requests that have not ended get
    /// [`FinishReason::Cancelled`](crate::FinishReason::Cancelled). Calling it again does nothing.
    pub fn shutdown(&self) {
        self.drain();
        self.inner.signal_shutdown();
        let join = self
            .inner
            .join
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if join.is_some_and(|join| join.join().is_err()) {
            tracing::error!("the engine's thread had panicked");
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("info", self.info())
            .finish_non_exhaustive()
    }
}

impl Inner {
    fn signal_shutdown(&self) {
        self.shared.shutdown.store(true, Ordering::SeqCst);
        self.thread.unpark();
    }
}

impl Drop for Inner {
    /// Does not wait: the last handle may be dropped where blocking is not allowed.
    fn drop(&mut self) {
        self.signal_shutdown();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_go_to_any_thread() {
        fn assert_send_sync<T: Send + Sync>() {}
        assert_send_sync::<Engine>();
        assert_send_sync::<Generation>();
    }
}
