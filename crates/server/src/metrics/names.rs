//! Which figure goes under which names: llama-server's, ours, and those that inference gateways read.

use std::collections::BTreeMap;

use dynalm_engine::{EngineInfo, EngineStats};

use super::exposition::Exposition;

/// What the server knows beside the engine.
pub(super) struct ServerFacts<'a> {
    pub(super) http_requests: BTreeMap<(String, u16), u64>,
    pub(super) in_flight: usize,
    pub(super) resident_bytes: Option<u64>,
    pub(super) model: &'a str,
}

/// The whole text.
pub(super) fn exposition(
    stats: &EngineStats,
    info: &EngineInfo,
    facts: &ServerFacts<'_>,
) -> String {
    let mut text = Exposition::default();
    llama_server(&mut text, stats);
    requests(&mut text, stats, facts);
    work(&mut text, stats);
    capacity(&mut text, stats, info, facts);
    gateway(&mut text, stats, facts.model);
    text.finish()
}

fn per(amount: f64, of: f64) -> f64 {
    if of == 0.0 { 0.0 } else { amount / of }
}

/// The fifteen names of llama-server, which dashboards know.
fn llama_server(text: &mut Exposition, stats: &EngineStats) {
    let (prompt, predicted) = (stats.prompt_tokens as f64, stats.completion_tokens as f64);
    let name = |rest: &str| format!("llamacpp:{rest}");
    for (rest, help, value) in [
        ("prompt_tokens_total", "Prompt tokens processed.", prompt),
        (
            "prompt_tokens_cached_total",
            "Prompt tokens taken from the cache.",
            stats.cached_tokens as f64,
        ),
        (
            "prompt_seconds_total",
            "Time spent on prompts.",
            stats.prefill_seconds,
        ),
        ("tokens_predicted_total", "Tokens generated.", predicted),
        (
            "tokens_predicted_seconds_total",
            "Time spent on generation.",
            stats.decode_seconds,
        ),
        ("n_decode_total", "Forward passes.", stats.steps as f64),
        (
            "n_tokens_max",
            "Most tokens that a sequence has had.",
            stats.max_sequence_tokens as f64,
        ),
        (
            "spec_decode_num_draft_tokens_total",
            "Tokens drafted by speculation.",
            0.0,
        ),
        (
            "spec_decode_num_accepted_tokens_total",
            "Drafted tokens that were accepted.",
            0.0,
        ),
        (
            "spec_decode_num_drafts_total",
            "Drafts made by speculation.",
            0.0,
        ),
    ] {
        text.counter(&name(rest), help, value);
    }
    for (rest, help, value) in [
        (
            "prompt_tokens_seconds",
            "Mean prompt throughput, tokens per second.",
            per(prompt, stats.prefill_seconds),
        ),
        (
            "predicted_tokens_seconds",
            "Mean generation throughput, tokens per second.",
            per(predicted, stats.decode_seconds),
        ),
        (
            "requests_processing",
            "Requests being processed.",
            stats.running as f64,
        ),
        (
            "requests_deferred",
            "Requests waiting.",
            stats.waiting as f64,
        ),
        (
            "n_busy_slots_per_decode",
            "Mean number of sequences in a forward pass.",
            per(stats.step_sequences as f64, stats.steps as f64),
        ),
    ] {
        text.gauge(&name(rest), help, value);
    }
}

fn requests(text: &mut Exposition, stats: &EngineStats, facts: &ServerFacts<'_>) {
    let counts = stats.requests;
    text.counter(
        "dynalm_requests_accepted_total",
        "Requests taken into the queue.",
        counts.accepted as f64,
    );
    text.head(
        "dynalm_requests_total",
        "Requests that have ended, by outcome.",
        "counter",
    );
    for (outcome, count) in [
        ("stop", counts.stopped),
        ("length", counts.length),
        ("cancelled", counts.cancelled),
        ("deadline", counts.deadline),
        ("failed", counts.failed),
        ("refused_queue_full", counts.refused_queue_full),
        ("refused_invalid", counts.refused_invalid),
    ] {
        text.sample(
            "dynalm_requests_total",
            &[("outcome", outcome)],
            count as f64,
        );
    }
    text.head(
        "dynalm_http_requests_total",
        "HTTP requests answered, by route and status.",
        "counter",
    );
    for ((route, status), count) in &facts.http_requests {
        let labels = [("route", route.as_str()), ("status", &status.to_string())];
        text.sample("dynalm_http_requests_total", &labels, *count as f64);
    }
    text.gauge(
        "dynalm_http_requests_in_flight",
        "HTTP requests being answered.",
        facts.in_flight as f64,
    );
    text.gauge(
        "dynalm_requests_running",
        "Requests being computed.",
        stats.running as f64,
    );
    text.gauge(
        "dynalm_requests_waiting",
        "Requests waiting.",
        stats.waiting as f64,
    );
    for (name, help, histogram) in [
        (
            "dynalm_queue_wait_seconds",
            "From submission to the first step.",
            &stats.queue_wait,
        ),
        (
            "dynalm_time_to_first_token_seconds",
            "From submission to the first token.",
            &stats.time_to_first_token,
        ),
        (
            "dynalm_inter_token_seconds",
            "Between two tokens of a sequence.",
            &stats.inter_token,
        ),
        (
            "dynalm_step_seconds",
            "One step: forward pass, sampling and sending.",
            &stats.step_time,
        ),
    ] {
        text.histogram(name, help, histogram);
    }
}

