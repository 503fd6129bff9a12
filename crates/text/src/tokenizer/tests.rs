//! Small vocabularies, hostile metadata, long texts.

use std::sync::Arc;

use dynalm_gguf::{Metadata, Value};
use proptest::prelude::*;

use super::byte_level::CHAR_OF_BYTE;
use super::raw::key;
use super::*;
use crate::Detokenizer;

const LITERAL: EncodeOptions = EncodeOptions {
    add_special: false,
    parse_special: false,
};
const SPECIAL: EncodeOptions = EncodeOptions {
    add_special: false,
    parse_special: true,
};

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// All bytes, the strings that the merges make, and a few special tokens.
fn byte_level(pre: &str, merges: &[&str]) -> Metadata {
    let mut tokens: Vec<String> = CHAR_OF_BYTE.iter().map(|c| c.to_string()).collect();
    let mut types = vec![1; tokens.len()];
    for merge in merges {
        tokens.push(merge.replace(' ', ""));
        types.push(1);
    }
    for (text, code) in [
        ("<|begin|>", 3),
        ("<|im_end|>", 3),
        ("<tool>", 4),
        ("<tool>>", 4),
    ] {
        tokens.push(text.to_owned());
        types.push(code);
    }
    let mut metadata = Metadata::new();
    metadata.insert(key::MODEL, "gpt2");
    metadata.insert(key::PRE, pre);
    metadata.insert(key::TOKENS, Value::from(tokens));
    metadata.insert(key::TOKEN_TYPE, Value::from(types));
    metadata.insert(key::MERGES, Value::from(strings(merges)));
    metadata
}

/// Byte tokens, letters, a few words with scores.
fn sentencepiece() -> Metadata {
    let mut tokens = strings(&["<unk>", "<s>", "</s>"]);
    let mut types = vec![2, 3, 3];
    let mut scores = vec![0.0f32; 3];
    for byte in 0..=255u8 {
        tokens.push(format!("<0x{byte:02X}>"));
        types.push(6);
        scores.push(0.0);
    }
    for (text, score) in [
        ("▁", -9.0),
        ("a", -8.0),
        ("b", -8.0),
        ("ab", -2.0),
        ("aa", -3.0),
        ("▁a", -1.0),
        ("▁▁", -4.0),
    ] {
        tokens.push(text.to_owned());
        types.push(1);
        scores.push(score);
    }
    let mut metadata = Metadata::new();
    metadata.insert(key::MODEL, "llama");
    metadata.insert(key::TOKENS, Value::from(tokens));
    metadata.insert(key::TOKEN_TYPE, Value::from(types));
    metadata.insert(key::SCORES, Value::from(scores));
    metadata
}

fn wordpiece() -> Metadata {
    let mut metadata = Metadata::new();
    metadata.insert(key::MODEL, "bert");
    metadata.insert(
        key::TOKENS,
        Value::from(strings(&[
            "[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁a", "a", "aa", "▁,",
        ])),
    );
    metadata.insert(key::TOKEN_TYPE, Value::from(vec![3, 2, 3, 3, 1, 1, 1, 1]));
    metadata.insert(key::BOS, 2u32);
    metadata.insert(key::SEPARATOR, 3u32);
    metadata.insert(key::UNKNOWN, 1u32);
    metadata
}

fn tokenizer(metadata: &Metadata) -> Tokenizer {
    Tokenizer::from_gguf(metadata).unwrap()
}

#[test]
fn merges_go_by_rank_and_leftmost_first() {
    let tokenizer = tokenizer(&byte_level("gpt-2", &["b c", "a b", "a a", "aa a"]));
    let check = |text: &str, expected: &[&str]| {
        let ids = tokenizer.encode(text, LITERAL);
        let texts: Vec<&str> = ids
            .iter()
            .filter_map(|id| tokenizer.token_text(*id))
            .collect();
        assert_eq!(texts, expected, "{text:?}");
    };
    check("abc", &["a", "bc"]);
    check("abab", &["ab", "ab"]);
    check("aaa", &["aaa"]);
    check("aaaaa", &["aa", "aaa"]);
    check(" a", &["Ġ", "a"]);
    check("é", &["Ã", "©"]);
}

