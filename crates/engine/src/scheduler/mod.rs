//! Which rows go into the next step, and which KV blocks they use.
//!
//! A pure state machine over token *counts*: it sees no tokens, logits, text or clock.
//!
//! ```text
//! plan:   1. one row for each decoding sequence, oldest first. A row that needs a block when none is free
//!            preempts the newest running sequence, itself if need be.
//!         2. prefill rows, as many as the budget has left, in the order of turns; a waiting sequence starts when
//!            a place and all blocks of its known tokens are there.
//! commit: the planned rows have been computed.
//! then, per sequence whose last known token was computed: push_token or remove.
//! ```
//!
//! **Turns.** A sequence's turn is `joined + AGEING * remaining`, the lowest first: `remaining` are rows it still has to
//! prefill, `joined` the rows of prefill that had been granted in all when it came. So the shortest remaining prefill goes
//! first, and a sequence with `R` rows is overtaken for at most about `AGEING * R` rows of others' work. Turns change only by
//! a sequence's own progress, so sorted sets hold them.
//!
//! **Nobody starves.** Waiting sequences start strictly in the order of turns: one whose blocks are not free yet keeps
//! those behind it waiting. The oldest sequence is never preempted while it runs, every sequence fits the pool alone, and
//! each ends after a bounded number of tokens; so blocks come free, and turns come up.
//!
//! **Preempted** sequences lose their blocks and wait again with all their tokens to compute, in the turn of
//! their old arrival. A start leaves one block free for each running sequence, so that it does not preempt at once.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::block_pool::{BlockPool, BlockTable, blocks_for};

/// A sequence; ids ascend in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SeqId(pub(crate) u64);

/// How many rows of younger sequences may go before one row of an older one.
const AGEING: u64 = 4;

/// Limits of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepLimits {
    /// Sequences with blocks. At least 1, at most `max_step_rows`.
    pub(crate) max_sequences: usize,
    /// Rows in all.
    pub(crate) max_step_rows: usize,
    /// Rows of prefill while some sequence decodes.
    pub(crate) prefill_chunk: usize,
}

impl StepLimits {
    /// Rows of prefill beside `n_decodes` rows of decode. A budget in time takes this function's place.
    fn prefill_rows(&self, n_decodes: usize) -> usize {
        let room = self.max_step_rows - n_decodes;
        if n_decodes == 0 {
            room
        } else {
            room.min(self.prefill_chunk)
        }
    }
}

/// The rows of one sequence in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlannedRows {
    pub(crate) seq: SeqId,
    /// Position of the first row.
    pub(crate) start: usize,
    pub(crate) n_rows: usize,
    /// The last known token is among them: what follows can be sampled.
    pub(crate) reaches_end: bool,
}

/// One step.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) rows: Vec<PlannedRows>,
    /// Sequences that lost their blocks for it.
    pub(crate) preempted: Vec<SeqId>,
}

#[derive(Debug)]
struct Entry {
    /// Tokens known.
    n_tokens: usize,
    /// Of these, tokens whose keys and values are in the blocks.
    n_computed: usize,
    table: BlockTable,
    /// Prefill rows granted to all when it came.
    joined: u64,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Has no blocks.
    Waiting,
    /// Has blocks for all known tokens, more than one of which may be left to compute.
    Prefill,
    /// At most the newest token is left to compute.
    Decode,
}

impl Entry {
    fn remaining(&self) -> usize {
        self.n_tokens - self.n_computed
    }

    fn turn(&self) -> u64 {
        self.joined + AGEING * self.remaining() as u64
    }
}

/// All sequences and the pool.
#[derive(Debug)]
pub(crate) struct Scheduler {
    limits: StepLimits,
    pool: BlockPool,
    entries: BTreeMap<SeqId, Entry>,
    /// By turn.
    waiting: BTreeSet<(u64, SeqId)>,
    /// By turn.
    prefilling: BTreeSet<(u64, SeqId)>,
    decoding: BTreeSet<SeqId>,
    /// Rows of prefill granted so far.
    n_granted: u64,
}

impl Scheduler {
    pub(crate) fn new(limits: StepLimits, n_blocks: u32) -> Self {
        Self {
            limits,
            pool: BlockPool::new(n_blocks),
            entries: BTreeMap::new(),
            waiting: BTreeSet::new(),
            prefilling: BTreeSet::new(),
            decoding: BTreeSet::new(),
            n_granted: 0,
        }
    }

    /// Adds a sequence, newer than all others. All tokens it may ever have must fit the pool.
    pub(crate) fn add(&mut self, seq: SeqId, n_tokens: usize) {
        debug_assert!(
            n_tokens > 0
                && self
                    .entries
                    .last_key_value()
                    .is_none_or(|(&last, _)| last < seq)
        );
        let entry = Entry {
            n_tokens,
            n_computed: 0,
            table: BlockTable::default(),
            joined: self.n_granted,
            phase: Phase::Waiting,
        };
        self.waiting.insert((entry.turn(), seq));
        self.entries.insert(seq, entry);
    }

    /// Forgets a sequence in any phase; its blocks are free at once.
    pub(crate) fn remove(&mut self, seq: SeqId) {
        if let Some(mut entry) = self.entries.remove(&seq) {
            self.leave(seq, entry.turn(), entry.phase);
            entry.table.clear();
        }
    }

    /// A sequence whose known tokens are all computed has one more.
    pub(crate) fn push_token(&mut self, seq: SeqId) {
        if let Some(entry) = self.entries.get_mut(&seq) {
            debug_assert!(entry.phase == Phase::Decode && entry.remaining() == 0);
            entry.n_tokens += 1;
        }
    }

