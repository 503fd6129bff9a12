//! What the user calls a model, and what that means.

use std::path::{Path, PathBuf};

use crate::catalogue::{self, Entry};
use crate::exit::usage;
use crate::near;
use crate::store::{Store, safe_name};

/// What to look for at the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// This file of the repository.
    File(String),
    /// The repository's file of this quantization; its default one where none is named.
    Quant(Option<String>),
}

/// A model, as it was named.
#[derive(Debug, Clone)]
pub(crate) enum Reference {
    /// A file that is there.
    File(PathBuf),
    /// A catalogue name.
    Catalogue {
        /// Which model.
        entry: &'static Entry,
        /// Which of its quantizations.
        quant: String,
    },
    /// A hub repository.
    Hub {
        /// `owner/repo`.
        repo: String,
        /// Which of its files.
        wanted: Wanted,
    },
    /// Any other address.
    Url(String),
}

/// Works out what `name` means. Files that are there come first, so that nothing is fetched twice.
///
/// # Errors
/// A name that nothing is known of, with near names; a path that leads nowhere.
pub(crate) fn parse(name: &str, store: &Store, endpoint: &str) -> anyhow::Result<Reference> {
    let path = crate::paths::expand(name);
    if path.is_file() {
        return Ok(Reference::File(path));
    }
    if name.starts_with("https://") || name.starts_with("http://") {
        return url(name, endpoint);
    }
    if let Some((entry, quant)) = catalogue::find(name) {
        return Ok(Reference::Catalogue { entry, quant });
    }
    if let Some(path) = store.find(name) {
        return Ok(Reference::File(path));
    }
    if looks_like_path(name) {
        return Err(anyhow::anyhow!("there is no file {}", path.display()));
    }
    match hub(name) {
        Some(reference) => Ok(reference),
        None => Err(unknown(name, store)),
    }
}

fn looks_like_path(name: &str) -> bool {
    let is_relative = name.starts_with("./") || name.starts_with("../") || name.starts_with('~');
    Path::new(name).is_absolute() || is_relative || Path::new(name).is_dir()
}

/// `owner/repo`, `owner/repo:quant`, `owner/repo/path/file.gguf`; an `hf.co/` before it is allowed.
fn hub(name: &str) -> Option<Reference> {
    let name = name
        .strip_prefix("hf.co/")
        .or_else(|| name.strip_prefix("huggingface.co/"))
        .unwrap_or(name);
    let name = name.strip_suffix(":latest").unwrap_or(name);
    let parts: Vec<&str> = name.split('/').collect();
    let (repo, wanted) = match parts.as_slice() {
        // `folder/file.gguf` is a file that is not there, and no repository.
        [_, file] if file.to_ascii_lowercase().ends_with(".gguf") => return None,
        [owner, repo] => {
            let (repo, quant) = repo
                .split_once(':')
                .map_or((*repo, None), |(repo, quant)| (repo, Some(quant)));
            if quant.is_some_and(|quant| !catalogue::is_quant(quant)) {
                return None;
            }
            (
                format!("{owner}/{repo}"),
                Wanted::Quant(quant.map(str::to_owned)),
            )
        }
        [owner, repo, path @ ..] if !path.is_empty() => {
            if !path.last()?.to_ascii_lowercase().ends_with(".gguf")
                || !path.iter().all(|part| is_plain(part))
            {
                return None;
            }
            (format!("{owner}/{repo}"), Wanted::File(path.join("/")))
        }
        _ => return None,
    };
    repo.split('/')
        .all(is_plain)
        .then_some(Reference::Hub { repo, wanted })
}

/// Whether a part of a hub name is spelled as the hub spells them.
fn is_plain(part: &str) -> bool {
    safe_name(part).is_some_and(|safe| safe == part)
}

