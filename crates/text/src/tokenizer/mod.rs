//! Tokenizers: text to token ids and back, made from the metadata of a GGUF file.

mod bpe;
mod byte_level;
mod char_class;
mod decode;
mod end_tokens;
mod error;
mod merge;
mod partition;
mod raw;
mod sentencepiece;
mod space_cuts;
mod split;
mod strings;
#[cfg(test)]
mod tests;
mod vocab;
mod whole_tokens;
mod wordpiece;

use dynalm_gguf::Metadata;

use bpe::{Bpe, WHITESPACE_MODEL};
pub use error::TokenizerError;
use partition::{Fragment, Partition};
use raw::{RawTokenizer, SpecialIds, key};
use sentencepiece::SentencePiece;
use split::Spelling;
use vocab::Vocab;
use wordpiece::WordPiece;

/// Turns text into token ids and back, the way the model in the file was trained.
///
/// Text is first searched for special tokens, the rest is cut into words and each word spelled in tokens. Encoding
/// takes time proportional to the text (times the logarithm of its longest word), whatever the text is.
///
/// `Send` and `Sync`; nothing but a small cache of facts about tokens changes after loading.
pub struct Tokenizer {
    vocab: Vocab,
    model: Model,
    partition: Partition,
    /// Put before and after a text when asked to add special tokens.
    first: Option<u32>,
    last: Option<u32>,
}

#[derive(Debug)]
enum Model {
    Bpe(Bpe),
    SentencePiece(SentencePiece),
    WordPiece(WordPiece),
}

/// The algorithm of a tokenizer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenizerKind {
    /// Byte-pair encoding with ranked merges (`gpt2`, `gemma4`, `whitespace`).
    Bpe,
    /// SentencePiece's byte-pair encoding by scores, with byte fallback (`llama`).
    SentencePiece,
    /// BERT's longest pieces of words (`bert`).
    WordPiece,
}

/// How to encode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodeOptions {
    /// Put the tokens around the text that the file asks for, such as the begin token.
    pub add_special: bool,
    /// Let text such as `<|im_end|>` become the control token of that name. Without it the text is taken literally
    /// and no control token can come out of it: right for text from strangers.
    pub parse_special: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        EncodeOptions {
            add_special: true,
            parse_special: true,
        }
    }
}

/// How to decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DecodeOptions {
    /// Show control tokens by their text.
    pub special: bool,
    /// Leave out the tokens that encoding puts around a text, where they are.
    pub strip_added: bool,
}

impl Tokenizer {
    /// Makes the tokenizer that a file describes.
    ///
    /// # Errors
    /// Where a key is missing, of another type, contradicts another, or names what is not known. The error names it.
    pub fn from_gguf(metadata: &Metadata) -> Result<Tokenizer, TokenizerError> {
        Tokenizer::from_raw(&RawTokenizer::from_gguf(metadata)?)
    }

    fn from_raw(raw: &RawTokenizer<'_>) -> Result<Tokenizer, TokenizerError> {
        match raw.model {
            "llama" => Tokenizer::sentencepiece(raw),
            "bert" => Tokenizer::wordpiece(raw),
            "gpt2" | "gemma4" | WHITESPACE_MODEL => Tokenizer::bpe(raw),
            found => Err(TokenizerError::UnknownModel {
                found: found.chars().take(64).collect(),
                supported: "bert, gemma4, gpt2, llama, whitespace".to_owned(),
            }),
        }
    }

    fn sentencepiece(raw: &RawTokenizer<'_>) -> Result<Tokenizer, TokenizerError> {
        let defaults = SpecialIds {
            bos: Some(1),
            eos: Some(2),
            unknown: Some(0),
            ..SpecialIds::default()
        };
        let vocab = Vocab::new(raw, defaults)?;
        let model = Model::SentencePiece(SentencePiece::new(raw, &vocab));
        Tokenizer::with_begin_and_end(raw, vocab, model, true)
    }

