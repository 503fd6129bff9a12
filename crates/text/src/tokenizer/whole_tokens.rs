//! Which tokens a word of the same spelling becomes: most words of a text are such tokens, and need no merging once
//! that is known.

use std::sync::atomic::{AtomicU8, Ordering};

/// For each token, whether the merges turn its spelling into the token itself. Found out when a word first meets it;
/// any thread may find out, and all find the same.
#[derive(Debug)]
pub(crate) struct WholeTokens(Box<[AtomicU8]>);

const UNTRIED: u8 = 0;
const REACHED: u8 = 1;
const NOT_REACHED: u8 = 2;

impl WholeTokens {
    /// Nothing is known yet.
    pub(crate) fn new(n_tokens: usize) -> WholeTokens {
        WholeTokens((0..n_tokens).map(|_| AtomicU8::new(UNTRIED)).collect())
    }

    /// Whether a word spelled like the token is known to become it.
    #[inline]
    pub(crate) fn is_reached(&self, id: u32) -> bool {
        self.0
            .get(id as usize)
            .is_some_and(|state| state.load(Ordering::Relaxed) == REACHED)
    }

    /// Remembers what merging made of a word spelled like the token.
    pub(crate) fn record(&self, id: u32, merged: &[u32]) {
        if let Some(state) = self.0.get(id as usize) {
            state.store(
                if merged == [id] { REACHED } else { NOT_REACHED },
                Ordering::Relaxed,
            );
        }
    }
}
