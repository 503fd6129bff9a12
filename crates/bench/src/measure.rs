//! The measurements.

use std::sync::Arc;
use std::time::Instant;

use dynalm_engine::{Engine, EngineConfig, EngineError, Event, Request, Sampling, SubmitError};
use dynalm_gguf::{GgufError, GgufFile};
use dynalm_kernels::ceilings;
use dynalm_model::{
    BLOCK_TOKENS, Batch, KvCache, LoadOptions, LogitsWanted, Model, ModelError, SequenceRows,
};
use dynalm_text::{Tokenizer, TokenizerError};

use crate::options::{DECODE_DEPTH, STEP_ROWS};
use crate::process::reset_peak;
use crate::report::{
    DecodeResult, FirstTokenResult, MachineReport, ModelReport, PrefillResult, Report,
};
use crate::{BenchOptions, Spread, Work, peak_resident_bytes, resident_bytes};

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BenchError {
    /// The file.
    #[error(transparent)]
    File(#[from] GgufError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A request.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// An option is out of its range.
    #[error("{fault}")]
    Option {
        /// Which, and the range.
        fault: String,
    },
    /// The engine gave no token.
    #[error("the engine gave no token")]
    NoToken,
}

/// A model with room for the measurements, and the machine's limits as far as they were measured.
struct Bench<'a> {
    options: &'a BenchOptions,
    model: Model,
    kv: KvCache,
    random: Random,
    int8_peak: Vec<f64>,
    read_bandwidth: Vec<f64>,
    peak: Peak,
}

/// The most memory that was resident while the model ran. The machine's limits are measured on large buffers of their own,
/// which must not count.
struct Peak {
    bytes: Option<u64>,
}

impl Peak {
    fn note(&mut self) {
        self.bytes = self
            .bytes
            .and_then(|bytes| Some(bytes.max(peak_resident_bytes()?)));
    }

    /// Runs what must not count. Where the system cannot take it out again, nothing is known from then on.
    fn without<T>(&mut self, work: impl FnOnce() -> T) -> T {
        self.note();
        let result = work();
        if !reset_peak() {
            self.bytes = None;
        }
        result
    }
}

/// Measures a model. `progress` is told what comes next.
///
/// # Errors
/// [`BenchError`]: a file that does not load, an option out of range.
pub fn run(
    file: &Arc<GgufFile>,
    options: &BenchOptions,
    mut progress: impl FnMut(&str),
) -> Result<Report, BenchError> {
    progress("loading");
    let tokenizer = Arc::new(Tokenizer::from_gguf(file.metadata())?);
    let start = Instant::now();
    let load_options = LoadOptions {
        threads: options.threads,
        ..LoadOptions::default()
    };
    let model = Model::load(Arc::clone(file), load_options)?;
    let load_ms = ms_since(start);
    let resident = resident_bytes();
    if let Some(fault) = options.fault(model.config().context_len) {
        return Err(BenchError::Option { fault });
    }
    let work = Work::of(file);
    let model_report = ModelReport {
        name: options.model_name.clone(),
        path: file.path().to_owned(),
        arch: model.config().arch.to_owned(),
        n_params: model.n_params(),
        file_bytes: file.file_bytes(),
        work,
    };
    let mut bench = Bench::new(options, model)?;
    let prefill = bench.all_prefills(&work, &mut progress)?;
    let decode = bench.all_decodes(&work, &mut progress)?;
    let machine = bench.machine();
    let (first_token, peak) = bench.into_first_tokens(tokenizer, &mut progress)?;
    Ok(Report {
        version: env!("CARGO_PKG_VERSION"),
        model: model_report,
        machine,
        load_ms,
        resident_bytes: resident,
        peak_resident_bytes: peak.bytes,
        prefill,
        decode,
        first_token,
    })
}

