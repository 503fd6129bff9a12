//! Key-value metadata and its typed getters.

use std::collections::HashMap;

use crate::GgufError;
use crate::value::{Array, Value};

/// All key-value pairs of a file, in file order.
///
/// Getters come in two forms: `u32(key)` fails when the key is absent, `opt_u32(key)` then answers `Ok(None)`.
/// Both fail on a value of another type or out of range, naming the key, what was found and what was expected.
#[derive(Debug, Clone, Default)]
pub struct Metadata {
    entries: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

impl Metadata {
    /// No keys; see [`insert`](Self::insert).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.index
            .get(key)
            .and_then(|&i| self.entries.get(i))
            .map(|(_, value)| value)
    }

    /// Pairs in file order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Value)> {
        self.entries
            .iter()
            .map(|(key, value)| (key.as_str(), value))
    }

    /// Number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True where there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets a key; a key that is there already keeps its place and gets the new value. Returns the old value.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        let (key, value) = (key.into(), value.into());
        if let Some(entry) = self.index.get(&key).and_then(|&i| self.entries.get_mut(i)) {
            return Some(std::mem::replace(&mut entry.1, value));
        }
        self.index.insert(key.clone(), self.entries.len());
        self.entries.push((key, value));
        None
    }

    /// `general.architecture`.
    ///
    /// # Errors
    /// If the key is absent or not a string.
    pub fn architecture(&self) -> Result<&str, GgufError> {
        self.str("general.architecture")
    }

    fn convert<'a, T>(
        &'a self,
        key: &str,
        expected: &'static str,
        convert: impl FnOnce(&'a Value) -> Result<T, Mismatch>,
    ) -> Result<Option<T>, GgufError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        convert(value).map(Some).map_err(|mismatch| match mismatch {
            Mismatch::Type => GgufError::WrongType {
                key: key.to_owned(),
                expected,
                found: value.type_name(),
            },
            Mismatch::Range(value) => GgufError::ValueOutOfRange {
                key: key.to_owned(),
                value,
                expected,
            },
        })
    }
}

/// Why a value does not convert.
enum Mismatch {
    Type,
    Range(String),
}

/// Writes the pair of getters of one type: `$name(key)` and `$opt(key)`.
macro_rules! getters {
    ($($name:ident, $opt:ident -> $result:ty, $expected:literal, $convert:expr;)*) => {
        impl Metadata {$(
            #[doc = concat!("The value of a key as ", $expected, ".")]
            ///
            /// # Errors
            /// If the key is absent, of another type, or out of range.
            pub fn $name(&self, key: &str) -> Result<$result, GgufError> {
                self.$opt(key)?.ok_or_else(|| GgufError::MissingKey { key: key.to_owned() })
            }

            #[doc = concat!("The value of a key as ", $expected, ", `None` if the key is absent.")]
            ///
            /// # Errors
            /// If the value is of another type or out of range.
            pub fn $opt(&self, key: &str) -> Result<Option<$result>, GgufError> {
                self.convert(key, $expected, $convert)
            }
        )*}
    };
}

getters! {
    str, opt_str -> &str, "a string", |v| v.as_str().ok_or(Mismatch::Type);
    bool, opt_bool -> bool, "a bool", |v| v.as_bool().ok_or(Mismatch::Type);
    u32, opt_u32 -> u32, "an unsigned 32-bit integer (of any integer type)", integer::<u32>;
    u64, opt_u64 -> u64, "an unsigned 64-bit integer (of any integer type)", integer::<u64>;
    i32, opt_i32 -> i32, "a signed 32-bit integer (of any integer type)", integer::<i32>;
    f32, opt_f32 -> f32, "a number", |v| v.as_f64().map(narrow).ok_or(Mismatch::Type);
    array, opt_array -> &Array, "an array", |v| v.as_array().ok_or(Mismatch::Type);
    strings, opt_strings -> &[String], "an array of strings",
        |v| v.as_array().and_then(Array::as_strings).ok_or(Mismatch::Type);
    bools, opt_bools -> &[bool], "an array of bools", |v| v.as_array().and_then(Array::as_bools).ok_or(Mismatch::Type);
    f32s, opt_f32s -> Vec<f32>, "an array of numbers",
        |v| v.as_array().and_then(Array::to_f64s).map(|a| a.into_iter().map(narrow).collect()).ok_or(Mismatch::Type);
    i32s, opt_i32s -> Vec<i32>, "an array of signed 32-bit integers (of any integer type)", integers::<i32>;
    u32s, opt_u32s -> Vec<u32>, "an array of unsigned 32-bit integers (of any integer type)", integers::<u32>;
}

