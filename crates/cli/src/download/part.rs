//! The `.part` file of a download: its bytes so far, their running digest, and beside it a small file that says what they
//! are a part of.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::machine::disk;
use crate::terminal::bytes;

/// What the bytes are a part of.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Where they came from.
    pub(crate) url: String,
    /// The sending host's entity tag.
    pub(crate) etag: Option<String>,
    /// The whole file's SHA-256, where the hub states it.
    pub(crate) sha256: Option<String>,
    /// The whole file's length.
    pub(crate) total: Option<u64>,
}

impl Identity {
    /// The tag that makes a range request safe: a strong one. Weak tags promise nothing about bytes.
    pub(crate) fn strong_etag(&self) -> Option<&str> {
        self.etag.as_deref().filter(|etag| etag.starts_with('"'))
    }

    /// Whether more bytes can be told to belong to the same file.
    pub(crate) fn can_resume(&self) -> bool {
        self.strong_etag().is_some() || self.sha256.is_some()
    }
}

/// Room left on the disk beyond the file itself, so that a download does not fill it to the brim.
const DISK_MARGIN_BYTES: u64 = 64 << 20;

/// An unfinished download. It is locked, so that two processes never write one file.
pub(crate) struct Part {
    target: PathBuf,
    path: PathBuf,
    file: File,
    len: u64,
    digest: Sha256,
    identity: Option<Identity>,
}

impl Part {
    /// Opens or makes the part of `target`, with the folders above it, and takes in what is there.
    ///
    /// # Errors
    /// No permission, another process at the same file, a disk that cannot be read.
    pub(crate) fn open(target: &Path) -> anyhow::Result<Part> {
        let folder = target.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder).map_err(|error| refused(folder, &error))?;
        let path = with_ending(target, "part");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(|error| refused(&path, &error))?;
        if file.try_lock().is_err() {
            bail!(
                "{} is being downloaded by another process",
                target.display()
            );
        }
        let state = std::fs::read(with_ending(target, "part.json")).ok();
        let identity = state.and_then(|text| serde_json::from_slice(&text).ok());
        let mut part = Part {
            target: target.to_owned(),
            path,
            file,
            len: 0,
            digest: Sha256::new(),
            identity,
        };
        part.take_in()
            .with_context(|| format!("cannot read {}", part.path.display()))?;
        Ok(part)
    }

    /// Digests the bytes that are there; bytes of unknown origin are dropped.
    fn take_in(&mut self) -> io::Result<()> {
        if !self.identity.as_ref().is_some_and(Identity::can_resume) {
            return self.clear();
        }
        self.file.seek(SeekFrom::Start(0))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match self.file.read(&mut buffer)? {
                0 => return Ok(()),
                n => {
                    self.digest.update(&buffer[..n]);
                    self.len += n as u64;
                }
            }
        }
    }

    /// Number of bytes that are there.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// What they are a part of, where that is known.
    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The file of the bytes.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Forgets all bytes.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.len = 0;
        self.digest = Sha256::new();
        Ok(())
    }

    /// Says what the bytes from here on belong to, and makes sure that there is room for them.
    ///
    /// # Errors
    /// Not enough room, with both numbers.
    pub(crate) fn identify(&mut self, identity: Identity) -> anyhow::Result<()> {
        if let (Some(total), Some(free)) = (identity.total, disk::free_bytes(&self.path)) {
            let missing = total.saturating_sub(self.len);
            if missing.saturating_add(DISK_MARGIN_BYTES) > free {
                self.drop_if_empty();
                bail!(
                    "not enough room: {} more are needed where {} lies, {} are free",
                    bytes(missing),
                    self.target.display(),
                    bytes(free)
                );
            }
        }
        let text = serde_json::to_vec(&identity)?;
        let state = with_ending(&self.target, "part.json");
        std::fs::write(&state, text).map_err(|error| refused(&state, &error))?;
        self.identity = Some(identity);
        Ok(())
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// A full disk is said plainly.
    pub(crate) fn append(&mut self, chunk: &[u8]) -> anyhow::Result<()> {
        self.file
            .write_all(chunk)
            .map_err(|error| refused(&self.path, &error))?;
        self.digest.update(chunk);
        self.len += chunk.len() as u64;
        Ok(())
    }

    /// The first `n` bytes, or as many as are there.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn prefix(&self, n: u64) -> io::Result<Vec<u8>> {
        let mut prefix = Vec::new();
        File::open(&self.path)?.take(n).read_to_end(&mut prefix)?;
        Ok(prefix)
    }

    /// The SHA-256 of the bytes so far.
    pub(crate) fn sha256(&self) -> String {
        hex(&self.digest.clone().finalize())
    }

    /// Makes the part the file: on the disk first, then under its name.
    ///
    /// # Errors
    /// The disk's.
    pub(crate) fn finish(self) -> anyhow::Result<PathBuf> {
        self.file
            .sync_all()
            .map_err(|error| refused(&self.path, &error))?;
        std::fs::rename(&self.path, &self.target).map_err(|error| refused(&self.target, &error))?;
        let _ = std::fs::remove_file(with_ending(&self.target, "part.json"));
        Ok(self.target)
    }

    /// Removes the part: what it holds is worthless.
    pub(crate) fn discard(self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = std::fs::remove_file(with_ending(&self.target, "part.json"));
    }

    /// Removes a part without bytes: a failure that brought nothing leaves nothing.
    pub(crate) fn drop_if_empty(&self) {
        if self.len == 0 {
            let _ = std::fs::remove_file(&self.path);
            let _ = std::fs::remove_file(with_ending(&self.target, "part.json"));
        }
    }
}

/// `file.gguf` as `file.gguf.part`.
pub(crate) fn with_ending(target: &Path, ending: &str) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A disk's refusal in plain words.
pub(crate) fn refused(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => anyhow::anyhow!(
            "no permission to write {path}: set DYNALM_MODELS_DIR to a folder that you may write"
        ),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => anyhow::anyhow!(
            "the disk is full: {path} is kept as far as it came; make room and run the same command again"
        ),
        _ => anyhow::anyhow!("cannot write {path}: {error}"),
    }
}
