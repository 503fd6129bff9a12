//! `dynalm rm`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::app::App;
use crate::args::RmArgs;
use crate::download::Fetcher;
use crate::near;
use crate::store::{self, Store};
use crate::terminal;

/// Deletes models of the store, with what is left of their downloads.
pub(crate) fn run(app: &App, args: &RmArgs) -> anyhow::Result<()> {
    let store = app.store();
    // All names are looked at first: a typing error must not leave half of the work done.
    let found: Vec<Vec<PathBuf>> = args
        .models
        .iter()
        .map(|name| files_of(app, &store, name))
        .collect::<anyhow::Result<_>>()?;
    for path in found.into_iter().flatten() {
        std::fs::remove_file(&path).with_context(|| format!("cannot delete {}", path.display()))?;
        terminal::line(&format!("deleted {}", path.display()))?;
        remove_empty_folders(store.root(), &path);
    }
    Ok(())
}

fn files_of(app: &App, store: &Store, name: &str) -> anyhow::Result<Vec<PathBuf>> {
    let all = store.files()?;
    if let Some(part) = all
        .iter()
        .find(|file| store::is_part(file) && is_named(file, name))
    {
        return Ok(with_leftovers(&store.root().join(part.with_extension(""))));
    }
    let fetcher = Fetcher::new(store, &app.settings, &app.terminal);
    let reference = app.reference(name).ok();
    let path = reference
        .and_then(|reference| fetcher.local(&reference))
        .or_else(|| store.find(name));
    let Some(path) = path else {
        let names: Vec<String> = all
            .iter()
            .map(|file| crate::app::display_name(file))
            .collect();
        let nearest = near::near(name, names.iter().map(String::as_str), 2);
        bail!(
            "{} is not in the store{}",
            terminal::printable(name),
            near::did_you_mean(&nearest)
        );
    };
    if !store.contains(&path) {
        bail!("{} is not in the store; delete it yourself", path.display());
    }
    let file = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    Ok(store::shard_names(&file)
        .iter()
        .flat_map(|shard| with_leftovers(&path.with_file_name(shard)))
        .collect())
}

fn is_named(part: &Path, name: &str) -> bool {
    let file = part.with_extension("");
    let stem = file.file_stem().unwrap_or_default();
    part == Path::new(name)
        || file == Path::new(name)
        || stem == name
        || crate::app::display_name(&file) == name
}

/// A file and what an unfinished download of it left, as far as they are there.
fn with_leftovers(path: &Path) -> Vec<PathBuf> {
    ["", ".part", ".part.json"]
        .iter()
        .map(|ending| {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            PathBuf::from(name)
        })
        .filter(|path| path.is_file())
        .collect()
}

/// Removes the folders that a deleted file leaves empty, up to the store's own.
fn remove_empty_folders(root: &Path, path: &Path) {
    for folder in path
        .ancestors()
        .skip(1)
        .take_while(|folder| *folder != root && folder.starts_with(root))
    {
        if std::fs::remove_dir(folder).is_err() {
            return;
        }
    }
}