    /// The blocks of a sequence, in the order of its positions.
    pub(crate) fn block_table(&self, seq: SeqId) -> &[u32] {
        self.entries
            .get(&seq)
            .map_or(&[], |entry| entry.table.ids())
    }

    /// Sequences that have blocks.
    pub(crate) fn n_running(&self) -> usize {
        self.prefilling.len() + self.decoding.len()
    }

    pub(crate) fn n_blocks_used(&self) -> usize {
        self.pool.n_used()
    }

    /// Chooses the rows of the next step and gives them blocks. Not empty unless there is no sequence.
    pub(crate) fn plan(&mut self) -> Plan {
        let mut plan = Plan::default();
        self.plan_decodes(&mut plan);
        let budget = self.limits.prefill_rows(plan.rows.len());
        self.plan_prefill(budget, &mut plan);
        plan
    }

    fn plan_decodes(&mut self, plan: &mut Plan) {
        // Victims are newer than the sequence that needs a block, so none of them is in the plan already.
        let mut next = self.decoding.first().copied();
        while let Some(seq) = next {
            if self.reserve_for_decode(seq, plan) {
                let start = self.entries[&seq].n_computed;
                plan.rows.push(PlannedRows {
                    seq,
                    start,
                    n_rows: 1,
                    reaches_end: true,
                });
            }
            next = self
                .decoding
                .range((std::ops::Bound::Excluded(seq), std::ops::Bound::Unbounded))
                .next()
                .copied();
        }
    }

    /// Sees to it that the newest token has a place, at the cost of newer sequences. False when `seq` itself had to go.
    fn reserve_for_decode(&mut self, seq: SeqId, plan: &mut Plan) -> bool {
        loop {
            let entry = self
                .entries
                .get_mut(&seq)
                .expect("a decoding sequence has an entry");
            if entry.table.grow(entry.n_tokens, &self.pool) {
                return true;
            }
            let victim = self
                .newest_running()
                .expect("the sequence itself is running");
            self.preempt(victim);
            plan.preempted.push(victim);
            if victim == seq {
                return false;
            }
        }
    }

    fn newest_running(&self) -> Option<SeqId> {
        let prefilling = self.prefilling.iter().map(|&(_, seq)| seq).max();
        self.decoding.last().copied().max(prefilling)
    }

    fn preempt(&mut self, seq: SeqId) {
        let entry = self
            .entries
            .get_mut(&seq)
            .expect("a running sequence has an entry");
        let (turn, phase) = (entry.turn(), entry.phase);
        entry.table.clear();
        entry.n_computed = 0;
        entry.phase = Phase::Waiting;
        self.waiting.insert((entry.turn(), seq));
        self.leave(seq, turn, phase);
    }

    /// Takes a sequence out of the set of a phase.
    fn leave(&mut self, seq: SeqId, turn: u64, phase: Phase) {
        let was_there = match phase {
            Phase::Waiting => self.waiting.remove(&(turn, seq)),
            Phase::Prefill => self.prefilling.remove(&(turn, seq)),
            Phase::Decode => self.decoding.remove(&seq),
        };
        debug_assert!(was_there);
    }

    fn plan_prefill(&mut self, mut budget: usize, plan: &mut Plan) {
        // Both sets are walked in the order of turns. Once a waiting sequence cannot start, no later one may.
        let mut may_start = true;
        let mut planned = None;
        while budget > 0 {
            let partial = match planned {
                None => self.prefilling.first(),
                Some(last) => self
                    .prefilling
                    .range((std::ops::Bound::Excluded(last), std::ops::Bound::Unbounded))
                    .next(),
            };
            let waiting = if may_start {
                self.waiting.first()
            } else {
                None
            };
            let Some(&(turn, seq)) = [partial, waiting].into_iter().flatten().min() else {
                break;
            };
            if waiting == Some(&(turn, seq)) && !self.start(seq, turn) {
                may_start = false;
                continue;
            }
            planned = Some((turn, seq));
            let entry = &self.entries[&seq];
            let n_rows = entry.remaining().min(budget);
            budget -= n_rows;
            let reaches_end = n_rows == entry.remaining();
            plan.rows.push(PlannedRows {
                seq,
                start: entry.n_computed,
                n_rows,
                reaches_end,
            });
        }
    }

    /// Gives a waiting sequence blocks for all its known tokens; false when it has to wait on.
    fn start(&mut self, seq: SeqId, turn: u64) -> bool {
        let n_running = self.n_running();
        let entry = self
            .entries
            .get_mut(&seq)
            .expect("a waiting sequence has an entry");
        let room = self.pool.n_free().saturating_sub(n_running);
        if n_running >= self.limits.max_sequences || blocks_for(entry.n_tokens) > room {
            return false;
        }
        let grown = entry.table.grow(entry.n_tokens, &self.pool);
        debug_assert!(grown, "enough blocks were free");
        entry.phase = Phase::Prefill;
        self.waiting.remove(&(turn, seq));
        self.prefilling.insert((turn, seq));
        true
    }

    /// The plan's rows have been computed.
    pub(crate) fn commit(&mut self, plan: &Plan) {
        for rows in &plan.rows {
            let Some(entry) = self.entries.get_mut(&rows.seq) else {
                continue;
            };
            let old_turn = entry.turn();
            entry.n_computed += rows.n_rows;
            if entry.phase != Phase::Prefill {
                continue;
            }
            self.n_granted += rows.n_rows as u64;
            self.prefilling.remove(&(old_turn, rows.seq));
            if entry.remaining() == 0 {
                entry.phase = Phase::Decode;
                self.decoding.insert(rows.seq);
            } else {
                self.prefilling.insert((entry.turn(), rows.seq));
            }
        }
    }
}
