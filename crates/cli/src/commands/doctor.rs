//! `dynalm doctor`: what this machine has, and whether it could serve.

use anyhow::bail;
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::machine::cpu::Cpu;
use crate::machine::disk;
use crate::machine::kernels::Kernels;
use crate::machine::memory::Memory;
use crate::paths::Paths;
use crate::settings::Resolved;
use crate::store::{self, Store};
use crate::terminal::{self, Terminal, bytes};

#[derive(Serialize)]
struct Examination {
    version: &'static str,
    cpu: Cpu,
    kernels: Kernels,
    threads: usize,
    memory: Option<Memory>,
    store: StoreState,
    config: ConfigState,
    /// What keeps this machine from serving.
    problems: Vec<String>,
}

#[derive(Serialize)]
struct StoreState {
    path: std::path::PathBuf,
    n_models: usize,
    n_partial: usize,
    model_bytes: u64,
    free_bytes: Option<u64>,
    writable: bool,
}

#[derive(Serialize)]
struct ConfigState {
    path: std::path::PathBuf,
    exists: bool,
    error: Option<String>,
}

/// Examines the machine and the settings.
///
/// # Errors
/// When it could not serve; the problems are listed.
pub(crate) fn run(paths: &Paths, args: &DoctorArgs, terminal: &Terminal) -> anyhow::Result<()> {
    let examination = examine(paths);
    if args.json {
        terminal::json(&examination)?;
    } else {
        print(&examination, terminal)?;
    }
    if !examination.problems.is_empty() {
        bail!(
            "this machine could not serve: {}",
            examination.problems.join("; ")
        );
    }
    Ok(())
}

fn examine(paths: &Paths) -> Examination {
    let path = paths.config();
    let (settings, error) = match Resolved::load(&path) {
        Ok(settings) => (settings, None),
        Err(error) => (Resolved::defaults(), Some(format!("{error:#}"))),
    };
    let config = ConfigState {
        exists: path.exists(),
        path,
        error,
    };
    let kernels = Kernels::examine();
    let store = store_state(&Store::new(&settings, paths.models()));
    let memory = Memory::read(&settings);
    let mut problems: Vec<String> = config.error.iter().cloned().collect();
    problems.extend(kernels.problem());
    if !store.writable {
        problems.push(format!(
            "the store {} cannot be written",
            store.path.display()
        ));
    }
    // The smallest model of the catalogue with a short context.
    if let Some(memory) = memory.filter(|memory| memory.available < 200 << 20) {
        problems.push(format!(
            "only {} of memory are available ({})",
            bytes(memory.available),
            memory.bound()
        ));
    }
    let threads = settings
        .positive("threads")
        .unwrap_or_else(dynalm_kernels::default_threads);
    Examination {
        version: env!("CARGO_PKG_VERSION"),
        cpu: Cpu::read(),
        kernels,
        threads,
        memory,
        store,
        config,
        problems,
    }
}

fn store_state(store: &Store) -> StoreState {
    let files = store.files().unwrap_or_default();
    let models = files.iter().filter(|file| store::is_model(file));
    let size = |file: &std::path::PathBuf| {
        std::fs::metadata(store.root().join(file)).map_or(0, |m| m.len())
    };
    StoreState {
        path: store.root().to_owned(),
        n_models: models.clone().count(),
        n_partial: files.iter().filter(|file| store::is_part(file)).count(),
        model_bytes: models.map(size).sum(),
        free_bytes: disk::free_bytes(store.root()),
        writable: disk::is_writable(store.root()),
    }
}

fn print(examination: &Examination, terminal: &Terminal) -> anyhow::Result<()> {
    let cpu = &examination.cpu;
    let caches: Vec<String> = cpu
        .caches
        .iter()
        .map(|cache| format!("{} {}", cache.name, cache.size))
        .collect();
    let kernels = &examination.kernels;
    let test = kernels
        .self_test
        .as_ref()
        .map_or_else(|error| error.clone(), |()| "passed".to_owned());
    let memory = examination.memory.map_or("unknown".to_owned(), |memory| {
        format!(
            "{} available of {} ({})",
            bytes(memory.available),
            bytes(memory.total),
            memory.bound()
        )
    });
    let store = &examination.store;
    let free = store.free_bytes.map_or("unknown".to_owned(), bytes);
    let config = &examination.config;
    let config_state = match (&config.error, config.exists) {
        (Some(error), _) => error.clone(),
        (None, true) => "valid".to_owned(),
        (None, false) => "not there, defaults hold".to_owned(),
    };
    let lines = [
        ("version", examination.version.to_owned()),
        ("cpu", format!("{} ({})", cpu.model, cpu.arch)),
        (
            "cores",
            format!(
                "{} cores, {} logical, {} allowed",
                cpu.physical, cpu.logical, cpu.allowed
            ),
        ),
        ("caches", caches.join(", ")),
        ("instructions", cpu.features.join(" ")),
        (
            "kernels",
            format!(
                "{} (of {}), self-test {test}",
                kernels.chosen,
                kernels.available.join(", ")
            ),
        ),
        ("threads", examination.threads.to_string()),
        ("memory", memory),
        (
            "store",
            format!(
                "{}: {} models, {}, {free} free",
                store.path.display(),
                store.n_models,
                bytes(store.model_bytes)
            ),
        ),
        (
            "config",
            format!("{}: {config_state}", config.path.display()),
        ),
    ];
    for (name, value) in lines {
        terminal::line(&format!(
            "{} {}",
            terminal.bold(&format!("{name:<13}")),
            terminal::printable(&value)
        ))?;
    }
    let good = examination.problems.is_empty();
    let verdict = terminal.verdict(
        good,
        if good {
            "this machine can serve"
        } else {
            "this machine could not serve"
        },
    );
    Ok(terminal::line(&verdict)?)
}
