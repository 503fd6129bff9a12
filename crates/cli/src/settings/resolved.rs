//! The settings in force, each with where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::file;
use super::table::{self, Setting};
use super::value::{Kind, Value};
use crate::exit::usage;
use crate::paths;

/// Where a value came from, weakest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nobody said anything.
    Default,
    /// What the model's makers recommend, from the catalogue.
    Model,
    /// The config file, this line.
    File(PathBuf, usize),
    /// This environment variable.
    Env(String),
    /// A flag.
    Flag(String),
    /// A `/set` in the chat.
    Chat,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::Model => f.write_str("recommended for the model"),
            Origin::File(path, line) => write!(f, "{}:{line}", paths::short(path)),
            Origin::Env(name) => f.write_str(name),
            Origin::Flag(name) => write!(f, "--{name}"),
            Origin::Chat => f.write_str("/set"),
        }
    }
}

/// The settings in force.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    values: BTreeMap<&'static str, (Value, Origin)>,
}

impl Resolved {
    /// Reads file and environment over the defaults.
    ///
    /// # Errors
    /// A mistake in the file (with its line) or in a variable (with its name).
    pub(crate) fn load(config: &Path) -> anyhow::Result<Resolved> {
        let mut resolved = Resolved::defaults();
        for (setting, value, line) in file::read(config)? {
            resolved
                .values
                .insert(setting.key, (value, Origin::File(config.to_owned(), line)));
        }
        resolved.read_environment(|name| std::env::var(name).ok())?;
        Ok(resolved)
    }

    /// Only the defaults.
    pub(crate) fn defaults() -> Resolved {
        let rows = table::ALL.iter().flat_map(|group| group.iter());
        let values = rows.filter_map(|setting| {
            let value = setting.kind.parse(setting.default?).ok()?;
            Some((setting.key, (value, Origin::Default)))
        });
        Resolved {
            values: values.collect(),
        }
    }

    fn read_environment(&mut self, get: impl Fn(&str) -> Option<String>) -> anyhow::Result<()> {
        for setting in table::ALL.iter().flat_map(|group| group.iter()) {
            let found = setting
                .variables()
                .into_iter()
                .find_map(|name| Some((get(&name)?, name)));
            if let Some((text, name)) = found.filter(|(text, _)| !text.is_empty()) {
                let value = setting
                    .kind
                    .parse(&text)
                    .map_err(|error| usage(format!("{name}: {error}")))?;
                self.values.insert(setting.key, (value, Origin::Env(name)));
            }
        }
        Ok(())
    }

    /// Puts flags over what is there.
    pub(crate) fn apply(&mut self, given: &[(&'static str, Value)]) {
        for (key, value) in given {
            self.values
                .insert(key, (value.clone(), Origin::Flag(key.replace('_', "-"))));
        }
    }

    /// Puts one value over what is there.
    pub(crate) fn set(&mut self, setting: &'static Setting, value: Value, origin: Origin) {
        self.values.insert(setting.key, (value, origin));
    }

    /// Puts a value in only where nobody said anything.
    pub(crate) fn recommend(&mut self, key: &'static str, value: Value) {
        if self.origin(key) == Origin::Default {
            self.values.insert(key, (value, Origin::Model));
        }
    }

    /// The value and its origin, if there is one.
    pub(crate) fn get(&self, key: &str) -> Option<&(Value, Origin)> {
        debug_assert!(table::find(key).is_some(), "no setting {key}");
        self.values.get(key)
    }

    /// Where the value of `key` came from.
    pub(crate) fn origin(&self, key: &str) -> Origin {
        self.get(key)
            .map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Whether somebody said something about `key`.
    pub(crate) fn is_given(&self, key: &str) -> bool {
        !matches!(self.origin(key), Origin::Default | Origin::Model)
    }

    /// A text, `None` where there is none or it is empty.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match &self.get(key)?.0 {
            Value::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// A path with `~` put in.
    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(paths::expand)
    }

    /// A switch; off where nothing is said.
    pub(crate) fn bool(&self, key: &str) -> bool {
        matches!(self.get(key), Some((Value::Bool(true), _)))
    }

    /// A whole number.
    pub(crate) fn int(&self, key: &str) -> Option<i64> {
        match self.get(key)?.0 {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }

    /// A count; `None` where nothing is said and for the negative numbers that mean "automatic".
    pub(crate) fn count(&self, key: &str) -> Option<usize> {
        usize::try_from(self.int(key)?).ok()
    }

    /// A count above 0; `None` for 0 and below.
    pub(crate) fn positive(&self, key: &str) -> Option<usize> {
        self.count(key).filter(|&n| n > 0)
    }

    /// A number.
    pub(crate) fn float(&self, key: &str) -> Option<f32> {
        match self.get(key)?.0 {
            Value::Float(x) => Some(x as f32),
            Value::Int(n) => Some(n as f32),
            _ => None,
        }
    }

    /// The value as `config show` prints it; secrets only say that they are set.
    pub(crate) fn shown(&self, setting: &Setting) -> String {
        match (self.get(setting.key), setting.kind) {
            (None, _) => "-".to_owned(),
            (Some(_), Kind::Secret) => "(set)".to_owned(),
            (Some((value, _)), _) => value.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_win_over_environment_over_defaults() {
        let mut resolved = Resolved::defaults();
        assert_eq!(
            (resolved.int("port"), resolved.origin("port")),
            (Some(8080), Origin::Default)
        );
        let env = |name: &str| match name {
            "LLAMA_ARG_PORT" => Some("1".to_owned()),
            "DYNALM_PORT" => Some("2".to_owned()),
            "LLAMA_ARG_ENDPOINT_METRICS" => Some("off".to_owned()),
            _ => None,
        };
        resolved.read_environment(env).unwrap();
        assert_eq!(
            (resolved.int("port"), resolved.origin("port")),
            (Some(2), Origin::Env("DYNALM_PORT".to_owned()))
        );
        assert!(!resolved.bool("metrics"));
        resolved.apply(&[("port", Value::Int(3))]);
        assert_eq!(
            (resolved.int("port"), resolved.origin("port")),
            (Some(3), Origin::Flag("port".to_owned()))
        );
    }

    #[test]
    fn a_bad_variable_is_named() {
        let env = |name: &str| (name == "DYNALM_PORT").then(|| "70000".to_owned());
        let error = Resolved::defaults().read_environment(env).unwrap_err();
        assert_eq!(
            error.to_string(),
            "DYNALM_PORT: 70000 is out of range (0 to 65535)"
        );
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut resolved = Resolved::defaults();
        resolved.apply(&[("api_key", Value::Text("sesame".to_owned()))]);
        let setting = table::find("api_key").unwrap();
        assert_eq!(resolved.shown(setting), "(set)");
    }

    #[test]
    fn recommendations_give_way() {
        let mut resolved = Resolved::defaults();
        resolved.recommend("temp", Value::Float(0.2));
        assert_eq!(resolved.float("temp"), Some(0.2));
        resolved.apply(&[("temp", Value::Float(1.0))]);
        resolved.recommend("temp", Value::Float(0.2));
        assert_eq!(resolved.float("temp"), Some(1.0));
    }
}
