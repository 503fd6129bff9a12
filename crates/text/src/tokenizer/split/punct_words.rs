//! DeepSeek 3's rule, shared by a few others: a word may begin with an ASCII punctuation mark, marks belong to words,
//! digits are left to an earlier stage.
//!
//! ```text
//! [ASCII punctuation][A-Za-z]+
//! [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
//!  ?[\p{P}\p{S}]+[\r\n]*
//! \s*[\r\n]+|\s+(?!\S)|\s+
//! ```
//!
//! What no alternative takes (digits, control characters) is left in one piece.

use super::scan::{CharAt, Scan};
use super::spaces::{Spaces, is_line_break};
use super::words::LETTERS_AND_MARKS;
use crate::tokenizer::char_class::Classes;

/// How line breaks are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaks {
    /// With the punctuation or white space before them, as above.
    Together,
    /// One by one: the last two lines above become ` ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+`.
    Single,
}

const SIGNS: Classes = Classes::PUNCTUATION.or(Classes::SYMBOL);

/// Cuts a text into words.
pub(super) fn split(breaks: Breaks, text: &str, emit: &mut dyn FnMut(&str)) {
    let scan = Scan { text };
    let mut gap_start = 0;
    let mut pos = 0;
    while let Some(first) = scan.at(pos) {
        let end = piece_end(breaks, scan, pos, first);
        if end.is_none() && !first.class.is_in(Classes::SPACE) {
            pos = first.end;
            continue;
        }
        if gap_start < pos {
            emit(scan.slice(gap_start, pos));
        }
        pos = match (end, breaks) {
            (Some(end), _) => {
                emit(scan.slice(pos, end));
                end
            }
            (None, Breaks::Together) => Spaces::BreaksThenRest.split(scan, pos, emit),
            (None, Breaks::Single) => Spaces::Rest.split(scan, pos, emit),
        };
        gap_start = pos;
    }
    if gap_start < pos {
        emit(scan.slice(gap_start, pos));
    }
}

fn piece_end(breaks: Breaks, scan: Scan<'_>, pos: usize, first: CharAt) -> Option<usize> {
    if first.c.is_ascii_punctuation() {
        let end = scan.run_while(first.end, |ch| ch.c.is_ascii_alphabetic());
        if end > first.end {
            return Some(end);
        }
    }
    let may_lead = !first.class.is_in(SIGNS.or(Classes::LETTER)) && !is_line_break(first.c);
    let start = if may_lead { first.end } else { pos };
    let end = scan.run(start, LETTERS_AND_MARKS);
    if end > start {
        return Some(end);
    }
    if first.class.is_in(Classes::MARK) {
        return Some(first.end);
    }
    let start = if first.c == ' ' { first.end } else { pos };
    let end = scan.run(start, SIGNS);
    match breaks {
        Breaks::Together if end > start => Some(scan.run_while(end, |ch| is_line_break(ch.c))),
        Breaks::Single if end > start => Some(end),
        Breaks::Single if is_line_break(first.c) => Some(first.end),
        _ => None,
    }
}
