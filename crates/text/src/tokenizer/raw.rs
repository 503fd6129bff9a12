//! The tokenizer keys of a file, read with their types and lengths checked but not yet understood.

use dynalm_gguf::Metadata;

use super::error::TokenizerError;

/// Metadata keys.
pub(crate) mod key {
    pub(crate) const MODEL: &str = "tokenizer.ggml.model";
    pub(crate) const PRE: &str = "tokenizer.ggml.pre";
    pub(crate) const TOKENS: &str = "tokenizer.ggml.tokens";
    pub(crate) const SCORES: &str = "tokenizer.ggml.scores";
    pub(crate) const TOKEN_TYPE: &str = "tokenizer.ggml.token_type";
    pub(crate) const MERGES: &str = "tokenizer.ggml.merges";
    pub(crate) const ADD_BOS: &str = "tokenizer.ggml.add_bos_token";
    pub(crate) const ADD_EOS: &str = "tokenizer.ggml.add_eos_token";
    pub(crate) const ADD_SPACE_PREFIX: &str = "tokenizer.ggml.add_space_prefix";
    pub(crate) const LOWERCASE: &str = "tokenizer.ggml.normalizer.lowercase";
    pub(crate) const STRIP_ACCENTS: &str = "tokenizer.ggml.normalizer.strip_accents";
    pub(crate) const BOS: &str = "tokenizer.ggml.bos_token_id";
    pub(crate) const EOS: &str = "tokenizer.ggml.eos_token_id";
    pub(crate) const EOT: &str = "tokenizer.ggml.eot_token_id";
    pub(crate) const EOM: &str = "tokenizer.ggml.eom_token_id";
    pub(crate) const UNKNOWN: &str = "tokenizer.ggml.unknown_token_id";
    /// Misspelled so in the format.
    pub(crate) const SEPARATOR: &str = "tokenizer.ggml.seperator_token_id";
    pub(crate) const PADDING: &str = "tokenizer.ggml.padding_token_id";
    pub(crate) const MASK: &str = "tokenizer.ggml.mask_token_id";
    pub(crate) const FIM_PADDING: &str = "tokenizer.ggml.fim_pad_token_id";
    pub(crate) const FIM_REPOSITORY: &str = "tokenizer.ggml.fim_rep_token_id";
    pub(crate) const FIM_SEPARATOR: &str = "tokenizer.ggml.fim_sep_token_id";
    pub(crate) const NAME: &str = "general.name";
    pub(crate) const ARCHITECTURE: &str = "general.architecture";
}

/// More tokens than any vocabulary has; ids and symbols made from merges stay far below `u32::MAX`.
const MAX_TOKENS: usize = 1 << 24;
/// Longer than any real token; bounds the work that one character can cause in a look-up.
const MAX_TOKEN_BYTES: usize = 4096;

/// The ids that a file gives to tokens with a meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SpecialIds {
    pub(crate) bos: Option<u32>,
    pub(crate) eos: Option<u32>,
    pub(crate) eot: Option<u32>,
    pub(crate) eom: Option<u32>,
    pub(crate) unknown: Option<u32>,
    pub(crate) separator: Option<u32>,
    pub(crate) padding: Option<u32>,
    pub(crate) mask: Option<u32>,
    pub(crate) fim_padding: Option<u32>,
    pub(crate) fim_repository: Option<u32>,
    pub(crate) fim_separator: Option<u32>,
}

/// What a file says about its tokenizer. `None` where it says nothing.
#[derive(Debug, Default)]
pub(crate) struct RawTokenizer<'a> {
    pub(crate) model: &'a str,
    pub(crate) pre: Option<&'a str>,
    /// At least one.
    pub(crate) tokens: &'a [String],
    /// One for each token.
    pub(crate) scores: Option<Vec<f32>>,
    /// One for each token.
    pub(crate) types: Option<Vec<i32>>,
    pub(crate) merges: Option<&'a [String]>,
    /// All below the number of tokens.
    pub(crate) ids: SpecialIds,
    pub(crate) add_bos: Option<bool>,
    pub(crate) add_eos: Option<bool>,
    pub(crate) add_space_prefix: Option<bool>,
    pub(crate) lowercase: Option<bool>,
    pub(crate) strip_accents: Option<bool>,
    /// `general.name`, small letters.
    pub(crate) name: String,
    pub(crate) architecture: &'a str,
}

