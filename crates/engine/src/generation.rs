//! The caller's end of a request.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::{Event, Finish, FinishReason, Timings, Usage};

/// Set by the caller, looked at by the engine before each step.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub(crate) fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A request on its way. Events come in order and end with [`Event::Finished`].
///
/// Dropping it cancels the request, queued or running, within one step. Events wait without bound for a slow
/// reader, but a request has no more of them than tokens fit its context.
#[derive(Debug)]
pub struct Generation {
    events: UnboundedReceiver<Event>,
    cancelled: CancelFlag,
    engine: Thread,
    n_prompt_tokens: usize,
    finished: bool,
}

impl Generation {
    pub(crate) fn new(
        events: UnboundedReceiver<Event>,
        cancelled: CancelFlag,
        engine: Thread,
        n_prompt_tokens: usize,
    ) -> Self {
        Self {
            events,
            cancelled,
            engine,
            n_prompt_tokens,
            finished: false,
        }
    }

    /// The next event; `None` after [`Event::Finished`]. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Event> {
        if self.finished {
            return None;
        }
        let event = self.events.recv().await;
        Some(self.noted(event))
    }

    /// The next event, waiting on this thread; `None` after [`Event::Finished`].
    ///
    /// # Panics
    /// When called from asynchronous code, as [`UnboundedReceiver::blocking_recv`] does.
    pub fn next_blocking(&mut self) -> Option<Event> {
        if self.finished {
            return None;
        }
        let event = self.events.blocking_recv();
        Some(self.noted(event))
    }

    /// Cancels the request; its [`Event::Finished`] still comes.
    pub fn cancel(&self) {
        self.cancelled.set();
        self.engine.unpark();
    }

    /// Remembers the end, and makes one up should the engine have gone without a word.
    fn noted(&mut self, event: Option<Event>) -> Event {
        let event = event.unwrap_or_else(|| {
            Event::Finished(Finish {
                reason: FinishReason::Failed("the engine has stopped".into()),
                text: String::new(),
                usage: Usage {
                    prompt_tokens: self.n_prompt_tokens,
                    ..Usage::default()
                },
                timings: Timings::default(),
            })
        });
        self.finished = matches!(event, Event::Finished(_));
        event
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if !self.finished {
            self.cancel();
        }
    }
}
