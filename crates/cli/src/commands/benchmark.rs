//! `dynalm benchmark`.

use std::sync::Arc;

use anyhow::Context;
use dynalm_bench::BenchOptions;

use crate::app::App;
use crate::args::BenchmarkArgs;
use crate::machine::cpu::Cpu;
use crate::session::{self, LoadPlan};
use crate::terminal;

/// Measures a model on this machine.
pub(crate) fn run(app: &App, args: &BenchmarkArgs) -> anyhow::Result<()> {
    let model = app.model(&args.model)?;
    session::precheck(app, &model, &LoadPlan::new(&app.settings))?;
    let file = Arc::new(session::open_file(&model.path)?);
    let options = BenchOptions {
        prompt_lens: args.prompt.clone(),
        decode_tokens: args.decode,
        users: args.users.clone(),
        repeats: args.repeats,
        threads: app.settings.positive("threads"),
        kv_type: session::kv_type(&app.settings),
        model_name: model.name.clone(),
        cpu_name: Cpu::read().model,
    };
    let told = |what: &str| {
        if app.terminal.bars {
            app.terminal.note(&app.terminal.dim(what));
        }
    };
    let report = dynalm_bench::run(&file, &options, told)
        .with_context(|| format!("cannot measure {}", model.name))?;
    if args.json {
        return terminal::json(&report);
    }
    Ok(terminal::line(dynalm_bench::table(&report).trim_end())?)
}
