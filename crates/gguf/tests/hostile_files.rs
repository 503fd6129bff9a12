//! Files that lie: each is refused with an error that names the key or tensor and the byte offset. None may panic,
//! loop, or make the reader allocate for a number that the file cannot back.
#![allow(clippy::unwrap_used)] // also the helper functions are tests

use dynalm_gguf::{GgmlType, GgufError, GgufFile, GgufWriter, Header, Value, limits};

/// Bytes of a file, written by hand so that nothing stops a lie.
#[derive(Clone)]
struct Raw(Vec<u8>);

impl Raw {
    fn new(version: u32, n_tensors: u64, n_keys: u64) -> Self {
        Self(b"GGUF".to_vec())
            .u32(version)
            .u64(n_tensors)
            .u64(n_keys)
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn u32(self, v: u32) -> Self {
        self.bytes(&v.to_le_bytes())
    }

    fn u64(self, v: u64) -> Self {
        self.bytes(&v.to_le_bytes())
    }

    fn string(self, s: &str) -> Self {
        self.u64(s.len() as u64).bytes(s.as_bytes())
    }

    /// A key with a u32 value.
    fn key_u32(self, key: &str, v: u32) -> Self {
        self.string(key).u32(4).u32(v)
    }

    /// A description: name, dimensions, type number, offset.
    fn tensor(self, name: &str, dims: &[u64], type_id: u32, offset: u64) -> Self {
        let raw = self.string(name).u32(u32::try_from(dims.len()).unwrap());
        dims.iter()
            .fold(raw, |raw, &d| raw.u64(d))
            .u32(type_id)
            .u64(offset)
    }

    /// Padding to the alignment, then `n` bytes of data.
    fn data(mut self, n: usize) -> Self {
        self.0.resize(self.0.len().next_multiple_of(32) + n, 0);
        self
    }

    fn parse(&self) -> Result<Header, GgufError> {
        Header::parse(&self.0, self.0.len() as u64)
    }
}

/// The message must hold every one of `parts`.
#[track_caller]
fn check(raw: &Raw, parts: &[&str]) {
    let message = raw
        .parse()
        .expect_err("the file should be refused")
        .to_string();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

const F32: u32 = 0;
const Q4_K: u32 = 12;

// The beginning

#[test]
fn an_honest_file_is_accepted() {
    let raw = Raw::new(3, 1, 1)
        .key_u32("a.b", 1)
        .tensor("t", &[4], F32, 0)
        .data(16);
    let header = raw.parse().unwrap();
    assert_eq!(
        (
            header.version(),
            header.alignment(),
            header.tensors()[0].n_bytes
        ),
        (3, 32, 16)
    );
    assert_eq!(header.tensors()[0].offset, header.data_offset());
    assert!(Raw::new(2, 0, 0).parse().is_ok(), "version 2");
}

#[test]
fn not_a_gguf_file() {
    check(
        &Raw(b"<html><body>404</body></html>".to_vec()),
        &["not a GGUF file"],
    );
    check(&Raw(Vec::new()), &["magic", "truncated?"]);
    check(&Raw(b"GG".to_vec()), &["magic", "offset 0"]);
}

#[test]
fn other_versions() {
    for version in [0, 1, 4, 12345] {
        check(&Raw::new(version, 0, 0), &[&format!("version {version}")]);
    }
}

#[test]
fn big_endian() {
    let mut raw = b"GGUF".to_vec();
    raw.extend_from_slice(&3u32.to_be_bytes());
    raw.extend_from_slice(&[0; 16]);
    check(&Raw(raw), &["big-endian"]);
    check(&Raw(b"FUGG\0\0\0\x03".to_vec()), &["big-endian"]);
}

// Counts and lengths

#[test]
fn counts_that_the_file_cannot_back() {
    check(
        &Raw::new(3, u64::MAX, 0),
        &["number of tensors", "offset 8", &u64::MAX.to_string()],
    );
    check(
        &Raw::new(3, 0, u64::MAX),
        &["number of keys", "offset 16", &u64::MAX.to_string()],
    );
    check(
        &Raw::new(3, 0, 60_000),
        &["60000 keys", "offset 24", "truncated?"],
    );
    check(
        &Raw::new(3, 100_000, 0),
        &["100000 tensors", "offset 24", "truncated?"],
    );
    check(&Raw::new(3, 0, 1 << 63), &["number of keys"]);
}

#[test]
fn key_length_past_the_end_or_the_limit() {
    check(
        &Raw::new(3, 0, 1).u64(1000).bytes(&[b'a'; 30]),
        &["key number 0", "offset 32", "needs 1000 bytes"],
    );
    check(
        &Raw::new(3, 0, 1).u64(u64::MAX).bytes(&[b'a'; 30]),
        &["length of key number 0", "limit of 65535"],
    );
    check(
        &Raw::new(3, 0, 1)
            .string(&"k".repeat(65_536))
            .u32(0)
            .bytes(&[1]),
        &["limit of 65535"],
    );
}

#[test]
fn string_length_past_the_end_or_the_limit() {
    let raw = |len: u64| {
        Raw::new(3, 0, 1)
            .string("general.name")
            .u32(8)
            .u64(len)
            .bytes(b"abc")
    };
    check(&raw(4), &["\"general.name\"", "needs 4 bytes but only 3"]);
    check(&raw(u64::MAX), &["\"general.name\"", "offset 48"]);
    check(&raw(u64::MAX - 7), &["\"general.name\"", "limit"]);
}

#[test]
fn array_length_past_the_end_or_the_limit() {
    for element_type in (0..=12).filter(|&t| t != 9) {
        let raw = |len: u64| {
            Raw::new(3, 0, 1)
                .string("a.b")
                .u32(9)
                .u32(element_type)
                .u64(len)
                .bytes(&[0; 7])
        };
        check(&raw(8), &["\"a.b\"", "truncated?"]);
        check(&raw(1 << 20), &["\"a.b\"", "offset 51", "truncated?"]);
        for len in [
            u64::MAX,
            u64::MAX / 8 + 1,
            1 << 61,
            limits::ARRAY_ELEMENTS + 1,
        ] {
            check(&raw(len), &["\"a.b\"", "limit"]);
        }
    }
}

#[test]
fn many_arrays_share_one_limit() {
    let half = usize::try_from(limits::ARRAY_ELEMENTS / 2).unwrap() + 1;
    let raw = ["a", "b"].iter().fold(Raw::new(3, 0, 2), |raw, key| {
        raw.string(key)
            .u32(9)
            .u32(0)
            .u64(half as u64)
            .bytes(&vec![0; half])
    });
    check(&raw, &["\"b\"", "limit"]);
}

#[test]
fn string_in_an_array_past_the_end() {
    let raw = Raw::new(3, 0, 1)
        .string("tokens")
        .u32(9)
        .u32(8)
        .u64(2)
        .string("ok")
        .u64(100)
        .bytes(b"xx");
    check(
        &raw,
        &["string 1 of key \"tokens\"", "needs 100 bytes but only 2"],
    );
}

#[test]
fn nested_arrays() {
    let raw = Raw::new(3, 0, 1)
        .string("deep")
        .u32(9)
        .u32(9)
        .u64(1)
        .u32(9)
        .u64(1);
    check(&raw, &["\"deep\"", "array of arrays", "offset 40"]);
}

#[test]
fn nested_a_hundred_thousand_deep() {
    let raw = (0..100_000).fold(Raw::new(3, 0, 1).string("deep").u32(9), |raw, _| {
        raw.u32(9).u64(1)
    });
    check(&raw, &["\"deep\"", "array of arrays"]);
}

// Types and contents

#[test]
fn unknown_value_types() {
    for type_id in [13, 255, u32::MAX] {
        check(
            &Raw::new(3, 0, 1).string("k").u32(type_id).u64(0),
            &["\"k\"", &type_id.to_string(), "offset 33"],
        );
        check(
            &Raw::new(3, 0, 1).string("k").u32(9).u32(type_id).u64(0),
            &["\"k\"", &type_id.to_string(), "offset 37"],
        );
    }
}

#[test]
fn bools_other_than_0_and_1() {
    check(
        &Raw::new(3, 0, 1).string("flag").u32(7).bytes(&[2]),
        &["\"flag\"", "offset 40"],
    );
    check(
        &Raw::new(3, 0, 1)
            .string("flags")
            .u32(9)
            .u32(7)
            .u64(2)
            .bytes(&[1, 255]),
        &["\"flags\"", "255"],
    );
}

#[test]
fn text_that_is_not_utf_8() {
    check(
        &Raw::new(3, 0, 1)
            .u64(2)
            .bytes(&[0xff, 0xfe])
            .u32(0)
            .bytes(&[0]),
        &["key number 0", "offset 24", "UTF-8"],
    );
    check(
        &Raw::new(3, 0, 1).string("s").u32(8).u64(1).bytes(&[0xc3]),
        &["\"s\"", "UTF-8"],
    );
    check(
        &Raw::new(3, 1, 0).u64(1).bytes(&[0x80]).bytes(&[0; 40]),
        &["tensor number 0", "UTF-8"],
    );
}

#[test]
fn empty_names() {
    check(
        &Raw::new(3, 0, 1).string("").u32(4).u32(1),
        &["key number 0", "empty"],
    );
    check(
        &Raw::new(3, 1, 0).tensor("", &[1], F32, 0).data(32),
        &["tensor number 0", "empty"],
    );
}

#[test]
fn duplicate_keys() {
    check(
        &Raw::new(3, 0, 2).key_u32("a", 1).key_u32("a", 2),
        &["\"a\"", "twice", "offset 41"],
    );
}

#[test]
fn duplicate_tensors() {
    let raw = Raw::new(3, 2, 0)
        .tensor("w", &[8], F32, 0)
        .tensor("w", &[8], F32, 32)
        .data(64);
    check(&raw, &["\"w\"", "twice", "offset 57"]);
}

// Alignment

#[test]
fn alignments_of_zero_not_a_power_of_two_or_huge() {
    for alignment in [0, 3, 24, 33, 1 << 21, u32::MAX] {
        let raw = Raw::new(3, 0, 1).key_u32("general.alignment", alignment);
        check(&raw, &["general.alignment", &alignment.to_string()]);
    }
    let raw = Raw::new(3, 0, 1)
        .string("general.alignment")
        .u32(10)
        .u64(1 << 63);
    check(&raw, &["general.alignment"]);
    let raw = Raw::new(3, 0, 1)
        .string("general.alignment")
        .u32(5)
        .u32(u32::MAX); // -32 would be as good as -1
    check(&raw, &["general.alignment", "-1"]);
    let raw = Raw::new(3, 0, 1)
        .string("general.alignment")
        .u32(8)
        .string("32");
    check(&raw, &["general.alignment", "found string"]);
}

#[test]
fn tensor_offset_that_is_not_aligned() {
    check(
        &Raw::new(3, 1, 0).tensor("w", &[8], F32, 4).data(64),
        &["\"w\"", "offset 4", "alignment 32"],
    );
}

// Dimensions and sizes

#[test]
fn dimension_counts() {
    check(
        &Raw::new(3, 1, 0).tensor("w", &[], F32, 0).data(64),
        &["\"w\"", "0 dimensions", "offset 33"],
    );
    check(
        &Raw::new(3, 1, 0).tensor("w", &[1; 5], F32, 0).data(64),
        &["\"w\"", "5 dimensions"],
    );
    let raw = Raw::new(3, 1, 0).string("w").u32(u32::MAX).bytes(&[0; 64]);
    check(&raw, &["\"w\"", "4294967295 dimensions"]);
}

#[test]
fn zero_dimensions() {
    for dims in [&[0][..], &[4, 0], &[0, u64::MAX], &[4, 4, 4, 0]] {
        check(
            &Raw::new(3, 1, 0).tensor("w", dims, F32, 0).data(64),
            &["\"w\"", "zero", "offset 33"],
        );
    }
}

#[test]
fn dimension_products_that_wrap() {
    let half = 1u64 << 32;
    for dims in [
        &[half, half][..],
        &[u64::MAX, 2],
        &[1 << 62, 1, 1, 4],
        &[1 << 16; 4],
        &[u64::MAX; 4],
        &[1 << 62],
    ] {
        check(
            &Raw::new(3, 1, 0).tensor("w", dims, F32, 0).data(64),
            &["\"w\"", "overflows", "F32"],
        );
    }
    check(
        &Raw::new(3, 1, 0)
            .tensor("w", &[1 << 40, 1 << 23], Q4_K, 0)
            .data(64),
        &["\"w\"", "truncated?"],
    );
}

#[test]
fn rows_that_are_not_whole_blocks() {
    let raw = Raw::new(3, 1, 0).tensor("w", &[100, 256], Q4_K, 0).data(64);
    check(&raw, &["\"w\"", "100 elements", "Q4_K", "256"]);
}

#[test]
fn unknown_tensor_types() {
    for type_id in [4, 5, 31, 36, 43, u32::MAX] {
        check(
            &Raw::new(3, 1, 0).tensor("w", &[32], type_id, 0).data(64),
            &["\"w\"", &type_id.to_string(), "offset 45"],
        );
    }
}

#[test]
fn tensor_data_past_the_end() {
    let raw = Raw::new(3, 1, 0).tensor("w", &[8, 4], F32, 0).data(127);
    check(
        &raw,
        &[
            "\"w\"",
            "offset 96",
            "128 bytes",
            "224",
            "223",
            "truncated?",
        ],
    );
    let raw = Raw::new(3, 2, 0)
        .tensor("v", &[8], F32, 0)
        .tensor("w", &[8], F32, 1 << 40)
        .data(64);
    check(&raw, &["\"w\"", "truncated?"]);
}

#[test]
fn offset_plus_size_that_wraps() {
    for offset in [u64::MAX - 31, u64::MAX - 63, 1 << 63] {
        check(
            &Raw::new(3, 1, 0).tensor("w", &[16], F32, offset).data(64),
            &["\"w\"", "truncated?"],
        );
    }
}

#[test]
fn tensors_that_share_bytes() {
    let raw = Raw::new(3, 2, 0)
        .tensor("a", &[16], F32, 0)
        .tensor("b", &[16], F32, 32)
        .data(96);
    check(&raw, &["\"a\"", "\"b\"", "overlaps"]);
    let raw = (0..1000).fold(Raw::new(3, 1000, 0), |raw, i| {
        raw.tensor(&format!("t{i}"), &[256, 64], F32, 0)
    });
    check(&raw.data(65536), &["overlaps"]);
}

#[test]
fn tensor_names_over_the_limit() {
    let raw = Raw::new(3, 1, 0)
        .tensor(&"n".repeat(257), &[8], F32, 0)
        .data(32);
    check(&raw, &["name of tensor number 0", "limit of 256"]);
}

#[test]
fn every_truncation_of_a_file_is_refused() {
    let mut file = Vec::new();
    let writer = GgufWriter::new()
        .meta("general.architecture", "llama")
        .meta("tokens", vec!["a".to_owned(); 3]);
    writer
        .tensor("w", GgmlType::F32, [8], vec![1; 32])
        .write(&mut file)
        .unwrap();
    assert!(Header::parse(&file, file.len() as u64).is_ok());
    for len in 0..file.len() {
        let error = Header::parse(&file[..len], len as u64).expect_err("truncated");
        assert!(
            error.to_string().contains("truncated?"),
            "{len} bytes: {error}"
        );
    }
}

// What the system offers instead of a file

#[test]
fn paths_that_are_not_files() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        GgufFile::open(folder.path()),
        Err(GgufError::NotAFile { .. })
    ));
    assert!(matches!(
        GgufFile::open(&folder.path().join("none.gguf")),
        Err(GgufError::Io { .. })
    ));
    let empty = folder.path().join("empty.gguf");
    std::fs::write(&empty, b"").unwrap();
    assert!(matches!(
        GgufFile::open(&empty),
        Err(GgufError::Truncated { .. })
    ));
}

/// What needs a model to be judged (block_count of millions, head counts of 0) is still read as what it is.
#[test]
fn absurd_but_well_formed_values_are_passed_on() {
    let mut file = Vec::new();
    GgufWriter::new()
        .meta("llama.block_count", u32::MAX)
        .meta("llama.attention.head_count", 0u32)
        .write(&mut file)
        .unwrap();
    let header = Header::parse(&file, file.len() as u64).unwrap();
    assert_eq!(
        header.metadata().get("llama.block_count"),
        Some(&Value::U32(u32::MAX))
    );
    assert_eq!(
        header.metadata().u32("llama.attention.head_count").unwrap(),
        0
    );
}
