//! Which tokens end an answer. Files name one or two of them; the others are known by their text.

use super::vocab::{TokenKind, Vocab};

/// End of turn, for files that do not name the token; the first that the vocabulary has is taken.
const END_OF_TURN_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "<｜end▁of▁sentence｜>",
    "<end_of_utterance>",
];

const END_OF_MESSAGE_TEXTS: &[&str] = &["<|eom_id|>"];

/// Fill-in-the-middle: what a model writes once the file is complete.
const FIM_PADDING_TEXTS: &[&str] = &["<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"];
const FIM_REPOSITORY_TEXTS: &[&str] = &[
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
];
const FIM_SEPARATOR_TEXTS: &[&str] = &["<|file_sep|>"];

/// The other marks of fill-in-the-middle prompts: control tokens, though they end nothing.
const FIM_TEXTS: &[&[&str]] = &[
    &[
        "<|fim_prefix|>",
        "<fim-prefix>",
        "<fim_prefix>",
        "<｜fim▁begin｜>",
        "<PRE>",
        "▁<PRE>",
        "<|code_prefix|>",
        "<|prefix|>",
    ],
    &[
        "<|fim_suffix|>",
        "<fim-suffix>",
        "<fim_suffix>",
        "<｜fim▁hole｜>",
        "<SUF>",
        "▁<SUF>",
        "<|code_suffix|>",
        "<|suffix|>",
    ],
    &[
        "<|fim_middle|>",
        "<fim-middle>",
        "<fim_middle>",
        "<｜fim▁end｜>",
        "<MID>",
        "▁<MID>",
        "<|code_middle|>",
        "<|middle|>",
    ],
];

/// Every one of these that the vocabulary has ends an answer.
const END_TEXTS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
];

/// Marks of the harmony format, which a reader of the text must see.
const SHOWN_TEXTS: &[&str] = &["<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"];

/// Finds the end tokens, and corrects the kinds of tokens that are known by their text.
pub(crate) fn find(vocab: &mut Vocab) {
    let ids = vocab.ids;
    vocab.ids.eot = ids.eot.or_else(|| find_control(vocab, END_OF_TURN_TEXTS));
    vocab.ids.eom = ids
        .eom
        .or_else(|| find_control(vocab, END_OF_MESSAGE_TEXTS));
    vocab.ids.fim_padding = ids
        .fim_padding
        .or_else(|| find_control(vocab, FIM_PADDING_TEXTS));
    vocab.ids.fim_repository = ids
        .fim_repository
        .or_else(|| find_control(vocab, FIM_REPOSITORY_TEXTS));
    vocab.ids.fim_separator = ids
        .fim_separator
        .or_else(|| find_control(vocab, FIM_SEPARATOR_TEXTS));
    for texts in FIM_TEXTS {
        find_control(vocab, texts);
    }
    let mut ends: Vec<u32> = END_TEXTS
        .iter()
        .filter_map(|text| vocab.find(text))
        .collect();
    for id in &ends {
        vocab.set_kind(*id, TokenKind::Control);
    }
    let ids = vocab.ids;
    let named = [
        ids.eos,
        ids.eot,
        ids.eom,
        ids.fim_padding,
        ids.fim_repository,
        ids.fim_separator,
    ];
    ends.extend(named.into_iter().flatten());
    for id in SHOWN_TEXTS
        .iter()
        .filter_map(|text| vocab.find(text))
        .collect::<Vec<_>>()
    {
        vocab.set_kind(id, TokenKind::UserDefined);
    }
    drop_false_ends(vocab, &mut ends);
    ends.sort_unstable();
    ends.dedup();
    vocab.end_tokens = ends;
}

/// Some vocabularies have one of the texts in another meaning.
fn drop_false_ends(vocab: &mut Vocab, ends: &mut Vec<u32>) {
    let has = |text: &str| vocab.find(text).is_some_and(|id| ends.contains(&id));
    let calls = has("<|call|>") || has("<|calls|>");
    // Harmony and Solar Open: the end of a message, after which the answer goes on.
    let end_goes_on = calls && (has("<|return|>") || has("<|flush|>"));
    // Gemma 4 and PLaMo: an HTML tag.
    let s_is_text = has("<|tool_response>") || has("<|plamo:eos|>");
    for (applies, text, kind) in [
        (end_goes_on, "<|end|>", TokenKind::UserDefined),
        (s_is_text, "</s>", TokenKind::Normal),
    ] {
        if let Some(id) = vocab.find(text).filter(|id| applies && ends.contains(id)) {
            ends.retain(|end| *end != id);
            vocab.set_kind(id, kind);
        }
    }
}

/// The first of the texts that is a token, which is then a control token whatever its type in the file.
fn find_control(vocab: &mut Vocab, texts: &[&str]) -> Option<u32> {
    let id = texts.iter().find_map(|text| vocab.find(text))?;
    vocab.set_kind(id, TokenKind::Control);
    Some(id)
}
