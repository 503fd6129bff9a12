//! A setting's value: what kinds there are and how text becomes one.

use std::fmt;

/// What a setting may hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    /// Any text, or several separated by commas.
    Text,
    /// Text that is never shown.
    Secret,
    /// A path; `~` is the home folder.
    Path,
    /// On or off.
    Bool,
    /// A whole number in this range, both ends included.
    Int(i64, i64),
    /// A number in this range, both ends included.
    Float(f64, f64),
    /// A number of bytes, also written `4GB` or `512MiB`.
    Bytes,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// A setting's value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Text, path, secret or choice.
    Text(String),
    /// On or off.
    Bool(bool),
    /// A whole number, bytes among them.
    Int(i64),
    /// Any other number.
    Float(f64),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Bool(on) => on.fmt(f),
            Value::Int(n) => n.fmt(f),
            Value::Float(x) => x.fmt(f),
        }
    }
}

impl Kind {
    /// Reads a value from the text of a flag or an environment variable.
    ///
    /// # Errors
    /// Says what is expected instead.
    pub(crate) fn parse(self, text: &str) -> Result<Value, String> {
        match self {
            Kind::Text | Kind::Secret | Kind::Path => Ok(Value::Text(text.to_owned())),
            Kind::Bool => parse_bool(text),
            Kind::Int(..) => {
                let n = text
                    .trim()
                    .parse()
                    .map_err(|_| format!("`{text}` is not a whole number"))?;
                self.check(Value::Int(n))
            }
            Kind::Float(..) => {
                let x = text
                    .trim()
                    .parse()
                    .map_err(|_| format!("`{text}` is not a number"))?;
                self.check(Value::Float(x))
            }
            Kind::Bytes => parse_bytes(text).map(Value::Int),
            Kind::Choice(_) => self.check(Value::Text(text.to_ascii_lowercase())),
        }
    }

    /// Checks the range of a value that has the right type already.
    ///
    /// # Errors
    /// Says what is expected instead.
    pub(crate) fn check(self, value: Value) -> Result<Value, String> {
        match (self, &value) {
            (Kind::Int(low, high), Value::Int(n)) if !(low..=high).contains(n) => {
                Err(format!("{n} is out of range ({low} to {high})"))
            }
            (Kind::Float(low, high), Value::Float(x)) if !(low..=high).contains(x) => {
                Err(format!("{x} is out of range ({low} to {high})"))
            }
            (Kind::Choice(words), Value::Text(word)) if !words.contains(&word.as_str()) => {
                Err(format!("`{word}` is not one of {}", words.join(", ")))
            }
            _ => Ok(value),
        }
    }

    /// What the config file should hold, in words.
    pub(crate) fn expected(self) -> String {
        match self {
            Kind::Text | Kind::Secret | Kind::Path => "text".to_owned(),
            Kind::Bool => "true or false".to_owned(),
            Kind::Int(low, high) => format!("a whole number from {low} to {high}"),
            Kind::Float(low, high) => format!("a number from {low} to {high}"),
            Kind::Bytes => "a number of bytes, or text such as \"4GB\"".to_owned(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    /// The default (or a place-holder) as the config file spells it.
    pub(crate) fn example(self, default: Option<&str>) -> String {
        match (self, default) {
            (Kind::Bool | Kind::Int(..) | Kind::Float(..), Some(text)) => text.to_owned(),
            (Kind::Bool, None) => "false".to_owned(),
            (Kind::Int(low, _), None) => low.to_string(),
            (Kind::Float(low, _), None) => format!("{low:.1}"),
            (_, text) => format!("\"{}\"", text.unwrap_or("")),
        }
    }
}

fn parse_bool(text: &str) -> Result<Value, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "on" | "yes" | "enabled" => Ok(Value::Bool(true)),
        "false" | "0" | "off" | "no" | "disabled" => Ok(Value::Bool(false)),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}

/// `4GB`, `512MiB`, `1000`: decimal and binary units.
fn parse_bytes(text: &str) -> Result<i64, String> {
    let wrong = || format!("`{text}` is not a number of bytes such as 4GB or 512MiB");
    let text_lower = text.trim().to_ascii_lowercase();
    let split = text_lower
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text_lower.len());
    let (number, unit) = text_lower.split_at(split);
    let factor = match unit.trim() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(wrong()),
    };
    let value = number.parse::<f64>().map_err(|_| wrong())? * factor;
    if (0.0..9e18).contains(&value) {
        Ok(value as i64)
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_words_are_named() {
        let port = Kind::Int(1, 65_535);
        assert_eq!(port.parse("80"), Ok(Value::Int(80)));
        assert_eq!(
            port.parse("0"),
            Err("0 is out of range (1 to 65535)".to_owned())
        );
        assert!(port.parse("eighty").unwrap_err().contains("whole number"));
        assert!(Kind::Float(0.0, 2.0).parse("nan").is_err());
        assert_eq!(
            Kind::Choice(&["f16", "q8_0"]).parse("Q8_0"),
            Ok(Value::Text("q8_0".to_owned()))
        );
        assert!(
            Kind::Choice(&["f16"])
                .parse("q4")
                .unwrap_err()
                .contains("f16")
        );
        assert_eq!(Kind::Bool.parse("enabled"), Ok(Value::Bool(true)));
    }

    #[test]
    fn bytes_take_units() {
        assert_eq!(Kind::Bytes.parse("4GB"), Ok(Value::Int(4_000_000_000)));
        assert_eq!(Kind::Bytes.parse("1.5 MiB"), Ok(Value::Int(1_572_864)));
        assert!(Kind::Bytes.parse("many").is_err());
        assert!(Kind::Bytes.parse("1e300GB").is_err());
    }
}
