//! Memory of this process.

/// Resident memory in bytes; `None` where the system does not say.
pub fn resident_bytes() -> Option<u64> {
    field("VmRSS:")
}

/// The most resident memory that this process has had, in bytes.
pub fn peak_resident_bytes() -> Option<u64> {
    field("VmHWM:")
}

/// Makes the peak start anew from what is resident now. Returns whether the system did.
pub(crate) fn reset_peak() -> bool {
    std::fs::write("/proc/self/clear_refs", "5").is_ok()
}

fn field(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}
