//! `dynalm man`: the manual, from the same definitions that parse the command line.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::args::{Cli, ManArgs};

/// Prints the main page, or writes all pages into a folder.
pub(crate) fn run(args: &ManArgs) -> anyhow::Result<()> {
    let mut command = Cli::command();
    command.build();
    match &args.out {
        None => Ok(std::io::stdout().lock().write_all(&page(&command)?)?),
        Some(folder) => {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
            write_pages(&command, folder)
        }
    }
}

fn page(command: &clap::Command) -> anyhow::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    Ok(text)
}

fn write_pages(command: &clap::Command, folder: &Path) -> anyhow::Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let path = folder.join(format!("{}.1", name.replace(' ', "-")));
    std::fs::write(&path, page(command)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let visible = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    visible
        .into_iter()
        .try_for_each(|sub| write_pages(sub, folder))
}
