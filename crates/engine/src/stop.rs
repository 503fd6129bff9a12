//! Stop strings in a stream.
//!
//! One automaton of Knuth, Morris and Pratt per stop string reads the text byte by byte: its state is how much of the
//! string the text ends with. The longest state over all strings is exactly the text that must be held back, and the
//! result cannot depend on how tokens cut the text. The string that is complete first ends the answer; of several
//! that are complete at the same byte the longest. A byte costs amortized constant time per string.

/// Holds back what could still become a stop string.
#[derive(Debug)]
pub(crate) struct StopMatcher {
    stops: Vec<Automaton>,
    /// Text not yet released: the longest suffix that some stop string begins with.
    held: String,
}

/// What a piece of text led to.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Released {
    /// Text that is certain to be part of the answer.
    pub(crate) text: String,
    /// The stop string that was completed; nothing after it is released, ever.
    pub(crate) stop: Option<String>,
}

#[derive(Debug)]
struct Automaton {
    pattern: String,
    /// `fallback[n]`: length of the longest proper prefix of the pattern that its first `n + 1` bytes end with.
    fallback: Vec<usize>,
    matched: usize,
}

impl StopMatcher {
    /// `stops` holds no empty string.
    pub(crate) fn new(stops: Vec<String>) -> Self {
        Self {
            stops: stops.into_iter().map(Automaton::new).collect(),
            held: String::new(),
        }
    }

    /// Takes the next piece and releases what can no longer become a stop string.
    pub(crate) fn push(&mut self, text: &str) -> Released {
        if self.stops.is_empty() {
            return Released {
                text: text.to_owned(),
                stop: None,
            };
        }
        let before = self.held.len();
        self.held.push_str(text);
        for (offset, byte) in text.bytes().enumerate() {
            let complete = self
                .stops
                .iter_mut()
                .filter_map(|stop| stop.step(byte).then_some(&stop.pattern));
            if let Some(stop) = complete.max_by_key(|pattern| pattern.len()).cloned() {
                self.held.truncate(before + offset + 1 - stop.len());
                return Released {
                    text: std::mem::take(&mut self.held),
                    stop: Some(stop),
                };
            }
        }
        let n_kept = self
            .stops
            .iter()
            .map(|stop| stop.matched)
            .max()
            .unwrap_or(0);
        let kept = self.held.split_off(self.held.len() - n_kept);
        Released {
            text: std::mem::replace(&mut self.held, kept),
            stop: None,
        }
    }

    /// The text still held back, at the end of an answer that no stop string ended.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

impl Automaton {
    fn new(pattern: String) -> Self {
        let bytes = pattern.as_bytes();
        let mut fallback = vec![0; bytes.len()];
        let mut length = 0;
        for end in 1..bytes.len() {
            while length > 0 && bytes[length] != bytes[end] {
                length = fallback[length - 1];
            }
            length += usize::from(bytes[length] == bytes[end]);
            fallback[end] = length;
        }
        Self {
            pattern,
            fallback,
            matched: 0,
        }
    }

    /// Reads one byte; whether the pattern is complete with it.
    fn step(&mut self, byte: u8) -> bool {
        let pattern = self.pattern.as_bytes();
        if self.matched == pattern.len() {
            self.matched = self.fallback[self.matched - 1];
        }
        while self.matched > 0 && pattern[self.matched] != byte {
            self.matched = self.fallback[self.matched - 1];
        }
        self.matched += usize::from(pattern[self.matched] == byte);
        self.matched == pattern.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds pieces; returns what was released by each push, the rest, and the stop string.
    fn stream(stops: &[&str], pieces: &[&str]) -> (Vec<String>, String, Option<String>) {
        let mut matcher = StopMatcher::new(stops.iter().map(ToString::to_string).collect());
        let mut released = Vec::new();
        for piece in pieces {
            let Released { text, stop } = matcher.push(piece);
            released.push(text);
            if stop.is_some() {
                return (released, String::new(), stop);
            }
        }
        (released, matcher.finish(), None)
    }

    #[test]
    fn text_is_held_only_while_it_could_become_a_stop_string() {
        let (released, rest, stop) = stream(&["STOP"], &["abS", "T", "x", "ST"]);
        assert_eq!(released, ["ab", "", "STx", ""]);
        assert_eq!(rest, "ST");
        assert_eq!(stop, None);
    }

    #[test]
    fn a_stop_string_across_pieces_never_leaks() {
        let (released, _, stop) = stream(&["\n\nUser:"], &["Hi\n", "\nUs", "er: more"]);
        assert_eq!(released.concat(), "Hi");
        assert_eq!(stop.as_deref(), Some("\n\nUser:"));
    }

    #[test]
    fn the_string_complete_first_wins_and_of_equals_the_longest() {
        assert_eq!(stream(&["abcd", "bc"], &["xabcd"]).2.as_deref(), Some("bc"));
        let (released, _, stop) = stream(&["c", "abc"], &["xabc"]);
        assert_eq!(
            (released.concat().as_str(), stop.as_deref()),
            ("x", Some("abc"))
        );
    }

    #[test]
    fn overlapping_beginnings_are_followed() {
        let (released, _, stop) = stream(&["aab"], &["a", "a", "a", "b"]);
        assert_eq!(released, ["", "", "a", ""]);
        assert_eq!(stop.as_deref(), Some("aab"));
        assert_eq!(stream(&["ééa"], &["é", "éé", "a!"]).0.concat(), "é");
    }

    /// The plain twin: the earliest end of any stop string in the whole text, of equals the longest.
    fn expected(stops: &[String], text: &str) -> (String, Option<String>) {
        let hit = stops
            .iter()
            .filter_map(|stop| {
                text.find(stop.as_str())
                    .map(|start| (start + stop.len(), start, stop))
            })
            .min();
        match hit {
            Some((_, start, stop)) => (text[..start].to_owned(), Some(stop.clone())),
            None => (text.to_owned(), None),
        }
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_answer_and_nothing_certain_is_held(
            stops in prop::collection::vec("[abé]{1,4}", 1..4),
            pieces in prop::collection::vec("[abcé]{0,3}", 0..12),
        ) {
            let (text, stop) = expected(&stops, &pieces.concat());
            let mut matcher = StopMatcher::new(stops.clone());
            let mut answer = String::new();
            let mut hit = None;
            for piece in &pieces {
                let released = matcher.push(piece);
                answer.push_str(&released.text);
                if released.stop.is_some() {
                    hit = released.stop;
                    break;
                }
                let held = &matcher.held;
                prop_assert!(held.is_empty() || stops.iter().any(|stop| stop.starts_with(held.as_str())));
            }
            if hit.is_none() {
                answer.push_str(&matcher.finish());
            }
            prop_assert_eq!(answer, text);
            prop_assert_eq!(hit, stop);
        }
    }
}
