//! Metadata values: the format's scalar types, strings, and flat arrays of them.

/// One metadata value.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the format's own types
pub enum Value {
    U8(u8),
    I8(i8),
    U16(u16),
    I16(i16),
    U32(u32),
    I32(i32),
    U64(u64),
    I64(i64),
    F32(f32),
    F64(f64),
    Bool(bool),
    String(String),
    Array(Array),
}

/// A homogeneous array (nested arrays are refused by the reader).
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs)] // the format's own types
pub enum Array {
    U8(Vec<u8>),
    I8(Vec<i8>),
    U16(Vec<u16>),
    I16(Vec<i16>),
    U32(Vec<u32>),
    I32(Vec<i32>),
    U64(Vec<u64>),
    I64(Vec<i64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    Bool(Vec<bool>),
    String(Vec<String>),
}

/// Number of the string type in a file.
pub(crate) const STRING_ID: u32 = 8;
/// Number of the array type in a file.
pub(crate) const ARRAY_ID: u32 = 9;

impl Value {
    /// The integer, if it is one of any integer type and is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128().and_then(|v| u64::try_from(v).ok())
    }

    /// The integer, if it is one of any integer type and fits.
    #[must_use]
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128().and_then(|v| i64::try_from(v).ok())
    }

    /// The integer, whatever its type.
    pub(crate) fn as_i128(&self) -> Option<i128> {
        Some(match self {
            Self::U8(v) => i128::from(*v),
            Self::I8(v) => i128::from(*v),
            Self::U16(v) => i128::from(*v),
            Self::I16(v) => i128::from(*v),
            Self::U32(v) => i128::from(*v),
            Self::I32(v) => i128::from(*v),
            Self::U64(v) => i128::from(*v),
            Self::I64(v) => i128::from(*v),
            _ => return None,
        })
    }

    /// The number, of any float or integer type (64-bit integers are rounded).
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::F32(v) => Some(f64::from(*v)),
            Self::F64(v) => Some(*v),
            other => other.as_i128().map(|v| v as f64),
        }
    }

    /// The bool.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(v) => Some(*v),
            _ => None,
        }
    }

    /// The string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(v) => Some(v),
            _ => None,
        }
    }

    /// The array.
    #[must_use]
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Self::Array(v) => Some(v),
            _ => None,
        }
    }

    /// The type in words: `u32`, `string`, `array of i32`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "u8",
            Self::I8(_) => "i8",
            Self::U16(_) => "u16",
            Self::I16(_) => "i16",
            Self::U32(_) => "u32",
            Self::I32(_) => "i32",
            Self::U64(_) => "u64",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Bool(_) => "bool",
            Self::String(_) => "string",
            Self::Array(v) => v.type_name(),
        }
    }

    /// The number that stands for the value's type in a file.
    pub(crate) fn type_id(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::String(_) => STRING_ID,
            Self::Array(_) => ARRAY_ID,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }
}

impl Array {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U8(v) => v.len(),
            Self::I8(v) => v.len(),
            Self::U16(v) => v.len(),
            Self::I16(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::U64(v) => v.len(),
            Self::I64(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::String(v) => v.len(),
        }
    }

    /// True without elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One element as a value of its own.
    #[must_use]
    pub fn get(&self, i: usize) -> Option<Value> {
        Some(match self {
            Self::U8(v) => Value::U8(*v.get(i)?),
            Self::I8(v) => Value::I8(*v.get(i)?),
            Self::U16(v) => Value::U16(*v.get(i)?),
            Self::I16(v) => Value::I16(*v.get(i)?),
            Self::U32(v) => Value::U32(*v.get(i)?),
            Self::I32(v) => Value::I32(*v.get(i)?),
            Self::U64(v) => Value::U64(*v.get(i)?),
            Self::I64(v) => Value::I64(*v.get(i)?),
            Self::F32(v) => Value::F32(*v.get(i)?),
            Self::F64(v) => Value::F64(*v.get(i)?),
            Self::Bool(v) => Value::Bool(*v.get(i)?),
            Self::String(v) => Value::String(v.get(i)?.clone()),
        })
    }

    /// The strings of a string array.
    #[must_use]
    pub fn as_strings(&self) -> Option<&[String]> {
        match self {
            Self::String(v) => Some(v),
            _ => None,
        }
    }

    /// The bools of a bool array.
    #[must_use]
    pub fn as_bools(&self) -> Option<&[bool]> {
        match self {
            Self::Bool(v) => Some(v),
            _ => None,
        }
    }

    /// The numbers of any float or integer array (64-bit integers are rounded).
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub fn to_f64s(&self) -> Option<Vec<f64>> {
        match self {
            Self::F32(v) => Some(v.iter().map(|&x| f64::from(x)).collect()),
            Self::F64(v) => Some(v.clone()),
            other => other
                .integers()
                .map(|integers| integers.map(|x| x as f64).collect()),
        }
    }

    /// The integers of any integer array, one after the other.
    pub(crate) fn integers(&self) -> Option<Box<dyn Iterator<Item = i128> + '_>> {
        Some(match self {
            Self::U8(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::I8(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::U16(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::I16(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::U32(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::I32(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::U64(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::I64(v) => Box::new(v.iter().map(|&x| i128::from(x))),
            Self::F32(_) | Self::F64(_) | Self::Bool(_) | Self::String(_) => return None,
        })
    }

    /// The type in words: `array of i32`.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::U8(_) => "array of u8",
            Self::I8(_) => "array of i8",
            Self::U16(_) => "array of u16",
            Self::I16(_) => "array of i16",
            Self::U32(_) => "array of u32",
            Self::I32(_) => "array of i32",
            Self::U64(_) => "array of u64",
            Self::I64(_) => "array of i64",
            Self::F32(_) => "array of f32",
            Self::F64(_) => "array of f64",
            Self::Bool(_) => "array of bool",
            Self::String(_) => "array of string",
        }
    }

    /// The number that stands for the element type in a file.
    pub(crate) fn element_type_id(&self) -> u32 {
        match self {
            Self::U8(_) => 0,
            Self::I8(_) => 1,
            Self::U16(_) => 2,
            Self::I16(_) => 3,
            Self::U32(_) => 4,
            Self::I32(_) => 5,
            Self::F32(_) => 6,
            Self::Bool(_) => 7,
            Self::String(_) => STRING_ID,
            Self::U64(_) => 10,
            Self::I64(_) => 11,
            Self::F64(_) => 12,
        }
    }
}

/// `Value::from(x)` for the Rust types that the format has.
macro_rules! value_from {
    ($($t:ty => $variant:ident),* $(,)?) => {$(
        impl From<$t> for Value {
            fn from(v: $t) -> Self {
                Self::$variant(v)
            }
        }

        impl From<Vec<$t>> for Value {
            fn from(v: Vec<$t>) -> Self {
                Self::Array(Array::$variant(v))
            }
        }
    )*};
}

value_from!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64,
            f32 => F32, f64 => F64, bool => Bool, String => String);

impl From<&str> for Value {
    fn from(v: &str) -> Self {
        Self::String(v.to_owned())
    }
}

impl From<Array> for Value {
    fn from(v: Array) -> Self {
        Self::Array(v)
    }
}
