//! GPT-2's rule: `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.

use super::scan::{Case, CharAt, Scan};
use super::spaces::Spaces;
use crate::tokenizer::char_class::Classes;

/// Cuts a text into words.
pub(super) fn split(text: &str, emit: &mut dyn FnMut(&str)) {
    let scan = Scan { text };
    let mut pos = 0;
    while let Some(first) = scan.at(pos) {
        pos = match piece_end(scan, pos, first) {
            Some(end) => {
                emit(scan.slice(pos, end));
                end
            }
            None => Spaces::Rest.split(scan, pos, emit),
        };
    }
}

/// `None` at white space that no word takes.
#[inline]
fn piece_end(scan: Scan<'_>, pos: usize, first: CharAt) -> Option<usize> {
    if let Some(end) = scan.contraction(pos, Case::Lower) {
        return Some(end);
    }
    let (start, class) = if first.c == ' ' {
        (first.end, scan.at(first.end)?.class)
    } else {
        (pos, first.class)
    };
    let run = if class.is_in(Classes::LETTER) {
        Classes::LETTER
    } else if class.is_in(Classes::NUMBER) {
        Classes::NUMBER
    } else if class.is_in(Classes::SPACE) {
        return None;
    } else {
        Classes::LETTER.or(Classes::NUMBER).or(Classes::SPACE).not()
    };
    Some(scan.run(start, run))
}
