//! An open file, or set of shards.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::header::limits;
use crate::mmap::Mapping;
use crate::{GgufError, Header, Metadata, TensorInfo};

/// A GGUF file mapped into memory, its header read and checked. `Send + Sync`; share it by `Arc`.
#[derive(Debug)]
pub struct GgufFile {
    path: PathBuf,
    version: u32,
    alignment: u64,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
    shards: Vec<Mapping>,
}

impl GgufFile {
    /// Opens and checks a file. The first shard of a `NAME-00001-of-0000N.gguf` set opens the others too: the
    /// metadata is that of the first, the tensors those of all, in order.
    ///
    /// The file is mapped, not read: a process that changes or truncates it while it is open can make weights
    /// wrong or end this process.
    ///
    /// # Errors
    /// If the file cannot be read, or anything in its header is not as the format demands.
    pub fn open(path: &Path) -> Result<Self, GgufError> {
        let (mapping, header) = open_one(path)?;
        let (version, alignment) = (header.version(), header.alignment());
        let (metadata, mut tensors) = header.into_parts();
        let mut shards = vec![mapping];

        let count = metadata.opt_u64("split.count")?.unwrap_or(1);
        if count > 1 {
            let paths = shard_paths(path, &metadata, count)?;
            for (number, path) in (1u64..).zip(paths) {
                let in_shard = |source| GgufError::Shard {
                    path: path.clone(),
                    source: Box::new(source),
                };
                let (mapping, mut of_shard) = open_shard(&path, number, count).map_err(in_shard)?;
                of_shard
                    .iter_mut()
                    .for_each(|tensor| tensor.shard = shards.len());
                tensors.append(&mut of_shard);
                shards.push(mapping);
            }
        }
        if let Some(expected) = metadata.opt_u64("split.tensors.count")? {
            check_equal("split.tensors.count", expected, tensors.len() as u64)?;
        }

        let mut index = HashMap::with_capacity(tensors.len());
        for (i, tensor) in tensors.iter().enumerate() {
            if index.insert(tensor.name.clone(), i).is_some() {
                return Err(GgufError::DuplicateTensor {
                    tensor: tensor.name.clone(),
                    offset: tensor.offset,
                });
            }
        }
        Ok(Self {
            path: path.to_owned(),
            version,
            alignment,
            metadata,
            tensors,
            index,
            shards,
        })
    }

    /// The keys and their values (of the first shard).
    #[must_use]
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors, in file order.
    #[must_use]
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of this name.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.index.get(name).and_then(|&i| self.tensors.get(i))
    }

    /// The bytes of a tensor, `tensor.n_bytes` of them. Not copied: the first access reads them from disk.
    ///
    /// Empty for a description that is not of this file.
    #[must_use]
    pub fn data(&self, tensor: &TensorInfo) -> &[u8] {
        let shard = self.shards.get(tensor.shard).map(Mapping::bytes);
        shard
            .zip(byte_range(tensor))
            .and_then(|(bytes, range)| bytes.get(range))
            .unwrap_or_default()
    }

    /// Gives up the memory that holds a tensor's bytes (the whole pages inside it), for after they were repacked.
    ///
    /// The process shrinks; the data stays readable, and is read from the file again if it is.
    pub fn release(&self, tensor: &TensorInfo) {
        if let Some((shard, range)) = self.shards.get(tensor.shard).zip(byte_range(tensor)) {
            shard.release(range);
        }
    }

    /// Size of the file, of all shards together.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.shards.iter().fold(0, |sum, shard| {
            sum.saturating_add(shard.bytes().len() as u64)
        })
    }

    /// The path given to [`open`](Self::open).
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of files: 1 unless the model is sharded.
    #[must_use]
    pub fn n_shards(&self) -> usize {
        self.shards.len()
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
}

fn byte_range(tensor: &TensorInfo) -> Option<Range<usize>> {
    let end = tensor.offset.checked_add(tensor.n_bytes)?;
    Some(usize::try_from(tensor.offset).ok()?..usize::try_from(end).ok()?)
}

fn open_one(path: &Path) -> Result<(Mapping, Header), GgufError> {
    let io = |source| GgufError::Io {
        path: path.to_owned(),
        source,
    };
    // Asked before opening: opening a pipe would wait for a writer.
    let about = std::fs::metadata(path).map_err(io)?;
    if !about.is_file() {
        return Err(GgufError::NotAFile {
            path: path.to_owned(),
        });
    }
    if about.len() == 0 {
        // An empty file cannot be mapped.
        return Err(GgufError::Truncated {
            what: "the magic \"GGUF\"".to_owned(),
            offset: 0,
            needed: 4,
            left: 0,
        });
    }
    let mapping = Mapping::new(&File::open(path).map_err(io)?).map_err(io)?;
    let bytes = mapping.bytes();
    let header = Header::parse(bytes, bytes.len() as u64)?;
    Ok((mapping, header))
}

/// Opens one of the shards after the first; `number` counts from 0.
fn open_shard(
    path: &Path,
    number: u64,
    count: u64,
) -> Result<(Mapping, Vec<TensorInfo>), GgufError> {
    let (mapping, header) = open_one(path)?;
    check_equal("split.no", header.metadata().u64("split.no")?, number)?;
    check_equal("split.count", header.metadata().u64("split.count")?, count)?;
    Ok((mapping, header.into_parts().1))
}

fn check_equal(key: &'static str, found: u64, expected: u64) -> Result<(), GgufError> {
    if found == expected {
        Ok(())
    } else {
        Err(GgufError::ShardMismatch {
            key,
            found,
            expected,
        })
    }
}

/// Paths of the second and later shards. They come from the first one's own name, never from inside the file.
fn shard_paths(
    path: &Path,
    metadata: &Metadata,
    count: u64,
) -> Result<impl Iterator<Item = PathBuf>, GgufError> {
    let number = metadata.opt_u64("split.no")?.unwrap_or(0);
    if number != 0 {
        return Err(GgufError::NotFirstShard {
            path: path.to_owned(),
            number: number.saturating_add(1),
            count,
        });
    }
    if count > limits::SHARDS {
        let what = "key \"split.count\"".to_owned();
        return Err(GgufError::OverLimit {
            what,
            offset: 0,
            found: count,
            limit: limits::SHARDS,
        });
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    let Some(stem) = name.strip_suffix(&format!("-00001-of-{count:05}.gguf")) else {
        return Err(GgufError::ShardName {
            path: path.to_owned(),
            count,
        });
    };
    let (stem, first) = (stem.to_owned(), path.to_owned());
    Ok((2..=count)
        .map(move |number| first.with_file_name(format!("{stem}-{number:05}-of-{count:05}.gguf"))))
}
