//! Flags of llama-server that `dynalm serve` takes so that a command line moves over by changing its first word: those that
//! change nothing here are accepted with a note, those of planned features are refused by name.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::exit::usage;

/// How many values a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    None,
    One,
    Maybe,
}

/// A flag that changes nothing here.
struct Accepted {
    long: &'static str,
    short: Option<char>,
    aliases: &'static [&'static str],
    takes: Takes,
    note: &'static str,
}

const fn accepted(long: &'static str, takes: Takes, note: &'static str) -> Accepted {
    Accepted {
        long,
        short: None,
        aliases: &[],
        takes,
        note,
    }
}

const NO_GPU: &str = "everything runs on the processor here";
const ALWAYS: &str = "that is always so here";
const BY_DESIGN: &str =
    "has no effect: weights are packed at loading and their file's pages given back";
const PER_REQUEST: &str = "has no effect yet: each request says it for itself";

#[rustfmt::skip] // one flag a line
const ACCEPTED: &[Accepted] = &[
    Accepted { aliases: &["n-gpu-layers"], ..accepted("gpu-layers", Takes::One, NO_GPU) },
    accepted("split-mode", Takes::One, NO_GPU),
    accepted("tensor-split", Takes::One, NO_GPU),
    accepted("main-gpu", Takes::One, NO_GPU),
    accepted("device", Takes::One, NO_GPU),
    accepted("flash-attn", Takes::Maybe, "attention is always of that kind here"),
    accepted("mlock", Takes::None, BY_DESIGN),
    accepted("no-mmap", Takes::None, BY_DESIGN),
    accepted("mmap", Takes::None, BY_DESIGN),
    accepted("threads-batch", Takes::One, "one pool of threads (-t) serves prompts and answers"),
    Accepted { short: Some('b'), ..accepted("batch-size", Takes::One, "rows of a step are set by -ub") },
    accepted("cont-batching", Takes::None, ALWAYS),
    accepted("no-cont-batching", Takes::None, "requests always join running ones here"),
    accepted("kv-unified", Takes::None, ALWAYS),
    accepted("no-kv-unified", Takes::None, "one pool of keys and values serves all here"),
    accepted("cache-prompt", Takes::None, ALWAYS),
    accepted("no-cache-prompt", Takes::None, "prompts are always looked up here"),
    accepted("jinja", Takes::None, ALWAYS),
    accepted("no-jinja", Takes::None, "chat templates are always run here"),
    accepted("fit", Takes::Maybe, "memory is always measured here"),
    accepted("no-context-shift", Takes::None, ALWAYS),
    accepted("no-warmup", Takes::None, "there is none here"),
    accepted("warmup", Takes::None, "there is none here"),
    accepted("numa", Takes::One, "has no effect yet"),
    accepted("prio", Takes::One, "has no effect yet"),
    accepted("perf", Takes::None, "see GET /metrics"),
    accepted("no-perf", Takes::None, "see GET /metrics"),
    Accepted { aliases: &["no-webui"], ..accepted("no-ui", Takes::None, "there is no page yet") },
    accepted("log-disable", Takes::None, "see -q and --log-level"),
    accepted("offline", Takes::None, "models that are here are never asked for elsewhere"),
    Accepted { short: Some('n'), aliases: &["predict", "n-predict"], ..accepted("max-tokens", Takes::One, PER_REQUEST) },
    Accepted { aliases: &["temperature"], ..accepted("temp", Takes::One, PER_REQUEST) },
    accepted("top-k", Takes::One, PER_REQUEST),
    accepted("top-p", Takes::One, PER_REQUEST),
    accepted("min-p", Takes::One, PER_REQUEST),
    accepted("repeat-penalty", Takes::One, PER_REQUEST),
    Accepted { short: Some('s'), ..accepted("seed", Takes::One, PER_REQUEST) },
    accepted("slots", Takes::None, "GET /slots is not there yet"),
    accepted("no-slots", Takes::None, "GET /slots is not there yet"),
    accepted("cache-type-v", Takes::One, "keys and values have one type, set by -ctk"),
];

/// A flag of a feature that is planned.
struct Later {
    long: &'static str,
    aliases: &'static [&'static str],
    takes: Takes,
}

const fn later(long: &'static str, takes: Takes) -> Later {
    Later {
        long,
        aliases: &[],
        takes,
    }
}

