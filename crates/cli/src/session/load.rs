//! From a file to a running engine: checked, measured against the memory, loaded with a bar.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use dynalm_engine::{Engine, EngineConfig};
use dynalm_gguf::GgufFile;
use dynalm_model::{KvType, LoadOptions, Model, ModelConfig};
use dynalm_text::{ChatTemplate, Tokenizer};

use crate::app::{App, LocalModel};
use crate::machine::memory::Memory;
use crate::model_file;
use crate::settings::Resolved;
use crate::terminal::bytes;

/// A running engine.
pub(crate) struct Session {
    /// The engine.
    pub(crate) engine: Engine,
    /// The model's tokenizer.
    pub(crate) tokenizer: Arc<Tokenizer>,
    /// The template that turns messages into a prompt; base models have none.
    pub(crate) template: Option<Arc<ChatTemplate>>,
    /// What the model is called.
    pub(crate) name: String,
    /// Its quantization as a whole.
    pub(crate) quantization: String,
    /// How long it took to load.
    pub(crate) load_time: Duration,
}

/// How to load.
#[derive(Debug, Default)]
pub(crate) struct LoadPlan {
    /// How the engine is set up.
    pub(crate) engine: EngineConfig,
    /// Threads that compute; `None` lets the model choose.
    pub(crate) threads: Option<usize>,
    /// A template in place of the model's own.
    pub(crate) template: Option<String>,
    /// Tokens that the KV cache holds; `None`: as many as the memory serves.
    pub(crate) kv_tokens: Option<u64>,
}

impl LoadPlan {
    /// A plan with the settings of group `MODEL`.
    pub(crate) fn new(settings: &Resolved) -> LoadPlan {
        let engine = EngineConfig {
            context_len: settings.positive("ctx_size"),
            kv_type: kv_type(settings),
            ..EngineConfig::default()
        };
        LoadPlan {
            engine,
            threads: settings.positive("threads"),
            ..LoadPlan::default()
        }
    }
}

/// The setting `kv_type`.
pub(crate) fn kv_type(settings: &Resolved) -> KvType {
    match settings.text("kv_type") {
        Some("q8_0") => KvType::Q8_0,
        _ => KvType::F16,
    }
}

impl Session {
    /// Opens, checks and loads a model, and starts its engine.
    ///
    /// # Errors
    /// Not a GGUF file or a damaged one (with key or tensor and offset), not supported, larger than the memory, no valid
    /// tokenizer or template.
    pub(crate) fn open(
        app: &App,
        model: &LocalModel,
        mut plan: LoadPlan,
    ) -> anyhow::Result<Session> {
        let start = Instant::now();
        let named = || format!("cannot load {}", model.path.display());
        let file = Arc::new(open_file(&model.path)?);
        dynalm_model::check_supported(&file).with_context(named)?;
        check_memory(&app.settings, &file, &plan.engine).with_context(named)?;
        plan.engine.kv_bytes = kv_bytes(&app.settings, &file, &plan);
        let tokenizer = Arc::new(Tokenizer::from_gguf(file.metadata()).with_context(named)?);
        let template = match &plan.template {
            Some(source) => Some(own_template(source, &tokenizer)?),
            None => ChatTemplate::from_gguf(file.metadata(), &tokenizer).with_context(named)?,
        };
        let loaded =
            load_weights(app, model, Arc::clone(&file), plan.threads).with_context(named)?;
        let engine =
            Engine::start(loaded, Arc::clone(&tokenizer), plan.engine).with_context(named)?;
        let load_time = start.elapsed();
        tracing::info!(model = %model.name, seconds = load_time.as_secs_f64(), "loaded");
        let (name, template) = (model.name.clone(), template.map(Arc::new));
        let quantization = model_file::report_of_file(&file).quantization;
        Ok(Session {
            engine,
            tokenizer,
            template,
            name,
            quantization,
            load_time,
        })
    }
}

