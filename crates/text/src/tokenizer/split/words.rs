//! The family of rules that began with GPT-4's: a word takes one character before it, numbers come in short groups,
//! punctuation takes the line breaks after it.
//!
//! In the notation of regular expressions, with the alternatives tried in this order:
//!
//! ```text
//! 's|'t|'re|'ve|'m|'ll|'d           unless Contractions::None
//! [^\r\n\p{L}\p{N}]?WORD            see Word
//! \p{N}{1,n}                        digits
//!  ?[^\s\p{L}\p{N}]+TAIL            see Tail
//! \s*[\r\n]+|\s+(?!\S)|\s+          see Spaces
//! ```
//!
//! Written by hand in place of a regular expression: each character is looked at a bounded number of times.

use super::scan::{Case, CharAt, Scan};
use super::spaces::{Spaces, is_line_break};
use crate::tokenizer::char_class::Classes;

/// One member of the family.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words {
    pub(super) contractions: bool,
    pub(super) word: Word,
    /// Most characters in a group of digits.
    pub(super) digits: usize,
    /// The classes that are not punctuation, besides white space.
    pub(super) not_punctuation: Classes,
    pub(super) tail: Tail,
    pub(super) spaces: Spaces,
}

/// What a word is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// A run of these classes.
    Run(Classes),
    /// The same with a contraction at its end.
    RunWithContraction(Classes),
    /// Capitals then small letters, so that `camelCase` is two words; only ASCII letters have a case here.
    Cased {
        /// What counts as a letter.
        letters: Classes,
        /// Whether a contraction may end the word.
        contraction: bool,
    },
    /// Letters with marks, and single spaces between two letters: several words make one piece.
    Phrase,
    /// Chinese characters apart from other letters; the latter with a contraction.
    HanApart,
}

/// What follows punctuation in the same piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing.
    None,
    /// `[\r\n]*`
    Breaks,
    /// `[\r\n/]*`
    BreaksAndSlashes,
    /// `[\r\n/]?`
    OneBreakOrSlash,
}

pub(super) const LETTERS: Classes = Classes::LETTER;
pub(super) const LETTERS_AND_MARKS: Classes = Classes::LETTER.or(Classes::MARK);
pub(super) const LETTERS_AND_NUMBERS: Classes = Classes::LETTER.or(Classes::NUMBER);

/// Llama 3's rule, which most others vary.
pub(super) const LLAMA3: Words = Words {
    contractions: true,
    word: Word::Run(LETTERS),
    digits: 3,
    not_punctuation: LETTERS_AND_NUMBERS,
    tail: Tail::Breaks,
    spaces: Spaces::BreaksThenRest,
};

impl Words {
    /// Cuts a text into words.
    pub(super) fn split(&self, text: &str, emit: &mut dyn FnMut(&str)) {
        let scan = Scan { text };
        let mut pos = 0;
        while let Some(first) = scan.at(pos) {
            pos = if let Some(end) = self.piece_end(scan, pos, first) {
                emit(scan.slice(pos, end));
                end
            } else if first.class.is_in(Classes::SPACE) {
                self.spaces.split(scan, pos, emit)
            } else {
                emit(scan.slice(pos, first.end));
                first.end
            };
        }
    }

    /// Where the piece that starts at `pos` ends, `None` where no rule but the one for white space applies.
    #[inline]
    fn piece_end(&self, scan: Scan<'_>, pos: usize, first: CharAt) -> Option<usize> {
        if self.contractions
            && let Some(end) = scan.contraction(pos, Case::Either)
        {
            return Some(end);
        }
        if let Some(end) = self.word_end(scan, pos, first) {
            return Some(end);
        }
        if first.class.is_in(Classes::NUMBER) {
            return Some(digits_end(scan, pos, self.digits));
        }
        self.punctuation_end(scan, pos, first)
    }

    #[inline]
    fn word_end(&self, scan: Scan<'_>, pos: usize, first: CharAt) -> Option<usize> {
        let may_lead = !first.class.is_in(LETTERS_AND_NUMBERS) && !is_line_break(first.c);
        let after_lead = may_lead.then_some(first.end);
        match self.word {
            Word::Run(letters) => run_end(scan, pos, after_lead, letters),
            Word::RunWithContraction(letters) => {
                run_end(scan, pos, after_lead, letters).map(|end| with_contraction(scan, end))
            }
            Word::Cased {
                letters,
                contraction,
            } => {
                let end = cased_end(scan, pos, after_lead, letters)?;
                Some(if contraction {
                    with_contraction(scan, end)
                } else {
                    end
                })
            }
            Word::Phrase => phrase_end(scan, after_lead.unwrap_or(pos)),
            Word::HanApart => {
                if is_han(first.c) {
                    return Some(scan.run_while(pos, |ch| is_han(ch.c)));
                }
                let start = after_lead.unwrap_or(pos);
                let end = scan.run_while(start, |ch| ch.class.is_in(LETTERS) && !is_han(ch.c));
                (end > start).then(|| with_contraction(scan, end))
            }
        }
    }

