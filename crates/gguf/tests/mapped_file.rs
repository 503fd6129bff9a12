//! A file opened through the map: its tensors' bytes, and giving their memory back.
#![allow(clippy::unwrap_used)] // also the helper functions are tests

use dynalm_gguf::{GgmlType, GgufFile, GgufWriter, TensorInfo};

fn sample() -> (tempfile::TempDir, GgufFile) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let large: Vec<u8> = (0..1u32 << 20)
        .flat_map(|i| (i as f32).to_le_bytes())
        .collect();
    let writer = GgufWriter::new()
        .meta("general.architecture", "llama")
        .meta("general.alignment", 64u32);
    let writer = writer.tensor(
        "small",
        GgmlType::F16,
        [3, 2, 1],
        vec![1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    );
    let writer = writer.tensor("large", GgmlType::F32, [1024, 1024], large);
    writer
        .write(&mut std::fs::File::create(&path).unwrap())
        .unwrap();
    let file = GgufFile::open(&path).unwrap();
    (folder, file)
}

#[test]
fn tensors_are_found_by_name_with_their_bytes() {
    let (_folder, file) = sample();
    assert_eq!(
        file.tensors()
            .iter()
            .map(|t| t.name.as_str())
            .collect::<Vec<_>>(),
        ["small", "large"]
    );
    let small = file.tensor("small").unwrap();
    assert_eq!(
        (small.columns(), small.rows(), small.n_elements()),
        (3, 2, 6)
    );
    assert_eq!(file.data(small), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    assert_eq!(small.offset % 64, 0);
    assert!(file.tensor("none").is_none());
    assert_eq!(
        (file.version(), file.alignment(), file.n_shards()),
        (3, 64, 1)
    );
    assert_eq!(
        file.file_bytes(),
        std::fs::metadata(file.path()).unwrap().len()
    );
}

#[test]
fn released_bytes_can_be_read_again() {
    let (_folder, file) = sample();
    let large = file.tensor("large").unwrap();
    let sum = |bytes: &[u8]| bytes.iter().map(|&b| u64::from(b)).sum::<u64>();
    let before = sum(file.data(large));
    file.release(large);
    file.release(file.tensor("small").unwrap());
    assert_eq!(sum(file.data(large)), before);
}

/// Resident memory of the mapping, in bytes, as Linux counts it.
#[cfg(target_os = "linux")]
fn resident_bytes(path: &std::path::Path) -> u64 {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut lines = maps
        .lines()
        .skip_while(|line| !line.ends_with(path.to_str().unwrap()));
    let line = lines.find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

#[cfg(target_os = "linux")]
#[test]
fn release_shrinks_the_process() {
    let (_folder, file) = sample();
    let large = file.tensor("large").unwrap();
    assert!(file.data(large).iter().any(|&b| b != 0));
    assert!(file.data(large).iter().map(|&b| u64::from(b)).sum::<u64>() > 0);
    let before = resident_bytes(file.path());
    file.release(large);
    let after = resident_bytes(file.path());
    assert!(before >= 4 << 20, "{before} bytes were resident");
    assert!(after <= 64 << 10, "{after} bytes still are");
}

#[test]
fn a_description_of_another_file_has_no_bytes() {
    let (_folder, file) = sample();
    let large = file.tensor("large").unwrap();
    let strangers = [
        TensorInfo {
            shard: 7,
            ..large.clone()
        },
        TensorInfo {
            offset: u64::MAX,
            ..large.clone()
        },
        TensorInfo {
            n_bytes: u64::MAX,
            ..large.clone()
        },
        TensorInfo {
            offset: file.file_bytes(),
            ..large.clone()
        },
    ];
    for stranger in strangers {
        assert!(file.data(&stranger).is_empty());
        file.release(&stranger);
    }
}

#[test]
fn files_are_shared_between_threads() {
    fn takes<T: Send + Sync>(_: &T) {}
    takes(&sample().1);
}