impl<'a> RawTokenizer<'a> {
    /// Reads the keys.
    pub(crate) fn from_gguf(metadata: &'a Metadata) -> Result<RawTokenizer<'a>, TokenizerError> {
        let model = metadata.str(key::MODEL)?;
        let tokens = metadata.strings(key::TOKENS)?;
        let raw = RawTokenizer {
            model,
            pre: metadata.opt_str(key::PRE)?.filter(|pre| !pre.is_empty()),
            tokens,
            scores: metadata.opt_f32s(key::SCORES)?,
            types: metadata.opt_i32s(key::TOKEN_TYPE)?,
            merges: metadata.opt_strings(key::MERGES)?,
            ids: read_ids(metadata, tokens.len())?,
            add_bos: metadata.opt_bool(key::ADD_BOS)?,
            add_eos: metadata.opt_bool(key::ADD_EOS)?,
            add_space_prefix: metadata.opt_bool(key::ADD_SPACE_PREFIX)?,
            lowercase: metadata.opt_bool(key::LOWERCASE)?,
            strip_accents: metadata.opt_bool(key::STRIP_ACCENTS)?,
            name: metadata
                .opt_str(key::NAME)?
                .unwrap_or_default()
                .to_lowercase(),
            architecture: metadata.opt_str(key::ARCHITECTURE)?.unwrap_or_default(),
        };
        raw.check()?;
        Ok(raw)
    }

    /// Refuses what no real file has.
    pub(crate) fn check(&self) -> Result<(), TokenizerError> {
        let n_tokens = self.tokens.len();
        if n_tokens == 0 || n_tokens > MAX_TOKENS {
            return Err(TokenizerError::VocabularySize {
                key: key::TOKENS,
                found: n_tokens,
                limit: MAX_TOKENS,
            });
        }
        let lengths = [
            (key::SCORES, self.scores.as_ref().map(Vec::len)),
            (key::TOKEN_TYPE, self.types.as_ref().map(Vec::len)),
        ];
        for (key, length) in lengths {
            if let Some(found) = length.filter(|length| *length != n_tokens) {
                return Err(TokenizerError::Length {
                    key,
                    found,
                    expected: n_tokens,
                });
            }
        }
        if let Some(found) = self
            .merges
            .map(<[String]>::len)
            .filter(|n_merges| *n_merges > MAX_TOKENS)
        {
            return Err(TokenizerError::VocabularySize {
                key: key::MERGES,
                found,
                limit: MAX_TOKENS,
            });
        }
        for (key, texts) in [
            (key::TOKENS, self.tokens),
            (key::MERGES, self.merges.unwrap_or_default()),
        ] {
            if let Some(index) = texts.iter().position(|text| text.len() > MAX_TOKEN_BYTES) {
                let found = texts.get(index).map_or(0, String::len);
                return Err(TokenizerError::TokenTooLong {
                    key,
                    index,
                    found,
                    limit: MAX_TOKEN_BYTES,
                });
            }
        }
        let scores = self.scores.as_deref().unwrap_or_default();
        match scores.iter().position(|score| score.is_nan()) {
            Some(index) => Err(TokenizerError::Score {
                key: key::SCORES,
                index,
            }),
            None => Ok(()),
        }
    }
}

fn read_ids(metadata: &Metadata, vocab_size: usize) -> Result<SpecialIds, TokenizerError> {
    let id = |key: &'static str| match metadata.opt_u64(key)? {
        // Some converters write "no such token" as -1 in an unsigned field.
        None | Some(0xffff_ffff) => Ok(None),
        Some(found) => match u32::try_from(found) {
            Ok(id) if (id as usize) < vocab_size => Ok(Some(id)),
            _ => Err(TokenizerError::TokenIdOutOfRange {
                key,
                found,
                vocab_size,
            }),
        },
    };
    Ok(SpecialIds {
        bos: id(key::BOS)?,
        eos: id(key::EOS)?,
        eot: id(key::EOT)?,
        eom: id(key::EOM)?,
        unknown: id(key::UNKNOWN)?,
        separator: id(key::SEPARATOR)?,
        padding: id(key::PADDING)?,
        mask: id(key::MASK)?,
        fim_padding: id(key::FIM_PADDING)?,
        fim_repository: id(key::FIM_REPOSITORY)?,
        fim_separator: id(key::FIM_SEPARATOR)?,
    })
}
