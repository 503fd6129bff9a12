//! White space between words, which nearly all families cut the same way.

use super::scan::Scan;
use crate::tokenizer::char_class::Classes;

/// How a run of white space is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spaces {
    /// Up to the last line break in one piece, else all but the last character, which goes with the next word:
    /// `\s*[\r\n]+|\s+(?!\S)|\s+`.
    BreaksThenRest,
    /// The same without the first alternative: `\s+(?!\S)|\s+`.
    Rest,
    /// Up to the last line break, else pieces of 512, 256, 128, 64, 32, 16, 8, 4, 2, 1 characters:
    /// `\s*[\r\n]+|\s{512}(?!\S)|...|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1}`.
    BreaksThenPowersOfTwo,
}

impl Spaces {
    /// Cuts from the white space at `pos`, emits at least one piece, and says where the next piece starts.
    pub(super) fn split(self, scan: Scan<'_>, pos: usize, emit: &mut dyn FnMut(&str)) -> usize {
        let run = Run::at(scan, pos);
        if let (Some(end), Spaces::BreaksThenRest | Spaces::BreaksThenPowersOfTwo) =
            (run.after_last_break, self)
        {
            emit(scan.slice(pos, end));
            return end;
        }
        if self == Spaces::BreaksThenPowersOfTwo {
            return split_powers_of_two(scan, pos, run, emit);
        }
        // The last character of the run is left for a word that follows.
        let end = if run.n_chars > 1 && scan.goes_on(run.end) {
            run.last_start
        } else {
            run.end
        };
        emit(scan.slice(pos, end));
        end
    }
}

/// A run of white space.
#[derive(Clone, Copy)]
struct Run {
    n_chars: usize,
    end: usize,
    /// Where its last character starts.
    last_start: usize,
    after_last_break: Option<usize>,
}

impl Run {
    fn at(scan: Scan<'_>, start: usize) -> Run {
        let mut run = Run {
            n_chars: 0,
            end: start,
            last_start: start,
            after_last_break: None,
        };
        while let Some(ch) = scan.at(run.end).filter(|ch| ch.class.is_in(Classes::SPACE)) {
            run.n_chars += 1;
            run.last_start = run.end;
            run.end = ch.end;
            if is_line_break(ch.c) {
                run.after_last_break = Some(ch.end);
            }
        }
        run
    }
}

/// The whole run is cut at once, as each piece's length depends on where the run ends.
fn split_powers_of_two(
    scan: Scan<'_>,
    start: usize,
    run: Run,
    emit: &mut dyn FnMut(&str),
) -> usize {
    let at_end = !scan.goes_on(run.end);
    let mut pos = start;
    let mut left = run.n_chars;
    while left > 0 {
        // A piece must not reach the word that follows.
        let most = if at_end { left } else { left - 1 };
        let n_chars = [512, 256, 128, 64, 32, 16, 8, 4, 2]
            .into_iter()
            .find(|n| *n <= most)
            .unwrap_or(1);
        if left == 1 && left < run.n_chars && !at_end {
            // The next word may take the last space.
            break;
        }
        let end = (0..n_chars).fold(pos, |pos, _| scan.at(pos).map_or(pos, |ch| ch.end));
        emit(scan.slice(pos, end));
        pos = end;
        left -= n_chars;
    }
    pos
}

/// Carriage return or line feed.
#[inline]
pub(super) fn is_line_break(c: char) -> bool {
    matches!(c, '\r' | '\n')
}