    #[inline]
    fn punctuation_end(&self, scan: Scan<'_>, pos: usize, first: CharAt) -> Option<usize> {
        let start = if first.c == ' ' { first.end } else { pos };
        let end = scan.run(start, self.not_punctuation.or(Classes::SPACE).not());
        if end == start {
            return None;
        }
        Some(match self.tail {
            Tail::None => end,
            Tail::Breaks => scan.run_while(end, |ch| is_line_break(ch.c)),
            Tail::BreaksAndSlashes => scan.run_while(end, |ch| is_line_break(ch.c) || ch.c == '/'),
            Tail::OneBreakOrSlash => scan
                .at(end)
                .filter(|ch| is_line_break(ch.c) || ch.c == '/')
                .map_or(end, |ch| ch.end),
        })
    }
}

/// `[^\r\n\p{L}\p{N}]?LETTERS+`; `after_lead` is the position after the optional character, if it may be taken.
#[inline]
fn run_end(
    scan: Scan<'_>,
    pos: usize,
    after_lead: Option<usize>,
    letters: Classes,
) -> Option<usize> {
    if let Some(start) = after_lead {
        let end = scan.run(start, letters);
        if end > start {
            return Some(end);
        }
    }
    let end = scan.run(pos, letters);
    (end > pos).then_some(end)
}

/// `LEAD?UPPER*LOWER+|LEAD?UPPER+LOWER*`, where a letter that is not ASCII is both.
fn cased_end(
    scan: Scan<'_>,
    pos: usize,
    after_lead: Option<usize>,
    letters: Classes,
) -> Option<usize> {
    let candidates = [after_lead, Some(pos)];
    let words = candidates.map(|start| start.map(|start| CasedWord::at(scan, start, letters)));
    let first_of = |end: fn(&CasedWord) -> Option<usize>| words.iter().flatten().find_map(end);
    first_of(|word| word.end_with_lower).or_else(|| first_of(|word| word.end_of_upper))
}

/// The two ways in which a word with case can end.
struct CasedWord {
    /// The end of `UPPER*LOWER+`.
    end_with_lower: Option<usize>,
    /// The end of `UPPER+` (`LOWER*` is empty where the first way fails).
    end_of_upper: Option<usize>,
}

impl CasedWord {
    fn at(scan: Scan<'_>, start: usize, letters: Classes) -> CasedWord {
        let mut pos = start;
        let mut after_last_caseless = None;
        while let Some(ch) = scan.at(pos) {
            if !ch.class.is_in(letters) || ch.c.is_ascii_lowercase() {
                break;
            }
            pos = ch.end;
            if !ch.c.is_ascii() {
                after_last_caseless = Some(pos);
            }
        }
        let lower_end = scan.run_while(pos, |ch| {
            ch.class.is_in(letters) && !ch.c.is_ascii_uppercase()
        });
        // Without small letters after the capitals, the last caseless letter serves as one.
        let end_with_lower = if lower_end > pos {
            Some(lower_end)
        } else {
            after_last_caseless
        };
        CasedWord {
            end_with_lower,
            end_of_upper: (pos > start).then_some(pos),
        }
    }
}

/// `(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+`
fn phrase_end(scan: Scan<'_>, start: usize) -> Option<usize> {
    let mut end = scan.at(start).filter(|ch| ch.class.is_in(LETTERS))?.end;
    while let Some(ch) = scan.at(end) {
        if ch.class.is_in(LETTERS_AND_MARKS) {
            end = ch.end;
            continue;
        }
        match scan.at(ch.end) {
            Some(next) if ch.c == ' ' && next.class.is_in(LETTERS) => end = next.end,
            _ => break,
        }
    }
    Some(end)
}

#[inline]
fn with_contraction(scan: Scan<'_>, end: usize) -> usize {
    scan.contraction(end, Case::Either).unwrap_or(end)
}

/// `\p{N}{1,most}`
#[inline]
pub(super) fn digits_end(scan: Scan<'_>, mut pos: usize, most: usize) -> usize {
    for _ in 0..most {
        match scan.at(pos) {
            Some(ch) if ch.class.is_in(Classes::NUMBER) => pos = ch.end,
            _ => break,
        }
    }
    pos
}

/// Chinese characters: the unified ideographs with extensions A to F, and the compatibility ideographs.
fn is_han(c: char) -> bool {
    matches!(c,
        '\u{4e00}'..='\u{9fff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{20000}'..='\u{2a6df}'
        | '\u{2a700}'..='\u{2ebef}'
        | '\u{f900}'..='\u{faff}'
        | '\u{2f800}'..='\u{2fa1f}')
}
