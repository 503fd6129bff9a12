//! The command line as typed.

use std::ffi::OsString;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use crate::settings::{Model, Sampling, Serve, SettingFlags};

/// Open-weight language models on this machine: at the terminal, and for many users of a server.
#[derive(Debug, Parser)]
#[command(
    name = "dynalm",
    version,
    propagate_version = true,
    disable_help_subcommand = false
)]
#[command(after_help = "Try: dynalm run smollm2:135m \"What is the capital of France?\"")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Only results and errors
    #[arg(short, long, global = true, display_order = 900)]
    pub(crate) quiet: bool,
    /// Say more; twice for still more
    #[arg(short, long, global = true, action = clap::ArgAction::Count, display_order = 901)]
    pub(crate) verbose_log: u8,
    /// What is logged to standard error
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "LEVEL",
        display_order = 902
    )]
    pub(crate) log_level: Option<LogLevel>,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    /// Nothing.
    Off,
    /// What failed.
    Error,
    /// What may be wrong.
    Warn,
    /// What happens.
    Info,
    /// What happens inside.
    Debug,
    /// Everything.
    Trace,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Download a model
    Pull(PullArgs),
    /// List the models that are here
    #[command(visible_alias = "ls")]
    List(ListArgs),
    /// Delete models
    Rm(RmArgs),
    /// Show what a model file holds, what memory it needs, and whether it runs here
    Inspect(InspectArgs),
    /// Answer a prompt, or chat where none is given
    Run(Box<RunArgs>),
    /// Chat with a model
    Chat(Box<ChatArgs>),
    /// Serve a model over HTTP to OpenAI clients and others
    Serve(Box<ServeArgs>),
    /// List running servers
    Ps(PsArgs),
    /// Let running servers finish and end
    Stop(StopArgs),
    /// Measure a model on this machine, beside the machine's own limits
    Benchmark(Box<BenchmarkArgs>),
    /// Examine the machine and the settings
    #[command(visible_alias = "info")]
    Doctor(DoctorArgs),
    /// Show or make the settings
    Config(ConfigArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
}

/// Arguments of `pull`.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// Catalogue name, owner/repo[:quant or /file.gguf], or https address
    #[arg(required = true, value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Only ask whether the model would run here; fetch no more than its header
    #[arg(long)]
    pub(crate) check: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List the catalogue of names that can be pulled instead
    #[arg(long)]
    pub(crate) catalogue: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `rm`.
#[derive(Debug, Args)]
pub(crate) struct RmArgs {
    /// Models of the store, as `list` names them
    #[arg(required = true, value_name = "MODEL")]
    pub(crate) models: Vec<String>,
}

/// Arguments of `inspect`.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Model
    pub(crate) model: String,
    /// Show all metadata, long values too
    #[arg(long)]
    pub(crate) metadata: bool,
    /// Show all tensors
    #[arg(long)]
    pub(crate) tensors: bool,
    /// Estimate memory for this many users at once
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) users: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model_settings: SettingFlags<Model>,
}

/// What `run` and `chat` have in common.
#[derive(Debug, Args)]
pub(crate) struct TalkArgs {
    /// System message
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// Give the model the prompt as it is, without its chat template
    #[arg(long)]
    pub(crate) raw: bool,
    /// End the answer before this text; may be given several times
    #[arg(long, value_name = "TEXT")]
    pub(crate) stop: Vec<String>,
    /// Print the answer when it is complete
    #[arg(long)]
    pub(crate) no_stream: bool,
    /// Print times and rates to standard error
    #[arg(long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) model_settings: SettingFlags<Model>,
    #[command(flatten)]
    pub(crate) sampling: SettingFlags<Sampling>,
    #[command(flatten)]
    pub(crate) later: LaterArgs,
}