    fn bpe(raw: &RawTokenizer<'_>) -> Result<Tokenizer, TokenizerError> {
        let is_gemma4 = raw.model == "gemma4";
        let name = if is_gemma4 {
            "gemma4"
        } else {
            raw.pre.unwrap_or("default")
        };
        if raw.pre.is_none() && !is_gemma4 {
            tracing::warn!(
                "the file has no {}; words are cut by a default rule, which may degrade answers",
                key::PRE
            );
        }
        let family = split::find(name).ok_or_else(|| TokenizerError::UnknownPreTokenizer {
            found: name.chars().take(64).collect(),
            known: split::known_names(),
        })?;
        if raw.merges.is_none() && name != "kimi-k2" {
            return Err(TokenizerError::MissingMerges { key: key::MERGES });
        }
        // GPT-2's own files named no ids; these are Falcon's, whose files were the first to rely on them.
        let default_id = (!is_gemma4).then_some(11);
        let defaults = SpecialIds {
            bos: default_id.filter(|_| !family.no_default_bos),
            eos: default_id,
            ..SpecialIds::default()
        };
        let vocab = Vocab::new(raw, defaults)?;
        let model = Model::Bpe(Bpe::new(raw, &vocab, family)?);
        let mut tokenizer = Tokenizer::with_begin_and_end(raw, vocab, model, family.add_bos)?;
        if family.always_bos {
            tokenizer.first = tokenizer.vocab.ids.bos;
        }
        Ok(tokenizer)
    }

    fn wordpiece(raw: &RawTokenizer<'_>) -> Result<Tokenizer, TokenizerError> {
        let defaults = SpecialIds {
            bos: Some(101),
            unknown: Some(100),
            separator: Some(102),
            padding: Some(0),
            mask: Some(103),
            ..SpecialIds::default()
        };
        let vocab = Vocab::new(raw, defaults)?;
        let missing = |missing_key| TokenizerError::MissingTokenId {
            key: key::MODEL,
            missing_key,
        };
        let first = Some(vocab.ids.bos.ok_or(missing(key::BOS))?);
        let last = Some(vocab.ids.separator.ok_or(missing(key::SEPARATOR))?);
        let model = Model::WordPiece(WordPiece::new(raw, &vocab)?);
        Ok(Tokenizer {
            partition: Partition::new(raw, &vocab)?,
            vocab,
            model,
            first,
            last,
        })
    }

    fn with_begin_and_end(
        raw: &RawTokenizer<'_>,
        vocab: Vocab,
        model: Model,
        add_bos_by_default: bool,
    ) -> Result<Tokenizer, TokenizerError> {
        let first = added_token(
            (raw.add_bos, key::ADD_BOS),
            add_bos_by_default,
            (vocab.ids.bos, key::BOS),
        )?;
        let last = added_token(
            (raw.add_eos, key::ADD_EOS),
            false,
            (vocab.ids.eos, key::EOS),
        )?;
        Ok(Tokenizer {
            partition: Partition::new(raw, &vocab)?,
            vocab,
            model,
            first,
            last,
        })
    }

    /// The tokens of a text.
    pub fn encode(&self, text: &str, opts: EncodeOptions) -> Vec<u32> {
        let mut out = Vec::with_capacity(text.len() / 3 + 2);
        if opts.add_special {
            out.extend(self.first);
        }
        let mut after_special = true;
        self.partition
            .split(text, opts.parse_special, |fragment| match fragment {
                Fragment::Token(id) => {
                    out.push(id);
                    after_special = true;
                }
                Fragment::Text(text) => {
                    match &self.model {
                        Model::Bpe(bpe) => bpe.encode(text, &mut out),
                        Model::SentencePiece(pieces) => {
                            pieces.encode(text, after_special, &mut out)
                        }
                        Model::WordPiece(pieces) => pieces.encode(text, &mut out),
                    }
                    after_special = false;
                }
            });
        if opts.add_special {
            out.extend(self.last);
        }
        out
    }

    /// The text of tokens, as bytes: tokens may end inside a character. Ids that do not exist add nothing.
    ///
    /// For byte-level vocabularies this undoes [`Tokenizer::encode`]. Others are not that exact: SentencePiece has lost
    /// the space that it puts before a text, WordPiece has lost capitals and white space.
    pub fn decode(&self, ids: &[u32], opts: DecodeOptions) -> Vec<u8> {
        let mut ids = ids;
        let mut drop_space =
            matches!(&self.model, Model::SentencePiece(pieces) if pieces.add_space_prefix);
        if opts.strip_added {
            if let [first, rest @ ..] = ids
                && Some(*first) == self.first
            {
                ids = rest;
                drop_space = false;
            }
            if let [rest @ .., last] = ids
                && Some(*last) == self.last
            {
                ids = rest;
            }
        }
        let mut out = Vec::with_capacity(ids.len() * 4);
        for (index, id) in ids.iter().enumerate() {
            self.append_piece(*id, opts.special, &mut out);
            if index == 0 && drop_space && out.first() == Some(&b' ') {
                out.remove(0);
            }
        }
        match self.model {
            Model::WordPiece(_) => decode::clean_spaces(&out),
            _ => out,
        }
    }

