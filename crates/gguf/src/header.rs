//! The header: version, metadata and tensor descriptions, each number checked before it is believed.
//!
//! Layout (all little endian): `"GGUF"`, version, number of tensors, number of keys, the keys with their values,
//! the tensor descriptions, padding to the alignment, then the data that the descriptions' offsets count from.

use std::collections::HashSet;

use crate::cursor::Cursor;
use crate::value::{ARRAY_ID, STRING_ID};
use crate::{Array, GgmlType, GgufError, Metadata, TensorInfo, Value};

/// Limits of the reader: far above any real file, low enough that a hostile one costs little.
pub mod limits {
    /// Keys in a file; real files have some dozens.
    pub const KEYS: u64 = 1 << 16;
    /// Tensors in a file; the largest real models have a few thousand.
    pub const TENSORS: u64 = 1 << 17;
    /// Bytes of a key (the format's own limit).
    pub const KEY_BYTES: u64 = 65_535;
    /// Bytes of a tensor's name; the format says 64, some writers go over it.
    pub const TENSOR_NAME_BYTES: u64 = 256;
    /// Bytes of a string value; embedded tokenizer files reach some ten million.
    pub const STRING_BYTES: u64 = 1 << 26;
    /// Elements of all arrays of a file together; the largest vocabularies with their merges have two million.
    /// An empty string takes 8 bytes in the file and 24 in memory: this bounds what that can be used for.
    pub const ARRAY_ELEMENTS: u64 = 1 << 24;
    /// Bytes from the beginning of the file to its tensor data.
    pub const HEADER_BYTES: u64 = 1 << 29;
    /// Largest alignment; writers use 32.
    pub const ALIGNMENT: u64 = 1 << 20;
    /// Shards in a set (the name has five digits).
    pub const SHARDS: u64 = 99_999;
}

/// Alignment of files that do not set `general.alignment`.
pub(crate) const DEFAULT_ALIGNMENT: u64 = 32;
pub(crate) const MAGIC: &[u8; 4] = b"GGUF";

/// Everything before the tensor data.
#[derive(Debug, Clone)]
pub struct Header {
    version: u32,
    alignment: u64,
    data_offset: u64,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
}

impl Header {
    /// Reads the header from the first bytes of a file that has `file_len` bytes in all.
    ///
    /// # Errors
    /// [`GgufError::NeedMore`] with a lower bound of the bytes needed when `prefix` is too short; any other error
    /// says why the file is refused.
    pub fn parse(prefix: &[u8], file_len: u64) -> Result<Self, GgufError> {
        let mut cursor = Cursor::new(prefix, file_len);
        let version = read_version(&mut cursor)?;
        let n_tensors = read_count(&mut cursor, "number of tensors", limits::TENSORS)?;
        let n_keys = read_count(&mut cursor, "number of keys", limits::KEYS)?;
        let metadata = read_metadata(&mut cursor, n_keys)?;
        let alignment = read_alignment(&metadata)?;
        let mut tensors = read_tensors(&mut cursor, n_tensors, alignment)?;

        let header_end = cursor.pos();
        if header_end > limits::HEADER_BYTES {
            let what = "header".to_owned();
            return Err(GgufError::OverLimit {
                what,
                offset: 0,
                found: header_end,
                limit: limits::HEADER_BYTES,
            });
        }
        let data_offset = header_end.next_multiple_of(alignment); // both bounded: no overflow, alignment is not 0
        place_tensors(&mut tensors, data_offset, file_len)?;
        Ok(Self {
            version,
            alignment,
            data_offset,
            metadata,
            tensors,
        })
    }

    /// Version of the format: 2 or 3.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// What every tensor's offset in the data is a multiple of, in bytes.
    #[must_use]
    pub fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Where the tensor data begins, in bytes from the beginning of the file.
    #[must_use]
    pub fn data_offset(&self) -> u64 {
        self.data_offset
    }

    /// The keys and their values.
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The tensors in file order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    pub(crate) fn into_parts(self) -> (Metadata, Vec<TensorInfo>) {
        (self.metadata, self.tensors)
    }
}

