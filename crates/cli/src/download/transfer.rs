//! One file from one address into the store: resumed where it stopped, checked as soon as its first bytes are there, and
//! verified before it gets its name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use indicatif::ProgressBar;

use super::http::{Answer, Client, HttpError, Range, Reading};
use super::part::{Identity, Part};
use super::support::Probe;
use crate::model_file::{self, Report};
use crate::terminal::{Terminal, bytes};

/// A connection that brings nothing for this long is given up and made anew.
const STALL_LIMIT: Duration = Duration::from_secs(30);
/// Tries in a row that bring no byte.
const MAX_IDLE_TRIES: u32 = 5;

/// A file to fetch.
#[derive(Debug, Clone)]
pub(crate) struct RemoteFile {
    /// Its address.
    pub(crate) url: String,
    /// Where it goes.
    pub(crate) target: PathBuf,
    /// What it must digest to, where that is known beforehand.
    pub(crate) sha256: Option<String>,
    /// Whether it is a model of its own, or the first of a set: later shards name no architecture.
    pub(crate) has_header: bool,
}

/// How one try ended.
enum Try {
    /// All bytes are there.
    Complete,
    /// The connection broke; what came is kept.
    Broken(String),
}

/// Fetches `file`.
///
/// # Errors
/// Each says whether a part was kept. An [`HttpError`] is in the chain where the server or the network is at fault.
pub(crate) fn fetch(
    client: &Client,
    file: &RemoteFile,
    terminal: &Terminal,
) -> anyhow::Result<PathBuf> {
    let mut part = Part::open(&file.target)?;
    let bar = terminal.byte_bar(
        part.identity().and_then(|identity| identity.total),
        &label(&file.target),
    );
    let outcome = fetch_into(client, file, &mut part, &bar, terminal);
    bar.finish_and_clear();
    match outcome {
        Ok(()) => part.finish(),
        Err(Failure::Worthless(error)) => {
            part.discard();
            Err(error)
        }
        Err(Failure::Kept(error)) if part.len() > 0 => {
            let path = part.path().display();
            let kept = format!(
                "{} are kept in {path}; the same command goes on from there",
                bytes(part.len())
            );
            Err(error.context(kept))
        }
        Err(Failure::Kept(error)) => {
            part.drop_if_empty();
            Err(error)
        }
    }
}

/// What a failure means for the bytes that are there.
enum Failure {
    /// They are good.
    Kept(anyhow::Error),
    /// They are not.
    Worthless(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Kept(error)
    }
}

fn fetch_into(
    client: &Client,
    file: &RemoteFile,
    part: &mut Part,
    bar: &ProgressBar,
    terminal: &Terminal,
) -> Result<(), Failure> {
    if part.len() > 0 {
        terminal.note(&format!(
            "{}: going on after {}",
            label(&file.target),
            bytes(part.len())
        ));
    }
    let mut may_restart = part.len() > 0;
    loop {
        let mut probe = Probe::new(file.has_header);
        bring_all(client, file, part, bar, &mut probe)?;
        probe.finish(part).map_err(Failure::Worthless)?;
        match verify(file, part) {
            Ok(()) => return Ok(()),
            // The old bytes may be to blame: once, all are fetched anew.
            Err(_) if may_restart => {
                may_restart = false;
                terminal.note("the resumed file does not match its sha256: starting anew");
                part.clear().map_err(anyhow::Error::from)?;
            }
            Err(error) => return Err(Failure::Worthless(error)),
        }
    }
}

/// Tries until all bytes are there.
fn bring_all(
    client: &Client,
    file: &RemoteFile,
    part: &mut Part,
    bar: &ProgressBar,
    probe: &mut Probe,
) -> Result<(), Failure> {
    let mut idle_tries = 0;
    loop {
        let before = part.len();
        let reason = match try_once(client, file, part, bar, probe) {
            Ok(Try::Complete) => return Ok(()),
            Ok(Try::Broken(reason)) => anyhow::anyhow!("the connection broke: {reason}"),
            Err(Failure::Kept(error)) if is_worth_retrying(&error, part.len()) => error,
            Err(failure) => return Err(failure),
        };
        idle_tries = if part.len() > before {
            0
        } else {
            idle_tries + 1
        };
        if idle_tries >= MAX_IDLE_TRIES {
            return Err(Failure::Kept(reason));
        }
        tracing::info!("{reason:#}; trying again");
        std::thread::sleep(pause(&reason, idle_tries));
    }
}

/// A host that never answered is given up at once: there may be a second source.
fn is_worth_retrying(error: &anyhow::Error, n_bytes_there: u64) -> bool {
    match error.downcast_ref::<HttpError>() {
        Some(HttpError::Unreachable { .. }) => n_bytes_there > 0,
        Some(error) => error.is_passing(),
        None => false,
    }
}

fn pause(reason: &anyhow::Error, idle_tries: u32) -> Duration {
    let asked = match reason.downcast_ref::<HttpError>() {
        Some(HttpError::Status {
            retry_after: Some(seconds),
            ..
        }) => Some(Duration::from_secs(*seconds)),
        _ => None,
    };
    let own = Duration::from_millis(250 << idle_tries.min(5));
    asked.map_or(own, |asked| asked.clamp(own, Duration::from_secs(30)))
}

