//! Memory that may be used: the machine's, less where a cgroup gives less.

use std::path::Path;

use serde::Serialize;

use crate::settings::Resolved;

/// Memory of the machine, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Memory {
    /// Installed.
    pub(crate) total: u64,
    /// Free, or freed at once when wanted.
    pub(crate) available: u64,
    /// The lowest limit of the cgroups that this process is in.
    pub(crate) cgroup_limit: Option<u64>,
    /// The setting `memory_limit`.
    pub(crate) own_limit: Option<u64>,
}

impl Memory {
    /// Looks at the machine; `None` where the system does not say.
    pub(crate) fn read(settings: &Resolved) -> Option<Memory> {
        let own_limit = settings
            .int("memory_limit")
            .and_then(|n| u64::try_from(n).ok())
            .filter(|&n| n > 0);
        let free = dynalm_engine::available_bytes()?;
        let available = own_limit.map_or(free, |limit| limit.min(free));
        Some(Memory {
            total: installed()?,
            available,
            cgroup_limit: cgroup_limit(),
            own_limit,
        })
    }

    /// What the available amount was held to, in words.
    pub(crate) fn bound(&self) -> String {
        let bytes = crate::terminal::bytes;
        match (self.own_limit, self.cgroup_limit) {
            (Some(limit), _) if limit == self.available => {
                format!("memory_limit is {}", bytes(limit))
            }
            (_, Some(limit)) if limit < self.total => format!("the cgroup allows {}", bytes(limit)),
            _ => format!("the machine has {}", bytes(self.total)),
        }
    }
}

fn installed() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// `MemTotal:  1024 kB` in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim()
        .trim_end_matches("kB")
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(1024)
}

/// The lowest limit of the cgroups that this process is in, version 2 and 1.
fn cgroup_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (root, name) = match parts.next()? {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let path = Path::new(root).join(parts.next()?.trim_start_matches('/'));
        let levels = path.ancestors().take_while(|level| level.starts_with(root));
        levels.filter_map(|level| limit_of(&level.join(name))).min()
    });
    limits.min()
}

/// A limit in a file; "max" and version 1's huge number both mean none.
fn limit_of(file: &Path) -> Option<u64> {
    std::fs::read_to_string(file)
        .ok()?
        .trim()
        .parse::<u64>()
        .ok()
        .filter(|&limit| limit < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       24000000 kB\nMemAvailable:   12 kB\n";
        assert_eq!(field(text, "MemTotal:"), Some(24_000_000 * 1024));
        assert_eq!(field(text, "Swap:"), None);
    }

    #[test]
    fn a_limit_may_be_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("memory.max");
        for (text, limit) in [
            ("1000\n", Some(1000)),
            ("max\n", None),
            ("9223372036854771712\n", None),
        ] {
            std::fs::write(&file, text).unwrap();
            assert_eq!(limit_of(&file), limit);
        }
    }
}