fn read_version(cursor: &mut Cursor<'_>) -> Result<u32, GgufError> {
    let magic: [u8; 4] = cursor.array(&|| "the magic \"GGUF\"".to_owned())?;
    if magic == *b"FUGG" {
        return Err(GgufError::BigEndian);
    }
    if magic != *MAGIC {
        return Err(GgufError::NotGguf {
            found: magic.to_vec(),
        });
    }
    let version = cursor.u32(&|| "version".to_owned())?;
    match version {
        2 | 3 => Ok(version),
        // Version 3 of the other byte order; version 2 had no big-endian form.
        _ if (1..=0xff).contains(&version.swap_bytes()) => Err(GgufError::BigEndian),
        _ => Err(GgufError::UnsupportedVersion { version }),
    }
}

fn read_count(cursor: &mut Cursor<'_>, what: &str, limit: u64) -> Result<u64, GgufError> {
    let offset = cursor.pos();
    let count = cursor.u64(&|| what.to_owned())?;
    if count > limit {
        return Err(GgufError::OverLimit {
            what: what.to_owned(),
            offset,
            found: count,
            limit,
        });
    }
    Ok(count)
}

fn read_metadata(cursor: &mut Cursor<'_>, n_keys: u64) -> Result<Metadata, GgufError> {
    const MIN_KEY_BYTES: u64 = 8 + 4 + 1; // length of the key, type, the smallest value
    cursor.require_items(n_keys, MIN_KEY_BYTES, &|| format!("list of {n_keys} keys"))?;
    let mut metadata = Metadata::new();
    let mut elements_left = limits::ARRAY_ELEMENTS;
    for i in 0..n_keys {
        let offset = cursor.pos();
        let what = || format!("key number {i}");
        let key = cursor.string(limits::KEY_BYTES, &what)?;
        if key.is_empty() {
            return Err(GgufError::EmptyName {
                what: what(),
                offset,
            });
        }
        if metadata.get(key).is_some() {
            return Err(GgufError::DuplicateKey {
                key: key.to_owned(),
                offset,
            });
        }
        let value = read_value(cursor, key, &mut elements_left)?;
        metadata.insert(key, value);
    }
    Ok(metadata)
}

fn read_value(
    cursor: &mut Cursor<'_>,
    key: &str,
    elements_left: &mut u64,
) -> Result<Value, GgufError> {
    let what = || format!("value of key {key:?}");
    let offset = cursor.pos();
    Ok(match cursor.u32(&|| format!("type of key {key:?}"))? {
        0 => Value::U8(cursor.u8(&what)?),
        1 => Value::I8(cursor.array(&what).map(i8::from_le_bytes)?),
        2 => Value::U16(cursor.array(&what).map(u16::from_le_bytes)?),
        3 => Value::I16(cursor.array(&what).map(i16::from_le_bytes)?),
        4 => Value::U32(cursor.u32(&what)?),
        5 => Value::I32(cursor.array(&what).map(i32::from_le_bytes)?),
        6 => Value::F32(cursor.array(&what).map(f32::from_le_bytes)?),
        7 => {
            let offset = cursor.pos();
            Value::Bool(to_bool(cursor.u8(&what)?, key, offset)?)
        }
        STRING_ID => Value::String(cursor.string(limits::STRING_BYTES, &what)?.to_owned()),
        ARRAY_ID => Value::Array(read_array(cursor, key, elements_left)?),
        10 => Value::U64(cursor.u64(&what)?),
        11 => Value::I64(cursor.array(&what).map(i64::from_le_bytes)?),
        12 => Value::F64(cursor.array(&what).map(f64::from_le_bytes)?),
        type_id => {
            return Err(GgufError::UnknownValueType {
                key: key.to_owned(),
                type_id,
                offset,
            });
        }
    })
}