/// An address; one of a hub file becomes that file's reference, so that it is found in the store by either name.
fn url(address: &str, endpoint: &str) -> anyhow::Result<Reference> {
    let at_hub = address
        .strip_prefix(endpoint.trim_end_matches('/'))
        .and_then(|rest| rest.strip_prefix('/'));
    let parts: Vec<&str> = at_hub
        .unwrap_or("")
        .split(['?', '#'])
        .next()
        .unwrap_or("")
        .split('/')
        .collect();
    if let [owner, repo, "resolve" | "blob", "main", path @ ..] = parts.as_slice()
        && !path.is_empty()
    {
        let name = format!("{owner}/{repo}/{}", path.join("/"));
        return hub(&name).ok_or_else(|| usage(format!("{address} is not a .gguf file")));
    }
    let name = address.split(['?', '#']).next().unwrap_or(address);
    if !name.to_ascii_lowercase().ends_with(".gguf") {
        return Err(usage(format!("{address} does not end in .gguf")));
    }
    let is_local =
        address.starts_with("http://127.0.0.1") || address.starts_with("http://localhost");
    if address.starts_with("http://") && !is_local {
        return Err(usage(format!(
            "{address}: only https addresses are fetched"
        )));
    }
    Ok(Reference::Url(address.to_owned()))
}

fn unknown(name: &str, store: &Store) -> anyhow::Error {
    let stored: Vec<String> = store
        .files()
        .unwrap_or_default()
        .iter()
        .filter_map(|file| stem(file))
        .collect();
    let names = catalogue::ENTRIES
        .iter()
        .map(|entry| entry.name)
        .chain(stored.iter().map(String::as_str));
    let nearest = near::near(name, names, 3);
    let is_file = name.to_ascii_lowercase().ends_with(".gguf");
    let hint = if is_file {
        let nearest = near::did_you_mean(&nearest);
        format!(
            ": there is no such file, here or in {}{nearest}",
            store.root().display()
        )
    } else if nearest.is_empty() {
        format!(
            "; known are, among others, {}; or name owner/repo, an address or a file",
            sample()
        )
    } else {
        near::did_you_mean(&nearest)
    };
    anyhow::anyhow!("unknown model `{}`{hint}", crate::terminal::printable(name))
}

fn sample() -> String {
    let names: Vec<&str> = catalogue::ENTRIES
        .iter()
        .step_by(4)
        .take(6)
        .map(|entry| entry.name)
        .collect();
    names.join(", ")
}

fn stem(path: &Path) -> Option<String> {
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Resolved;

    fn check(name: &str, expected: &str) {
        let store = Store::new(&Resolved::defaults(), PathBuf::from("/nonexistent"));
        let found = match parse(name, &store, "https://huggingface.co") {
            Ok(Reference::Catalogue { entry, quant }) => format!("{} {quant}", entry.name),
            Ok(Reference::Hub {
                repo,
                wanted: Wanted::File(file),
            }) => format!("{repo} file {file}"),
            Ok(Reference::Hub {
                repo,
                wanted: Wanted::Quant(quant),
            }) => format!("{repo} quant {quant:?}"),
            Ok(Reference::Url(url)) => format!("url {url}"),
            Ok(Reference::File(path)) => format!("path {}", path.display()),
            Err(error) => format!("error {error}"),
        };
        assert!(found.starts_with(expected), "{name}: {found}");
    }

    #[test]
    fn names_mean_what_the_manual_says() {
        check("smollm2:135m:latest", "smollm2:135m Q4_1");
        check("owner/repo", "owner/repo quant None");
        check("owner/repo:q8_0", "owner/repo quant Some(\"q8_0\")");
        check(
            "hf.co/owner/repo:Q4_K_M",
            "owner/repo quant Some(\"Q4_K_M\")",
        );
        check("owner/repo/sub/file.gguf", "owner/repo file sub/file.gguf");
        check(
            "https://huggingface.co/owner/repo/resolve/main/file.gguf?download=true",
            "owner/repo file file.gguf",
        );
        check(
            "https://example.org/a/b.gguf",
            "url https://example.org/a/b.gguf",
        );
    }

    #[test]
    fn bad_names_are_refused() {
        check(
            "smolm2:135m",
            "error unknown model `smolm2:135m`; did you mean `smollm2:135m`",
        );
        check("owner/repo/../x.gguf", "error unknown model");
        check("owner/..", "error unknown model");
        check("./nowhere.gguf", "error there is no file");
        check(
            "nowhere.gguf",
            "error unknown model `nowhere.gguf`: there is no such file, here or in /nonexistent",
        );
        check(
            "folder/nowhere.gguf",
            "error unknown model `folder/nowhere.gguf`: there is no such file",
        );
        check(
            "http://example.org/a.gguf",
            "error http://example.org/a.gguf: only https",
        );
        check(
            "https://example.org/a.zip",
            "error https://example.org/a.zip does not end",
        );
        check("zzzzzz", "error unknown model `zzzzzz`; known are");
    }
}
