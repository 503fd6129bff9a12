//! What every command is handed: paths, settings, terminal.

use std::path::PathBuf;

use crate::catalogue;
use crate::download::{self, Fetcher};
use crate::paths::Paths;
use crate::settings::{Resolved, Value};
use crate::store::{self, Reference, Store};
use crate::terminal::Terminal;

/// What every command is handed.
#[derive(Debug)]
pub(crate) struct App {
    /// Where things live.
    pub(crate) paths: Paths,
    /// The settings in force.
    pub(crate) settings: Resolved,
    /// What the terminal can show.
    pub(crate) terminal: Terminal,
}

/// A model file on this machine.
#[derive(Debug, Clone)]
pub(crate) struct LocalModel {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What to call it.
    pub(crate) name: String,
}

impl App {
    /// The store.
    pub(crate) fn store(&self) -> Store {
        Store::new(&self.settings, self.paths.models())
    }

    /// What `name` means.
    ///
    /// # Errors
    /// As [`store::parse`].
    pub(crate) fn reference(&self, name: &str) -> anyhow::Result<Reference> {
        store::parse(name, &self.store(), download::endpoint(&self.settings))
    }

    /// The file that `name` means, downloaded first if it is not here.
    ///
    /// # Errors
    /// An unknown name, and all that can go wrong with a download.
    pub(crate) fn model(&self, name: &str) -> anyhow::Result<LocalModel> {
        let reference = self.reference(name)?;
        let store = self.store();
        let path = Fetcher::new(&store, &self.settings, &self.terminal).fetch(&reference)?;
        let name = display_name(&path);
        Ok(LocalModel { path, name })
    }

    /// Takes over what the makers of `model` recommend, where the user said nothing.
    pub(crate) fn recommend(&mut self, model: &LocalModel) {
        let file = model
            .path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Some(advice) = catalogue::entry_of_file(&file).and_then(|entry| entry.sampling) else {
            return;
        };
        self.settings
            .recommend("temp", Value::Float(f64::from(advice.temp)));
        self.settings
            .recommend("top_p", Value::Float(f64::from(advice.top_p)));
        if let Some(top_k) = advice.top_k {
            self.settings
                .recommend("top_k", Value::Int(i64::from(top_k)));
        }
    }
}

/// The catalogue name of a file, else its stem, without the numbers of a set.
pub(crate) fn display_name(path: &std::path::Path) -> String {
    let file = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let stem = store::split_shard(&file)
        .map(|(stem, ..)| stem)
        .or_else(|| file.strip_suffix(".gguf"))
        .unwrap_or(&file);
    catalogue::name_of_file(&file).unwrap_or_else(|| stem.to_owned())
}