fn work(text: &mut Exposition, stats: &EngineStats) {
    for (name, help, value) in [
        (
            "dynalm_prompt_tokens_total",
            "Prompt tokens computed.",
            stats.prompt_tokens as f64,
        ),
        (
            "dynalm_prompt_tokens_cached_total",
            "Prompt tokens taken from the cache.",
            stats.cached_tokens as f64,
        ),
        (
            "dynalm_completion_tokens_total",
            "Tokens generated.",
            stats.completion_tokens as f64,
        ),
        (
            "dynalm_prefill_seconds_total",
            "Time of finished requests before their first token.",
            stats.prefill_seconds,
        ),
        (
            "dynalm_decode_seconds_total",
            "Time of finished requests after their first token.",
            stats.decode_seconds,
        ),
        ("dynalm_steps_total", "Forward passes.", stats.steps as f64),
        (
            "dynalm_step_rows_total",
            "Rows of all forward passes.",
            stats.rows as f64,
        ),
        (
            "dynalm_step_sequences_total",
            "Sequences of all forward passes.",
            stats.step_sequences as f64,
        ),
        (
            "dynalm_failed_steps_total",
            "Forward passes that failed.",
            stats.failed_steps as f64,
        ),
        (
            "dynalm_preemptions_total",
            "Sequences put back because KV blocks had run out.",
            stats.preemptions as f64,
        ),
    ] {
        text.counter(name, help, value);
    }
}

fn capacity(
    text: &mut Exposition,
    stats: &EngineStats,
    info: &EngineInfo,
    facts: &ServerFacts<'_>,
) {
    for (name, help, value) in [
        (
            "dynalm_kv_blocks_used",
            "KV blocks in use.",
            stats.kv_blocks_used as f64,
        ),
        (
            "dynalm_kv_blocks",
            "KV blocks there are.",
            stats.kv_blocks_total as f64,
        ),
        (
            "dynalm_kv_usage_ratio",
            "Share of the KV blocks in use.",
            kv_usage(stats),
        ),
        (
            "dynalm_sequence_tokens_max",
            "Most tokens that a sequence has had.",
            stats.max_sequence_tokens as f64,
        ),
        (
            "dynalm_context_tokens",
            "Tokens that one request may have.",
            info.n_ctx as f64,
        ),
        (
            "dynalm_weight_bytes",
            "Bytes of the model's weights.",
            info.weight_bytes as f64,
        ),
    ] {
        text.gauge(name, help, value);
    }
    if let Some(bytes) = facts.resident_bytes {
        text.gauge(
            "process_resident_memory_bytes",
            "Resident memory of the process.",
            bytes as f64,
        );
    }
    text.head("dynalm_info", "What is running.", "gauge");
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("model", facts.model),
        ("architecture", &info.arch),
        ("quantization", &info.quantization),
        ("isa", &info.isa),
    ];
    text.sample("dynalm_info", &labels, 1.0);
}

/// Names that the Kubernetes Gateway API Inference Extension reads by default (its model server protocol); they are
/// those of the first server it was made for.
fn gateway(text: &mut Exposition, stats: &EngineStats, model: &str) {
    for (name, help, value) in [
        (
            "vllm:num_requests_running",
            "Requests being computed.",
            stats.running as f64,
        ),
        (
            "vllm:num_requests_waiting",
            "Requests waiting.",
            stats.waiting as f64,
        ),
        (
            "vllm:kv_cache_usage_perc",
            "Share of the KV blocks in use, 1 is all.",
            kv_usage(stats),
        ),
        (
            "vllm:gpu_cache_usage_perc",
            "The same under its older name.",
            kv_usage(stats),
        ),
    ] {
        text.head(name, help, "gauge");
        text.sample(name, &[("model_name", model)], value);
    }
}

fn kv_usage(stats: &EngineStats) -> f64 {
    per(stats.kv_blocks_used as f64, stats.kv_blocks_total as f64)
}
