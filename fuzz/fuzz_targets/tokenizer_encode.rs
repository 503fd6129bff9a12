//! Any bytes as a vocabulary and a text: the vocabulary is refused, or the text is encoded and decoded.
#![no_main]

use dynalm_gguf::{Metadata, Value};
use dynalm_text::{DecodeOptions, EncodeOptions, Tokenizer};
use libfuzzer_sys::fuzz_target;

const MODELS: [&str; 5] = ["gpt2", "llama", "bert", "gemma4", "whitespace"];
const PRES: [&str; 16] = [
    "default", "gpt-2", "llama-bpe", "qwen2", "qwen35", "jais-2", "exaone-moe", "gpt-4o", "granite-embed-multi-97m",
    "youtu", "kimi-k2", "deepseek-llm", "deepseek-v3", "afmoe", "chameleon", "superbpe",
];

fuzz_target!(|bytes: &[u8]| {
    // Three bytes of choices, then lines: tokens, an empty line, merges, an empty line, the text.
    let [model, pre, ids, rest @ ..] = bytes else { return };
    let input = String::from_utf8_lossy(rest);
    let mut parts = input.splitn(3, "\n\n");
    let tokens: Vec<String> = parts.next().unwrap_or_default().split('\n').map(str::to_owned).collect();
    let merges: Vec<String> = parts.next().unwrap_or_default().split('\n').map(str::to_owned).collect();
    let text = parts.next().unwrap_or_default();
    // Types and scores are made from the tokens, so that they need no input of their own.
    let first = |token: &String| i32::from(token.bytes().next().unwrap_or_default());
    let types: Vec<i32> = tokens.iter().map(|token| if first(token) == 60 { 1 + i32::from(*ids) % 6 } else { 1 }).collect();
    let scores: Vec<f32> = tokens.iter().map(|token| (first(token) % 7) as f32).collect();

    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", MODELS[usize::from(*model) % MODELS.len()]);
    metadata.insert("tokenizer.ggml.pre", PRES[usize::from(*pre) % PRES.len()]);
    metadata.insert("tokenizer.ggml.tokens", Value::from(tokens));
    metadata.insert("tokenizer.ggml.merges", Value::from(merges));
    metadata.insert("tokenizer.ggml.token_type", Value::from(types));
    metadata.insert("tokenizer.ggml.scores", Value::from(scores));
    metadata.insert("tokenizer.ggml.bos_token_id", u32::from(ids >> 4));
    metadata.insert("tokenizer.ggml.seperator_token_id", u32::from(ids & 15));
    let Ok(tokenizer) = Tokenizer::from_gguf(&metadata) else { return };
    for special in [false, true] {
        let found = tokenizer.encode(text, EncodeOptions { add_special: special, parse_special: special });
        assert!(found.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
        tokenizer.decode(&found, DecodeOptions { special, strip_added: special });
    }
});