#[allow(clippy::cast_possible_truncation)] // precision is meant to be lost; a double over the range becomes infinity
fn narrow(v: f64) -> f32 {
    v as f32
}

fn fit<T: TryFrom<i128>>(v: i128) -> Result<T, Mismatch> {
    T::try_from(v).map_err(|_| Mismatch::Range(v.to_string()))
}

fn integer<T: TryFrom<i128>>(value: &Value) -> Result<T, Mismatch> {
    fit(value.as_i128().ok_or(Mismatch::Type)?)
}

fn integers<T: TryFrom<i128>>(value: &Value) -> Result<Vec<T>, Mismatch> {
    let values = value
        .as_array()
        .and_then(Array::integers)
        .ok_or(Mismatch::Type)?;
    values.map(fit).collect()
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Metadata {
    /// Later values of a key replace earlier ones.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut metadata = Self::new();
        for (key, value) in pairs {
            metadata.insert(key, value);
        }
        metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Metadata {
        Metadata::from_iter([
            ("name", Value::from("tiny")),
            ("small", Value::U8(7)),
            ("negative", Value::I32(-1)),
            ("large", Value::U64(1 << 40)),
            ("eps", Value::F64(1e-5)),
            ("flag", Value::Bool(true)),
            ("types", Value::Array(Array::U8(vec![1, 2]))),
            ("signed", Value::Array(Array::I64(vec![-1, 1 << 33]))),
            ("tokens", Value::from(vec!["a".to_owned()])),
        ])
    }

    #[test]
    fn integers_of_any_type_that_are_in_range() {
        let m = sample();
        assert_eq!(m.u32("small").unwrap(), 7);
        assert_eq!(m.u64("large").unwrap(), 1 << 40);
        assert_eq!(m.i32("negative").unwrap(), -1);
        assert_eq!(m.f32("small").unwrap(), 7.0);
        assert_eq!(m.u32s("types").unwrap(), [1, 2]);
        assert_eq!(m.f32s("types").unwrap(), [1.0, 2.0]);
        assert!(matches!(
            m.u32("large"),
            Err(GgufError::ValueOutOfRange { .. })
        ));
        assert!(matches!(
            m.u32("negative"),
            Err(GgufError::ValueOutOfRange { .. })
        ));
        assert!(matches!(
            m.i32s("signed"),
            Err(GgufError::ValueOutOfRange { .. })
        ));
    }

    #[test]
    fn wrong_types_name_key_found_and_expected() {
        let m = sample();
        assert_eq!(
            m.u32("name").unwrap_err().to_string(),
            "key \"name\": expected an unsigned 32-bit integer (of any integer type), found string"
        );
        assert_eq!(
            m.strings("types").unwrap_err().to_string(),
            "key \"types\": expected an array of strings, found array of u8"
        );
        assert!(matches!(
            m.opt_bool("small"),
            Err(GgufError::WrongType { .. })
        ));
        assert!(matches!(m.u32("eps"), Err(GgufError::WrongType { .. })));
    }

    #[test]
    fn absent_keys() {
        let m = sample();
        assert_eq!(m.opt_str("none").unwrap(), None);
        assert_eq!(
            m.str("none").unwrap_err().to_string(),
            "key \"none\" is missing"
        );
        assert!(matches!(
            m.architecture(),
            Err(GgufError::MissingKey { .. })
        ));
    }

    #[test]
    fn insert_replaces_in_place() {
        let mut m = sample();
        assert_eq!(m.insert("name", "other"), Some(Value::from("tiny")));
        assert_eq!(m.iter().next(), Some(("name", &Value::from("other"))));
        assert_eq!(m.len(), 9);
    }
}
