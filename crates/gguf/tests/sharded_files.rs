//! Models split over several files.
#![allow(clippy::unwrap_used)] // also the helper functions are tests

use std::path::{Path, PathBuf};

use dynalm_gguf::{GgmlType, GgufError, GgufFile, GgufWriter};

/// What one shard says of itself, and the tensor in it.
struct Shard<'a> {
    no: u16,
    count: u16,
    tensor: &'a str,
}

fn write(path: &Path, shard: &Shard<'_>) {
    let mut writer = GgufWriter::new()
        .meta("split.no", shard.no)
        .meta("split.count", shard.count);
    if shard.no == 0 {
        writer = writer
            .meta("general.architecture", "llama")
            .meta("split.tensors.count", 3i32);
    }
    let bytes = vec![u8::try_from(shard.no).unwrap(); 32];
    let writer = writer.tensor(shard.tensor, GgmlType::F32, [8], bytes);
    writer
        .write(&mut std::fs::File::create(path).unwrap())
        .unwrap();
}

fn path(folder: &tempfile::TempDir, number: u32) -> PathBuf {
    folder
        .path()
        .join(format!("model-{number:05}-of-00003.gguf"))
}

fn sample() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (no, tensor) in [(0, "a"), (1, "b"), (2, "c")] {
        write(
            &path(&folder, u32::from(no) + 1),
            &Shard {
                no,
                count: 3,
                tensor,
            },
        );
    }
    folder
}

#[test]
fn the_first_opens_the_others() {
    let folder = sample();
    let file = GgufFile::open(&path(&folder, 1)).unwrap();
    assert_eq!(file.n_shards(), 3);
    assert_eq!(file.metadata().architecture().unwrap(), "llama");
    let listed: Vec<_> = file
        .tensors()
        .iter()
        .map(|t| (t.name.as_str(), t.shard, file.data(t)[0]))
        .collect();
    assert_eq!(listed, [("a", 0, 0), ("b", 1, 1), ("c", 2, 2)]);
    let on_disk: u64 = (1..=3)
        .map(|n| std::fs::metadata(path(&folder, n)).unwrap().len())
        .sum();
    assert_eq!(file.file_bytes(), on_disk);
    file.release(file.tensor("c").unwrap());
}

#[test]
fn another_than_the_first_is_refused() {
    let folder = sample();
    let error = GgufFile::open(&path(&folder, 2)).unwrap_err();
    assert!(
        error.to_string().contains("shard 2 of 3: give the first"),
        "{error}"
    );
}

#[test]
fn a_missing_or_broken_shard_is_named() {
    let folder = sample();
    std::fs::write(path(&folder, 3), b"GGUF").unwrap();
    let error = GgufFile::open(&path(&folder, 1)).unwrap_err();
    assert!(
        error.to_string().contains("model-00003-of-00003.gguf"),
        "{error}"
    );
    std::fs::remove_file(path(&folder, 2)).unwrap();
    let error = GgufFile::open(&path(&folder, 1)).unwrap_err();
    assert!(
        error.to_string().contains("model-00002-of-00003.gguf"),
        "{error}"
    );
}

#[test]
fn shards_must_belong_together() {
    let cases = [
        (
            Shard {
                no: 2,
                count: 3,
                tensor: "b",
            },
            "split.no",
        ),
        (
            Shard {
                no: 1,
                count: 4,
                tensor: "b",
            },
            "split.count",
        ),
        (
            Shard {
                no: 1,
                count: 3,
                tensor: "a",
            },
            "\"a\" at byte offset",
        ),
    ];
    for (shard, part) in cases {
        let folder = sample();
        write(&path(&folder, 2), &shard);
        let error = GgufFile::open(&path(&folder, 1)).unwrap_err().to_string();
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[test]
fn a_shard_without_its_name_or_of_too_many() {
    let folder = sample();
    let other = folder.path().join("renamed.gguf");
    std::fs::copy(path(&folder, 1), &other).unwrap();
    assert!(matches!(
        GgufFile::open(&other),
        Err(GgufError::ShardName { count: 3, .. })
    ));

    let writer = GgufWriter::new().meta("split.count", u64::MAX);
    writer
        .write(&mut std::fs::File::create(&other).unwrap())
        .unwrap();
    assert!(matches!(
        GgufFile::open(&other),
        Err(GgufError::OverLimit { .. })
    ));
}

#[test]
fn the_number_of_tensors_must_be_right() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let writer = GgufWriter::new().meta("split.tensors.count", 2u32);
    writer
        .write(&mut std::fs::File::create(&path).unwrap())
        .unwrap();
    assert!(matches!(
        GgufFile::open(&path),
        Err(GgufError::ShardMismatch {
            found: 2,
            expected: 0,
            ..
        })
    ));
}