fn read_array(
    cursor: &mut Cursor<'_>,
    key: &str,
    elements_left: &mut u64,
) -> Result<Array, GgufError> {
    let type_offset = cursor.pos();
    let type_id = cursor.u32(&|| format!("element type of key {key:?}"))?;
    let offset = cursor.pos();
    let count = cursor.u64(&|| format!("length of the array of key {key:?}"))?;
    let Some(rest) = elements_left.checked_sub(count) else {
        let what = format!("length of the array of key {key:?}");
        return Err(GgufError::OverLimit {
            what,
            offset,
            found: count,
            limit: *elements_left,
        });
    };
    *elements_left = rest;

    Ok(match type_id {
        0 => Array::U8(read_numbers(cursor, count, key, u8::from_le_bytes)?),
        1 => Array::I8(read_numbers(cursor, count, key, i8::from_le_bytes)?),
        2 => Array::U16(read_numbers(cursor, count, key, u16::from_le_bytes)?),
        3 => Array::I16(read_numbers(cursor, count, key, i16::from_le_bytes)?),
        4 => Array::U32(read_numbers(cursor, count, key, u32::from_le_bytes)?),
        5 => Array::I32(read_numbers(cursor, count, key, i32::from_le_bytes)?),
        6 => Array::F32(read_numbers(cursor, count, key, f32::from_le_bytes)?),
        7 => {
            let offset = cursor.pos();
            let bytes = read_numbers(cursor, count, key, u8::from_le_bytes)?;
            Array::Bool(
                bytes
                    .into_iter()
                    .map(|b| to_bool(b, key, offset))
                    .collect::<Result<_, _>>()?,
            )
        }
        STRING_ID => Array::String(read_strings(cursor, count, key)?),
        10 => Array::U64(read_numbers(cursor, count, key, u64::from_le_bytes)?),
        11 => Array::I64(read_numbers(cursor, count, key, i64::from_le_bytes)?),
        12 => Array::F64(read_numbers(cursor, count, key, f64::from_le_bytes)?),
        ARRAY_ID => {
            return Err(GgufError::NestedArray {
                key: key.to_owned(),
                offset: type_offset,
            });
        }
        type_id => {
            return Err(GgufError::UnknownValueType {
                key: key.to_owned(),
                type_id,
                offset: type_offset,
            });
        }
    })
}

fn to_bool(byte: u8, key: &str, offset: u64) -> Result<bool, GgufError> {
    match byte {
        0 => Ok(false),
        1 => Ok(true),
        found => Err(GgufError::InvalidBool {
            key: key.to_owned(),
            found,
            offset,
        }),
    }
}

/// `count` numbers of `N` bytes; the bytes are taken before memory is allocated for the numbers.
fn read_numbers<T, const N: usize>(
    cursor: &mut Cursor<'_>,
    count: u64,
    key: &str,
    from_le_bytes: fn([u8; N]) -> T,
) -> Result<Vec<T>, GgufError> {
    let n_bytes = count.saturating_mul(N as u64);
    let bytes = cursor.take(n_bytes, &|| format!("array of key {key:?}"))?;
    Ok(bytes
        .as_chunks::<N>()
        .0
        .iter()
        .map(|chunk| from_le_bytes(*chunk))
        .collect())
}

fn read_strings(cursor: &mut Cursor<'_>, count: u64, key: &str) -> Result<Vec<String>, GgufError> {
    let capacity = cursor.require_items(count, 8, &|| {
        format!("array of {count} strings of key {key:?}")
    })?;
    let mut strings = Vec::with_capacity(capacity);
    for i in 0..count {
        let string = cursor.string(limits::STRING_BYTES, &|| {
            format!("string {i} of key {key:?}")
        })?;
        strings.push(string.to_owned());
    }
    Ok(strings)
}

fn read_alignment(metadata: &Metadata) -> Result<u64, GgufError> {
    let alignment = metadata
        .opt_u64("general.alignment")?
        .unwrap_or(DEFAULT_ALIGNMENT);
    if !alignment.is_power_of_two() || alignment > limits::ALIGNMENT {
        return Err(GgufError::InvalidAlignment {
            alignment,
            limit: limits::ALIGNMENT,
        });
    }
    Ok(alignment)
}

/// The descriptions with offsets as the file has them: from the beginning of the data.
fn read_tensors(
    cursor: &mut Cursor<'_>,
    n_tensors: u64,
    alignment: u64,
) -> Result<Vec<TensorInfo>, GgufError> {
    const MIN_TENSOR_BYTES: u64 = 8 + 4 + 8 + 4 + 8; // length of the name, n_dims, one dimension, type, offset
    let capacity = cursor.require_items(n_tensors, MIN_TENSOR_BYTES, &|| {
        format!("list of {n_tensors} tensors")
    })?;
    let mut tensors = Vec::with_capacity(capacity);
    let mut names = HashSet::with_capacity(capacity);
    for i in 0..n_tensors {
        let offset = cursor.pos();
        let what = || format!("name of tensor number {i}");
        let name = cursor.string(limits::TENSOR_NAME_BYTES, &what)?;
        if name.is_empty() {
            return Err(GgufError::EmptyName {
                what: what(),
                offset,
            });
        }
        if !names.insert(name) {
            return Err(GgufError::DuplicateTensor {
                tensor: name.to_owned(),
                offset,
            });
        }
        tensors.push(read_tensor(cursor, name, alignment)?);
    }
    Ok(tensors)
}

