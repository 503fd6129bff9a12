//! Which rule each name of `tokenizer.ggml.pre` stands for.

use super::char_sets::{
    ASIAN_SCRIPTS, DEEPSEEK_CJK, DEEPSEEK_LETTERS, DEEPSEEK_PUNCTUATION, HAN_AND_KANA,
};
use super::punct_words::Breaks;
use super::spaces::Spaces;
use super::stage::Stage;
use super::words::{LETTERS, LETTERS_AND_MARKS, LETTERS_AND_NUMBERS, LLAMA3, Tail, Word, Words};
use crate::tokenizer::char_class::Classes;

/// A rule and what goes with it by default.
#[derive(Debug)]
pub(crate) struct Family {
    /// The names in `tokenizer.ggml.pre` that mean this rule.
    pub(crate) names: &'static [&'static str],
    pub(super) stages: &'static [Stage],
    /// A word that is a token is taken whole, whatever the merges would make of it.
    pub(crate) ignore_merges: bool,
    /// Put the begin token before a text, unless the file says otherwise.
    pub(crate) add_bos: bool,
    /// Put the begin token before a text whatever the file says; files are known that say the wrong thing.
    pub(crate) always_bos: bool,
    /// A run of line breaks that is a token is taken whole.
    pub(crate) whole_line_breaks: bool,
    /// There is no begin token, unless the file names one.
    pub(crate) no_default_bos: bool,
    /// How words are spelled in the vocabulary.
    pub(crate) spelling: Spelling,
}

/// How a vocabulary spells words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// Each byte by the printable character that stands for it.
    Bytes,
    /// As they are; bytes that no token covers are `<0x00>` to `<0xFF>`.
    Text,
    /// The same with `▁` in place of the space.
    TextWithMarkedSpaces,
}

/// The family that a name belongs to.
pub(crate) fn find(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.names.contains(&name))
}

/// All names, for messages.
pub(crate) fn known_names() -> String {
    let mut names: Vec<&str> = FAMILIES
        .iter()
        .flat_map(|family| family.names)
        .copied()
        .collect();
    names.sort_unstable();
    names.join(", ")
}

const PLAIN: Family = Family {
    names: &[],
    stages: &[],
    ignore_merges: false,
    add_bos: false,
    always_bos: false,
    whole_line_breaks: false,
    no_default_bos: false,
    spelling: Spelling::Bytes,
};

const QWEN2: Words = Words {
    digits: 1,
    ..LLAMA3
};
const GPT_4O: Words = Words {
    contractions: false,
    word: Word::Cased {
        letters: LETTERS,
        contraction: true,
    },
    tail: Tail::BreaksAndSlashes,
    ..LLAMA3
};
const MARKED_WORDS: Words = Words {
    word: Word::RunWithContraction(LETTERS_AND_MARKS),
    ..GPT_4O
};
const DEEPSEEK3: &[Stage] = &[
    Stage::Digits(3),
    Stage::Set(HAN_AND_KANA),
    Stage::PunctWords(Breaks::Together),
];

