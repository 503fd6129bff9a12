//! The files by which `ps` and `stop` find running servers. A server locks its file as long as it lives, so that the file of
//! one that was killed is told from one that runs, whatever its process id now belongs to.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

/// What a server says about itself. No keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Running {
    /// Its process.
    pub(crate) pid: u32,
    /// Where it listens: `http://host:port` or `unix:/path.sock`.
    pub(crate) address: String,
    /// What it serves.
    pub(crate) model: String,
    /// Seconds since 1970 at which it started.
    pub(crate) started: u64,
}

/// A server's own entry; gone when dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    path: PathBuf,
    /// Keeps the lock.
    _file: File,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Enters a server.
///
/// # Errors
/// A folder that cannot be written.
pub(crate) fn enter(folder: &Path, running: &Running) -> anyhow::Result<Entry> {
    let path = folder.join(format!("{}.json", running.pid));
    let write = || -> std::io::Result<File> {
        std::fs::create_dir_all(folder)?;
        // Locked before it has its name: a reader must never see an entry without its lock.
        let hidden = path.with_extension("new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&hidden)?;
        file.lock()?;
        file.write_all(serde_json::to_string(running)?.as_bytes())?;
        std::fs::rename(&hidden, &path)?;
        Ok(file)
    };
    let file = write().with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Entry { path, _file: file })
}

/// The servers that run, oldest first. Entries of dead ones are removed.
pub(crate) fn running(folder: &Path) -> Vec<Running> {
    let items = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|item| item.path());
    let mut found: Vec<Running> = items.filter_map(|path| read(&path)).collect();
    found.sort_by_key(|running| (running.started, running.pid));
    found
}

/// Whether this server still runs.
pub(crate) fn is_running(folder: &Path, pid: u32) -> bool {
    read(&folder.join(format!("{pid}.json"))).is_some()
}

fn read(path: &Path) -> Option<Running> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return None;
    }
    let mut file = File::open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        // Nobody holds it: its server is gone.
        let _ = std::fs::remove_file(path);
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_last_as_long_as_their_server() {
        let folder = tempfile::tempdir().unwrap();
        let server = Running {
            pid: 7,
            address: "http://127.0.0.1:1".to_owned(),
            model: "m".to_owned(),
            started: 1,
        };
        let entry = enter(folder.path(), &server).unwrap();
        assert_eq!(running(folder.path()).len(), 1);
        assert!(is_running(folder.path(), 7));
        drop(entry);
        assert!(running(folder.path()).is_empty());
        std::fs::write(
            folder.path().join("8.json"),
            serde_json::to_string(&server).unwrap(),
        )
        .unwrap();
        assert!(
            running(folder.path()).is_empty(),
            "an entry without a lock is a dead server's"
        );
        assert!(!folder.path().join("8.json").exists());
    }
}
