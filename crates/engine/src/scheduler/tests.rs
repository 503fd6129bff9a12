//! The scheduler against a simulated cache that remembers who wrote each slot.

use std::collections::{BTreeMap, HashMap};

use dynalm_model::BLOCK_TOKENS;
use proptest::prelude::*;

use super::*;

/// A sequence as its owner sees it.
#[derive(Debug)]
struct Client {
    n_tokens: usize,
    n_computed: usize,
    /// Tokens it still wants to generate.
    n_wanted: usize,
    /// All tokens it had were computed once, and it has not been preempted since.
    decodes: bool,
}

/// Scheduler, clients and a cache.
struct Simulation {
    scheduler: Scheduler,
    limits: StepLimits,
    n_blocks: usize,
    clients: BTreeMap<SeqId, Client>,
    /// Who wrote a slot, and at which position.
    slots: HashMap<(u32, usize), (SeqId, usize)>,
    next_id: u64,
    n_preempted: usize,
    finished: Vec<SeqId>,
}

impl Simulation {
    fn new(limits: StepLimits, n_blocks: usize) -> Self {
        Self {
            scheduler: Scheduler::new(limits, n_blocks as u32),
            limits,
            n_blocks,
            clients: BTreeMap::new(),
            slots: HashMap::new(),
            next_id: 0,
            n_preempted: 0,
            finished: Vec::new(),
        }
    }

    fn arrive(&mut self, n_prompt: usize, n_wanted: usize) -> SeqId {
        assert!(
            n_prompt + n_wanted <= self.n_blocks * BLOCK_TOKENS,
            "must fit the pool alone"
        );
        let seq = SeqId(self.next_id);
        self.next_id += 1;
        self.scheduler.add(seq, n_prompt);
        self.clients.insert(
            seq,
            Client {
                n_tokens: n_prompt,
                n_computed: 0,
                n_wanted,
                decodes: false,
            },
        );
        seq
    }

    fn cancel(&mut self, seq: SeqId) {
        if self.clients.remove(&seq).is_some() {
            self.scheduler.remove(seq);
        }
    }

    /// One step with every check; returns its plan.
    fn step(&mut self) -> Plan {
        let plan = self.scheduler.plan();
        assert_eq!(
            plan.rows.is_empty(),
            self.clients.is_empty(),
            "a step makes progress"
        );
        self.n_preempted += plan.preempted.len();
        for seq in &plan.preempted {
            let client = self.clients.get_mut(seq).expect("known");
            (client.n_computed, client.decodes) = (0, false);
        }
        self.check_budget(&plan);
        if self.clients.len() < 100 {
            self.check_blocks();
        }
        for rows in &plan.rows {
            self.compute(*rows);
        }
        self.scheduler.commit(&plan);
        for rows in plan.rows.iter().filter(|rows| rows.reaches_end) {
            self.sampled(rows.seq);
        }
        plan
    }

    fn check_budget(&self, plan: &Plan) {
        let is_decode = |rows: &&PlannedRows| self.clients[&rows.seq].decodes;
        let n_decodes = plan.rows.iter().take_while(is_decode).count();
        let n_rows: usize = plan.rows.iter().map(|rows| rows.n_rows).sum();
        assert!(n_rows <= self.limits.max_step_rows);
        if n_decodes > 0 {
            assert!(n_rows - n_decodes <= self.limits.prefill_chunk);
        }
        assert!(self.scheduler.n_running() <= self.limits.max_sequences);
        let mut sequences: Vec<SeqId> = plan.rows.iter().map(|rows| rows.seq).collect();
        sequences.sort_unstable();
        sequences.dedup();
        assert_eq!(sequences.len(), plan.rows.len(), "each sequence once");
    }

