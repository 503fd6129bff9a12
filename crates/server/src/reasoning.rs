//! Telling a model's thinking apart from its answer, as text streams in.
//!
//! Thinking is a `<think>` block at the very beginning of an answer (or one that the prompt opened already). A
//! tag further on is content: models also write about such tags.
//!
//! What may still become a tag is held back, and so is white space around the tags, which belongs to neither
//! part. The result does not depend on how the text was cut into pieces.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Text of both kinds that became certain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Parts {
    pub(crate) reasoning: String,
    pub(crate) content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but white space and a beginning of `<think>` so far.
    Start,
    /// Inside the block; `begun` once it had more than white space.
    Thinking { begun: bool },
    /// Behind the block, before the first character of the answer.
    Closed,
    /// In the answer.
    Content,
}

/// Splits one answer.
#[derive(Debug, Clone)]
pub(crate) struct ReasoningSplitter {
    state: State,
    held: String,
}

impl ReasoningSplitter {
    /// `opened`: the prompt ends inside a `<think>` block.
    pub(crate) fn new(opened: bool) -> Self {
        let state = if opened {
            State::Thinking { begun: false }
        } else {
            State::Start
        };
        Self {
            state,
            held: String::new(),
        }
    }

    /// A splitter that calls everything content.
    pub(crate) fn disabled() -> Self {
        Self {
            state: State::Content,
            held: String::new(),
        }
    }

    /// Takes the next piece of the answer.
    pub(crate) fn push(&mut self, text: &str) -> Parts {
        let mut parts = Parts::default();
        if self.state == State::Content && self.held.is_empty() {
            parts.content.push_str(text);
            return parts;
        }
        self.held.push_str(text);
        while self.advance(&mut parts) {}
        parts
    }

    /// The answer is over: whatever was held back is text after all.
    pub(crate) fn finish(&mut self) -> Parts {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Thinking { .. } => Parts {
                reasoning: held,
                content: String::new(),
            },
            State::Closed => Parts::default(),
            State::Start | State::Content => Parts {
                reasoning: String::new(),
                content: held,
            },
        }
    }

    /// One transition over the held text; true if there may be another.
    fn advance(&mut self, parts: &mut Parts) -> bool {
        match self.state {
            State::Start => {
                let begin = self.held.trim_start();
                if let Some(rest) = begin.strip_prefix(OPEN) {
                    self.held = rest.to_owned();
                    self.state = State::Thinking { begun: false };
                    return true;
                }
                if OPEN.starts_with(begin) {
                    return false;
                }
                self.state = State::Content;
                true
            }
            State::Thinking { begun } => {
                if !begun {
                    let blanks = self.held.len() - self.held.trim_start().len();
                    self.held.drain(..blanks);
                }
                if let Some(at) = self.held.find(CLOSE) {
                    parts.reasoning.push_str(self.held[..at].trim_end());
                    self.held.drain(..at + CLOSE.len());
                    self.state = State::Closed;
                    return true;
                }
                let certain = certain_len(&self.held);
                parts.reasoning.push_str(&self.held[..certain]);
                self.held.drain(..certain);
                self.state = State::Thinking {
                    begun: begun || certain > 0,
                };
                false
            }
            State::Closed => {
                let answer = self.held.trim_start();
                self.held = answer.to_owned();
                if self.held.is_empty() {
                    return false;
                }
                self.state = State::Content;
                true
            }
            State::Content => {
                parts.content.push_str(&self.held);
                self.held.clear();
                false
            }
        }
    }
}

/// Bytes of `text` that are thinking whatever follows: all but a possible beginning of `</think>` at the end and
/// the white space before that.
fn certain_len(text: &str) -> usize {
    let partial = (1..CLOSE.len())
        .rev()
        .find(|&length| text.ends_with(&CLOSE[..length]))
        .unwrap_or(0);
    text[..text.len() - partial].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(opened: bool, pieces: &[&str]) -> (String, String) {
        let mut splitter = ReasoningSplitter::new(opened);
        let mut whole = Parts::default();
        let mut add = |parts: Parts| {
            whole.reasoning.push_str(&parts.reasoning);
            whole.content.push_str(&parts.content);
        };
        for piece in pieces {
            add(splitter.push(piece));
        }
        add(splitter.finish());
        (whole.reasoning, whole.content)
    }

    fn check(opened: bool, text: &str, reasoning: &str, content: &str) {
        assert_eq!(
            split(opened, &[text]),
            (reasoning.to_owned(), content.to_owned()),
            "{text}"
        );
    }

    #[test]
    fn a_leading_block_is_reasoning() {
        check(false, "<think>\nwhy\n</think>\n\nbecause", "why", "because");
        check(false, "  \n<think>why</think>because", "why", "because");
        check(false, "<think></think>because", "", "because");
        check(false, "<think>never closed", "never closed", "");
        check(true, "why\n</think>\nbecause", "why", "because");
    }

    #[test]
    fn anything_else_is_content() {
        check(
            false,
            "plain <think>x</think>",
            "",
            "plain <think>x</think>",
        );
        check(false, "<thin", "", "<thin");
        check(false, " \n", "", " \n");
        check(false, "a </think> b", "", "a </think> b");
        check(
            false,
            "<think>a</think>b<think>c</think>",
            "a",
            "b<think>c</think>",
        );
        check(
            false,
            "<think>a < b </thin c</think>d",
            "a < b </thin c",
            "d",
        );
    }

    #[test]
    fn text_is_not_held_longer_than_needed() {
        let mut splitter = ReasoningSplitter::new(false);
        assert_eq!(splitter.push("Hello").content, "Hello");
        let mut splitter = ReasoningSplitter::new(true);
        assert_eq!(splitter.push("a b").reasoning, "a b");
        assert_eq!(splitter.push(" </").reasoning, "");
        assert_eq!(splitter.push("x").reasoning, " </x");
    }

    proptest! {
        #[test]
        fn cutting_does_not_matter(text in "(<think>|</think>|[ <>/a\u{e9}\n]|think){0,12}", cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), opened: bool) {
            let whole = split(opened, &[&text]);
            let chars: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let mut at: Vec<usize> = cuts.iter().map(|cut| chars[cut.index(chars.len())]).collect();
            at.extend([0, text.len()]);
            at.sort_unstable();
            let pieces: Vec<&str> = at.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(opened, &pieces), whole);
        }
    }
}
