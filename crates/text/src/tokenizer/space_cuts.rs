//! Cutting text with marked spaces into words, where that cannot change what the merges make of it.
//!
//! A text could be merged as a whole, but short words are much faster. A cut before a space is safe if no token
//! could reach over it: if no token has a space behind the character that stands there.

use super::strings::Strings;

/// The space in vocabularies that mark it.
pub(crate) const MARKED_SPACE: &str = "▁";
const MARK: char = '▁';

/// Where text may be cut.
#[derive(Debug)]
pub(crate) struct SpaceCuts {
    /// The characters, other than the space, that some token has before a space; in ascending order.
    before_space: Vec<char>,
}

impl SpaceCuts {
    /// Looks through all strings that merging can make.
    pub(crate) fn new(strings: &Strings) -> SpaceCuts {
        let mut before_space = Vec::new();
        for number in 0..strings.len() as u32 {
            let text = strings.text(number);
            for (pos, _) in text.match_indices(MARK) {
                before_space.extend(text[..pos].chars().next_back().filter(|c| *c != MARK));
            }
        }
        before_space.sort_unstable();
        before_space.dedup();
        SpaceCuts { before_space }
    }

    /// Calls `visit` with the pieces of `text` in order.
    pub(crate) fn split<'a>(&self, text: &'a str, mut visit: impl FnMut(&'a str)) {
        let mut start = 0;
        for (pos, _) in text.match_indices(MARK) {
            let before = text[start..pos].chars().next_back();
            let is_safe =
                before.is_some_and(|c| c != MARK && self.before_space.binary_search(&c).is_err());
            if is_safe {
                visit(&text[start..pos]);
                start = pos;
            }
        }
        if start < text.len() {
            visit(&text[start..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_where_no_token_reaches_over() {
        let mut strings = Strings::default();
        for text in ["▁a", "▁▁", ">▁<", "b"] {
            strings.push(text.as_bytes());
        }
        let cuts = SpaceCuts::new(&strings);
        let mut pieces = Vec::new();
        cuts.split("▁a▁▁b>▁<▁▁", |piece| pieces.push(piece));
        assert_eq!(pieces, ["▁a", "▁▁b>▁<", "▁▁"]);
    }
}