const LATER: &[Later] = &[
    Later {
        aliases: &["embedding"],
        ..later("embeddings", Takes::None)
    },
    Later {
        aliases: &["rerank"],
        ..later("reranking", Takes::None)
    },
    later("pooling", Takes::One),
    later("lora", Takes::One),
    later("lora-scaled", Takes::One),
    later("control-vector", Takes::One),
    later("slot-save-path", Takes::One),
    later("props", Takes::None),
    later("reasoning-format", Takes::One),
    later("reasoning-budget", Takes::One),
    later("chat-template-kwargs", Takes::One),
    later("mmproj", Takes::One),
    Later {
        aliases: &["spec"],
        ..later("model-draft", Takes::One)
    },
    Later {
        aliases: &["draft-max"],
        ..later("draft", Takes::One)
    },
    later("ssl-key-file", Takes::One),
    later("ssl-cert-file", Takes::One),
    later("api-prefix", Takes::One),
    later("context-shift", Takes::None),
    later("grammar", Takes::One),
    later("json-schema", Takes::One),
    later("hf-file", Takes::One),
    later("rope-scaling", Takes::One),
    later("rope-freq-base", Takes::One),
    later("override-kv", Takes::One),
    later("path", Takes::One),
];

/// Those flags of another server that were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct ForeignFlags {
    notes: Vec<String>,
    refused: Vec<&'static str>,
    cache_type_v: Option<String>,
}

impl ForeignFlags {
    /// Refuses what is planned only, and says what has no effect.
    ///
    /// # Errors
    /// Wrong usage: a planned flag by its name, or two types for keys and values.
    pub(crate) fn check(&self, kv_type: &str, mut note: impl FnMut(&str)) -> anyhow::Result<()> {
        if let Some(flag) = self.refused.first() {
            return Err(usage(format!(
                "--{flag} is not supported yet; leave it out"
            )));
        }
        if let Some(wanted) = self
            .cache_type_v
            .as_ref()
            .filter(|wanted| !wanted.eq_ignore_ascii_case(kv_type))
        {
            return Err(usage(format!(
                "-ctv {wanted}: keys and values have one type here, and -ctk is {kv_type}"
            )));
        }
        self.notes.iter().for_each(|text| note(text));
        Ok(())
    }
}

/// Environment variables of that server that are set and mean nothing here.
pub(crate) fn idle_variables() -> Vec<String> {
    let known: Vec<&str> = crate::settings::ALL
        .iter()
        .flat_map(|group| group.iter())
        .flat_map(|s| s.env.iter().copied())
        .collect();
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = ["LLAMA_ARG_MODEL", "LLAMA_ARG_HF_REPO"];
    names
        .filter(|name| {
            name.starts_with("LLAMA_ARG_")
                && !known.contains(&name.as_str())
                && !ours.contains(&name.as_str())
        })
        .collect()
}

fn arg(long: &'static str, takes: Takes) -> Arg {
    let arg = Arg::new(id(long)).long(long).hide(true);
    match takes {
        Takes::None => arg.action(ArgAction::SetTrue),
        Takes::One => arg
            .action(ArgAction::Append)
            .allow_hyphen_values(true)
            .value_name("X"),
        Takes::Maybe => arg
            .action(ArgAction::Append)
            .num_args(0..=1)
            .default_missing_value("on")
            .value_parser(["on", "off", "auto", "0", "1", "true", "false"]),
    }
}

/// Foreign flags have ids of their own, so that none takes a setting's.
fn id(long: &'static str) -> String {
    format!("foreign-{long}")
}

impl Args for ForeignFlags {
    fn augment_args(command: Command) -> Command {
        let accepted = ACCEPTED.iter().map(|flag| {
            let arg = arg(flag.long, flag.takes).aliases(flag.aliases);
            if let Some(short) = flag.short {
                arg.short(short)
            } else {
                arg
            }
        });
        let later = LATER
            .iter()
            .map(|flag| arg(flag.long, flag.takes).aliases(flag.aliases));
        command.args(accepted).args(later)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ForeignFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |long: &'static str| {
            matches.value_source(&id(long)) == Some(clap::parser::ValueSource::CommandLine)
        };
        let notes = ACCEPTED
            .iter()
            .filter(|flag| given(flag.long) && flag.long != "cache-type-v");
        let cache_type_v = matches
            .get_many::<String>(&id("cache-type-v"))
            .and_then(|mut values| values.next_back());
        Ok(ForeignFlags {
            notes: notes
                .map(|flag| format!("--{}: {}", flag.long, flag.note))
                .collect(),
            refused: LATER
                .iter()
                .map(|flag| flag.long)
                .filter(|long| given(long))
                .collect(),
            cache_type_v: cache_type_v.cloned(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