fn read_tensor(
    cursor: &mut Cursor<'_>,
    name: &str,
    alignment: u64,
) -> Result<TensorInfo, GgufError> {
    let what = || format!("description of tensor {name:?}");
    let tensor = || name.to_owned();

    let offset = cursor.pos();
    let n_dims = cursor.u32(&what)?;
    if !(1..=4).contains(&n_dims) {
        return Err(GgufError::InvalidDimensionCount {
            tensor: tensor(),
            n_dims,
            offset,
        });
    }
    let dims = (0..n_dims)
        .map(|_| cursor.u64(&what))
        .collect::<Result<Vec<u64>, _>>()?;
    if dims.contains(&0) {
        return Err(GgufError::ZeroDimension {
            tensor: tensor(),
            dims,
            offset,
        });
    }

    let type_offset = cursor.pos();
    let type_id = cursor.u32(&what)?;
    let Some(ggml_type) = GgmlType::from_id(type_id) else {
        return Err(GgufError::UnknownTensorType {
            tensor: tensor(),
            type_id,
            offset: type_offset,
        });
    };
    let Some(n_bytes) = tensor_bytes(ggml_type, &dims) else {
        let columns = dims.first().copied().unwrap_or(1);
        if !columns.is_multiple_of(ggml_type.block_len()) {
            let block_len = ggml_type.block_len();
            return Err(GgufError::PartialBlock {
                tensor: tensor(),
                ggml_type,
                columns,
                block_len,
                offset,
            });
        }
        return Err(GgufError::SizeOverflow {
            tensor: tensor(),
            ggml_type,
            dims,
            offset,
        });
    };

    let offset = cursor.pos();
    let data_offset = cursor.u64(&what)?;
    if !data_offset.is_multiple_of(alignment) {
        return Err(GgufError::MisalignedTensor {
            tensor: tensor(),
            data_offset,
            alignment,
            offset,
        });
    }
    Ok(TensorInfo {
        name: tensor(),
        ggml_type,
        dims,
        offset: data_offset,
        n_bytes,
        shard: 0,
    })
}

/// Size of the data; `None` if rows are not whole blocks, or the number of elements or bytes does not fit.
pub(crate) fn tensor_bytes(ggml_type: GgmlType, dims: &[u64]) -> Option<u64> {
    let (&columns, rest) = dims.split_first()?;
    let rows = rest.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?;
    columns.checked_mul(rows)?;
    ggml_type.row_bytes(columns)?.checked_mul(rows)
}

/// Turns offsets in the data into offsets in the file; refuses data outside the file, and data used twice
/// (with which a small file could make its reader allocate without end).
fn place_tensors(
    tensors: &mut [TensorInfo],
    data_offset: u64,
    file_len: u64,
) -> Result<(), GgufError> {
    for tensor in tensors.iter_mut() {
        let placed = data_offset.checked_add(tensor.offset);
        let end = placed.and_then(|offset| offset.checked_add(tensor.n_bytes));
        match placed {
            Some(offset) if end.is_some_and(|end| end <= file_len) => tensor.offset = offset,
            _ => {
                let (offset, n_bytes) = (placed.unwrap_or(u64::MAX), tensor.n_bytes);
                let needed = [data_offset, tensor.offset, n_bytes]
                    .map(u128::from)
                    .into_iter()
                    .sum();
                let tensor = tensor.name.clone();
                return Err(GgufError::TensorOutOfFile {
                    tensor,
                    offset,
                    n_bytes,
                    needed,
                    file_len,
                });
            }
        }
    }

    let mut by_offset: Vec<&TensorInfo> = tensors.iter().collect();
    by_offset.sort_by_key(|tensor| tensor.offset);
    for (before, after) in by_offset.iter().zip(by_offset.iter().skip(1)) {
        if before.offset.saturating_add(before.n_bytes) > after.offset {
            let (tensor, other) = (after.name.clone(), before.name.clone());
            return Err(GgufError::OverlappingTensors {
                tensor,
                other,
                offset: after.offset,
            });
        }
    }
    Ok(())
}
