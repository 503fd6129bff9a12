//! The `dynalm` binary: commands, settings, the model store and downloads. It alone prints, exits and uses `anyhow`; all
//! else is in the crates below it.

mod app;
mod args;
mod catalogue;
mod chat;
mod commands;
mod download;
mod exit;
mod interrupt;
mod logging;
mod machine;
mod model_file;
mod near;
mod paths;
mod serving;
mod session;
mod settings;
mod store;
mod terminal;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::app::App;
use crate::args::{Cli, Command, ConfigAction};
use crate::paths::Paths;
use crate::settings::Resolved;
use crate::terminal::Terminal;

fn main() -> ExitCode {
    // Wrong usage ends here, with clap's message and code 2.
    let cli = Cli::parse_from(args::spell_out(std::env::args_os()));
    logging::start(&cli.global, matches!(cli.command, Command::Serve(_)));
    match dispatch(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            exit::code_of(&error)
        }
    }
}

fn report(error: &anyhow::Error) {
    let text = format!("{error:#}");
    if !exit::is_closed_pipe(error) && !text.is_empty() {
        // A closed standard error is no reason to panic.
        let _ = writeln!(
            std::io::stderr().lock(),
            "error: {}",
            terminal::printable(&text)
        );
    }
}

fn dispatch(cli: &Cli) -> anyhow::Result<()> {
    let terminal = Terminal::detect(cli.global.quiet);
    match &cli.command {
        // These need no settings, and must work while the file is broken.
        Command::Completions(args) => return commands::completions::run(args),
        Command::Man(args) => return commands::man::run(args),
        Command::Config(args) if !matches!(args.action, ConfigAction::Show { .. }) => {
            return commands::config::path_or_init(&Paths::find()?, &args.action);
        }
        Command::Doctor(args) => return commands::doctor::run(&Paths::find()?, args, &terminal),
        _ => {}
    }
    let paths = Paths::find()?;
    let mut settings = Resolved::load(&paths.config())?;
    apply_flags(&mut settings, &cli.command);
    with_settings(
        App {
            paths,
            settings,
            terminal,
        },
        &cli.command,
    )
}

/// Puts the command's flags over file and environment.
fn apply_flags(settings: &mut Resolved, command: &Command) {
    let mut talk = |talk: &args::TalkArgs| {
        settings.apply(talk.model_settings.given());
        settings.apply(talk.sampling.given());
    };
    match command {
        Command::Run(args) => talk(&args.talk),
        Command::Chat(args) => talk(&args.talk),
        Command::Serve(args) => {
            settings.apply(args.model_settings.given());
            settings.apply(args.serve.given());
        }
        Command::Inspect(args) => settings.apply(args.model_settings.given()),
        Command::Benchmark(args) => settings.apply(args.model_settings.given()),
        _ => {}
    }
}

fn with_settings(mut app: App, command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Pull(args) => commands::pull::run(&app, args),
        Command::List(args) => commands::list::run(&app, args),
        Command::Rm(args) => commands::rm::run(&app, args),
        Command::Inspect(args) => commands::inspect::run(&app, args),
        Command::Run(args) => commands::run::run(&mut app, args),
        Command::Chat(args) => commands::chat::run(&mut app, args),
        Command::Serve(args) => commands::serve::run(app, args),
        Command::Ps(args) => commands::ps::run(&app, args),
        Command::Stop(args) => commands::stop::run(&app, args),
        Command::Benchmark(args) => commands::benchmark::run(&app, args),
        Command::Config(args) => match args.action {
            ConfigAction::Show { json } => commands::config::show(&app, json),
            ConfigAction::Path | ConfigAction::Init { .. } => Ok(()),
        },
        Command::Doctor(_) | Command::Completions(_) | Command::Man(_) => Ok(()),
    }
}
