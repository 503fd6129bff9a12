//! Flags made from the table, so that `#[command(flatten)]` puts a group of settings into a command.

use std::marker::PhantomData;

use clap::builder::ValueParser;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use super::table::{self, Setting};
use super::value::{Kind, Value};

/// A group of settings that a command takes as flags.
pub(crate) trait Group {
    /// Its rows.
    const ROWS: &'static [Setting];
    /// The heading over its flags in the help.
    const HEADING: &'static str;
}

/// [`table::MODEL`] as flags.
#[derive(Debug, Clone)]
pub(crate) struct Model;
/// [`table::SAMPLING`] as flags.
#[derive(Debug, Clone)]
pub(crate) struct Sampling;
/// [`table::SERVE`] as flags.
#[derive(Debug, Clone)]
pub(crate) struct Serve;

impl Group for Model {
    const ROWS: &'static [Setting] = table::MODEL;
    const HEADING: &'static str = "Model";
}

impl Group for Sampling {
    const ROWS: &'static [Setting] = table::SAMPLING;
    const HEADING: &'static str = "Sampling";
}

impl Group for Serve {
    const ROWS: &'static [Setting] = table::SERVE;
    const HEADING: &'static str = "Server";
}

/// The flags of a group that were given on the command line.
#[derive(Debug, Clone)]
pub(crate) struct SettingFlags<G> {
    given: Vec<(&'static str, Value)>,
    group: PhantomData<G>,
}

impl<G> SettingFlags<G> {
    /// Key and value of each flag that was given.
    pub(crate) fn given(&self) -> &[(&'static str, Value)] {
        &self.given
    }
}

impl<G: Group> Args for SettingFlags<G> {
    fn augment_args(command: Command) -> Command {
        G::ROWS
            .iter()
            .fold(command, |command, setting| add::<G>(command, setting))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn add<G: Group>(command: Command, setting: &'static Setting) -> Command {
    let mut arg = Arg::new(setting.key)
        .long(setting.long())
        .visible_aliases(setting.aliases)
        .help(help(setting))
        .help_heading(G::HEADING);
    if let Some(short) = setting.short {
        arg = arg.short(short);
    }
    if !matches!(setting.kind, Kind::Bool) {
        let parser = ValueParser::new(|text: &str| setting.kind.parse(text));
        let arg = arg
            .value_name(value_name(setting.kind))
            .value_parser(parser)
            .action(ArgAction::Set);
        return command.arg(arg.allow_negative_numbers(true));
    }
    let negative = Arg::new(negative_id(setting))
        .long(format!("no-{}", setting.long()))
        .help(format!("Not --{}", setting.long()))
        .help_heading(G::HEADING)
        .action(ArgAction::SetTrue)
        .overrides_with(setting.key);
    command
        .arg(
            arg.action(ArgAction::SetTrue)
                .overrides_with(negative_id(setting)),
        )
        .arg(negative)
}

fn negative_id(setting: &Setting) -> String {
    format!("no_{}", setting.key)
}

fn help(setting: &Setting) -> String {
    match setting.default {
        Some(default) if !setting.help.contains(default) => {
            format!("{} [default: {default}]", setting.help)
        }
        _ => setting.help.to_owned(),
    }
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Bool => "TEXT",
        Kind::Secret => "KEY",
        Kind::Path => "PATH",
        Kind::Int(..) => "N",
        Kind::Float(..) => "X",
        Kind::Bytes => "BYTES",
        Kind::Choice(_) => "TYPE",
    }
}

impl<G: Group> FromArgMatches for SettingFlags<G> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = G::ROWS
            .iter()
            .filter_map(|setting| Some((setting.key, read(matches, setting)?)))
            .collect();
        Ok(SettingFlags {
            given,
            group: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn read(matches: &ArgMatches, setting: &'static Setting) -> Option<Value> {
    let typed = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    if !matches!(setting.kind, Kind::Bool) {
        return matches.get_one::<Value>(setting.key).cloned();
    }
    if typed(setting.key) {
        Some(Value::Bool(true))
    } else {
        typed(&negative_id(setting)).then_some(Value::Bool(false))
    }
}
