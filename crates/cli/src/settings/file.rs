//! The config file: TOML, flat, every mistake named with its line.

use std::path::Path;

use anyhow::Context;
use toml::de::{DeTable, DeValue};

use super::table::{self, Setting};
use super::value::{Kind, Value};
use crate::exit::usage;
use crate::near;

/// A key of the file with its value and its line, counted from 1.
pub(crate) type Entry = (&'static Setting, Value, usize);

/// Reads the file; one that is not there holds nothing.
///
/// # Errors
/// Bad TOML, an unknown key, a value of the wrong type or range: each with file and line.
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<Entry>> {
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text)
            .map_err(|(line, message)| usage(format!("{}:{line}: {message}", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            Err(error).with_context(|| format!("cannot read the config file {}", path.display()))
        }
    }
}

fn parse(text: &str) -> Result<Vec<Entry>, (usize, String)> {
    let line_of = |offset: usize| {
        text.bytes()
            .take(offset)
            .filter(|&byte| byte == b'\n')
            .count()
            + 1
    };
    let table = DeTable::parse(text).map_err(|error| {
        (
            error.span().map_or(1, |span| line_of(span.start)),
            error.message().to_owned(),
        )
    })?;
    let mut entries = Vec::new();
    for (key, value) in table.get_ref().iter() {
        let line = line_of(key.span().start);
        let name: &str = key.get_ref();
        let setting = table::find(name).ok_or_else(|| (line, unknown(name)))?;
        let value = convert(setting, value.get_ref()).map_err(|message| (line, message))?;
        entries.push((setting, value, line));
    }
    Ok(entries)
}

fn unknown(name: &str) -> String {
    let keys = table::ALL
        .iter()
        .flat_map(|group| group.iter())
        .map(|setting| setting.key);
    let nearest = near::near(&name.replace('-', "_"), keys, 1);
    format!("unknown key `{name}`{}", near::did_you_mean(&nearest))
}

fn convert(setting: &Setting, value: &DeValue<'_>) -> Result<Value, String> {
    let wrong = || {
        format!(
            "{}: expected {}, found {}",
            setting.key,
            setting.kind.expected(),
            found(value)
        )
    };
    let value = match (setting.kind, value) {
        (Kind::Bool, DeValue::Boolean(on)) => Value::Bool(*on),
        (Kind::Int(..) | Kind::Bytes, DeValue::Integer(n)) => {
            Value::Int(integer(n).ok_or_else(wrong)?)
        }
        (Kind::Float(..), DeValue::Integer(n)) => {
            Value::Float(integer(n).ok_or_else(wrong)? as f64)
        }
        (Kind::Float(..), DeValue::Float(x)) => {
            Value::Float(x.as_str().parse().map_err(|_| wrong())?)
        }
        (Kind::Bytes, DeValue::String(text)) => setting.kind.parse(text).map_err(|_| wrong())?,
        (Kind::Text | Kind::Secret | Kind::Path | Kind::Choice(_), DeValue::String(text)) => {
            Value::Text(text.to_string())
        }
        (Kind::Text | Kind::Secret, DeValue::Array(items)) => {
            let texts: Option<Vec<&str>> =
                items.iter().map(|item| item.get_ref().as_str()).collect();
            Value::Text(texts.ok_or_else(wrong)?.join(","))
        }
        _ => return Err(wrong()),
    };
    setting
        .kind
        .check(value)
        .map_err(|message| format!("{}: {message}", setting.key))
}

fn integer(n: &toml::de::DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(n.as_str(), n.radix()).ok()
}

fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_error(text: &str, line: usize, part: &str) {
        let (found, message) = parse(text).unwrap_err();
        assert_eq!(found, line, "{message}");
        assert!(message.contains(part), "{message}");
    }

    #[test]
    fn mistakes_name_line_and_key() {
        check_error(
            "threads = 2\nprot = 1\n",
            2,
            "unknown key `prot`; did you mean `port`?",
        );
        check_error(
            "\nport = \"x\"",
            2,
            "port: expected a whole number from 0 to 65535, found text",
        );
        check_error("port = 99999", 1, "out of range");
        check_error("threads = 2\n\nkv_type = \"q4\"", 3, "not one of f16, q8_0");
        check_error("threads = \n", 1, "");
        check_error("[server]\nport = 1", 1, "unknown key `server`");
    }

    #[test]
    fn every_type_is_read() {
        let text = "port = 0x50\ntemp = 1\ntop_p = 0.5\napi_key = [\"a\", \"b\"]\nmemory_limit = \"1GB\"\nmetrics = false";
        let entries = parse(text).unwrap();
        let get = |key: &str| {
            entries
                .iter()
                .find(|entry| entry.0.key == key)
                .map(|entry| entry.1.clone())
        };
        assert_eq!(get("port"), Some(Value::Int(80)));
        assert_eq!(get("temp"), Some(Value::Float(1.0)));
        assert_eq!(get("api_key"), Some(Value::Text("a,b".to_owned())));
        assert_eq!(get("memory_limit"), Some(Value::Int(1_000_000_000)));
        assert_eq!(get("metrics"), Some(Value::Bool(false)));
    }

    #[test]
    fn the_example_file_is_valid_once_uncommented() {
        let text: String = super::super::example_file()
            .lines()
            .map(|line| {
                line.strip_prefix("# ")
                    .filter(|rest| rest.contains(" = "))
                    .unwrap_or("")
                    .to_owned()
                    + "\n"
            })
            .collect();
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.ends_with("\"\""))
        {
            parse(line).unwrap_or_else(|error| panic!("{line}: {error:?}"));
        }
    }
}
