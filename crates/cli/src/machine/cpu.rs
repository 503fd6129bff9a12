//! The processor, as far as the system describes it.

use std::collections::BTreeSet;

use serde::Serialize;

/// What is known of the processor.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cpu {
    /// Its name.
    pub(crate) model: String,
    /// Architecture that this binary was built for.
    pub(crate) arch: &'static str,
    /// Logical processors of the machine.
    pub(crate) logical: usize,
    /// Cores; several logical processors may share one.
    pub(crate) physical: usize,
    /// Threads that may run at once, after affinity and the cgroup's quota.
    pub(crate) allowed: usize,
    /// Caches of the first processor.
    pub(crate) caches: Vec<Cache>,
    /// Instruction sets that matter here.
    pub(crate) features: Vec<String>,
}

/// One cache.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Cache {
    /// `L1d`, `L2`, ...
    pub(crate) name: String,
    /// Its size, as the system writes it (`32K`).
    pub(crate) size: String,
}

const FEATURES: &[&str] = &[
    "sse4_2",
    "avx",
    "f16c",
    "fma",
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "asimddp",
    "i8mm",
    "bf16",
    "sve",
];

impl Cpu {
    /// Looks at the machine.
    pub(crate) fn read() -> Cpu {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |names: &[&str]| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines
                .find(|(name, _)| names.contains(&name.trim()))
                .map(|(_, value)| value.trim().to_owned())
        };
        let flags = field(&["flags", "Features"]).unwrap_or_default();
        let flags: BTreeSet<&str> = flags.split_whitespace().collect();
        let logical = text
            .lines()
            .filter(|line| line.starts_with("processor"))
            .count()
            .max(1);
        let allowed = std::thread::available_parallelism().map_or(1, usize::from);
        Cpu {
            model: field(&["model name", "Hardware", "CPU part"])
                .unwrap_or_else(|| "unknown".to_owned()),
            arch: std::env::consts::ARCH,
            logical,
            physical: physical_cores().unwrap_or(logical),
            allowed,
            caches: caches(),
            features: FEATURES
                .iter()
                .filter(|name| flags.contains(*name))
                .map(|name| (*name).to_owned())
                .collect(),
        }
    }
}

/// Distinct sets of siblings among the processors that are on.
fn physical_cores() -> Option<usize> {
    let items = std::fs::read_dir("/sys/devices/system/cpu").ok()?;
    let siblings: BTreeSet<String> = items
        .flatten()
        .filter_map(|item| {
            std::fs::read_to_string(item.path().join("topology/thread_siblings_list")).ok()
        })
        .collect();
    (!siblings.is_empty()).then_some(siblings.len())
}

fn caches() -> Vec<Cache> {
    let read = |index: usize, name: &str| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
        Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
    };
    let cache = |index| {
        let kind = match read(index, "type")?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        Some(Cache {
            name: format!("L{}{kind}", read(index, "level")?),
            size: read(index, "size")?,
        })
    };
    (0..8).map_while(cache).collect()
}
