//! The table of settings. A row is the one place where a setting is described.

use super::value::Kind;

/// One setting.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Its name in the config file; the flag is the same with dashes, the variable `DYNALM_` and capitals.
    pub(crate) key: &'static str,
    /// Its one-letter flag.
    pub(crate) short: Option<char>,
    /// Other long flags, those of llama-server among them.
    pub(crate) aliases: &'static [&'static str],
    /// Other environment variables, strongest first, read after `DYNALM_<KEY>`.
    pub(crate) env: &'static [&'static str],
    /// What it may hold.
    pub(crate) kind: Kind,
    /// The value where nothing is said; `None` where the value then depends on the machine or the model.
    pub(crate) default: Option<&'static str>,
    /// What it means.
    pub(crate) help: &'static str,
}

/// What most rows have in common.
const ROW: Setting = Setting {
    key: "",
    short: None,
    aliases: &[],
    env: &[],
    kind: Kind::Text,
    default: None,
    help: "",
};

/// Where models come from and lie; no flags, since they hold for every command.
pub(crate) const STORE: &[Setting] = &[
    Setting {
        key: "models_dir",
        kind: Kind::Path,
        help: "Folder of the downloaded models",
        ..ROW
    },
    Setting {
        key: "hf_endpoint",
        env: &["HF_ENDPOINT"],
        default: Some("https://huggingface.co"),
        help: "Model hub that names such as owner/repo are fetched from",
        ..ROW
    },
    Setting {
        key: "hf_token",
        env: &["HF_TOKEN"],
        kind: Kind::Secret,
        help: "Token for gated models, sent to the hub's own host only",
        ..ROW
    },
    Setting {
        key: "memory_limit",
        kind: Kind::Bytes,
        help: "Use no more memory than this (default: what the machine and its cgroup have free)",
        ..ROW
    },
];

/// How a model is loaded.
pub(crate) const MODEL: &[Setting] = &[
    Setting {
        key: "threads",
        short: Some('t'),
        env: &["LLAMA_ARG_THREADS"],
        kind: Kind::Int(-1, 1024),
        help: "Threads that compute (default: physical cores allowed by affinity and quota)",
        ..ROW
    },
    Setting {
        key: "ctx_size",
        short: Some('c'),
        aliases: &["context"],
        env: &["LLAMA_ARG_CTX_SIZE"],
        kind: Kind::Int(0, 1 << 24),
        default: Some("0"),
        help: "Context in tokens; 0 is what the model was trained for",
    },
    Setting {
        key: "kv_type",
        aliases: &["cache-type-k"],
        env: &["LLAMA_ARG_CACHE_TYPE_K"],
        kind: Kind::Choice(&["f16", "q8_0"]),
        default: Some("f16"),
        help: "Type of the stored keys and values",
        ..ROW
    },
];

/// How a token is picked.
pub(crate) const SAMPLING: &[Setting] = &[
    Setting {
        key: "n_predict",
        short: Some('n'),
        aliases: &["predict", "max-tokens"],
        env: &["LLAMA_ARG_N_PREDICT"],
        kind: Kind::Int(-1, 1 << 24),
        default: Some("-1"),
        help: "Tokens an answer may have at most; -1 is up to the context",
    },
    Setting {
        key: "temp",
        aliases: &["temperature"],
        kind: Kind::Float(0.0, 100.0),
        default: Some("0.8"),
        help: "Temperature; 0 always takes the likeliest token",
        ..ROW
    },
    Setting {
        key: "top_k",
        kind: Kind::Int(0, 1 << 24),
        default: Some("40"),
        help: "Pick among this many likeliest tokens; 0 is all",
        ..ROW
    },
    Setting {
        key: "top_p",
        kind: Kind::Float(0.0, 1.0),
        default: Some("0.95"),
        help: "Pick among the likeliest tokens that make up this share; 1 is all",
        ..ROW
    },
    Setting {
        key: "min_p",
        kind: Kind::Float(0.0, 1.0),
        default: Some("0.05"),
        help: "Leave out tokens less likely than this share of the likeliest; 0 is none",
        ..ROW
    },
    Setting {
        key: "repeat_penalty",
        kind: Kind::Float(0.01, 100.0),
        default: Some("1"),
        help: "Make tokens of the last 64 less likely by this factor; 1 is off",
        ..ROW
    },
    Setting {
        key: "seed",
        short: Some('s'),
        kind: Kind::Int(-1, i64::MAX),
        default: Some("-1"),
        help: "Seed of the dice; the same seed gives the same text; -1 rolls a new one",
        ..ROW
    },
];

