//! What the writer wrote the reader reads; what was damaged it refuses or reads, and never panics.
#![allow(clippy::unwrap_used)] // also the helper functions are tests

use dynalm_gguf::{Array, GgmlType, GgufError, GgufWriter, Header, Value};
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        any::<u16>().prop_map(Value::from),
        any::<i16>().prop_map(Value::from),
        any::<u32>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

fn list<T: std::fmt::Debug + Clone>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(of, 0..6)
}

fn array() -> impl Strategy<Value = Value> {
    prop_oneof![
        list(any::<u8>()).prop_map(Value::from),
        list(any::<i8>()).prop_map(Value::from),
        list(any::<u16>()).prop_map(Value::from),
        list(any::<i16>()).prop_map(Value::from),
        list(any::<u32>()).prop_map(Value::from),
        list(any::<i32>()).prop_map(Value::from),
        list(any::<u64>()).prop_map(Value::from),
        list(any::<i64>()).prop_map(Value::from),
        list(any::<f32>()).prop_map(Value::from),
        list(any::<f64>()).prop_map(Value::from),
        list(any::<bool>()).prop_map(Value::from),
        list(any::<String>()).prop_map(Value::from),
    ]
}

/// A tensor to write: type, dimensions and bytes of the right number.
fn tensor() -> impl Strategy<Value = (GgmlType, Vec<u64>, Vec<u8>)> {
    let types = prop::sample::select(GgmlType::all().collect::<Vec<_>>());
    (
        types,
        1u64..3,
        prop::collection::vec(1u64..4, 0..4),
        any::<u8>(),
    )
        .prop_map(|(t, blocks, rest, fill)| {
            let n_bytes = rest.iter().product::<u64>() * blocks * t.block_bytes();
            let dims = std::iter::once(blocks * t.block_len())
                .chain(rest)
                .collect();
            (t, dims, vec![fill; usize::try_from(n_bytes).unwrap()])
        })
}

type Key = (String, Value);
type Tensor = (String, (GgmlType, Vec<u64>, Vec<u8>));

/// Keys, tensors, and the file that holds them.
fn file() -> impl Strategy<Value = (Vec<Key>, Vec<Tensor>, Vec<u8>)> {
    let keys = prop::collection::btree_map("[a-z._]{1,20}", prop_oneof![scalar(), array()], 0..8);
    let tensors = prop::collection::btree_map("[a-z0-9.]{1,20}", tensor(), 0..5);
    (keys, tensors, prop::option::of(0u32..8)).prop_map(|(keys, tensors, alignment)| {
        let mut keys: Vec<Key> = keys.into_iter().collect();
        keys.extend(alignment.map(|a| ("general.alignment".to_owned(), Value::U32(1 << a))));
        let tensors: Vec<Tensor> = tensors.into_iter().collect();
        let writer = keys.iter().fold(GgufWriter::new(), |w, (key, value)| {
            w.meta(key, value.clone())
        });
        let add = |w: GgufWriter, (name, (t, dims, bytes)): &Tensor| {
            w.tensor(name, *t, dims.clone(), bytes.clone())
        };
        let mut file = Vec::new();
        tensors.iter().fold(writer, add).write(&mut file).unwrap();
        (keys, tensors, file)
    })
}

/// Equal, with NaN equal to itself.
fn same(a: &Value, b: &Value) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #[test]
    fn what_is_written_is_read((keys, tensors, file) in file()) {
        let header = Header::parse(&file, file.len() as u64).unwrap();
        prop_assert_eq!(header.version(), 3);
        prop_assert_eq!(header.metadata().len(), keys.len());
        for ((key, value), (found_key, found)) in keys.iter().zip(header.metadata().iter()) {
            prop_assert_eq!(key, found_key);
            prop_assert!(same(value, found), "{:?} {:?}", value, found);
        }
        prop_assert_eq!(header.tensors().len(), tensors.len());
        for ((name, (t, dims, bytes)), found) in tensors.iter().zip(header.tensors()) {
            prop_assert_eq!((name, *t, dims), (&found.name, found.ggml_type, &found.dims));
            let begin = usize::try_from(found.offset).unwrap();
            prop_assert_eq!(bytes, &file[begin..][..usize::try_from(found.n_bytes).unwrap()]);
            prop_assert_eq!(found.offset % header.alignment(), header.data_offset() % header.alignment());
        }
    }

    #[test]
    fn damage_is_refused_or_read_but_never_a_panic(
        (_, _, mut file) in file(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        for (at, byte) in changes {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        if let Ok(header) = Header::parse(&file, file.len() as u64) {
            for tensor in header.tensors() {
                prop_assert!(tensor.offset + tensor.n_bytes <= file.len() as u64);
            }
        }
    }

    /// Eight bytes of ones somewhere turn a length or an offset into the largest there is.
    #[test]
    fn huge_numbers_anywhere((_, _, mut file) in file(), at in any::<prop::sample::Index>(), top in any::<bool>()) {
        let at = at.index(file.len() - 8);
        file[at..at + 8].copy_from_slice(&(if top { u64::MAX } else { 1 << 62 }).to_le_bytes());
        let _ = Header::parse(&file, file.len() as u64);
    }

    #[test]
    fn a_prefix_needs_more_or_is_enough((_, _, file) in file(), len in any::<prop::sample::Index>()) {
        let prefix = &file[..len.index(file.len())];
        match Header::parse(prefix, file.len() as u64) {
            Ok(header) => prop_assert!(header.data_offset() < prefix.len() as u64 + header.alignment()),
            Err(GgufError::NeedMore { need, .. }) => {
                prop_assert!(need > prefix.len() as u64 && need <= file.len() as u64);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn the_writer_refuses_what_no_reader_would_take() {
    let cases = [
        GgufWriter::new().meta("general.alignment", 24u32),
        GgufWriter::new().meta("general.alignment", 0u32),
        GgufWriter::new().tensor("w", GgmlType::F32, [8], vec![0; 31]),
        GgufWriter::new().tensor("w", GgmlType::Q4_K, [100], vec![0; 144]),
        GgufWriter::new().tensor("w", GgmlType::F32, [0], vec![]),
        GgufWriter::new().tensor("", GgmlType::F32, [1], vec![0; 4]),
        GgufWriter::new().tensor("n".repeat(257), GgmlType::F32, [1], vec![0; 4]),
        GgufWriter::new().meta("", 1u8),
        GgufWriter::new().meta("k".repeat(65_536), 1u8),
        GgufWriter::new().tensor("w", GgmlType::F32, [1; 5], vec![0; 4]),
        GgufWriter::new().tensor("w", GgmlType::F32, Vec::new(), vec![0; 4]),
        GgufWriter::new()
            .tensor("w", GgmlType::F32, [1], vec![0; 4])
            .tensor("w", GgmlType::F32, [1], vec![0; 4]),
    ];
    for writer in cases {
        let error = writer.write(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{writer:?}");
    }
}

#[test]
fn arrays_give_their_elements() {
    let array = Array::I16(vec![1, -2]);
    assert_eq!(array.get(1), Some(Value::I16(-2)));
    assert_eq!(array.get(2), None);
    assert_eq!(array.to_f64s(), Some(vec![1.0, -2.0]));
}
