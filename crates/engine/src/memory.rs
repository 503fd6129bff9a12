//! How much memory is really available, and how much of it the KV cache gets.
//!
//! Available is the least of what the kernel reports (`MemAvailable`) and what each control group above this process
//! still allows: limit minus usage, page cache that can be given back not counted as used. Both versions of control
//! groups are read; `none` where the system tells nothing.

use std::fs;
use std::path::Path;

use crate::block_pool::blocks_for;
use crate::{EngineConfig, EngineError};

const MIB: u64 = 1 << 20;
/// Left to everything else at least, beside a tenth of what is available.
const MIN_HEADROOM_BYTES: u64 = 256 * MIB;
/// Most that the KV cache gets unasked, unless one full context needs more.
const DEFAULT_KV_CAP_BYTES: u64 = 4096 * MIB;
/// Assumed available where the system tells nothing.
const UNKNOWN_AVAILABLE_BYTES: u64 = 2048 * MIB;
/// Limits from here on mean "no limit" in version 1 of control groups.
const NO_LIMIT_BYTES: u64 = 1 << 60;

/// Memory that this process may still take, in bytes; `None` where the system does not say.
pub fn available_bytes() -> Option<u64> {
    available_under(Path::new("/proc"), Path::new("/sys/fs/cgroup"))
}

/// [`available_bytes`] with the two file systems given.
fn available_under(proc: &Path, cgroup: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(proc.join("meminfo")).ok();
    let system = meminfo
        .and_then(|text| field(&text, "MemAvailable:"))
        .map(|kib| kib * 1024);
    let groups = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    system
        .into_iter()
        .chain(
            groups
                .lines()
                .filter_map(|line| group_allowance(line, cgroup)),
        )
        .min()
}

/// The number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text
        .lines()
        .find(|line| line.split_whitespace().next() == Some(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What one line of `/proc/self/cgroup` still allows: `0::/path` in version 2, `5:memory:/path` in version 1.
fn group_allowance(line: &str, root: &Path) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, path) = (parts.next()?, parts.next()?);
    let (mount, files) = if controllers.is_empty() {
        (root.to_owned(), &VERSION_2)
    } else if controllers
        .split(',')
        .any(|controller| controller == "memory")
    {
        (root.join("memory"), &VERSION_1)
    } else {
        return None;
    };
    // Each ancestor may set a limit. Inside a container the path may lie outside what is mounted; then the mount's
    // root is the container's own group.
    let folder = mount.join(path.trim_start_matches('/'));
    let within = |folder: &&Path| folder.starts_with(&mount);
    folder
        .ancestors()
        .take_while(within)
        .filter_map(|folder| files.allowance(folder))
        .min()
}

/// Names of the files of one version of control groups.
struct GroupFiles {
    limit: &'static str,
    usage: &'static str,
    /// Field of `memory.stat` with the page cache that is given back first.
    reclaimable: &'static str,
}

const VERSION_2: GroupFiles = GroupFiles {
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: "inactive_file",
};
const VERSION_1: GroupFiles = GroupFiles {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: "total_inactive_file",
};

impl GroupFiles {
    fn allowance(&self, folder: &Path) -> Option<u64> {
        let number = |name: &str| {
            fs::read_to_string(folder.join(name))
                .ok()?
                .trim()
                .parse::<u64>()
                .ok()
        };
        let limit = number(self.limit).filter(|&limit| limit < NO_LIMIT_BYTES)?;
        let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let reclaimable = field(&stat, self.reclaimable).unwrap_or(0);
        Some(limit.saturating_sub(number(self.usage).unwrap_or(0).saturating_sub(reclaimable)))
    }
}