/// Maps a file.
///
/// # Errors
/// As [`GgufFile::open`], with the path.
pub(crate) fn open_file(path: &Path) -> anyhow::Result<GgufFile> {
    GgufFile::open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// Refuses what cannot be loaded, reading only the header.
///
/// # Errors
/// As [`Session::open`].
pub(crate) fn precheck(app: &App, model: &LocalModel, plan: &LoadPlan) -> anyhow::Result<()> {
    let named = || format!("cannot load {}", model.path.display());
    let file = open_file(&model.path)?;
    dynalm_model::check_supported(&file).with_context(named)?;
    check_memory(&app.settings, &file, &plan.engine).with_context(named)
}

/// Size of the KV cache where the user bounds it, by tokens or by memory.
fn kv_bytes(settings: &Resolved, file: &GgufFile, plan: &LoadPlan) -> Option<u64> {
    let config = ModelConfig::from_gguf(file.metadata()).ok()?;
    let per_token = config.kv_bytes_per_token(plan.engine.kv_type);
    if let Some(tokens) = plan.kv_tokens {
        return Some(tokens.saturating_mul(per_token));
    }
    let memory = Memory::read(settings).filter(|memory| memory.own_limit.is_some())?;
    let context_len = plan
        .engine
        .context_len
        .unwrap_or(config.context_len)
        .min(config.context_len) as u64;
    let without = model_file::estimate(
        file.metadata(),
        file.file_bytes(),
        1,
        1,
        plan.engine.kv_type,
    )?;
    let most = per_token
        .saturating_mul(context_len)
        .saturating_mul(plan.engine.max_sequences as u64);
    Some(
        memory
            .available
            .saturating_sub(without.total_bytes)
            .min(most),
    )
}

fn own_template(source: &str, tokenizer: &Tokenizer) -> anyhow::Result<ChatTemplate> {
    let text = |id: Option<u32>| {
        id.and_then(|id| tokenizer.token_text(id))
            .unwrap_or_default()
    };
    ChatTemplate::new(source, text(tokenizer.bos()), text(tokenizer.eos()))
        .context("the chat template is not valid")
}

fn load_weights(
    app: &App,
    model: &LocalModel,
    file: Arc<GgufFile>,
    threads: Option<usize>,
) -> anyhow::Result<Model> {
    let bar = app
        .terminal
        .byte_bar(Some(file.file_bytes()), &format!("loading {}", model.name));
    let shown = bar.clone();
    let progress = move |done: u64, total: u64| {
        shown.set_length(total);
        shown.set_position(done);
    };
    let options = LoadOptions {
        threads,
        progress: Some(Box::new(progress)),
        ..LoadOptions::default()
    };
    let loaded = Model::load(file, options);
    bar.finish_and_clear();
    Ok(loaded?)
}

/// Refuses a model that the memory cannot hold, before any weight is read.
///
/// # Errors
/// What is needed and what there is.
fn check_memory(settings: &Resolved, file: &GgufFile, engine: &EngineConfig) -> anyhow::Result<()> {
    let Some(memory) = Memory::read(settings) else {
        return Ok(());
    };
    // The smallest useful context: the engine takes as much more as there is.
    let context_len = engine.context_len.unwrap_or(MIN_CONTEXT);
    let need = model_file::estimate(
        file.metadata(),
        file.file_bytes(),
        context_len,
        1,
        engine.kv_type,
    );
    let Some(need) = need.filter(|need| need.total_bytes > memory.available) else {
        return Ok(());
    };
    bail!(
        "not enough memory: {} are needed ({} for the weights, {} for {} tokens of context), {} are available ({}); \
         take a smaller model or quantization{}",
        bytes(need.total_bytes),
        bytes(need.weight_bytes),
        bytes(need.kv_bytes),
        need.context_len,
        bytes(memory.available),
        memory.bound(),
        further_hint(need.weight_bytes, memory.available)
    )
}

const MIN_CONTEXT: usize = 512;

fn further_hint(weight_bytes: u64, available: u64) -> &'static str {
    if weight_bytes < available {
        ", a shorter context (-c) or --kv-type q8_0"
    } else {
        ""
    }
}
