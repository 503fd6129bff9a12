//! Unicode general categories, as far as the splitting rules tell them apart.

use unicode_general_category::{GeneralCategory as G, get_general_category};

/// A set of character classes; a single character has exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Classes(u8);

impl Classes {
    /// Unassigned code points.
    pub(crate) const UNASSIGNED: Classes = Classes(1);
    /// `\p{N}`: digits and other numbers.
    pub(crate) const NUMBER: Classes = Classes(2);
    /// `\p{L}`: letters.
    pub(crate) const LETTER: Classes = Classes(4);
    /// `\s`: white space, among them the control characters tab to carriage return and U+0085.
    pub(crate) const SPACE: Classes = Classes(8);
    /// `\p{M}`: combining marks.
    pub(crate) const MARK: Classes = Classes(16);
    /// `\p{P}`: punctuation.
    pub(crate) const PUNCTUATION: Classes = Classes(32);
    /// `\p{S}`: symbols.
    pub(crate) const SYMBOL: Classes = Classes(64);
    /// `\p{C}` without white space and unassigned code points: control, format and private use characters.
    pub(crate) const CONTROL: Classes = Classes(128);

    /// The characters of either set.
    pub(crate) const fn or(self, other: Classes) -> Classes {
        Classes(self.0 | other.0)
    }

    /// The characters outside the set.
    pub(crate) const fn not(self) -> Classes {
        Classes(!self.0)
    }

    /// Whether the sets have a class in common; for the class of one character: whether it is in `set`.
    #[inline]
    pub(crate) const fn is_in(self, set: Classes) -> bool {
        self.0 & set.0 != 0
    }
}

/// The class of a character.
#[inline]
pub(crate) fn class_of(c: char) -> Classes {
    match ASCII.get(c as usize) {
        Some(class) => *class,
        None => class_of_non_ascii(c),
    }
}

const ASCII: [Classes; 128] = {
    let mut table = [Classes::CONTROL; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'\t'..=b'\r' | b' ' => Classes::SPACE,
            b'0'..=b'9' => Classes::NUMBER,
            b'A'..=b'Z' | b'a'..=b'z' => Classes::LETTER,
            b'$' | b'+' | b'<'..=b'>' | b'^' | b'`' | b'|' | b'~' => Classes::SYMBOL,
            b'!'..=b'~' => Classes::PUNCTUATION,
            _ => Classes::CONTROL,
        };
        byte += 1;
    }
    table
};

fn class_of_non_ascii(c: char) -> Classes {
    match get_general_category(c) {
        G::LowercaseLetter
        | G::UppercaseLetter
        | G::OtherLetter
        | G::ModifierLetter
        | G::TitlecaseLetter => Classes::LETTER,
        G::NonspacingMark | G::SpacingMark | G::EnclosingMark => Classes::MARK,
        G::DecimalNumber | G::LetterNumber | G::OtherNumber => Classes::NUMBER,
        G::ConnectorPunctuation
        | G::DashPunctuation
        | G::OpenPunctuation
        | G::ClosePunctuation
        | G::InitialPunctuation
        | G::FinalPunctuation
        | G::OtherPunctuation => Classes::PUNCTUATION,
        G::MathSymbol | G::CurrencySymbol | G::ModifierSymbol | G::OtherSymbol => Classes::SYMBOL,
        G::SpaceSeparator | G::LineSeparator | G::ParagraphSeparator => Classes::SPACE,
        G::Control if c == '\u{85}' => Classes::SPACE,
        G::Unassigned => Classes::UNASSIGNED,
        _ => Classes::CONTROL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_table_agrees_with_the_general_categories() {
        for byte in 0..128u8 {
            let c = byte as char;
            let expected = if matches!(c, '\t'..='\r') {
                Classes::SPACE
            } else {
                class_of_non_ascii(c)
            };
            assert_eq!(class_of(c), expected, "{c:?}");
        }
    }

    #[test]
    fn classes_of_a_few_characters() {
        for (c, class) in [
            ('é', Classes::LETTER),
            ('\u{301}', Classes::MARK),
            ('½', Classes::NUMBER),
            ('…', Classes::PUNCTUATION),
            ('→', Classes::SYMBOL),
            ('\u{a0}', Classes::SPACE),
            ('\u{85}', Classes::SPACE),
            ('\u{3000}', Classes::SPACE),
            ('\u{200d}', Classes::CONTROL),
            ('\u{378}', Classes::UNASSIGNED),
        ] {
            assert_eq!(class_of(c), class, "{c:?}");
        }
    }
}