impl<'a> Bench<'a> {
    fn new(options: &'a BenchOptions, model: Model) -> Result<Bench<'a>, BenchError> {
        let prompt = options.prompt_lens.iter().copied().max().unwrap_or(1);
        let users = options.users.iter().copied().max().unwrap_or(1);
        let decode_blocks = (DECODE_DEPTH + options.decode_tokens).div_ceil(BLOCK_TOKENS);
        let n_blocks = prompt.div_ceil(BLOCK_TOKENS).max(users * decode_blocks);
        let kv = model.new_kv(n_blocks, options.kv_type)?;
        let random = Random::new(model.config().vocab_size);
        Ok(Bench {
            options,
            model,
            kv,
            random,
            int8_peak: Vec::new(),
            read_bandwidth: Vec::new(),
            peak: Peak { bytes: Some(0) },
        })
    }

    fn all_prefills(
        &mut self,
        work: &Work,
        progress: &mut impl FnMut(&str),
    ) -> Result<Vec<PrefillResult>, BenchError> {
        let mut results = Vec::new();
        for &n_tokens in &self.options.prompt_lens {
            progress(&format!("prefill of {n_tokens} tokens"));
            self.prefill(n_tokens)?;
            let (mut rates, mut shares) = (Vec::new(), Vec::new());
            for _ in 0..self.options.repeats {
                let threads = self.model.threads();
                let peak = self.peak.without(|| ceilings::int8_peak(threads));
                let rate = self.prefill(n_tokens)?;
                self.int8_peak.push(peak);
                rates.push(rate);
                shares.push(rate * work.prefill_macs / peak);
            }
            let Some(tok_s) = Spread::of(&rates) else {
                continue;
            };
            results.push(PrefillResult {
                n_tokens,
                tok_s,
                int8_share: share(&shares),
            });
        }
        Ok(results)
    }

    fn all_decodes(
        &mut self,
        work: &Work,
        progress: &mut impl FnMut(&str),
    ) -> Result<Vec<DecodeResult>, BenchError> {
        let mut results = Vec::new();
        let n_tokens = self.options.decode_tokens;
        for &users in &self.options.users {
            progress(&format!("decode of {n_tokens} tokens for {users} users"));
            self.decode(users)?;
            let (mut rates, mut shares) = (Vec::new(), Vec::new());
            for _ in 0..self.options.repeats {
                let threads = self.model.threads();
                let bandwidth = self.peak.without(|| ceilings::read_bandwidth(threads));
                let rate = self.decode(users)?;
                self.read_bandwidth.push(bandwidth);
                rates.push(rate);
                shares.push(rate / users as f64 * work.decode_bytes / bandwidth);
            }
            let Some(tok_s) = Spread::of(&rates) else {
                continue;
            };
            let bandwidth_share = share(&shares).filter(|_| users == 1 || !work.has_experts);
            results.push(DecodeResult {
                users,
                n_tokens,
                tok_s,
                bandwidth_share,
            });
        }
        Ok(results)
    }

    /// Tokens a second of one prompt, whose last row gets logits as an answer's first token needs them.
    fn prefill(&mut self, n_tokens: usize) -> Result<f64, BenchError> {
        let tokens = self.random.tokens(n_tokens);
        let table: Vec<u32> = block_table(0, n_tokens);
        let start = Instant::now();
        let n_steps = n_tokens.div_ceil(STEP_ROWS);
        for (step, rows) in tokens.chunks(STEP_ROWS).enumerate() {
            let logits = if step + 1 == n_steps {
                LogitsWanted::Last
            } else {
                LogitsWanted::None
            };
            let rows = SequenceRows {
                tokens: rows,
                start: step * STEP_ROWS,
                block_table: &table,
                logits,
            };
            self.model
                .forward(&mut self.kv, &Batch { sequences: &[rows] })?;
        }
        Ok(n_tokens as f64 / start.elapsed().as_secs_f64())
    }

    /// Tokens a second of all users together.
    fn decode(&mut self, users: usize) -> Result<f64, BenchError> {
        let n_tokens = self.options.decode_tokens;
        let last = DECODE_DEPTH + n_tokens;
        let tables: Vec<Vec<u32>> = (0..users).map(|user| block_table(user, last)).collect();
        for table in &tables {
            let tokens = self.random.tokens(DECODE_DEPTH);
            let rows = SequenceRows {
                tokens: &tokens,
                start: 0,
                block_table: table,
                logits: LogitsWanted::None,
            };
            self.model
                .forward(&mut self.kv, &Batch { sequences: &[rows] })?;
        }
        let tokens = self.random.tokens(users * n_tokens);
        let start = Instant::now();
        for (step, tokens) in tokens.chunks(users).enumerate() {
            let sequences: Vec<SequenceRows<'_>> = tokens
                .chunks(1)
                .zip(&tables)
                .map(|(tokens, table)| SequenceRows {
                    tokens,
                    start: DECODE_DEPTH + step,
                    block_table: table,
                    logits: LogitsWanted::Last,
                })
                .collect();
            self.model.forward(
                &mut self.kv,
                &Batch {
                    sequences: &sequences,
                },
            )?;
        }
        Ok((users * n_tokens) as f64 / start.elapsed().as_secs_f64())
    }

    fn machine(&self) -> MachineReport {
        MachineReport {
            cpu: self.options.cpu_name.clone(),
            isa: self.model.isa(),
            threads: self.model.threads(),
            kv_type: format!("{:?}", self.options.kv_type).to_lowercase(),
            int8_peak: Spread::of(&self.int8_peak),
            read_bandwidth: Spread::of(&self.read_bandwidth),
        }
    }

    /// Hands the model to an engine, and asks that.
    fn into_first_tokens(
        mut self,
        tokenizer: Arc<Tokenizer>,
        progress: &mut impl FnMut(&str),
    ) -> Result<(Vec<FirstTokenResult>, Peak), BenchError> {
        drop(self.kv);
        let config = EngineConfig {
            context_len: self.options.prompt_lens.iter().max().map(|n| n + 2),
            kv_type: self.options.kv_type,
            max_sequences: 1,
            ..EngineConfig::default()
        };
        let engine = Engine::start(self.model, tokenizer, config)?;
        let mut results = Vec::new();
        for &n_tokens in &self.options.prompt_lens {
            progress(&format!("time to the first token after {n_tokens}"));
            let mut times = Vec::new();
            for repeat in 0..=self.options.repeats {
                // Random tokens: no prompt may find an earlier one in the prefix cache.
                let time = first_token_ms(&engine, self.random.tokens(n_tokens))?;
                if repeat > 0 {
                    times.push(time);
                }
            }
            results.extend(Spread::of(&times).map(|ms| FirstTokenResult { n_tokens, ms }));
        }
        engine.shutdown();
        self.peak.note();
        Ok((results, self.peak))
    }
}

fn first_token_ms(engine: &Engine, prompt: Vec<u32>) -> Result<f64, BenchError> {
    let request = Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(1),
        ignore_eos: true,
        ..Request::new(prompt)
    };
    let mut generation = engine.submit(request)?;
    while let Some(event) = generation.next_blocking() {
        if let Event::Finished(finish) = event {
            return finish
                .timings
                .first_token
                .map(|time| time.as_secs_f64() * 1e3)
                .ok_or(BenchError::NoToken);
        }
    }
    Err(BenchError::NoToken)
}