    /// No block is owned twice and none is lost.
    fn check_blocks(&self) {
        let mut owned: Vec<u32> = self
            .clients
            .keys()
            .flat_map(|&seq| self.scheduler.block_table(seq).to_vec())
            .collect();
        assert_eq!(owned.len(), self.scheduler.n_blocks_used());
        owned.sort_unstable();
        owned.dedup();
        assert_eq!(
            owned.len(),
            self.scheduler.n_blocks_used(),
            "a block is owned twice"
        );
        assert!(owned.last().is_none_or(|&id| (id as usize) < self.n_blocks));
    }

    /// Writes the rows' slots, then reads all positions up to them, as attention would.
    fn compute(&mut self, rows: PlannedRows) {
        let client = self
            .clients
            .get_mut(&rows.seq)
            .expect("planned sequences are known");
        assert_eq!(
            rows.start, client.n_computed,
            "rows go on where the sequence is"
        );
        let end = rows.start + rows.n_rows;
        assert!(rows.n_rows > 0 && end <= client.n_tokens);
        assert_eq!(rows.reaches_end, end == client.n_tokens);
        client.n_computed = end;
        let table = self.scheduler.block_table(rows.seq);
        let slot = |position: usize| (table[position / BLOCK_TOKENS], position % BLOCK_TOKENS);
        for position in rows.start..end {
            self.slots.insert(slot(position), (rows.seq, position));
        }
        for position in 0..end {
            assert_eq!(
                self.slots[&slot(position)],
                (rows.seq, position),
                "somebody wrote over a slot in use"
            );
        }
    }

    fn sampled(&mut self, seq: SeqId) {
        let client = self.clients.get_mut(&seq).expect("known");
        if client.n_wanted <= 1 {
            self.clients.remove(&seq);
            self.scheduler.remove(seq);
            self.finished.push(seq);
        } else {
            client.decodes = true;
            client.n_wanted -= 1;
            client.n_tokens += 1;
            self.scheduler.push_token(seq);
        }
    }

    /// Steps until every sequence has ended; panics when that takes more than `limit`.
    fn run(&mut self, limit: usize) -> usize {
        for n_steps in 0..limit {
            if self.clients.is_empty() {
                self.check_blocks();
                assert!(self.scheduler.entries.is_empty());
                assert_eq!(
                    self.scheduler.n_blocks_used(),
                    0,
                    "all blocks are free at the end"
                );
                return n_steps;
            }
            self.step();
        }
        panic!(
            "{} sequences have not ended after {limit} steps",
            self.clients.len()
        );
    }
}

fn limits(max_sequences: usize, max_step_rows: usize, prefill_chunk: usize) -> StepLimits {
    StepLimits {
        max_sequences,
        max_step_rows,
        prefill_chunk,
    }
}

fn n_rows_of(plan: &Plan, seq: SeqId) -> usize {
    plan.rows
        .iter()
        .filter(|rows| rows.seq == seq)
        .map(|rows| rows.n_rows)
        .sum()
}

#[test]
fn prefill_fills_the_step_when_nothing_decodes_and_is_bounded_when_something_does() {
    let mut simulation = Simulation::new(limits(8, 512, 64), 1000);
    let first = simulation.arrive(100, 10);
    let second = simulation.arrive(1000, 10);
    let plan = simulation.step();
    assert_eq!(
        (n_rows_of(&plan, first), n_rows_of(&plan, second)),
        (100, 412),
        "two prompts in one step"
    );
    let plan = simulation.step();
    assert_eq!((n_rows_of(&plan, first), n_rows_of(&plan, second)), (1, 64));
    assert_eq!(plan.rows[0].seq, first, "decodes first");
}

#[test]
fn a_short_prompt_overtakes_long_ones() {
    let mut simulation = Simulation::new(limits(8, 512, 64), 1000);
    for _ in 0..3 {
        simulation.arrive(4000, 8);
    }
    simulation.step();
    let short = simulation.arrive(20, 8);
    let plan = simulation.step();
    assert_eq!(n_rows_of(&plan, short), 20);
}