    /// The text of tokens without special ones; what is not UTF-8 becomes U+FFFD.
    pub fn decode_lossy(&self, ids: &[u32]) -> String {
        String::from_utf8_lossy(&self.decode(ids, DecodeOptions::default())).into_owned()
    }

    /// The bytes that a token adds in the middle of a text; `special` shows control tokens by their text.
    pub fn piece(&self, id: u32, special: bool) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_piece(id, special, &mut out);
        out
    }

    pub(crate) fn append_piece(&self, id: u32, special: bool, out: &mut Vec<u8>) {
        let spelling = match &self.model {
            Model::Bpe(bpe) => bpe.spelling(),
            Model::SentencePiece(_) | Model::WordPiece(_) => Spelling::TextWithMarkedSpaces,
        };
        decode::append_piece(&self.vocab, spelling, id, special, out);
    }

    /// How many tokens there are.
    pub fn vocab_size(&self) -> usize {
        self.vocab.len()
    }

    /// The token that begins a text; WordPiece's class token.
    pub fn bos(&self) -> Option<u32> {
        self.vocab.ids.bos
    }

    /// The token that ends a text.
    pub fn eos(&self) -> Option<u32> {
        self.vocab.ids.eos
    }

    /// The token that ends a turn in a conversation.
    pub fn eot(&self) -> Option<u32> {
        self.vocab.ids.eot
    }

    /// The token that ends a message after which the same speaker goes on.
    pub fn eom(&self) -> Option<u32> {
        self.vocab.ids.eom
    }

    /// The token for text that no token covers.
    pub fn unk(&self) -> Option<u32> {
        self.vocab.ids.unknown
    }

    /// The token that fills up batches.
    pub fn pad(&self) -> Option<u32> {
        self.vocab.ids.padding
    }

    /// The token between two texts.
    pub fn sep(&self) -> Option<u32> {
        self.vocab.ids.separator
    }

    /// The token that hides a word.
    pub fn mask(&self) -> Option<u32> {
        self.vocab.ids.mask
    }

    /// Whether an answer is complete with this token.
    pub fn is_end_of_generation(&self, id: u32) -> bool {
        self.vocab.end_tokens.binary_search(&id).is_ok()
    }

    /// All tokens with which an answer is complete, in ascending order.
    pub fn end_tokens(&self) -> &[u32] {
        &self.vocab.end_tokens
    }

    /// The token that the vocabulary spells so.
    pub fn token_id(&self, text: &str) -> Option<u32> {
        self.vocab.find(text)
    }

    /// The vocabulary's own spelling of a token, `None` for an id that does not exist.
    pub fn token_text(&self, id: u32) -> Option<&str> {
        ((id as usize) < self.vocab.len()).then(|| self.vocab.text(id))
    }

    /// Whether a token has no text of its own: structure, or the token for unknown text.
    pub fn is_special(&self, id: u32) -> bool {
        self.vocab.kind(id).is_special()
    }

    /// Whether encoding with special tokens puts a begin token before the text.
    pub fn adds_bos(&self) -> bool {
        self.first.is_some()
    }

    /// The algorithm.
    pub fn kind(&self) -> TokenizerKind {
        match self.model {
            Model::Bpe(_) => TokenizerKind::Bpe,
            Model::SentencePiece(_) => TokenizerKind::SentencePiece,
            Model::WordPiece(_) => TokenizerKind::WordPiece,
        }
    }
}

impl std::fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokenizer")
            .field("kind", &self.kind())
            .field("vocab_size", &self.vocab_size())
            .field("end_tokens", &self.end_tokens())
            .finish_non_exhaustive()
    }
}

/// The token to put at one end of a text. Asked for by the file it must exist.
fn added_token(
    (asked, key): (Option<bool>, &'static str),
    default: bool,
    (id, missing_key): (Option<u32>, &'static str),
) -> Result<Option<u32>, TokenizerError> {
    match (asked, id) {
        (Some(true), None) => Err(TokenizerError::MissingTokenId { key, missing_key }),
        (asked, id) => Ok(id.filter(|_| asked.unwrap_or(default))),
    }
}
