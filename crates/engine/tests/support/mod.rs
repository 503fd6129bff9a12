//! What the tests of the engine share: a small vocabulary, a fake model over it, and ways to read answers.

#![allow(dead_code, reason = "each test file uses a part")]

use std::sync::Arc;

use dynalm_engine::fake_model::FakeModel;
use dynalm_engine::{
    Engine, EngineConfig, Event, Finish, Generation, Request, Sampling, TokenEvent,
};
use dynalm_gguf::{Array, Metadata, Value};
use dynalm_text::Tokenizer;

/// The control token that ends an answer.
pub(crate) const END: u32 = 256;
/// Another control token.
pub(crate) const MARK: u32 = 257;
/// Tokens of the vocabulary: each byte under its own number, two control tokens, two longer tokens.
pub(crate) const VOCAB_SIZE: usize = 260;

/// Byte-level BPE without merges.
pub(crate) fn tokenizer() -> Arc<Tokenizer> {
    let mut tokens: Vec<String> = (0..=255).map(|byte| spelling(byte).to_string()).collect();
    tokens.extend(["<|end|>".into(), "<|mark|>".into()]);
    tokens.extend(["ab", "STOP"].map(String::from));
    let types: Vec<i32> = (0..VOCAB_SIZE as u32)
        .map(|id| if [END, MARK].contains(&id) { 3 } else { 1 })
        .collect();
    let mut metadata = Metadata::new();
    metadata.insert("tokenizer.ggml.model", Value::String("gpt2".into()));
    metadata.insert("tokenizer.ggml.pre", Value::String("gpt-2".into()));
    metadata.insert("tokenizer.ggml.tokens", Value::Array(Array::String(tokens)));
    metadata.insert("tokenizer.ggml.token_type", Value::Array(Array::I32(types)));
    metadata.insert(
        "tokenizer.ggml.merges",
        Value::Array(Array::String(Vec::new())),
    );
    metadata.insert("tokenizer.ggml.eos_token_id", Value::U32(END));
    Arc::new(Tokenizer::from_gguf(&metadata).expect("a vocabulary"))
}

/// The character that stands for a byte in byte-level vocabularies.
fn spelling(byte: u8) -> char {
    let is_itself = |byte: u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    if is_itself(byte) {
        return char::from(byte);
    }
    let n_before = (0..byte).filter(|&other| !is_itself(other)).count() as u32;
    char::from_u32(256 + n_before).expect("a character")
}

/// An engine over a fake model.
pub(crate) fn engine(model: FakeModel, config: EngineConfig) -> Engine {
    Engine::start_with(Box::new(model), tokenizer(), FakeModel::info(4096), config)
        .expect("an engine")
}

/// A fake model that never ends an answer and keeps to printable characters.
pub(crate) fn talker(n_blocks: usize) -> FakeModel {
    let never: Vec<u32> = (0..VOCAB_SIZE as u32)
        .filter(|id| !(32..127).contains(id))
        .collect();
    FakeModel::new(VOCAB_SIZE, n_blocks).never(&never)
}

/// A fake model that says this text after whatever prompt, then the end token.
pub(crate) fn reciter(n_prompt: usize, tokens: Vec<u32>) -> FakeModel {
    FakeModel::new(VOCAB_SIZE, 64)
        .script(move |so_far| tokens.get(so_far.len() - n_prompt).copied().unwrap_or(END))
}

/// A greedy request.
pub(crate) fn greedy(prompt: &[u32], max_tokens: usize) -> Request {
    Request {
        sampling: Sampling::greedy(),
        max_tokens: Some(max_tokens),
        ..Request::new(prompt.to_vec())
    }
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) tokens: Vec<TokenEvent>,
    pub(crate) text: String,
    pub(crate) finish: Finish,
}

impl Answer {
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.tokens.iter().map(|event| event.token).collect()
    }
}

/// Reads a generation to its end.
pub(crate) fn read(mut generation: Generation) -> Answer {
    let mut tokens = Vec::new();
    let mut text = String::new();
    loop {
        match generation
            .next_blocking()
            .expect("an end before the stream's end")
        {
            Event::Token(event) => {
                text.push_str(&event.text);
                tokens.push(event);
            }
            Event::Finished(finish) => {
                text.push_str(&finish.text);
                assert_eq!(
                    generation.next_blocking(),
                    None,
                    "nothing comes after the end"
                );
                return Answer {
                    tokens,
                    text,
                    finish,
                };
            }
        }
    }
}

/// One request alone.
pub(crate) fn ask(engine: &Engine, request: Request) -> Answer {
    read(engine.submit(request).expect("accepted"))
}
