//! What can be typed beside text.

use crate::near;
use crate::settings::{SAMPLING, Setting};

/// A line that begins with a slash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command<'a> {
    Help,
    Set(&'a str, &'a str),
    Show(&'a str),
    System(&'a str),
    Clear,
    Save(&'a str),
    Load(&'a str),
    Regen,
    Stats,
    Bye,
}

/// What `/help` says.
pub(crate) const HELP: &str = "\
/set NAME VALUE     change a sampling parameter (temp, top_k, top_p, min_p, repeat_penalty, seed, n_predict)
/set stop [TEXT]    end answers before this text; without a text, no longer
/set verbose|quiet  times after each answer, or none
/show [WHAT]        parameters, info, system, template or history
/system [TEXT]      the system message; without a text, none
/clear              forget the conversation
/save NAME          keep the conversation
/load NAME          take up a kept conversation
/regen              answer the last question anew
/stats              times of the last answer
/bye                leave, as Ctrl-D does
\"\"\"                 begins and ends a text of several lines
Ctrl-C stops an answer.";

const NAMES: &[&str] = &[
    "help", "set", "show", "system", "clear", "save", "load", "regen", "stats", "bye", "exit",
    "quit",
];

impl<'a> Command<'a> {
    /// Reads a line; `None` for one that is text.
    ///
    /// # Errors
    /// A slash before a word that is no command (with the nearest one), and a command without what it needs.
    pub(crate) fn parse(line: &'a str) -> anyhow::Result<Option<Command<'a>>> {
        let Some(rest) = line.trim().strip_prefix('/') else {
            return Ok(None);
        };
        let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let argument = argument.trim();
        let command = match name {
            "help" | "?" => Command::Help,
            "set" => set(argument)?,
            "show" => Command::Show(argument),
            "system" => Command::System(argument),
            "clear" => Command::Clear,
            "save" => Command::Save(needed(name, argument)?),
            "load" => Command::Load(needed(name, argument)?),
            "regen" => Command::Regen,
            "stats" => Command::Stats,
            "bye" | "exit" | "quit" => Command::Bye,
            // A path or a division is text; only one plain word can be a mistyped command.
            _ if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphabetic()) => {
                return Ok(None);
            }
            _ => {
                let nearest = near::near(name, NAMES.iter().copied(), 1);
                anyhow::bail!(
                    "there is no /{name}{}; /help lists what there is",
                    near::did_you_mean(&nearest)
                );
            }
        };
        Ok(Some(command))
    }
}

fn set(argument: &str) -> anyhow::Result<Command<'_>> {
    // `/set parameter temperature 0.5` is how another tool's users write it.
    let argument = argument
        .strip_prefix("parameter ")
        .unwrap_or(argument)
        .trim();
    let (name, value) = argument
        .split_once(char::is_whitespace)
        .unwrap_or((argument, ""));
    Ok(Command::Set(needed("set", name)?, value.trim()))
}

fn needed<'a>(name: &str, argument: &'a str) -> anyhow::Result<&'a str> {
    anyhow::ensure!(!argument.is_empty(), "/{name} needs a name");
    Ok(argument)
}

/// The sampling setting of this name or alias.
///
/// # Errors
/// With the nearest name.
pub(crate) fn sampling_setting(name: &str) -> anyhow::Result<&'static Setting> {
    let dashed = name.replace('_', "-");
    let known = |setting: &&Setting| {
        setting.long() == dashed
            || setting.aliases.contains(&dashed.as_str())
            || (name == "num_predict" && setting.key == "n_predict")
    };
    SAMPLING.iter().find(known).ok_or_else(|| {
        let keys = SAMPLING
            .iter()
            .map(|setting| setting.key)
            .chain(["stop", "system", "verbose", "quiet", "raw"]);
        anyhow::anyhow!(
            "/set {name}: unknown{}",
            near::did_you_mean(&near::near(name, keys, 1))
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_text() {
        let parse = |line| Command::parse(line).unwrap();
        assert_eq!(parse("hello /bye"), None);
        assert_eq!(parse("/usr/bin is a folder"), None);
        assert_eq!(parse(" /bye "), Some(Command::Bye));
        assert_eq!(parse("/set temp 0.5"), Some(Command::Set("temp", "0.5")));
        assert_eq!(
            parse("/set parameter temperature 0"),
            Some(Command::Set("temperature", "0"))
        );
        assert_eq!(parse("/system be brief"), Some(Command::System("be brief")));
        assert!(
            Command::parse("/sav x")
                .unwrap_err()
                .to_string()
                .contains("did you mean `save`")
        );
        assert!(Command::parse("/save").is_err());
    }

    #[test]
    fn parameters_go_by_key_and_alias() {
        for name in ["temp", "temperature", "top_k", "top-k", "num_predict"] {
            assert!(sampling_setting(name).is_ok(), "{name}");
        }
        assert!(
            sampling_setting("tmp")
                .unwrap_err()
                .to_string()
                .contains("`temp`")
        );
    }
}
