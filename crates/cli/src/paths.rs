//! Where things live: `~/.dynalm` and what is below it.

use std::path::{Path, PathBuf};

use anyhow::Context;

/// The folder of everything that is ours, `$DYNALM_HOME` or `~/.dynalm`.
#[derive(Debug, Clone)]
pub(crate) struct Paths {
    home: PathBuf,
}

impl Paths {
    /// Finds the folder; it need not exist.
    ///
    /// # Errors
    /// When neither `DYNALM_HOME` nor a home folder is known.
    pub(crate) fn find() -> anyhow::Result<Paths> {
        let own = std::env::var_os("DYNALM_HOME")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        let home = || user_home().map(|home| home.join(".dynalm"));
        let home = own
            .or_else(home)
            .context("no home folder is known: set HOME or DYNALM_HOME")?;
        Ok(Paths { home })
    }

    /// The config file, `$DYNALM_CONFIG` or `config.toml` in our folder.
    pub(crate) fn config(&self) -> PathBuf {
        let own = std::env::var_os("DYNALM_CONFIG")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        own.unwrap_or_else(|| self.home.join("config.toml"))
    }

    /// The model store where no setting names another.
    pub(crate) fn models(&self) -> PathBuf {
        self.home.join("models")
    }

    /// One file per running server.
    pub(crate) fn run(&self) -> PathBuf {
        self.home.join("run")
    }

    /// Lines typed at the chat prompt.
    pub(crate) fn history(&self) -> PathBuf {
        self.home.join("history")
    }

    /// Chats kept with `/save`.
    pub(crate) fn chats(&self) -> PathBuf {
        self.home.join("chats")
    }
}

fn user_home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty())
}

/// `~` and `~/x` with the home folder put in; every other path as it is.
pub(crate) fn expand(text: &str) -> PathBuf {
    match (text.strip_prefix('~'), user_home()) {
        (Some(""), Some(home)) => home,
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(&rest[1..]),
        _ => PathBuf::from(text),
    }
}

/// A path as the user would type it: with `~` for the home folder.
pub(crate) fn short(path: &Path) -> String {
    match user_home()
        .as_deref()
        .and_then(|home| path.strip_prefix(home).ok())
    {
        Some(rest) if !rest.as_os_str().is_empty() => format!("~/{}", rest.display()),
        _ => path.display().to_string(),
    }
}