/// Flags that are planned; refused by name, so that nobody takes a silent flag for a working one.
#[derive(Debug, Args)]
pub(crate) struct LaterArgs {
    #[arg(long, hide = true, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    pub(crate) grammar: Option<String>,
    #[arg(long, hide = true, value_name = "FILE", num_args = 0..=1, default_missing_value = "")]
    pub(crate) json_schema: Option<String>,
    #[arg(long, hide = true, value_name = "KIND", num_args = 0..=1, default_missing_value = "")]
    pub(crate) spec: Option<String>,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Model
    pub(crate) model: String,
    /// Prompt; `-` reads it from standard input, as does a pipe where none is given
    pub(crate) prompt: Vec<String>,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// Arguments of `chat`.
#[derive(Debug, Args)]
pub(crate) struct ChatArgs {
    /// Model
    pub(crate) model: String,
    #[command(flatten)]
    pub(crate) talk: TalkArgs,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Model
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Model, as llama-server spells it
    #[arg(short = 'm', long = "model", value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Hub repository with an optional quantization, as llama-server spells it (-hf)
    #[arg(long, value_name = "OWNER/REPO[:QUANT]")]
    pub(crate) hf_repo: Option<String>,
    #[command(flatten)]
    pub(crate) serve: SettingFlags<Serve>,
    #[command(flatten)]
    pub(crate) model_settings: SettingFlags<Model>,
    #[command(flatten)]
    pub(crate) foreign: crate::serving::foreign::ForeignFlags,
}

/// Arguments of `ps`.
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `stop`.
#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    /// The server on this port; not needed where only one runs
    #[arg(value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Every server of this user
    #[arg(long, conflicts_with = "port")]
    pub(crate) all: bool,
    /// Seconds to wait for running requests
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(crate) wait: u64,
    /// Key of the server, where it asks for one (default: the setting api_key)
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Option<String>,
}

/// Arguments of `benchmark`.
#[derive(Debug, Args)]
pub(crate) struct BenchmarkArgs {
    /// Model
    pub(crate) model: String,
    /// Prompt lengths in tokens
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "32,128,512",
        value_name = "N,..."
    )]
    pub(crate) prompt: Vec<usize>,
    /// Tokens to decode
    #[arg(long, default_value_t = 64, value_name = "N")]
    pub(crate) decode: usize,
    /// Users whose tokens are decoded together
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "N,...")]
    pub(crate) users: Vec<usize>,
    /// Times that each measurement is repeated
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub(crate) repeats: usize,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) model_settings: SettingFlags<Model>,
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

/// What to do with the settings.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Show each value and where it comes from
    Show {
        /// Print the result as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the path of the config file
    Path,
    /// Write a config file with every key explained
    Init {
        /// Replace the file that is there
        #[arg(long)]
        force: bool,
    },
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub(crate) shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command into this folder instead
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<std::path::PathBuf>,
}

/// Flags of one dash and several letters, which llama-server has and clap does not, with their long forms.
const LONG_SHORTS: &[(&str, &str)] = &[
    ("-np", "--parallel"),
    ("-tb", "--threads-batch"),
    ("-ub", "--ubatch-size"),
    ("-ctk", "--kv-type"),
    ("-ctv", "--cache-type-v"),
    ("-ngl", "--gpu-layers"),
    ("-fa", "--flash-attn"),
    ("-to", "--timeout"),
    ("-hf", "--hf-repo"),
    ("-hfr", "--hf-repo"),
    ("-cb", "--cont-batching"),
    ("-nocb", "--no-cont-batching"),
    ("-sm", "--split-mode"),
    ("-ts", "--tensor-split"),
    ("-mg", "--main-gpu"),
    ("-dev", "--device"),
    ("-md", "--model-draft"),
    ("-fit", "--fit"),
];

/// The arguments with llama-server's many-lettered short flags spelled out.
pub(crate) fn spell_out(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut only_values = false;
    args.map(|arg| {
        only_values |= arg == "--";
        let Some(text) = arg.to_str().filter(|_| !only_values) else {
            return arg;
        };
        let (flag, value) = text
            .split_once('=')
            .map_or((text, None), |(flag, value)| (flag, Some(value)));
        match LONG_SHORTS.iter().find(|(short, _)| *short == flag) {
            Some((_, long)) => {
                OsString::from(value.map_or((*long).to_owned(), |value| format!("{long}={value}")))
            }
            None => arg,
        }
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn many_lettered_flags_are_spelled_out() {
        let args = ["dynalm", "serve", "-np", "4", "-ctk=q8_0", "--", "-np"].map(OsString::from);
        let spelled = spell_out(args.into_iter());
        assert_eq!(
            spelled,
            [
                "dynalm",
                "serve",
                "--parallel",
                "4",
                "--kv-type=q8_0",
                "--",
                "-np"
            ]
            .map(OsString::from)
        );
    }
}
