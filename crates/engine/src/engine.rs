//! The handle that callers share: submit, look at figures, drain, shut down.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::generation::CancelFlag;
use crate::{
    EngineConfig, EngineError, EngineInfo, EngineStats, Event, Generation, ModelInfo, Request,
    StepModel, SubmitError,
};

/// A model being served: any number of requests at once, stepped together by one thread.
///
/// Clones share the engine. It shuts down when the last clone is dropped. The thread sleeps while there is no request.
#[derive(Debug, Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

/// What the handle and the engine's thread both see.
#[derive(Debug)]
pub(crate) struct Shared {
    info: EngineInfo,
    /// Written by the engine's thread once a step, read for snapshots; never held for longer than a copy.
    stats: Mutex<EngineStats>,
    /// Requests accepted and not yet ended.
    outstanding: AtomicUsize,
    draining: AtomicBool,
    shutdown: AtomicBool,
}

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
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
    /// Takes a place unless `limit` are taken.
    fn permit(self: &Arc<Self>, limit: usize) -> Option<Permit> {
        self.outstanding
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| {
                (n < limit).then_some(n + 1)
            })
            .ok()
            .map(|_| Permit(Arc::clone(self)))
    }

    pub(crate) fn with_stats<R>(&self, change: impl FnOnce(&mut EngineStats) -> R) -> R {
        change(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        self.shutdown.load(Ordering::SeqCst)
    }
}

impl Engine {
    /// Starts an engine over any [`StepModel`].
    ///
    /// # Errors
    /// [`EngineError`] for a setting out of range or where no thread can be started.
    pub fn start_with(
        model: Box<dyn StepModel>,
        info: ModelInfo,
        config: EngineConfig,
    ) -> Result<Self, EngineError> {
        config.validate()?;
        let n_blocks = model.n_blocks();
        let kv_tokens = n_blocks * dynalm_model::BLOCK_TOKENS;
        let info = EngineInfo {
            arch: info.arch,
            quantization: info.quantization,
            n_params: info.n_params,
            weight_bytes: info.weight_bytes,
            vocab_size: model.vocab_size(),
            n_ctx_train: info.n_ctx_train,
            n_ctx: config
                .context_len
                .unwrap_or(info.n_ctx_train)
                .min(info.n_ctx_train)
                .min(kv_tokens),
            kv_type: config.kv_type,
            kv_blocks: n_blocks,
            kv_block_tokens: dynalm_model::BLOCK_TOKENS,
            kv_bytes: n_blocks as u64 * model.block_bytes(),
            max_sequences: config.max_sequences,
            max_queue: config.max_queue,
            isa: info.isa,
            threads: info.threads,
        };
        let shared = Arc::new(Shared {
            info,
            stats: Mutex::default(),
            outstanding: AtomicUsize::new(0),
            draining: AtomicBool::new(false),
            shutdown: AtomicBool::new(false),
        });
        let (commands, inbox) =
            mpsc::sync_channel::<Submission>(config.max_sequences + config.max_queue);
        let join = std::thread::Builder::new()
            .name("dynalm-engine".into())
            .spawn(move || drop((model, inbox)))
            .map_err(EngineError::Thread)?;
        let thread = join.thread().clone();
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
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
        self.inner.shared.with_stats(|stats| match &result {
            Ok(_) => stats.requests.accepted += 1,
            Err(SubmitError::QueueFull { .. }) => stats.requests.refused_queue_full += 1,
            Err(_) => stats.requests.refused_invalid += 1,
        });
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
        let mut stats = shared.with_stats(|stats| *stats);
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