fn try_once(
    client: &Client,
    file: &RemoteFile,
    part: &mut Part,
    bar: &ProgressBar,
    probe: &mut Probe,
) -> Result<Try, Failure> {
    let range = range_of(part);
    let mut answer = client
        .get(&file.url, range.as_ref())
        .map_err(anyhow::Error::from)?;
    let expected = file.sha256.clone().or_else(|| answer.sha256.clone());
    if answer.code == 416 && answer.total == Some(part.len()) {
        return Ok(Try::Complete);
    }
    if range.is_some() && !continues(part, &answer, expected.as_deref()) {
        tracing::info!(
            "{}: the file has changed or cannot be resumed; starting anew",
            file.url
        );
        part.clear().map_err(anyhow::Error::from)?;
        if answer.code != 200 {
            answer = client.get(&file.url, None).map_err(anyhow::Error::from)?;
        }
    }
    if part.len() == 0 && answer.start != 0 {
        return Err(anyhow::anyhow!(
            "{}: the server sent a part that was not asked for",
            file.url
        )
        .into());
    }
    let (total, etag) = (answer.total, answer.etag);
    part.identify(Identity {
        url: file.url.clone(),
        etag,
        sha256: expected,
        total,
    })?;
    if let Some(total) = total {
        bar.set_length(total);
    }
    let reading = Reading::start(answer.body).map_err(anyhow::Error::from)?;
    receive(&reading, total, part, bar, probe)
}

fn range_of(part: &Part) -> Option<Range> {
    let identity = part.identity().filter(|_| part.len() > 0)?;
    Some(Range {
        start: part.len(),
        if_range: identity.strong_etag().map(str::to_owned),
    })
}

/// Whether the answer's bytes go on where the part ends, in the same file.
fn continues(part: &Part, answer: &Answer, sha256: Option<&str>) -> bool {
    let Some(identity) = part.identity() else {
        return false;
    };
    let same = |old: Option<&str>, new: Option<&str>| old.is_none() || new.is_none() || old == new;
    answer.code == 206
        && answer.start == part.len()
        && (identity.total.is_none() || answer.total.is_none() || identity.total == answer.total)
        && same(identity.sha256.as_deref(), sha256)
        && (sha256.is_some() || same(identity.etag.as_deref(), answer.etag.as_deref()))
}

fn receive(
    reading: &Reading,
    total: Option<u64>,
    part: &mut Part,
    bar: &ProgressBar,
    probe: &mut Probe,
) -> Result<Try, Failure> {
    loop {
        bar.set_position(part.len());
        let chunk = match reading.next(STALL_LIMIT) {
            Ok(chunk) => chunk,
            Err(error) => return Ok(Try::Broken(error.to_string())),
        };
        if chunk.is_empty() {
            break;
        }
        if total.is_some_and(|total| part.len() + chunk.len() as u64 > total) {
            let error = anyhow::anyhow!("the server sent more bytes than it announced");
            return Err(Failure::Worthless(error));
        }
        part.append(&chunk)?;
        probe.look(part, total).map_err(Failure::Worthless)?;
    }
    match total {
        Some(total) if part.len() < total => Ok(Try::Broken(format!(
            "{} of {} came",
            bytes(part.len()),
            bytes(total)
        ))),
        _ => Ok(Try::Complete),
    }
}

fn verify(file: &RemoteFile, part: &Part) -> anyhow::Result<()> {
    let stated = part.identity().and_then(|identity| identity.sha256.clone());
    let Some(expected) = file.sha256.clone().or(stated) else {
        return Ok(());
    };
    let found = part.sha256();
    if found != expected {
        let name = label(&file.target);
        return Err(HttpError::Damaged {
            name,
            found,
            expected,
        }
        .into());
    }
    Ok(())
}

/// Reads only as much of the file as tells whether it can be run.
///
/// # Errors
/// As [`fetch`]; a file that cannot be run is not an error here.
pub(crate) fn check(client: &Client, url: &str) -> anyhow::Result<Report> {
    let answer = client.get(url, None)?;
    let total = answer.total;
    let reading = Reading::start(answer.body)?;
    let mut prefix = Vec::new();
    let mut wanted = model_file::FIRST_LOOK_BYTES;
    loop {
        let chunk = reading.next(STALL_LIMIT)?;
        prefix.extend_from_slice(&chunk);
        if (prefix.len() as u64) < wanted && !chunk.is_empty() {
            continue;
        }
        match model_file::judge(&prefix, total.unwrap_or(u64::MAX))? {
            Some(report) => return Ok(report),
            None if chunk.is_empty() => bail!("{url}: the file ends inside its header"),
            None => wanted *= 2,
        }
        if wanted > model_file::MAX_HEADER_BYTES {
            bail!(
                "{url}: the header is longer than {}",
                bytes(model_file::MAX_HEADER_BYTES)
            );
        }
    }
}

fn label(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
