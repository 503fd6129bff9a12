//! A stand-in model for tests of the engine and of what is built on it.
//!
//! The next token is a hash of all tokens so far, *read back through the block table*. A wrong table, a block that
//! two sequences own, a lost or stale block: each shows up as another text.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dynalm_model::{BLOCK_TOKENS, Batch, LogitsWanted};

use crate::{ModelInfo, StepError, StepModel};

/// Slot that nobody has written.
const EMPTY: u32 = u32::MAX;

/// See the [module](self)'s introduction.
#[derive(Debug)]
pub struct FakeModel {
    vocab_size: usize,
    /// `[n_blocks, BLOCK_TOKENS]`
    slots: Vec<u32>,
    logits: Vec<f32>,
    delay: Duration,
    panic_on: Option<u32>,
    fail_on: Option<u32>,
    never: Vec<u32>,
    script: Option<Script>,
    n_steps: Arc<AtomicUsize>,
}

/// Gives the next token for all tokens so far.
type ScriptFn = dyn Fn(&[u32]) -> u32 + Send;

struct Script(Box<ScriptFn>);

impl std::fmt::Debug for Script {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Script")
    }
}

impl FakeModel {
    /// A model with `vocab_size` tokens and `n_blocks` KV blocks.
    pub fn new(vocab_size: usize, n_blocks: usize) -> Self {
        Self {
            vocab_size,
            slots: vec![EMPTY; n_blocks * BLOCK_TOKENS],
            logits: Vec::new(),
            delay: Duration::ZERO,
            panic_on: None,
            fail_on: None,
            never: Vec::new(),
            script: None,
            n_steps: Arc::default(),
        }
    }

    /// Each step takes at least this long.
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// A step with this token in it panics.
    pub fn panic_on(self, token: u32) -> Self {
        Self {
            panic_on: Some(token),
            ..self
        }
    }

    /// A step with this token in it fails.
    pub fn fail_on(self, token: u32) -> Self {
        Self {
            fail_on: Some(token),
            ..self
        }
    }

    /// These tokens get no likelihood, such as those that would end an answer early.
    pub fn never(self, tokens: &[u32]) -> Self {
        Self {
            never: tokens.to_vec(),
            ..self
        }
    }

    /// The likeliest next token is what the function says for all tokens so far.
    pub fn script(self, next: impl Fn(&[u32]) -> u32 + Send + 'static) -> Self {
        Self {
            script: Some(Script(Box::new(next))),
            ..self
        }
    }

    /// Counts the steps.
    pub fn step_counter(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.n_steps)
    }

    /// What an engine over it says about its model.
    pub fn info(n_ctx_train: usize) -> ModelInfo {
        ModelInfo {
            arch: "fake".into(),
            n_ctx_train,
            isa: "none".into(),
            threads: 1,
            ..ModelInfo::default()
        }
    }

    fn slot(block_table: &[u32], position: usize) -> usize {
        block_table[position / BLOCK_TOKENS] as usize * BLOCK_TOKENS + position % BLOCK_TOKENS
    }

    /// Logits after the tokens at positions `0..=last`: noise, and one clear favourite.
    fn push_logits(&mut self, block_table: &[u32], last: usize) {
        let tokens: Vec<u32> = (0..=last)
            .map(|position| self.slots[Self::slot(block_table, position)])
            .collect();
        let hash = tokens.iter().fold(0x9e37_79b9_7f4a_7c15, |hash, &token| {
            mix(hash ^ u64::from(token))
        });
        let row = self.logits.len();
        for token in 0..self.vocab_size as u64 {
            self.logits
                .push((mix(hash ^ mix(token)) >> 40) as f32 / (1 << 24) as f32 * 4.0);
        }
        if let Some(script) = &self.script {
            self.logits[row + (script.0)(&tokens) as usize] = 8.0;
        }
        for &token in &self.never {
            self.logits[row + token as usize] = f32::NEG_INFINITY;
        }
    }
}

/// Stafford's finalizer.
fn mix(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl StepModel for FakeModel {
    fn vocab_size(&self) -> usize {
        self.vocab_size
    }

    fn n_blocks(&self) -> usize {
        self.slots.len() / BLOCK_TOKENS
    }

    fn block_bytes(&self) -> u64 {
        (BLOCK_TOKENS * size_of::<u32>()) as u64
    }

    /// # Panics
    /// When asked to by [`FakeModel::panic_on`].
    fn forward(&mut self, batch: &Batch<'_>) -> Result<&[f32], StepError> {
        self.n_steps.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(self.delay);
        self.logits.clear();
        for rows in batch.sequences {
            for (position, &token) in (rows.start..).zip(rows.tokens) {
                assert!(self.panic_on != Some(token), "token {token} was to panic");
                if self.fail_on == Some(token) {
                    return Err(format!("token {token} was to fail").into());
                }
                self.slots[Self::slot(rows.block_table, position)] = token;
            }
        }
        for rows in batch.sequences {
            let end = rows.start + rows.tokens.len();
            let wanted = match rows.logits {
                LogitsWanted::None => end..end,
                LogitsWanted::Last => end - 1..end,
                LogitsWanted::All => rows.start..end,
            };
            for last in wanted {
                self.push_logits(rows.block_table, last);
            }
        }
        Ok(&self.logits)
    }

    fn copy_block(&mut self, from: u32, to: u32) {
        let block = |id: u32| id as usize * BLOCK_TOKENS;
        self.slots
            .copy_within(block(from)..block(from) + BLOCK_TOKENS, block(to));
    }
}
