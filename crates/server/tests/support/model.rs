//! A tokenizer of single bytes and a model that says what it is told.

use std::sync::Arc;

use dynalm_engine::fake_model::FakeModel;
use dynalm_gguf::{Metadata, Value};
use dynalm_text::{ChatTemplate, Tokenizer};

pub const UNKNOWN: u32 = 0;
pub const BEGIN: u32 = 1;
pub const END: u32 = 2;
pub const MESSAGE_BEGIN: u32 = 3;
pub const MESSAGE_END: u32 = 4;
/// Token of a blank, which a sentencepiece vocabulary writes as U+2581.
pub const BLANK: u32 = 5;
/// Token of byte 0; the others follow.
pub const FIRST_BYTE: u32 = 6;
pub const VOCAB_SIZE: usize = FIRST_BYTE as usize + 256;

/// In the manner of ChatML, with a role that it does not like.
pub const TEMPLATE: &str = "\
{%- if messages[0].content == 'forbidden' %}{{ raise_exception('not that') }}{% endif -%}
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if thinking is defined and thinking %}<think>
{% endif %}{% endif -%}";

pub fn template(source: &str) -> Arc<ChatTemplate> {
    Arc::new(ChatTemplate::new(source, "<s>", "</s>").unwrap())
}

/// Every byte is a token, and a blank is one.
pub fn tokenizer() -> Tokenizer {
    let mut tokens: Vec<String> = [
        "<unk>",
        "<s>",
        "</s>",
        "<|im_start|>",
        "<|im_end|>",
        "\u{2581}",
    ]
    .map(String::from)
    .to_vec();
    tokens.extend((0..=255).map(|byte| format!("<0x{byte:02X}>")));
    // Types: 1 normal, 2 unknown, 3 control, 6 byte.
    let mut types = vec![2, 3, 3, 3, 3, 1];
    types.resize(VOCAB_SIZE, 6);
    let mut metadata = Metadata::default();
    let mut set = |key: &str, value: Value| {
        metadata.insert(format!("tokenizer.ggml.{key}"), value);
    };
    set("model", "llama".into());
    set("tokens", tokens.into());
    set("scores", vec![0.0_f32; VOCAB_SIZE].into());
    set("token_type", types.into());
    set("bos_token_id", BEGIN.into());
    set("eos_token_id", END.into());
    set("unknown_token_id", UNKNOWN.into());
    set("add_bos_token", true.into());
    set("add_space_prefix", false.into());
    Tokenizer::from_gguf(&metadata).unwrap()
}

/// The token of a byte of text.
pub fn byte_token(byte: u8) -> u32 {
    if byte == b' ' {
        BLANK
    } else {
        FIRST_BYTE + u32::from(byte)
    }
}

/// After the last line break of a prompt it says `answer`, then its end. (The answer has no line break of its own.)
pub fn answering(answer: &'static str) -> FakeModel {
    answering_bytes(answer.as_bytes())
}

/// As [`answering`], for answers that are not text.
pub fn answering_bytes(answer: &'static [u8]) -> FakeModel {
    scripted(move |said| answer.get(said).copied().map(byte_token))
}

/// Never ends by itself.
pub fn endless() -> FakeModel {
    scripted(|said| Some(byte_token(b'a' + (said % 26) as u8)))
}

/// `next` gives the token for a number of tokens said; `None` is the end.
fn scripted(next: impl Fn(usize) -> Option<u32> + Send + 'static) -> FakeModel {
    let line_break = byte_token(b'\n');
    FakeModel::new(VOCAB_SIZE, 4096).script(move |tokens| {
        let begin = tokens
            .iter()
            .rposition(|&token| token == line_break)
            .map_or(0, |at| at + 1);
        next(tokens.len() - begin).unwrap_or(END)
    })
}
