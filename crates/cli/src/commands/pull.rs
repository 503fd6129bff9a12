//! `dynalm pull`.

use anyhow::{Context, bail};
use serde::Serialize;

use crate::app::App;
use crate::args::PullArgs;
use crate::download::Fetcher;
use crate::model_file::Report;
use crate::terminal::{self, bytes};

#[derive(Serialize)]
struct Pulled {
    model: String,
    path: std::path::PathBuf,
    already_here: bool,
}

/// Downloads models, or only asks whether they would run.
pub(crate) fn run(app: &App, args: &PullArgs) -> anyhow::Result<()> {
    let store = app.store();
    let fetcher = Fetcher::new(&store, &app.settings, &app.terminal);
    if args.check {
        return check(app, args, &fetcher);
    }
    let mut pulled = Vec::new();
    for name in &args.models {
        let reference = app.reference(name)?;
        let already_here = fetcher.local(&reference).is_some();
        let path = fetcher
            .fetch(&reference)
            .with_context(|| format!("cannot pull {name}"))?;
        if !args.json {
            terminal::line(&path.display().to_string())?;
        }
        pulled.push(Pulled {
            model: name.clone(),
            path,
            already_here,
        });
    }
    if args.json {
        terminal::json(&pulled)
    } else {
        Ok(())
    }
}

fn check(app: &App, args: &PullArgs, fetcher: &Fetcher<'_>) -> anyhow::Result<()> {
    let mut reports: Vec<(String, Report)> = Vec::new();
    for name in &args.models {
        let reference = app.reference(name)?;
        let report = fetcher
            .check(&reference)
            .with_context(|| format!("cannot check {name}"))?;
        reports.push((name.clone(), report));
    }
    if args.json {
        let list: Vec<_> = reports
            .iter()
            .map(|(name, report)| serde_json::json!({"model": name, "report": report}))
            .collect();
        terminal::json(&list)?;
    } else {
        for (name, report) in &reports {
            let verdict = report.refused.as_deref().unwrap_or("runs here");
            let (arch, quant) = (terminal::printable(&report.arch), &report.quantization);
            let size = if report.file_bytes == u64::MAX {
                "unknown size".to_owned()
            } else {
                bytes(report.file_bytes)
            };
            terminal::line(&format!("{name}: {arch}, {quant}, {size}: {verdict}"))?;
        }
    }
    let n_refused = reports
        .iter()
        .filter(|(_, report)| report.refused.is_some())
        .count();
    if n_refused > 0 {
        bail!("{n_refused} of {} cannot be run", reports.len());
    }
    Ok(())
}
