//! What can be wrong with the tokenizer part of a file.

use dynalm_gguf::GgufError;

/// Why no tokenizer could be made from a file's metadata. Every variant names the key at fault.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenizerError {
    /// A key is missing or has another type than the format says.
    #[error(transparent)]
    Metadata(#[from] GgufError),

    /// `tokenizer.ggml.model` names an algorithm that is not implemented.
    #[error("tokenizer.ggml.model is {found:?}, which is not supported (supported: {supported})")]
    UnknownModel {
        /// The name in the file.
        found: String,
        /// The names that would be accepted, separated by commas.
        supported: String,
    },

    /// `tokenizer.ggml.pre` names an unknown way to cut text into words.
    #[error("tokenizer.ggml.pre is {found:?}, which is not known (known: {known})")]
    UnknownPreTokenizer {
        /// The name in the file.
        found: String,
        /// The names that would be accepted, separated by commas.
        known: String,
    },

    /// The vocabulary has no tokens, or more than ids can count.
    #[error("{key} has {found} entries, which must be between 1 and {limit}")]
    VocabularySize {
        /// The metadata key.
        key: &'static str,
        /// How many entries it has.
        found: usize,
        /// The most that are accepted.
        limit: usize,
    },

    /// Two arrays that describe the same tokens differ in length.
    #[error("{key} has {found} entries for {expected} tokens")]
    Length {
        /// The metadata key of the shorter or longer array.
        key: &'static str,
        /// How many entries it has.
        found: usize,
        /// How many tokens there are.
        expected: usize,
    },

    /// A token's text is longer than any real token.
    #[error("{key}[{index}] is {found} bytes long, the limit is {limit}")]
    TokenTooLong {
        /// The metadata key.
        key: &'static str,
        /// Which entry.
        index: usize,
        /// Its length in bytes.
        found: usize,
        /// The most bytes accepted.
        limit: usize,
    },

    /// A key holds the id of a token that does not exist.
    #[error("{key} is {found}, but the vocabulary has {vocab_size} tokens")]
    TokenIdOutOfRange {
        /// The metadata key.
        key: &'static str,
        /// The id in the file.
        found: u64,
        /// How many tokens there are.
        vocab_size: usize,
    },

    /// A token is to be added around every text, but the file does not say which.
    #[error("{key} is true, but {missing_key} is not set")]
    MissingTokenId {
        /// The key that asks for the token.
        key: &'static str,
        /// The key that should name it.
        missing_key: &'static str,
    },

    /// A token of type "byte" is not spelled `<0x00>` to `<0xFF>`.
    #[error("{key}[{index}] is a byte token, but its text {found:?} is not of the form <0x41>")]
    ByteToken {
        /// The metadata key.
        key: &'static str,
        /// Which entry.
        index: usize,
        /// The text found.
        found: String,
    },

    /// A token's score cannot be compared with others.
    #[error("{key}[{index}] is not a number")]
    Score {
        /// The metadata key.
        key: &'static str,
        /// Which entry.
        index: usize,
    },

    /// A vocabulary of this kind cannot work without merges.
    #[error("{key} is missing")]
    MissingMerges {
        /// The metadata key.
        key: &'static str,
    },

    /// A merge is not two pieces with a space between them.
    #[error("{key}[{index}] is {found:?}, which is not two pieces separated by a space")]
    Merge {
        /// The metadata key.
        key: &'static str,
        /// Which entry.
        index: usize,
        /// The text found, cut to a readable length.
        found: String,
    },

    /// Special tokens or word pieces need a larger automaton than is reasonable.
    #[error("{key} holds too much text that must be searched for: special tokens or word pieces")]
    SearchedText {
        /// The metadata key.
        key: &'static str,
    },
}