/// Blocks of the `user`-th sequence of `len` tokens, each sequence having its own.
fn block_table(user: usize, len: usize) -> Vec<u32> {
    let n_blocks = len.div_ceil(BLOCK_TOKENS);
    (user * n_blocks..(user + 1) * n_blocks)
        .map(|block| block as u32)
        .collect()
}

fn share(shares: &[f64]) -> Option<f64> {
    Spread::of(shares)
        .map(|spread| spread.median)
        .filter(|share| share.is_finite())
}

fn ms_since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

/// Token ids without a pattern; the same in every run.
struct Random {
    state: u64,
    vocab_size: u64,
}

impl Random {
    fn new(vocab_size: usize) -> Random {
        Random {
            state: 0x9E37_79B9_7F4A_7C15,
            vocab_size: vocab_size.max(1) as u64,
        }
    }

    fn tokens(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.next()).collect()
    }

    /// xorshift64*, a few lines and good enough here.
    fn next(&mut self) -> u32 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let bits = self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        (bits % self.vocab_size) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_share_no_block() {
        assert_eq!(block_table(0, 33), [0, 1]);
        assert_eq!(block_table(1, 33), [2, 3]);
    }

    #[test]
    fn random_tokens_stay_in_the_vocabulary() {
        let tokens = Random::new(7).tokens(1000);
        assert!(tokens.iter().all(|&token| token < 7));
        assert!((0..7).all(|token| tokens.contains(&token)));
    }
}
