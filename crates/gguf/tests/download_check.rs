//! A header can be judged from the first bytes of a download.
#![allow(clippy::unwrap_used)] // also the helper functions are tests

use dynalm_gguf::{GgmlType, GgufError, GgufWriter, Header};

fn file() -> Vec<u8> {
    let mut file = Vec::new();
    let tokens: Vec<String> = (0..500).map(|i| format!("token{i}")).collect();
    GgufWriter::new()
        .meta("general.architecture", "llama")
        .meta("tokenizer.ggml.tokens", tokens)
        .meta("tokenizer.ggml.scores", vec![0.5f32; 500])
        .tensor(
            "token_embd.weight",
            GgmlType::Q8_0,
            [64, 500],
            vec![0; 34_000],
        )
        .tensor("output_norm.weight", GgmlType::F32, [64], vec![0; 256])
        .write(&mut file)
        .unwrap();
    file
}

/// Asking for what `NeedMore` says, again and again, ends at the header, well before the data.
#[test]
fn more_is_asked_for_until_the_header_is_whole() {
    let file = file();
    let mut have = 0;
    let header = loop {
        match Header::parse(&file[..have], file.len() as u64) {
            Ok(header) => break header,
            Err(GgufError::NeedMore {
                have: had, need, ..
            }) => {
                assert_eq!(had, have as u64);
                assert!(need > had && need <= file.len() as u64);
                have = usize::try_from(need).unwrap();
            }
            Err(other) => panic!("{other}"),
        }
    };
    assert!(have < 20_000, "{have} bytes were needed");
    assert_eq!(header.metadata().architecture().unwrap(), "llama");
    assert_eq!(header.tensors().len(), 2);
}

#[test]
fn lies_are_found_before_more_is_asked_for() {
    let mut file = file();
    file[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(matches!(
        Header::parse(&file[..64], file.len() as u64),
        Err(GgufError::OverLimit { .. })
    ));
}

/// The server's figure for the length is believed no more than the file.
#[test]
fn a_false_length_allocates_nothing() {
    let file = file();
    assert!(matches!(
        Header::parse(&file[..64], u64::MAX),
        Err(GgufError::NeedMore { .. })
    ));
    assert!(matches!(
        Header::parse(&file, file.len() as u64 - 1),
        Err(GgufError::TensorOutOfFile { .. })
    ));
    assert!(matches!(
        Header::parse(&file, 100),
        Err(GgufError::Truncated { .. })
    ));
}
