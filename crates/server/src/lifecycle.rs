//! Whether the server takes requests, and which are still being answered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};

/// Shared by all connections of a server.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    draining: watch::Sender<bool>,
    in_flight: Arc<InFlightCount>,
}

#[derive(Debug, Default)]
struct InFlightCount {
    requests: AtomicUsize,
    none_left: Notify,
}

/// One request that is being answered, to the last byte handed to its connection. Counted until dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<InFlightCount>);

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.0.requests.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.none_left.notify_waiters();
        }
    }
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self {
            draining: watch::Sender::new(false),
            in_flight: Arc::default(),
        }
    }

    /// Turns new requests away from now on.
    pub(crate) fn begin_drain(&self) {
        self.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Resolves once a drain has begun.
    pub(crate) async fn drain_begun(&self) {
        // The sender lives as long as `self`, so waiting cannot fail.
        let _ = self
            .draining
            .subscribe()
            .wait_for(|draining| *draining)
            .await;
    }

    /// Counts a request.
    pub(crate) fn enter(&self) -> InFlight {
        self.in_flight.requests.fetch_add(1, Ordering::AcqRel);
        InFlight(Arc::clone(&self.in_flight))
    }

    /// Requests being answered.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.requests.load(Ordering::Acquire)
    }

    /// Resolves once no request is being answered.
    pub(crate) async fn idle(&self) {
        loop {
            let none_left = self.in_flight.none_left.notified();
            tokio::pin!(none_left);
            // Registered before looking, so that a request that ends in between is not missed.
            none_left.as_mut().enable();
            if self.in_flight() == 0 {
                return;
            }
            none_left.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn idle_waits_for_the_last_request() {
        let lifecycle = Lifecycle::new();
        assert!(lifecycle.idle().now_or_never().is_some());
        let (first, second) = (lifecycle.enter(), lifecycle.enter());
        drop(first);
        assert!(lifecycle.idle().now_or_never().is_none());
        let idle = lifecycle.idle();
        tokio::pin!(idle);
        assert!(idle.as_mut().now_or_never().is_none());
        drop(second);
        idle.await;
    }

    #[tokio::test]
    async fn a_drain_is_seen_by_those_who_wait_and_those_who_come_later() {
        let lifecycle = Lifecycle::new();
        let waiting = lifecycle.drain_begun();
        tokio::pin!(waiting);
        assert!(waiting.as_mut().now_or_never().is_none());
        lifecycle.begin_drain();
        waiting.await;
        lifecycle.drain_begun().await;
        assert!(lifecycle.is_draining());
    }
}