/// The server.
pub(crate) const SERVE: &[Setting] = &[
    Setting {
        key: "host",
        env: &["LLAMA_ARG_HOST"],
        default: Some("127.0.0.1"),
        help: "Address to listen on, or a path ending in .sock for a unix socket",
        ..ROW
    },
    Setting {
        key: "port",
        env: &["LLAMA_ARG_PORT"],
        kind: Kind::Int(0, 65_535),
        default: Some("8080"),
        help: "Port to listen on; 0 picks a free one",
        ..ROW
    },
    Setting {
        key: "alias",
        short: Some('a'),
        env: &["LLAMA_ARG_ALIAS"],
        help: "Name of the model for clients (default: its catalogue name or file stem)",
        ..ROW
    },
    Setting {
        key: "parallel",
        env: &["LLAMA_ARG_N_PARALLEL"],
        kind: Kind::Int(-1, 4096),
        default: Some("-1"),
        help: "Sequences running at once (-np); -1 is as many as memory serves, up to 64",
        ..ROW
    },
    Setting {
        key: "max_queue",
        kind: Kind::Int(1, 1_000_000),
        default: Some("256"),
        help: "Requests that may wait; one more is answered 429",
        ..ROW
    },
    Setting {
        key: "ubatch_size",
        env: &["LLAMA_ARG_UBATCH"],
        kind: Kind::Int(1, 65_536),
        default: Some("512"),
        help: "Rows that one step computes at most (-ub)",
        ..ROW
    },
    Setting {
        key: "api_key",
        env: &["LLAMA_API_KEY"],
        kind: Kind::Secret,
        help: "Key that clients must send; several separated by commas",
        ..ROW
    },
    Setting {
        key: "api_key_file",
        env: &["LLAMA_ARG_API_KEY_FILE"],
        kind: Kind::Path,
        help: "File of keys, one per line; lines starting with # are comments",
        ..ROW
    },
    Setting {
        key: "metrics",
        env: &["LLAMA_ARG_ENDPOINT_METRICS"],
        kind: Kind::Bool,
        default: Some("false"),
        help: "Answer GET /metrics",
        ..ROW
    },
    Setting {
        key: "timeout",
        env: &["LLAMA_ARG_TIMEOUT"],
        kind: Kind::Int(1, 1_000_000),
        default: Some("3600"),
        help: "Seconds a request may take, queued and running (-to)",
        ..ROW
    },
    Setting {
        key: "drain_timeout",
        kind: Kind::Int(0, 1_000_000),
        default: Some("30"),
        help: "Seconds that running requests may still take once the server was asked to stop",
        ..ROW
    },
    Setting {
        key: "sse_ping_interval",
        env: &["LLAMA_ARG_SSE_PING_INTERVAL"],
        kind: Kind::Int(-1, 1_000_000),
        default: Some("15"),
        help: "Seconds between comment lines in a silent stream; -1 is none",
        ..ROW
    },
    Setting {
        key: "threads_http",
        env: &["LLAMA_ARG_THREADS_HTTP"],
        kind: Kind::Int(-1, 1024),
        default: Some("2"),
        help: "Threads that speak HTTP",
        ..ROW
    },
    Setting {
        key: "any_model",
        kind: Kind::Bool,
        default: Some("false"),
        help: "Answer whatever model name a request carries, instead of 404 for another one",
        ..ROW
    },
    Setting {
        key: "allowed_hosts",
        help: "Host names that requests may be addressed to, beside loopback ones; separated by commas",
        ..ROW
    },
    Setting {
        key: "cors_origins",
        help: "Browser origins that may call; separated by commas, * for all",
        ..ROW
    },
    Setting {
        key: "chat_template",
        env: &["LLAMA_ARG_CHAT_TEMPLATE"],
        help: "Chat template to use instead of the model's own",
        ..ROW
    },
    Setting {
        key: "chat_template_file",
        env: &["LLAMA_ARG_CHAT_TEMPLATE_FILE"],
        kind: Kind::Path,
        help: "File of the chat template to use instead of the model's own",
        ..ROW
    },
];

/// All settings, in the order in which `config show` lists them.
pub(crate) const ALL: [&[Setting]; 4] = [STORE, MODEL, SAMPLING, SERVE];

impl Setting {
    /// The long flag without its dashes.
    pub(crate) fn long(&self) -> String {
        self.key.replace('_', "-")
    }

    /// The environment variables, strongest first.
    pub(crate) fn variables(&self) -> Vec<String> {
        let own = format!("DYNALM_{}", self.key.to_ascii_uppercase());
        std::iter::once(own)
            .chain(self.env.iter().map(|&name| name.to_owned()))
            .collect()
    }
}

/// The setting of this key.
pub(crate) fn find(key: &str) -> Option<&'static Setting> {
    ALL.iter()
        .flat_map(|group| group.iter())
        .find(|setting| setting.key == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_defaults_are_valid() {
        let settings: Vec<&Setting> = ALL.iter().flat_map(|group| group.iter()).collect();
        for (i, setting) in settings.iter().enumerate() {
            assert!(
                settings[..i].iter().all(|other| other.key != setting.key),
                "{}",
                setting.key
            );
            if let Some(default) = setting.default {
                assert!(setting.kind.parse(default).is_ok(), "{}", setting.key);
            }
        }
    }
}