#[test]
fn special_tokens_are_found_on_request_and_the_longest_wins() {
    let tokenizer = tokenizer(&byte_level("gpt-2", &[]));
    let id = |text: &str| tokenizer.token_id(text).unwrap();
    let text = "<|begin|><tool>><tool>";
    let user_defined = [id("<tool>>"), id("<tool>")];
    assert_eq!(
        tokenizer.encode(text, SPECIAL),
        [&[id("<|begin|>")], &user_defined[..]].concat()
    );
    let literal = tokenizer.encode(text, LITERAL);
    assert_eq!(literal[literal.len() - 2..], user_defined);
    assert_eq!(literal.len(), "<|begin|>".len() + 2);
    assert!(literal.iter().all(|id| !tokenizer.is_special(*id)));
}

#[test]
fn sentencepiece_joins_by_score_and_spells_the_rest_in_bytes() {
    let tokenizer = tokenizer(&sentencepiece());
    let check = |text: &str, opts: EncodeOptions, expected: &[&str]| {
        let ids = tokenizer.encode(text, opts);
        let texts: Vec<&str> = ids
            .iter()
            .filter_map(|id| tokenizer.token_text(*id))
            .collect();
        assert_eq!(texts, expected, "{text:?}");
    };
    check("ab", LITERAL, &["▁a", "b"]);
    check("b ab", LITERAL, &["▁", "b", "▁a", "b"]);
    check("é", LITERAL, &["▁", "<0xC3>", "<0xA9>"]);
    check("", EncodeOptions::default(), &["<s>"]);
    check(
        "a</s>a",
        EncodeOptions::default(),
        &["<s>", "▁a", "</s>", "▁a"],
    );
    assert_eq!(
        tokenizer.decode_lossy(&tokenizer.encode("ab é", LITERAL)),
        "ab é"
    );
    assert_eq!(
        (tokenizer.bos(), tokenizer.eos(), tokenizer.unk()),
        (Some(1), Some(2), Some(0))
    );
}

#[test]
fn wordpiece_takes_the_longest_pieces() {
    let tokenizer = tokenizer(&wordpiece());
    assert_eq!(
        tokenizer.encode("AÁaa, b", EncodeOptions::default()),
        [2, 4, 6, 5, 7, 1, 3]
    );
    let shown = tokenizer.decode(&[4, 7], DecodeOptions::default());
    assert_eq!(shown, b" a,");
}

#[test]
fn end_tokens_are_known_by_id_and_by_text() {
    let mut metadata = byte_level("gpt-2", &[]);
    metadata.insert(key::EOS, 7u32);
    let tokenizer = tokenizer(&metadata);
    let im_end = tokenizer.token_id("<|im_end|>").unwrap();
    assert_eq!(tokenizer.end_tokens(), [7, im_end]);
    assert_eq!(tokenizer.eot(), Some(im_end));
    assert!(tokenizer.is_end_of_generation(7) && !tokenizer.is_end_of_generation(8));
}

#[test]
fn harmony_goes_on_after_the_end_of_a_message() {
    let mut metadata = byte_level("gpt-4o", &[]);
    let mut tokens = metadata.strings(key::TOKENS).unwrap().to_vec();
    tokens.extend(strings(&[
        "<|return|>",
        "<|call|>",
        "<|end|>",
        "<|channel|>",
    ]));
    metadata.insert(key::TOKEN_TYPE, Value::from(vec![3; tokens.len()]));
    metadata.insert(key::TOKENS, Value::from(tokens));
    let tokenizer = tokenizer(&metadata);
    let id = |text: &str| tokenizer.token_id(text).unwrap();
    assert!(tokenizer.is_end_of_generation(id("<|return|>")));
    assert!(!tokenizer.is_end_of_generation(id("<|end|>")));
    assert_eq!(tokenizer.piece(id("<|channel|>"), false), b"<|channel|>");
}

#[test]
fn streams_hold_back_partial_characters() {
    let tokenizer = Arc::new(tokenizer(&byte_level("gpt-2", &[])));
    let ids = tokenizer.encode("é€😀", LITERAL);
    let mut stream = Detokenizer::new(Arc::clone(&tokenizer));
    let pieces: Vec<String> = ids.iter().map(|id| stream.push(*id)).collect();
    assert_eq!(pieces, ["", "é", "", "", "€", "", "", "", "😀"]);
    assert_eq!(stream.finish(), "");
    assert_eq!(
        ids[..3]
            .iter()
            .map(|id| stream.push(*id))
            .collect::<String>(),
        "é"
    );
    assert_eq!(stream.push(ids[0]), "\u{fffd}", "the euro sign broke off");
    assert_eq!(stream.finish(), "\u{fffd}");
    assert_eq!(stream.push(u32::MAX), "");
}

