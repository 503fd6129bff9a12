//! Reading a JSON object field by field, with errors that name the field, the range and what was found.
//!
//! `null` means absent everywhere, as clients send it for options left alone. Fields nobody asks for are never
//! looked at: clients of newer APIs send them.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::api_error::{ApiError, ApiResult};

/// A JSON object being read.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    /// Where the object stands: empty for the body, else such as `messages[2]`.
    path: String,
}

impl<'a> Fields<'a> {
    /// Reads `value`, which stands at `path` ("" for the body itself).
    pub(crate) fn new(value: &'a Value, path: impl Into<String>) -> ApiResult<Self> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            other if path.is_empty() => Err(ApiError::invalid(format!(
                "the body must be a JSON object, got {}",
                describe(other)
            ))),
            other => Err(wrong(&path, "an object", other)),
        }
    }

    /// The field's full name, for messages.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// The value, unless it is absent or null.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.map.get(name).filter(|value| !value.is_null())
    }

    /// The value, or a 400 that says it is missing.
    pub(crate) fn require(&self, name: &str) -> ApiResult<&'a Value> {
        self.get(name).ok_or_else(|| {
            let path = self.path_of(name);
            ApiError::field(&path, format!("'{path}' is required"))
        })
    }

    /// A number in `range`.
    pub(crate) fn number(&self, name: &str, range: RangeInclusive<f64>) -> ApiResult<Option<f32>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_f64() {
            Some(number) if range.contains(&number) => Ok(Some(number as f32)),
            _ => {
                let expected = format!("a number from {} to {}", range.start(), range.end());
                Err(wrong(&self.path_of(name), &expected, value))
            }
        }
    }

    /// A whole number in `range`. `16.0` counts as whole: JSON has one kind of number.
    pub(crate) fn integer(&self, name: &str, range: RangeInclusive<i64>) -> ApiResult<Option<i64>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match whole_number(value) {
            Some(number) if range.contains(&number) => Ok(Some(number)),
            _ => {
                let expected = match *range.end() {
                    i64::MAX if *range.start() == i64::MIN => "an integer".to_owned(),
                    i64::MAX => format!("an integer of at least {}", range.start()),
                    end => format!("an integer from {} to {end}", range.start()),
                };
                Err(wrong(&self.path_of(name), &expected, value))
            }
        }
    }

    /// A count: a whole number from `range`, as usize.
    pub(crate) fn count(&self, name: &str, range: RangeInclusive<i64>) -> ApiResult<Option<usize>> {
        Ok(self
            .integer(name, range)?
            .and_then(|number| usize::try_from(number).ok()))
    }

    /// `true` or `false`.
    pub(crate) fn boolean(&self, name: &str) -> ApiResult<Option<bool>> {
        self.typed(name, "true or false", Value::as_bool)
    }

    /// A string.
    pub(crate) fn string(&self, name: &str) -> ApiResult<Option<&'a str>> {
        self.typed(name, "a string", Value::as_str)
    }

    /// An array.
    pub(crate) fn array(&self, name: &str) -> ApiResult<Option<&'a Vec<Value>>> {
        self.typed(name, "an array", Value::as_array)
    }

    /// An object, to be read in turn.
    pub(crate) fn object(&self, name: &str) -> ApiResult<Option<Fields<'a>>> {
        self.get(name)
            .map(|value| Fields::new(value, self.path_of(name)))
            .transpose()
    }

    /// The fields themselves.
    pub(crate) fn map(&self) -> &'a Map<String, Value> {
        self.map
    }

    fn typed<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> ApiResult<Option<T>> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => Err(wrong(&self.path_of(name), expected, value)),
        }
    }
}

/// The integer a JSON number stands for, if it is one.
pub(crate) fn whole_number(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        // Above 2^53 a float no longer says which integer was meant.
        let float = value
            .as_f64()
            .filter(|float| float.fract() == 0.0 && float.abs() <= (1_u64 << 53) as f64)?;
        Some(float as i64)
    })
}

/// A 400 of the form "'top_p' must be a number from 0 to 1, got 3".
pub(crate) fn wrong(path: &str, expected: &str, found: &Value) -> ApiError {
    ApiError::field(
        path,
        format!("'{path}' must be {expected}, got {}", describe(found)),
    )
}

/// A value as it may stand in a message: short, whatever its size.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) if text.len() <= 40 => value.to_string(),
        Value::String(text) => format!("a string of {} bytes", text.len()),
        Value::Array(items) => format!("an array of {} items", items.len()),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn message<T: std::fmt::Debug>(result: ApiResult<T>) -> String {
        result.unwrap_err().message
    }

    #[test]
    fn messages_name_field_range_and_finding() {
        let body = json!({"temperature": -1, "stop": 5, "n": 0, "seed": "x", "stream": "yes", "nested": {"a": 1.5}, "big": 1e300});
        let fields = Fields::new(&body, "").unwrap();
        assert_eq!(
            message(fields.number("temperature", 0.0..=100.0)),
            "'temperature' must be a number from 0 to 100, got -1"
        );
        assert_eq!(
            message(fields.integer("n", 1..=64)),
            "'n' must be an integer from 1 to 64, got 0"
        );
        assert_eq!(
            message(fields.integer("seed", i64::MIN..=i64::MAX)),
            "'seed' must be an integer, got \"x\""
        );
        assert_eq!(
            message(fields.boolean("stream")),
            "'stream' must be true or false, got \"yes\""
        );
        assert_eq!(message(fields.require("model")), "'model' is required");
        assert_eq!(
            message(fields.integer("big", 0..=i64::MAX)),
            "'big' must be an integer of at least 0, got 1e+300"
        );
        let nested = fields.object("nested").unwrap().unwrap();
        let error = nested.integer("a", 0..=2).unwrap_err();
        assert_eq!(
            (error.param.as_deref(), error.message.as_str()),
            (
                Some("nested.a"),
                "'nested.a' must be an integer from 0 to 2, got 1.5"
            )
        );
    }

    #[test]
    fn null_is_absent_and_whole_floats_are_integers() {
        let body = json!({"n": null, "max_tokens": 16.0});
        let fields = Fields::new(&body, "").unwrap();
        assert_eq!(fields.integer("n", 1..=2).unwrap(), None);
        assert_eq!(fields.count("max_tokens", 0..=100).unwrap(), Some(16));
    }

    #[test]
    fn a_body_that_is_no_object_is_refused() {
        assert_eq!(
            message(Fields::new(&json!([1]), "")),
            "the body must be a JSON object, got an array of 1 items"
        );
    }

    proptest! {
        #[test]
        fn an_accepted_number_is_in_range(number in any::<f64>()) {
            let body = json!({"x": number});
            if let Some(read) = Fields::new(&body, "").unwrap().number("x", 0.0..=1.0).unwrap_or(None) {
                prop_assert!((0.0..=1.0).contains(&read));
            }
        }

        #[test]
        fn an_accepted_integer_is_in_range(number in any::<i64>()) {
            let body = json!({"x": number});
            let read = Fields::new(&body, "").unwrap().integer("x", 3..=9);
            prop_assert_eq!(read.is_ok(), (3..=9).contains(&number));
        }
    }
}
