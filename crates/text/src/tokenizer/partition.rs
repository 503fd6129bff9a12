//! Finding special tokens in a text before anything else looks at it.
//!
//! Of several tokens that begin at one place the longest is taken, and the search goes on behind it. One pass over
//! the text, whatever the number of tokens.

use aho_corasick::{AhoCorasick, MatchKind, StartKind};

use super::error::TokenizerError;
use super::raw::{RawTokenizer, key};
use super::vocab::{TokenKind, Vocab};

/// Part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fragment<'a> {
    /// Ordinary text, not empty.
    Text(&'a str),
    /// A special token.
    Token(u32),
}

/// Searches for special tokens.
#[derive(Debug)]
pub(crate) struct Partition {
    /// Control and unknown tokens are looked for on request only.
    all: Option<Matcher>,
    user_defined: Option<Matcher>,
    strips: Strips,
}

/// Which tokens swallow the white space next to them. Files do not say so; it is known by the model's name.
#[derive(Debug, Default)]
struct Strips {
    left: Vec<u32>,
    right: Vec<u32>,
}

/// An automaton whose patterns are the texts of `ids`.
#[derive(Debug)]
struct Matcher {
    automaton: AhoCorasick,
    ids: Vec<u32>,
}

impl Matcher {
    fn new(
        vocab: &Vocab,
        wanted: impl Fn(TokenKind) -> bool,
    ) -> Result<Option<Matcher>, TokenizerError> {
        let ids: Vec<u32> = vocab.ids().filter(|id| wanted(vocab.kind(*id))).collect();
        if ids.is_empty() {
            return Ok(None);
        }
        let automaton = longest_match(vocab, &ids, StartKind::Unanchored)?;
        Ok(Some(Matcher { automaton, ids }))
    }
}

/// The automaton takes many times the memory of the texts; real vocabularies stay below 2 MiB.
const MAX_SEARCHED_BYTES: usize = 32 << 20;

/// A search for the longest of these tokens' texts.
pub(crate) fn longest_match(
    vocab: &Vocab,
    ids: &[u32],
    start: StartKind,
) -> Result<AhoCorasick, TokenizerError> {
    let too_large = TokenizerError::SearchedText { key: key::TOKENS };
    let n_bytes: usize = ids.iter().map(|id| vocab.text(*id).len()).sum();
    if n_bytes > MAX_SEARCHED_BYTES {
        return Err(too_large);
    }
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .start_kind(start)
        .build(ids.iter().map(|id| vocab.text(*id)))
        .map_err(|_| too_large)
}

impl Partition {
    /// Builds the searches for a vocabulary.
    pub(crate) fn new(raw: &RawTokenizer<'_>, vocab: &Vocab) -> Result<Partition, TokenizerError> {
        let is_user_defined = |kind| kind == TokenKind::UserDefined;
        Ok(Partition {
            all: Matcher::new(vocab, |kind| is_user_defined(kind) || kind.is_special())?,
            user_defined: Matcher::new(vocab, is_user_defined)?,
            strips: Strips::of_model(raw, vocab),
        })
    }

    /// Calls `visit` with the parts of `text` in order.
    pub(crate) fn split<'a>(
        &self,
        text: &'a str,
        parse_special: bool,
        mut visit: impl FnMut(Fragment<'a>),
    ) {
        let matcher = if parse_special {
            &self.all
        } else {
            &self.user_defined
        };
        let mut rest_start = 0;
        for found in matcher
            .iter()
            .flat_map(|matcher| matcher.automaton.find_iter(text))
        {
            let Some(&id) = matcher
                .as_ref()
                .and_then(|matcher| matcher.ids.get(found.pattern().as_usize()))
            else {
                continue;
            };
            // White space swallowed by the token before may hide the start of this one.
            let mut before = text.get(rest_start..found.start()).unwrap_or_default();
            if self.strips.left.contains(&id) {
                before = before.trim_end_matches(is_ascii_space);
            }
            if !before.is_empty() {
                visit(Fragment::Text(before));
            }
            visit(Fragment::Token(id));
            rest_start = found.end();
            if self.strips.right.contains(&id) {
                let rest = text.get(rest_start..).unwrap_or_default();
                rest_start = text.len() - rest.trim_start_matches(is_ascii_space).len();
            }
        }
        let rest = text.get(rest_start..).unwrap_or_default();
        if !rest.is_empty() {
            visit(Fragment::Text(rest));
        }
    }
}

impl Strips {
    fn of_model(raw: &RawTokenizer<'_>, vocab: &Vocab) -> Strips {
        let mut strips = Strips::default();
        let pre = raw.pre.unwrap_or_default();
        let contains_any =
            |text: &str, names: &[&str]| names.iter().any(|name| text.contains(name));
        if contains_any(pre, &["jina-v2-de", "jina-v2-es", "jina-v2-code"])
            || contains_any(raw.architecture, &["nomic-bert-moe", "jina-bert-v3"])
        {
            strips.left.extend(vocab.find("<mask>"));
        } else if contains_any(&raw.name, &["phi-3", "phi3"]) {
            let special = |kind: TokenKind| kind.is_special() || kind == TokenKind::UserDefined;
            let kept = ["<unk>", "<s>", "<|endoftext|>"];
            let swallows = |id: &u32| special(vocab.kind(*id)) && !kept.contains(&vocab.text(*id));
            strips.right.extend(vocab.ids().filter(swallows));
        } else if raw.name.contains("modern-bert") {
            strips.left.extend(vocab.find("[MASK]"));
        }
        strips
    }
}

fn is_ascii_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}
