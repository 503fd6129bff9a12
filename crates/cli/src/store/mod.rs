//! The model store: plain `.gguf` files in a folder, with folders inside it for files that are not the catalogue's. There
//! is no index and no blob store; files copied there by hand just work.

mod name;

use std::io;
use std::path::{Component, Path, PathBuf};

pub(crate) use name::{Reference, Wanted, parse};

use crate::settings::Resolved;

/// The store's folder.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    root: PathBuf,
}

/// Deeper folders than `host/owner/repo/sub` are not looked into: a link loop must end.
const MAX_DEPTH: usize = 6;

impl Store {
    /// The folder that the settings name; it need not exist yet.
    pub(crate) fn new(settings: &Resolved, default: PathBuf) -> Store {
        Store {
            root: settings.path("models_dir").unwrap_or(default),
        }
    }

    /// The folder.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Paths of all `.gguf` files and unfinished downloads, relative to the folder, sorted.
    ///
    /// # Errors
    /// When the folder is there but cannot be read.
    pub(crate) fn files(&self) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        match collect(&self.root, Path::new(""), 0, &mut files) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
        files.sort();
        Ok(files)
    }

    /// The finished file that `name` means: a path relative to the folder, a file name or a stem, in any folder of it.
    pub(crate) fn find(&self, name: &str) -> Option<PathBuf> {
        let files = self.files().ok()?;
        let finished = files.iter().filter(|file| is_model(file));
        let matches = |file: &&PathBuf| {
            let path = file.to_string_lossy();
            let file_name = file
                .file_name()
                .map(|name| name.to_string_lossy())
                .unwrap_or_default();
            let stem = path.strip_suffix(".gguf").unwrap_or(&path);
            path == name
                || stem == name
                || file_name == name
                || file_name.strip_suffix(".gguf") == Some(name)
        };
        finished
            .clone()
            .find(matches)
            .map(|file| self.root.join(file))
    }

    /// The absolute path of `relative`, which must stay inside the folder.
    pub(crate) fn place(&self, relative: &Path) -> Option<PathBuf> {
        let is_plain = relative
            .components()
            .all(|component| matches!(component, Component::Normal(_)));
        (is_plain && relative.components().next().is_some()).then(|| self.root.join(relative))
    }

    /// Whether `path` lies in the folder.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        match (self.root.canonicalize(), path.canonicalize()) {
            (Ok(root), Ok(path)) => path.starts_with(root),
            _ => false,
        }
    }
}

fn collect(root: &Path, below: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for item in std::fs::read_dir(root.join(below))? {
        let item = item?;
        let path = below.join(item.file_name());
        let Ok(metadata) = std::fs::metadata(root.join(&path)) else {
            continue;
        };
        if metadata.is_dir() && depth < MAX_DEPTH {
            // A folder that may not be read hides only itself.
            let _ = collect(root, &path, depth + 1, files);
        } else if metadata.is_file() && (is_model(&path) || is_part(&path)) {
            files.push(path);
        }
    }
    Ok(())
}

/// Whether the name is a finished model file's.
pub(crate) fn is_model(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
}

/// Whether the name is an unfinished download's.
pub(crate) fn is_part(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "part")
}

/// The other files of the set that `path` is the first of (`-00001-of-00003.gguf`), or of any one of the set; `path` among
/// them. A plain file is a set of its own.
pub(crate) fn shard_names(file: &str) -> Vec<String> {
    let set = split_shard(file).map(|(stem, _, total)| {
        (1..=total)
            .map(|index| format!("{stem}-{index:05}-of-{total:05}.gguf"))
            .collect::<Vec<_>>()
    });
    set.unwrap_or_else(|| vec![file.to_owned()])
}

/// `name-00002-of-00003.gguf` as (`name`, 2, 3).
pub(crate) fn split_shard(file: &str) -> Option<(&str, u32, u32)> {
    let rest = file.strip_suffix(".gguf")?;
    let (rest, total) = rest.rsplit_once("-of-")?;
    let (stem, index) = rest.rsplit_once('-')?;
    let number = |text: &str| {
        (text.len() == 5)
            .then(|| text.parse::<u32>().ok())
            .flatten()
    };
    let (index, total) = (number(index)?, number(total)?);
    (1..=total).contains(&index).then_some((stem, index, total))
}

/// A name from a server made safe as one file or folder name: no separators, no leading dots, nothing a terminal or a
/// file system would trip over.
///
/// Returns `None` where nothing usable is left.
pub(crate) fn safe_name(name: &str) -> Option<String> {
    let kept: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+' | ' ') {
                c
            } else {
                '_'
            }
        })
        .collect();
    let kept = kept.trim().trim_start_matches('.');
    (!kept.is_empty() && kept.len() <= 200).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!(split_shard("m-00002-of-00003.gguf"), Some(("m", 2, 3)));
        assert_eq!(split_shard("m-00004-of-00003.gguf"), None);
        assert_eq!(split_shard("m-2-of-3.gguf"), None);
        assert_eq!(
            shard_names("m-00001-of-00002.gguf"),
            ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
        );
        assert_eq!(shard_names("m.gguf"), ["m.gguf"]);
    }

    #[test]
    fn names_cannot_leave_the_folder() {
        assert_eq!(
            safe_name("../../etc/passwd").as_deref(),
            Some("_.._etc_passwd")
        );
        assert_eq!(safe_name("..").as_deref(), None);
        assert_eq!(
            safe_name("a\u{1b}[31m.gguf").as_deref(),
            Some("a__31m.gguf")
        );
        let store = Store {
            root: PathBuf::from("/store"),
        };
        assert_eq!(
            store.place(Path::new("a/b.gguf")),
            Some(PathBuf::from("/store/a/b.gguf"))
        );
        for bad in ["../b.gguf", "/b.gguf", "a/../../b", ""] {
            assert_eq!(store.place(Path::new(bad)), None, "{bad}");
        }
    }
}