#[test]
fn a_long_prompt_is_overtaken_for_a_bounded_time_only() {
    let mut simulation = Simulation::new(limits(4, 64, 32), 100);
    let long = simulation.arrive(600, 1);
    let mut others_rows = 0;
    while simulation
        .clients
        .get(&long)
        .is_some_and(|client| client.n_computed < 600)
    {
        for _ in 0..3 {
            simulation.arrive(16, 2);
        }
        let plan = simulation.step();
        others_rows += plan
            .rows
            .iter()
            .filter(|rows| rows.seq != long)
            .map(|rows| rows.n_rows)
            .sum::<usize>();
        assert!(others_rows < 2 * 4 * 600, "overtaken without end");
    }
}

#[test]
fn the_newest_is_preempted_and_comes_back() {
    // Four blocks; each sequence ends with three.
    let mut simulation = Simulation::new(limits(4, 512, 64), 4);
    let first = simulation.arrive(BLOCK_TOKENS, 2 * BLOCK_TOKENS);
    let second = simulation.arrive(BLOCK_TOKENS, 2 * BLOCK_TOKENS);
    simulation.run(500);
    assert!(simulation.n_preempted > 0);
    assert_eq!(simulation.finished, [first, second]);
}

#[test]
fn cancelling_frees_the_blocks_at_once_in_any_phase() {
    let mut simulation = Simulation::new(limits(2, 64, 8), 20);
    let decoding = simulation.arrive(40, 9);
    simulation.step();
    let prefilling = simulation.arrive(200, 9);
    let waiting = simulation.arrive(200, 9);
    simulation.step();
    for seq in [waiting, decoding, prefilling] {
        simulation.cancel(seq);
        simulation.check_blocks();
    }
    assert!(simulation.scheduler.entries.is_empty());
    assert_eq!(simulation.scheduler.n_blocks_used(), 0);
}

#[test]
fn ten_thousand_users_are_planned_for() {
    let mut simulation = Simulation::new(limits(64, 512, 128), 64 * 2);
    for index in 0..10_000 {
        simulation.arrive(1 + index % 90, 1 + index % 3);
    }
    simulation.run(100_000);
    assert_eq!(simulation.finished.len(), 10_000);
}

#[derive(Debug, Clone)]
enum Operation {
    Arrive { n_prompt: usize, n_wanted: usize },
    Cancel(usize),
    Step,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        3 => (1..100_usize, 1..60_usize).prop_map(|(n_prompt, n_wanted)| Operation::Arrive { n_prompt, n_wanted }),
        1 => (0..20_usize).prop_map(Operation::Cancel),
        8 => Just(Operation::Step),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Tiny pools and random lives: every check of `Simulation::step` holds, every request ends, all blocks are free.
    #[test]
    fn every_request_ends_whatever_happens(
        n_blocks in 5..12_usize,
        max_sequences in 1..6_usize,
        spare_rows in 0..40_usize,
        prefill_chunk in 1..20_usize,
        operations in prop::collection::vec(operation(), 1..150),
    ) {
        let max_step_rows = (max_sequences + spare_rows).max(prefill_chunk);
        let mut simulation = Simulation::new(limits(max_sequences, max_step_rows, prefill_chunk), n_blocks);
        let mut n_cancelled = 0;
        for operation in operations {
            match operation {
                Operation::Arrive { n_prompt, n_wanted } => { simulation.arrive(n_prompt, n_wanted); }
                Operation::Cancel(index) => {
                    if let Some(&seq) = simulation.clients.keys().nth(index) {
                        simulation.cancel(seq);
                        n_cancelled += 1;
                    }
                }
                Operation::Step => { simulation.step(); }
            }
        }
        // Each sequence computes at most 160 tokens between two preemptions, and progress is made in each step.
        simulation.run(100_000);
        prop_assert_eq!(simulation.finished.len() + n_cancelled, simulation.next_id as usize);
    }
}
