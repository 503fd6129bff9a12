//! `dynalm completions`: from the same definitions that parse the command line.

use std::io::Write;

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};

/// Prints the completions of a shell.
pub(crate) fn run(args: &CompletionsArgs) -> anyhow::Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dynalm", &mut text);
    Ok(std::io::stdout().lock().write_all(&text)?)
}
