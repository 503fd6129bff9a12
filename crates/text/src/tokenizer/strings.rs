//! Many short strings in one allocation, and the table that finds one of them.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Byte strings numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    /// Room for `n_strings`.
    pub(crate) fn with_capacity(n_strings: usize) -> Strings {
        Strings {
            bytes: Vec::with_capacity(n_strings * 7),
            ends: Vec::with_capacity(n_strings),
        }
    }

    /// Appends a string.
    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.ends.push(self.bytes.len());
    }

    /// How many strings there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The string of a number; empty if there is none.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &[u8] {
        let index = index as usize;
        let Some(&end) = self.ends.get(index) else {
            return &[];
        };
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..end]
    }

    /// The same as text, for strings that were pushed as text.
    pub(crate) fn text(&self, index: u32) -> &str {
        std::str::from_utf8(self.get(index)).unwrap_or_default()
    }
}

/// Finds the number of a string. Hashes are seeded anew each time, so a file cannot be built to make look-ups slow.
#[derive(Debug, Default)]
pub(crate) struct Lookup {
    numbers: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Lookup {
    /// Room for `n_strings`.
    pub(crate) fn with_capacity(n_strings: usize) -> Lookup {
        Lookup {
            numbers: HashTable::with_capacity(n_strings),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// The number of a string.
    #[inline]
    pub(crate) fn find(&self, strings: &Strings, string: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(string);
        self.numbers
            .find(hash, |number| strings.get(*number) == string)
            .copied()
    }

    /// Makes the string that already has this number findable; a later one takes the place of an equal earlier one.
    pub(crate) fn insert(&mut self, strings: &Strings, number: u32) {
        let string = strings.get(number);
        let hash = self.hasher.hash_one(string);
        match self
            .numbers
            .find_mut(hash, |other| strings.get(*other) == string)
        {
            Some(other) => *other = number,
            None => {
                let hasher = &self.hasher;
                self.numbers
                    .insert_unique(hash, number, |other| hasher.hash_one(strings.get(*other)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_strings_by_content() {
        let mut strings = Strings::default();
        let mut lookup = Lookup::default();
        for (number, string) in ["", "a", "ab", "a"].iter().enumerate() {
            strings.push(string.as_bytes());
            lookup.insert(&strings, number as u32);
        }
        assert_eq!(lookup.find(&strings, b"ab"), Some(2));
        assert_eq!(
            lookup.find(&strings, b"a"),
            Some(3),
            "the last of two equal strings"
        );
        assert_eq!(lookup.find(&strings, b"abc"), None);
        assert_eq!(strings.get(9), b"");
    }
}