static FAMILIES: &[Family] = &[
    Family {
        names: &["default"],
        stages: &[
            Stage::Signs { backtick: false },
            Stage::Gpt2,
            Stage::Digits(usize::MAX),
            Stage::AsciiDigitTriples,
        ],
        ..PLAIN
    },
    Family {
        names: &[
            "gpt-2",
            "phi-2",
            "jina-es",
            "jina-de",
            "gigachat",
            "jina-v2-es",
            "jina-v2-de",
            "a.x-4.0",
            "mellum",
            "modern-bert",
            "jina-v1-en",
            "jina-v2-code",
            "roberta-bpe",
            "mpt",
            "olmo",
            "jais",
            "trillion",
            "granite-docling",
            "exaone4",
        ],
        stages: &[Stage::Gpt2],
        ..PLAIN
    },
    Family {
        names: &[
            "llama3",
            "llama-v3",
            "llama-bpe",
            "falcon3",
            "falcon-h1",
            "pixtral",
            "midm-2.0",
            "lfm2",
            "jina-v5-nano",
        ],
        stages: &[Stage::Words(LLAMA3)],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    Family {
        names: &["dbrx", "smaug-bpe"],
        stages: &[Stage::Words(LLAMA3)],
        ..PLAIN
    },
    Family {
        names: &["chatglm-bpe"],
        stages: &[Stage::Words(LLAMA3)],
        no_default_bos: true,
        ..PLAIN
    },
    Family {
        names: &["glm4", "glm5"],
        stages: &[Stage::Words(LLAMA3)],
        ignore_merges: true,
        no_default_bos: true,
        ..PLAIN
    },
    Family {
        names: &["jais-2"],
        stages: &[Stage::Words(Words {
            spaces: Spaces::BreaksThenPowersOfTwo,
            ..LLAMA3
        })],
        ..PLAIN
    },
    Family {
        names: &["minicpm5"],
        stages: &[
            Stage::Digits(3),
            Stage::Words(Words {
                digits: usize::MAX,
                ..LLAMA3
            }),
        ],
        ignore_merges: true,
        ..PLAIN
    },
    Family {
        names: &[
            "qwen2",
            "deepseek-r1-qwen",
            "kormo",
            "f2llmv2",
            "megrez",
            "stablelm2",
            "hunyuan",
            "solar-open",
            "grok-2",
            // The next one has its own pattern for contractions and for line breaks, to the same effect.
            "bailingmoe",
            "bailingmoe2",
            "llada-moe",
        ],
        stages: &[Stage::Words(QWEN2)],
        ..PLAIN
    },
    Family {
        names: &["qwen35"],
        stages: &[Stage::Words(Words {
            word: Word::Run(LETTERS_AND_MARKS),
            not_punctuation: LETTERS_AND_NUMBERS.or(Classes::MARK),
            ..QWEN2
        })],
        ..PLAIN
    },
    Family {
        names: &["seed-coder"],
        stages: &[Stage::Words(Words {
            tail: Tail::None,
            ..QWEN2
        })],
        ..PLAIN
    },
    Family {
        names: &["ufakzeka"],
        stages: &[Stage::Words(Words {
            contractions: false,
            ..QWEN2
        })],
        ..PLAIN
    },
    Family {
        names: &["laguna"],
        stages: &[Stage::Lines, Stage::Words(QWEN2)],
        ..PLAIN
    },
    Family {
        names: &["exaone-moe"],
        stages: &[Stage::Words(Words {
            word: Word::Phrase,
            tail: Tail::OneBreakOrSlash,
            ..QWEN2
        })],
        ..PLAIN
    },
    Family {
        names: &["tekken"],
        stages: &[Stage::Words(Words {
            word: Word::Cased {
                letters: LETTERS,
                contraction: false,
            },
            digits: 1,
            ..GPT_4O
        })],
        ignore_merges: true,
        add_bos: true,
        ..PLAIN
    },
    Family {
        names: &["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
        stages: &[Stage::Words(GPT_4O)],
        ..PLAIN
    },
    Family {
        names: &["granite-embed-multi-97m"],
        stages: &[Stage::Words(Words {
            word: Word::Cased {
                letters: LETTERS_AND_MARKS,
                contraction: true,
            },
            ..GPT_4O
        })],
        ignore_merges: true,
        ..PLAIN
    },
    Family {
        names: &["tiny_aya", "cohere2moe"],
        stages: &[Stage::DigitsFromRight, Stage::Words(MARKED_WORDS)],
        ..PLAIN
    },
    Family {
        names: &["youtu"],
        stages: &[
            Stage::EastAsianScripts,
            Stage::Words(Words {
                digits: 1,
                ..MARKED_WORDS
            }),
        ],
        ignore_merges: true,
        ..PLAIN
    },
    Family {
        names: &["kimi-k2"],
        stages: &[Stage::Words(Words {
            contractions: false,
            word: Word::HanApart,
            ..LLAMA3
        })],
        ..PLAIN
    },
    Family {
        names: &["deepseek-llm"],
        stages: &[
            Stage::SingleBreaks,
            Stage::SpacedSet(DEEPSEEK_LETTERS),
            Stage::SpacedSet(DEEPSEEK_PUNCTUATION),
            Stage::TrailingSpaces,
            Stage::Set(DEEPSEEK_CJK),
            Stage::Digits(usize::MAX),
        ],
        ..PLAIN
    },
    Family {
        names: &["deepseek-coder"],
        stages: &[
            Stage::SingleBreaks,
            Stage::SpacedClasses(LETTERS),
            Stage::SpacedClasses(Classes::PUNCTUATION),
            Stage::Set(DEEPSEEK_CJK),
            Stage::Digits(1),
        ],
        ..PLAIN
    },
    Family {
        names: &["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
        stages: DEEPSEEK3,
        ..PLAIN
    },
    Family {
        names: &["spark2_5"],
        stages: &[
            Stage::Digits(3),
            Stage::Set(HAN_AND_KANA),
            Stage::PunctWords(Breaks::Single),
            Stage::Digits(1),
        ],
        ..PLAIN
    },
    Family {
        names: &["afmoe"],
        stages: &[
            Stage::DigitsFromRight,
            Stage::Set(ASIAN_SCRIPTS),
            Stage::PunctWords(Breaks::Together),
        ],
        ..PLAIN
    },
    Family {
        names: &["falcon"],
        stages: &[
            Stage::Signs { backtick: true },
            Stage::Gpt2,
            Stage::AsciiDigitTriples,
        ],
        ..PLAIN
    },
    Family {
        names: &[
            "starcoder",
            "refact",
            "command-r",
            "smollm",
            "codeshell",
            "exaone",
            "minerva-7b",
            "mellum2",
        ],
        stages: &[Stage::Digits(1), Stage::Gpt2],
        ..PLAIN
    },
    Family {
        names: &["poro-chat", "bloom", "gpt3-finnish"],
        stages: &[Stage::Unpunctuated],
        ..PLAIN
    },
    Family {
        names: &["viking"],
        stages: &[Stage::Unpunctuated, Stage::Digits(1)],
        ..PLAIN
    },
    Family {
        names: &["chameleon"],
        stages: &[
            Stage::Sentinels,
            Stage::ImageTokens,
            Stage::Indents,
            Stage::Digits(1),
            Stage::SingleSigns,
            Stage::Gpt2,
        ],
        add_bos: true,
        ..PLAIN
    },
    Family {
        names: &["superbpe"],
        stages: &[Stage::Digits(usize::MAX), Stage::AsciiDigitsFromRight],
        ..PLAIN
    },
    Family {
        names: &["gemma4", "granite-embed-multi-311m"],
        stages: &[Stage::Lines],
        add_bos: true,
        always_bos: true,
        whole_line_breaks: true,
        spelling: Spelling::TextWithMarkedSpaces,
        ..PLAIN
    },
    Family {
        names: &["sarvam-moe"],
        stages: &[Stage::Lines],
        spelling: Spelling::TextWithMarkedSpaces,
        ..PLAIN
    },
    Family {
        names: &["whitespace"],
        stages: &[Stage::NonSpaces],
        spelling: Spelling::Text,
        ..PLAIN
    },
];
