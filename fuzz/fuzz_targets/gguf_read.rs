//! Any bytes as a GGUF file: an error or a file that keeps its promises.
#![no_main]

use dynalm_gguf::{GgufError, GgufWriter, Header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(header) = Header::parse(bytes, bytes.len() as u64) else {
        return;
    };
    check_tensors(bytes, &header);
    check_prefixes(bytes, &header);
    check_rewritten(bytes, &header);
});

/// Tensors lie inside the file, do not overlap, and can be dequantized where their type is supported.
fn check_tensors(bytes: &[u8], header: &Header) {
    let mut end_of_last = header.data_offset();
    let mut tensors: Vec<_> = header.tensors().iter().collect();
    tensors.sort_by_key(|tensor| tensor.offset);
    for tensor in tensors {
        assert!(tensor.offset >= end_of_last);
        end_of_last = tensor.offset + tensor.n_bytes;
        let data = &bytes[tensor.offset as usize..end_of_last as usize];
        assert_eq!(
            tensor.ggml_type.row_bytes(tensor.columns()).unwrap() * tensor.rows(),
            tensor.n_bytes
        );
        if dynalm_quant::is_supported(tensor.ggml_type) {
            let mut values = vec![0.0; tensor.n_elements() as usize];
            dynalm_quant::dequantize(tensor.ggml_type, data, &mut values).unwrap();
        }
    }
}

/// A part of the file asks for more, or is enough to read the same.
fn check_prefixes(bytes: &[u8], header: &Header) {
    for len in [0, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        match Header::parse(&bytes[..len], bytes.len() as u64) {
            Ok(other) => assert_eq!(other.tensors(), header.tensors()),
            Err(GgufError::NeedMore { need, .. }) => {
                assert!(need > len as u64 && need <= bytes.len() as u64)
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// The same keys and tensors written again are read again.
fn check_rewritten(bytes: &[u8], header: &Header) {
    let writer = header
        .metadata()
        .iter()
        .fold(GgufWriter::new(), |w, (key, value)| {
            w.meta(key, value.clone())
        });
    let writer = header.tensors().iter().fold(writer, |w, t| {
        let data = &bytes[t.offset as usize..(t.offset + t.n_bytes) as usize];
        w.tensor(&t.name, t.ggml_type, t.dims.clone(), data)
    });
    let mut rewritten = Vec::new();
    writer.write(&mut rewritten).unwrap();
    let again = Header::parse(&rewritten, rewritten.len() as u64).unwrap();
    assert_eq!(again.tensors().len(), header.tensors().len());
    for (a, b) in again.metadata().iter().zip(header.metadata().iter()) {
        assert_eq!(format!("{a:?}"), format!("{b:?}"));
    }
}
