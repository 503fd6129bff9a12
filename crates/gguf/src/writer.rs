//! Writes version 3 files.

use std::collections::HashSet;
use std::io::{self, Write};

use crate::header::{DEFAULT_ALIGNMENT, MAGIC, limits, tensor_bytes};
use crate::{Array, GgmlType, Metadata, Value};

/// Collects keys and tensors, then writes them as a GGUF file (version 3, little endian).
///
/// ```
/// use dynalm_gguf::{GgmlType, GgufWriter, Header};
///
/// let mut file = Vec::new();
/// GgufWriter::new()
///     .meta("general.architecture", "llama")
///     .tensor("output_norm.weight", GgmlType::F32, vec![2], vec![0; 8])
///     .write(&mut file)?;
/// assert_eq!(Header::parse(&file, file.len() as u64)?.tensors()[0].columns(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct GgufWriter {
    metadata: Metadata,
    tensors: Vec<PendingTensor>,
}

#[derive(Debug, Clone)]
struct PendingTensor {
    name: String,
    ggml_type: GgmlType,
    dims: Vec<u64>,
    bytes: Vec<u8>,
}

impl GgufWriter {
    /// A file without keys and tensors.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key; setting it again replaces the value. `general.alignment` is obeyed.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key, value);
        self
    }

    /// Adds a tensor; `dims` has the fastest dimension first, `bytes` is its data in the file's form.
    #[must_use]
    pub fn tensor(
        mut self,
        name: impl Into<String>,
        ggml_type: GgmlType,
        dims: impl Into<Vec<u64>>,
        bytes: impl Into<Vec<u8>>,
    ) -> Self {
        self.tensors.push(PendingTensor {
            name: name.into(),
            ggml_type,
            dims: dims.into(),
            bytes: bytes.into(),
        });
        self
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for what no reader would take: a tensor whose bytes do not fit its type and
    /// dimensions, a name used twice, empty or too long, an alignment that is no power of two. Otherwise what `out` reports.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let alignment = self.alignment()?;
        self.check_keys()?;
        self.check_tensors()?;
        let mut header = Vec::new();
        header.extend_from_slice(MAGIC);
        header.extend_from_slice(&3u32.to_le_bytes());
        header.extend_from_slice(&(self.tensors.len() as u64).to_le_bytes());
        header.extend_from_slice(&(self.metadata.len() as u64).to_le_bytes());
        for (key, value) in self.metadata.iter() {
            put_string(&mut header, key);
            put_value(&mut header, value);
        }
        let mut offset = 0u64;
        for tensor in &self.tensors {
            put_tensor(&mut header, tensor, offset);
            offset = offset.saturating_add((tensor.bytes.len() as u64).next_multiple_of(alignment));
        }
        out.write_all(&header)?;
        write_padding(out, header.len(), alignment)?;
        for tensor in &self.tensors {
            out.write_all(&tensor.bytes)?;
            write_padding(out, tensor.bytes.len(), alignment)?;
        }
        Ok(())
    }

    fn alignment(&self) -> io::Result<u64> {
        let alignment = self
            .metadata
            .opt_u64("general.alignment")
            .map_err(|e| invalid(e.to_string()))?;
        let alignment = alignment.unwrap_or(DEFAULT_ALIGNMENT);
        if !alignment.is_power_of_two() || alignment > limits::ALIGNMENT {
            return Err(invalid(format!(
                "general.alignment {alignment} is not a power of two up to {}",
                limits::ALIGNMENT
            )));
        }
        Ok(alignment)
    }

    fn check_keys(&self) -> io::Result<()> {
        match self
            .metadata
            .iter()
            .find(|(key, _)| !fits(key, limits::KEY_BYTES))
        {
            Some((key, _)) => Err(invalid(format!(
                "a key has 1 to {} bytes, not {}",
                limits::KEY_BYTES,
                key.len()
            ))),
            None => Ok(()),
        }
    }

    fn check_tensors(&self) -> io::Result<()> {
        let mut names = HashSet::new();
        for PendingTensor {
            name,
            ggml_type,
            dims,
            bytes,
        } in &self.tensors
        {
            if !fits(name, limits::TENSOR_NAME_BYTES) {
                let (limit, n) = (limits::TENSOR_NAME_BYTES, name.len());
                return Err(invalid(format!(
                    "a tensor's name has 1 to {limit} bytes, not {n}"
                )));
            }
            if !names.insert(name) {
                return Err(invalid(format!("tensor {name:?} is there twice")));
            }
            if dims.len() > 4
                || dims.contains(&0)
                || tensor_bytes(*ggml_type, dims) != Some(bytes.len() as u64)
            {
                let n = bytes.len();
                return Err(invalid(format!(
                    "tensor {name:?}: {n} bytes are not {ggml_type} of dimensions {dims:?}"
                )));
            }
        }
        Ok(())
    }
}

fn fits(name: &str, limit: u64) -> bool {
    (1..=limit).contains(&(name.len() as u64))
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

fn write_padding(out: &mut impl Write, written: usize, alignment: u64) -> io::Result<()> {
    let written = written as u64;
    let padding = written.next_multiple_of(alignment).saturating_sub(written);
    io::copy(&mut io::Read::take(io::repeat(0), padding), out).map(|_| ())
}

fn put_string(out: &mut Vec<u8>, s: &str) {
    out.extend_from_slice(&(s.len() as u64).to_le_bytes());
    out.extend_from_slice(s.as_bytes());
}

fn put_tensor(out: &mut Vec<u8>, tensor: &PendingTensor, offset: u64) {
    put_string(out, &tensor.name);
    let n_dims = u32::try_from(tensor.dims.len()).unwrap_or(u32::MAX); // at most 4: checked
    out.extend_from_slice(&n_dims.to_le_bytes());
    for dim in &tensor.dims {
        out.extend_from_slice(&dim.to_le_bytes());
    }
    out.extend_from_slice(&tensor.ggml_type.id().to_le_bytes());
    out.extend_from_slice(&offset.to_le_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    out.extend_from_slice(&value.type_id().to_le_bytes());
    match value {
        Value::U8(v) => out.push(*v),
        Value::I8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::U16(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::I16(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::U32(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::I32(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::U64(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::I64(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::F32(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::F64(v) => out.extend_from_slice(&v.to_le_bytes()),
        Value::Bool(v) => out.push(u8::from(*v)),
        Value::String(v) => put_string(out, v),
        Value::Array(v) => put_array(out, v),
    }
}

fn put_array(out: &mut Vec<u8>, array: &Array) {
    out.extend_from_slice(&array.element_type_id().to_le_bytes());
    out.extend_from_slice(&(array.len() as u64).to_le_bytes());
    match array {
        Array::U8(v) => out.extend_from_slice(v),
        Array::I8(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::U16(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::I16(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::U32(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::I32(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::U64(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::I64(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::F32(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::F64(v) => out.extend(v.iter().flat_map(|x| x.to_le_bytes())),
        Array::Bool(v) => out.extend(v.iter().map(|&x| u8::from(x))),
        Array::String(v) => v.iter().for_each(|s| put_string(out, s)),
    }
}