/// Each of these took minutes or crashed an engine somewhere.
#[test]
fn a_million_characters() {
    let byte_level = tokenizer(&byte_level(
        "llama-bpe",
        &["a a", "aa aa", "Ġ Ġ", "1 1", "ĊĊ Ċ", "Ċ Ċ", "' s"],
    ));
    let jais = tokenizer(&self::byte_level("jais-2", &["Ġ Ġ"]));
    let marked = tokenizer(&self::byte_level("gemma4", &["a a", "▁ ▁"]));
    let others = [tokenizer(&sentencepiece()), tokenizer(&wordpiece())];
    for (tokenizer, is_exact) in [
        (&byte_level, true),
        (&jais, true),
        (&marked, false),
        (&others[0], false),
        (&others[1], false),
    ] {
        let units = [
            "a", " ", "1", "\n", "é", "'", "'s", "<", "<tool", " a", "a1", "\u{301}", "漢", "A",
            "Aé",
        ];
        for (index, unit) in units.into_iter().enumerate() {
            let n_bytes = if index < 4 { 1_000_000 } else { 100_000 };
            let text = unit.repeat(n_bytes / unit.len());
            let ids = tokenizer.encode(&text, SPECIAL);
            let decoded = tokenizer.decode(&ids, DecodeOptions::default());
            assert!(!is_exact || decoded == text.as_bytes(), "{unit:?}");
        }
    }
}

/// What loading a changed vocabulary says.
fn error_of(mut metadata: Metadata, changes: &[(&str, Value)]) -> String {
    for (key, value) in changes {
        metadata.insert(*key, value.clone());
    }
    Tokenizer::from_gguf(&metadata).unwrap_err().to_string()
}

#[test]
fn hostile_metadata_is_refused_by_key() {
    let bpe = || byte_level("gpt-2", &["a b"]);
    let n_tokens = bpe().strings(key::TOKENS).unwrap().len();
    let check = |message: String, parts: &[&str]| {
        for part in parts {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    };
    check(
        error_of(bpe(), &[(key::MODEL, Value::from("rwkv"))]),
        &[key::MODEL, "rwkv", "gpt2"],
    );
    check(
        error_of(bpe(), &[(key::PRE, Value::from("nonsense"))]),
        &[key::PRE, "nonsense", "llama-bpe"],
    );
    check(
        error_of(bpe(), &[(key::TOKENS, Value::from(Vec::<String>::new()))]),
        &[key::TOKENS, "0 entries"],
    );
    check(
        error_of(bpe(), &[(key::TOKEN_TYPE, Value::from(vec![1; 3]))]),
        &[key::TOKEN_TYPE, "3 entries"],
    );
    check(
        error_of(bpe(), &[(key::SCORES, Value::from(vec![0.0f32; 9]))]),
        &[key::SCORES, "9 entries"],
    );
    check(
        error_of(bpe(), &[(key::BOS, Value::from(n_tokens as u32))]),
        &[key::BOS],
    );
    check(
        error_of(bpe(), &[(key::EOS, Value::from(-3i32))]),
        &[key::EOS],
    );
    check(
        error_of(bpe(), &[(key::BOS, Value::from("x"))]),
        &[key::BOS],
    );
    for merge in ["", " ", "ab", "a ", "  ", " b"] {
        check(
            error_of(bpe(), &[(key::MERGES, Value::from(strings(&[merge])))]),
            &[key::MERGES, "[0]"],
        );
    }
    let long = "x".repeat(5000);
    check(
        error_of(
            bpe(),
            &[(key::MERGES, Value::from(strings(&["a b", &long])))],
        ),
        &[key::MERGES, "[1]"],
    );
    let mut scores = vec![0.0f32; n_tokens];
    scores[4] = f32::NAN;
    check(
        error_of(bpe(), &[(key::SCORES, Value::from(scores))]),
        &[key::SCORES, "[4]"],
    );
    let no_merges: Metadata = {
        let mut metadata = Metadata::new();
        for (key, value) in bpe().iter().filter(|(key, _)| *key != key::MERGES) {
            metadata.insert(key, value.clone());
        }
        metadata
    };
    check(error_of(no_merges, &[]), &[key::MERGES]);

    let mut tokens = sentencepiece().strings(key::TOKENS).unwrap().to_vec();
    tokens[3] = "<0x-1>".to_owned();
    check(
        error_of(sentencepiece(), &[(key::TOKENS, Value::from(tokens))]),
        &[key::TOKENS, "[3]", "<0x-1>"],
    );
    let few = [
        (key::TOKENS, Value::from(strings(&["a"]))),
        (key::TOKEN_TYPE, Value::from(vec![1])),
        (key::SCORES, Value::from(vec![0.0f32])),
        (key::ADD_BOS, Value::from(true)),
    ];
    check(error_of(sentencepiece(), &few), &[key::ADD_BOS, key::BOS]);
    check(
        error_of(wordpiece(), &[(key::SEPARATOR, Value::from(99u32))]),
        &[key::SEPARATOR, "99"],
    );
    check(error_of(Metadata::new(), &[]), &[key::MODEL]);
}

#[test]
fn odd_but_harmless_metadata_is_accepted() {
    let mut metadata = byte_level("gpt-2", &["a b", "a b", "q 漢"]);
    metadata.insert(key::PADDING, u32::MAX);
    assert_eq!(tokenizer(&metadata).pad(), None);
    // A single token, no ids in range.
    let mut metadata = Metadata::new();
    metadata.insert(key::MODEL, "llama");
    metadata.insert(key::TOKENS, Value::from(strings(&[""])));
    let tokenizer = tokenizer(&metadata);
    assert_eq!(
        (tokenizer.bos(), tokenizer.eos(), tokenizer.unk()),
        (None, None, Some(0))
    );
    assert_eq!(
        tokenizer.encode("a", EncodeOptions::default()),
        [0, 0, 0, 0]
    );
    assert_eq!(tokenizer.token_text(0), Some("[EMPTY_0]"));
    assert_eq!(tokenizer.token_text(1), None);
    assert!(
        tokenizer
            .decode(&[5, u32::MAX], DecodeOptions::default())
            .is_empty()
    );
}

fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z A-Z0-9'\n\t.<>|]{0,200}",
        "[ab ]{0,400}"
    ]
}

