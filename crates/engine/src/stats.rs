//! Counters, gauges and histograms of an engine, as a snapshot.

/// Upper bounds in seconds of every latency histogram; one more bucket counts what is above.
pub const LATENCY_BOUNDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0,
];

/// A histogram with the fixed buckets of [`LATENCY_BOUNDS`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Histogram {
    /// Observations per bucket, not cumulated; the last counts those above every bound.
    pub counts: [u64; LATENCY_BOUNDS.len() + 1],
    /// Sum of all observations in seconds.
    pub sum: f64,
    /// Observations in all.
    pub count: u64,
}

impl Histogram {
    /// Adds one observation in seconds.
    pub fn observe(&mut self, seconds: f64) {
        let bucket = LATENCY_BOUNDS.partition_point(|&bound| bound < seconds);
        self.counts[bucket] += 1;
        self.sum += seconds;
        self.count += 1;
    }
}

/// How requests ended, and how many came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCounts {
    /// Taken into the queue.
    pub accepted: u64,
    /// Refused because the queue was full.
    pub refused_queue_full: u64,
    /// Refused for any other reason.
    pub refused_invalid: u64,
    /// Ended by an end token or a stop string.
    pub stopped: u64,
    /// Ended by a limit of tokens.
    pub length: u64,
    /// Cancelled by the caller or by shutdown.
    pub cancelled: u64,
    /// Ended by their deadline.
    pub deadline: u64,
    /// Failed.
    pub failed: u64,
}

/// A snapshot of an engine. Counters only grow; gauges are as of the last step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct EngineStats {
    /// Requests by outcome.
    pub requests: RequestCounts,
    /// Prompt tokens computed (what a preempted sequence computes again is not counted twice).
    pub prompt_tokens: u64,
    /// Prompt tokens taken from the cache.
    pub cached_tokens: u64,
    /// Tokens generated.
    pub completion_tokens: u64,
    /// Forward passes.
    pub steps: u64,
    /// Rows of all forward passes.
    pub rows: u64,
    /// Sequences of all forward passes; over `steps` it is the mean number served at once.
    pub step_sequences: u64,
    /// Seconds that finished requests spent from their first step to their first token, summed.
    pub prefill_seconds: f64,
    /// Seconds that finished requests spent from their first token to their end, summed.
    pub decode_seconds: f64,
    /// Sequences put back to the queue because the KV blocks had run out.
    pub preemptions: u64,
    /// Steps that failed or panicked.
    pub failed_steps: u64,
    /// Most tokens that a sequence has had.
    pub max_sequence_tokens: u64,

    /// Sequences being computed.
    pub running: usize,
    /// Requests waiting for their first or, after a preemption, their next step.
    pub waiting: usize,
    /// KV blocks in use.
    pub kv_blocks_used: usize,
    /// KV blocks there are.
    pub kv_blocks_total: usize,
    /// Rows of the last step.
    pub last_step_rows: usize,

    /// From submission to the first step.
    pub queue_wait: Histogram,
    /// From submission to the first token.
    pub time_to_first_token: Histogram,
    /// Between two tokens of a sequence.
    pub inter_token: Histogram,
    /// One step: forward pass, sampling and sending.
    pub step_time: Histogram,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_fall_into_their_buckets() {
        let mut histogram = Histogram::default();
        for seconds in [0.0, 0.001, 0.0011, 60.0, 61.0] {
            histogram.observe(seconds);
        }
        assert_eq!(histogram.counts[0], 2, "a bound belongs to its own bucket");
        assert_eq!(histogram.counts[1], 1);
        assert_eq!(histogram.counts[15], 1);
        assert_eq!(histogram.counts[16], 1);
        assert_eq!(histogram.count, 5);
    }
}
