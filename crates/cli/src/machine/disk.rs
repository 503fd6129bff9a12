//! Room on the disk.

use std::path::Path;

/// Bytes that this user may still write where `path` lies (or will lie: the nearest folder that exists counts); `None`
/// where the system does not say.
pub(crate) fn free_bytes(path: &Path) -> Option<u64> {
    let existing = path.ancestors().find(|folder| folder.exists())?;
    let stat = rustix::fs::statvfs(existing).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

/// Whether this user may make files where `path` lies or will lie.
pub(crate) fn is_writable(path: &Path) -> bool {
    let existing = path.ancestors().find(|folder| folder.exists());
    existing.is_some_and(|folder| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok())
}