proptest! {
    #[test]
    fn byte_level_decoding_undoes_encoding(
        text in any_text(),
        pre in prop::sample::select(vec!["gpt-2", "llama-bpe", "default", "tekken", "deepseek-v3", "jais-2", "superbpe"]),
    ) {
        let tokenizer = tokenizer(&byte_level(pre, &["a b", "Ġ a", "a a", "Ġa b", "aa aa", "Ġ Ġ"]));
        let ids = tokenizer.encode(&text, LITERAL);
        let bytes = tokenizer.decode(&ids, DecodeOptions::default());
        prop_assert_eq!(&bytes, text.as_bytes());
        prop_assert!(ids.iter().all(|id| !tokenizer.is_special(*id)));
    }

    #[test]
    fn streamed_text_is_the_whole_text(ids in prop::collection::vec(0u32..270, 0..60)) {
        let tokenizer = Arc::new(tokenizer(&byte_level("gpt-2", &["a b"])));
        let mut stream = Detokenizer::new(Arc::clone(&tokenizer));
        let mut streamed: String = ids.iter().map(|id| stream.push(*id)).collect();
        streamed += &stream.finish();
        prop_assert_eq!(streamed, tokenizer.decode_lossy(&ids));
    }

    #[test]
    fn sentencepiece_keeps_all_text(text in any_text()) {
        let tokenizer = tokenizer(&sentencepiece());
        let ids = tokenizer.encode(&text, LITERAL);
        let expected = text.replace('▁', " ");
        prop_assert_eq!(tokenizer.decode_lossy(&ids), expected);
    }

    #[test]
    fn no_metadata_makes_loading_panic(
        model in prop::sample::select(vec!["gpt2", "llama", "bert", "gemma4", "whitespace"]),
        tokens in prop::collection::vec("[a▁Ġ<>0x ]{0,6}", 0..6),
        merges in prop::collection::vec("[aĠ▁ ]{0,5}", 0..4),
        codes in prop::collection::vec(-1i32..8, 0..6),
        id in 0u32..8,
        text in any_text(),
    ) {
        let mut metadata = Metadata::new();
        metadata.insert(key::MODEL, model);
        metadata.insert(key::TOKENS, Value::from(tokens));
        metadata.insert(key::MERGES, Value::from(merges));
        metadata.insert(key::TOKEN_TYPE, Value::from(codes));
        metadata.insert(key::BOS, id);
        metadata.insert(key::SEPARATOR, 0u32);
        if let Ok(tokenizer) = Tokenizer::from_gguf(&metadata) {
            let ids = tokenizer.encode(&text, EncodeOptions::default());
            prop_assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
            tokenizer.decode(&ids, DecodeOptions { special: true, strip_added: true });
        }
    }
}