/// Blocks of the KV cache for a configuration, as [`EngineConfig::kv_bytes`] describes.
///
/// # Errors
/// [`EngineError::NotEnoughMemory`] where no block fits, where `kv_bytes` is more than is available, or where a
/// `context_len` that was asked for does not fit.
pub(crate) fn kv_blocks(
    config: &EngineConfig,
    block_bytes: u64,
    n_ctx_train: usize,
    available: Option<u64>,
) -> Result<usize, EngineError> {
    let block_bytes = block_bytes.max(1);
    let n_ctx = config.context_len.unwrap_or(n_ctx_train).min(n_ctx_train);
    let context_blocks = blocks_for(n_ctx) as u64;
    let context_bytes = context_blocks.saturating_mul(block_bytes);
    let available = available.unwrap_or(UNKNOWN_AVAILABLE_BYTES);
    let kv_bytes = match config.kv_bytes {
        Some(kv_bytes) if kv_bytes > available => {
            return Err(EngineError::NotEnoughMemory {
                needed_bytes: kv_bytes,
                available_bytes: available,
            });
        }
        Some(kv_bytes) => kv_bytes,
        None => {
            let headroom = MIN_HEADROOM_BYTES.max(available / 10);
            (available.saturating_sub(headroom) / 2).min(context_bytes.max(DEFAULT_KV_CAP_BYTES))
        }
    };
    let useful = context_blocks
        .saturating_mul(config.max_sequences as u64)
        .min(u64::from(u32::MAX));
    let n_blocks = (kv_bytes / block_bytes).min(useful);
    let needed = if config.context_len.is_some() {
        context_blocks.max(1)
    } else {
        1
    };
    if n_blocks < needed {
        return Err(EngineError::NotEnoughMemory {
            needed_bytes: needed.saturating_mul(block_bytes),
            available_bytes: kv_bytes,
        });
    }
    Ok(n_blocks as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files under a fresh folder with `proc` and `cgroup`; what is available there.
    fn available(files: &[(&str, &str)]) -> Option<u64> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            fs::write(path, text).expect("a file");
        }
        available_under(&folder.path().join("proc"), &folder.path().join("cgroup"))
    }

    const MEMINFO: (&str, &str) = (
        "proc/meminfo",
        "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n",
    );

    #[test]
    fn the_system_alone() {
        assert_eq!(available(&[]), None);
        assert_eq!(available(&[MEMINFO]), Some(8000 * 1024));
    }

    #[test]
    fn version_2_counts_every_ancestor_and_gives_the_cache_back() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("cgroup/outer/memory.max", "2000000\n"),
            ("cgroup/outer/memory.current", "1500000\n"),
            (
                "cgroup/outer/memory.stat",
                "anon 1\ninactive_file 400000\nactive_file 7\n",
            ),
            ("cgroup/outer/inner/memory.max", "max\n"),
        ];
        assert_eq!(available(&files), Some(2_000_000 - 1_100_000));
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_root() {
        let files = [
            MEMINFO,
            ("proc/self/cgroup", "0::/docker/abc\n"),
            ("cgroup/memory.max", "1000"),
            ("cgroup/memory.current", "400"),
        ];
        assert_eq!(available(&files), Some(600));
    }

    #[test]
    fn version_1_is_read_and_its_no_limit_understood() {
        let limited = [
            MEMINFO,
            ("proc/self/cgroup", "9:cpu,cpuacct:/x\n5:memory:/x\n"),
            ("cgroup/memory/x/memory.limit_in_bytes", "5000"),
            ("cgroup/memory/x/memory.usage_in_bytes", "6000"),
            ("cgroup/memory/x/memory.stat", "total_inactive_file 2000"),
            ("cgroup/memory/memory.limit_in_bytes", "9223372036854771712"),
        ];
        assert_eq!(available(&limited), Some(1000));
    }

    fn blocks(
        config: &EngineConfig,
        block_bytes: u64,
        available: u64,
    ) -> Result<usize, EngineError> {
        kv_blocks(config, block_bytes, 3200, Some(available))
    }

    #[test]
    fn the_cache_takes_half_of_the_rest_up_to_what_is_useful() {
        let config = EngineConfig {
            max_sequences: 2,
            ..EngineConfig::default()
        };
        assert_eq!(
            blocks(&config, MIB, 8192 * MIB).expect("fits"),
            200,
            "two contexts of 100 blocks"
        );
        assert_eq!(
            blocks(&config, 64 * MIB, 1024 * MIB).expect("fits"),
            6,
            "(1024 - 256) / 2 MiB"
        );
        assert_eq!(
            blocks(&config, 64 * MIB, 32_768 * MIB).expect("fits"),
            100,
            "6.25 GiB: one context may pass the cap"
        );
        assert!(blocks(&config, MIB, 257 * MIB).is_err());
    }

    #[test]
    fn what_was_asked_for_is_given_or_refused_with_figures() {
        let config = EngineConfig {
            kv_bytes: Some(10 * MIB),
            ..EngineConfig::default()
        };
        assert_eq!(blocks(&config, MIB, 100 * MIB).expect("fits"), 10);
        let error = blocks(&config, MIB, 9 * MIB)
            .expect_err("too much")
            .to_string();
        assert!(
            error.contains("10485760") && error.contains("9437184"),
            "{error}"
        );
        let config = EngineConfig {
            context_len: Some(1000),
            ..config
        };
        assert!(
            blocks(&config, MIB, 100 * MIB).is_err(),
            "32 blocks are needed"
        );
    }
}
