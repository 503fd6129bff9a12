//! The stages that rules are made of.

use super::char_sets::{BOPOMOFO, CHINESE_PUNCTUATION, HAN_AND_KANA, HANGUL, Ranges, contains};
use super::punct_words::{self, Breaks};
use super::scan::{CharAt, Scan, isolate};
use super::words::{Words, digits_end};
use super::{gpt2, spaces::is_line_break};
use crate::tokenizer::char_class::Classes;

/// One way to cut a piece further. Where the description is a regular expression, its matches and the stretches
/// between them become pieces.
#[derive(Debug, Clone, Copy)]
pub(super) enum Stage {
    /// See [`gpt2`].
    Gpt2,
    /// See [`Words`].
    Words(Words),
    /// See [`punct_words`].
    PunctWords(Breaks),
    /// `\p{N}{1,n}`
    Digits(usize),
    /// `[0-9][0-9][0-9]`
    AsciiDigitTriples,
    /// Runs of `\p{N}`, cut into threes from the right; text before a run stays with its first group.
    DigitsFromRight,
    /// `(?=([0-9]{3})+(?![0-9]))`: cuts, from the right, before each three of a run of digits.
    AsciiDigitsFromRight,
    /// `[ranges]+`, where white space counts as outside
    Set(Ranges),
    /// `\s?[classes]+`
    SpacedClasses(Classes),
    /// `\s?[ranges]+`, the same
    SpacedSet(Ranges),
    /// `\s+$`
    TrailingSpaces,
    /// `[\r\n]`
    SingleBreaks,
    /// `[^\n]+|[\n]+`
    Lines,
    /// `\S+`
    NonSpaces,
    /// Runs of punctuation and the ASCII symbols.
    Signs {
        /// Whether the backtick is one.
        backtick: bool,
    },
    /// ` ?[^(\s|.,!?…。，、।۔،)]+`
    Unpunctuated,
    /// Runs of Hangul, Chinese punctuation, bopomofo, ideographs with kana.
    EastAsianScripts,
    /// `<sentinel:[0-9]+>`
    Sentinels,
    /// `IMGIMG[A-I]{1,4}Z`
    ImageTokens,
    /// `[\t\n]|    |  `
    Indents,
    /// One punctuation mark or ASCII symbol.
    SingleSigns,
}

impl Stage {
    /// Cuts a piece.
    pub(super) fn split(&self, text: &str, emit: &mut dyn FnMut(&str)) {
        match *self {
            Stage::Gpt2 => gpt2::split(text, emit),
            Stage::Words(words) => words.split(text, emit),
            Stage::PunctWords(breaks) => punct_words::split(breaks, text, emit),
            Stage::Digits(most) => isolate(text, emit, |scan, pos| digits_end(scan, pos, most)),
            Stage::AsciiDigitTriples => isolate(text, emit, ascii_triple_end),
            Stage::DigitsFromRight => digits_from_right(text, emit),
            Stage::AsciiDigitsFromRight => ascii_digits_from_right(text, emit),
            Stage::Set(ranges) => isolate(text, emit, |scan, pos| {
                scan.run_while(pos, |ch| in_set(ranges, ch))
            }),
            Stage::SpacedClasses(classes) => {
                isolate(text, emit, |scan, pos| {
                    spaced_end(scan, pos, |ch| ch.class.is_in(classes))
                });
            }
            Stage::SpacedSet(ranges) => {
                isolate(text, emit, |scan, pos| {
                    spaced_end(scan, pos, |ch| in_set(ranges, ch))
                });
            }
            Stage::TrailingSpaces => trailing_spaces(text, emit),
            Stage::SingleBreaks => isolate(text, emit, |scan, pos| {
                one_if(scan, pos, |ch| is_line_break(ch.c))
            }),
            Stage::Lines => isolate(text, emit, |scan, pos| {
                scan.run_while(pos, |ch| ch.c == '\n')
            }),
            Stage::NonSpaces => {
                isolate(text, emit, |scan, pos| scan.run(pos, Classes::SPACE.not()))
            }
            Stage::Signs { backtick } => isolate(text, emit, |scan, pos| {
                scan.run_while(pos, |ch| is_sign(ch) && (backtick || ch.c != '`'))
            }),
            Stage::Unpunctuated => isolate(text, emit, unpunctuated_end),
            Stage::EastAsianScripts => isolate(text, emit, script_end),
            Stage::Sentinels => isolate(text, emit, sentinel_end),
            Stage::ImageTokens => isolate(text, emit, image_end),
            Stage::Indents => isolate(text, emit, indent_end),
            Stage::SingleSigns => isolate(text, emit, |scan, pos| one_if(scan, pos, is_sign)),
        }
    }
}

fn in_set(ranges: Ranges, ch: CharAt) -> bool {
    contains(ranges, ch.c) && !ch.class.is_in(Classes::SPACE)
}

fn is_sign(ch: CharAt) -> bool {
    ch.class.is_in(Classes::PUNCTUATION) || ch.c.is_ascii_punctuation()
}

fn one_if(scan: Scan<'_>, pos: usize, accept: impl Fn(CharAt) -> bool) -> usize {
    scan.at(pos)
        .filter(|ch| accept(*ch))
        .map_or(pos, |ch| ch.end)
}

/// One optional white space, then a run.
fn spaced_end(scan: Scan<'_>, pos: usize, accept: impl Fn(CharAt) -> bool) -> usize {
    let start = one_if(scan, pos, |ch| ch.class.is_in(Classes::SPACE));
    let end = scan.run_while(start, accept);
    if end > start { end } else { pos }
}

fn ascii_triple_end(scan: Scan<'_>, pos: usize) -> usize {
    match scan.text.as_bytes().get(pos..pos + 3) {
        Some(three) if three.iter().all(u8::is_ascii_digit) => pos + 3,
        _ => pos,
    }
}

fn trailing_spaces(text: &str, emit: &mut dyn FnMut(&str)) {
    let scan = Scan { text };
    let last = text
        .char_indices()
        .rev()
        .find(|(pos, _)| !scan.is(*pos, Classes::SPACE));
    let start = last.map_or(0, |(pos, c)| pos + c.len_utf8());
    for piece in [scan.slice(0, start), scan.slice(start, text.len())] {
        if !piece.is_empty() {
            emit(piece);
        }
    }
}

fn digits_from_right(text: &str, emit: &mut dyn FnMut(&str)) {
    let scan = Scan { text };
    let mut piece_start = 0;
    let mut pos = 0;
    while let Some(ch) = scan.at(pos) {
        if !ch.class.is_in(Classes::NUMBER) {
            pos = ch.end;
            continue;
        }
        let end = scan.run(pos, Classes::NUMBER);
        let mut n_left = scan.slice(pos, end).chars().count();
        while pos < end {
            let first_group = if n_left.is_multiple_of(3) {
                3
            } else {
                n_left % 3
            };
            pos = digits_end(scan, pos, first_group);
            n_left -= first_group;
            emit(scan.slice(piece_start, pos));
            piece_start = pos;
        }
    }
    if piece_start < text.len() {
        emit(scan.slice(piece_start, text.len()));
    }
}

fn ascii_digits_from_right(text: &str, emit: &mut dyn FnMut(&str)) {
    let scan = Scan { text };
    let mut piece_start = 0;
    let mut pos = 0;
    while let Some(ch) = scan.at(pos) {
        if !ch.c.is_ascii_digit() {
            pos = ch.end;
            continue;
        }
        let end = scan.run_while(pos, |ch| ch.c.is_ascii_digit());
        // Cuts lie where a multiple of three digits is left. Digits are one byte each.
        let mut cut = pos + (end - pos) % 3;
        while cut < end {
            if cut > piece_start {
                emit(scan.slice(piece_start, cut));
                piece_start = cut;
            }
            cut += 3;
        }
        pos = end;
    }
    if piece_start < text.len() {
        emit(scan.slice(piece_start, text.len()));
    }
}

fn unpunctuated_end(scan: Scan<'_>, pos: usize) -> usize {
    let start = one_if(scan, pos, |ch| ch.c == ' ');
    let end = scan.run_while(start, |ch| {
        let ends = matches!(
            ch.c,
            '(' | '|' | '.' | ',' | '!' | '?' | '…' | '。' | '，' | '、' | '।' | '۔' | '،' | ')'
        );
        !ends && !ch.class.is_in(Classes::SPACE)
    });
    if end > start { end } else { pos }
}

fn script_end(scan: Scan<'_>, pos: usize) -> usize {
    [HANGUL, CHINESE_PUNCTUATION, BOPOMOFO, HAN_AND_KANA]
        .into_iter()
        .map(|script| scan.run_while(pos, |ch| contains(script, ch.c)))
        .find(|end| *end > pos)
        .unwrap_or(pos)
}

fn sentinel_end(scan: Scan<'_>, pos: usize) -> usize {
    let rest = scan.slice(pos, scan.text.len());
    let Some(after) = rest.strip_prefix("<sentinel:") else {
        return pos;
    };
    let n_digits = after.bytes().take_while(u8::is_ascii_digit).count();
    if n_digits > 0 && after.as_bytes().get(n_digits) == Some(&b'>') {
        pos + "<sentinel:".len() + n_digits + 1
    } else {
        pos
    }
}

fn image_end(scan: Scan<'_>, pos: usize) -> usize {
    let rest = scan.slice(pos, scan.text.len());
    let Some(after) = rest.strip_prefix("IMGIMG") else {
        return pos;
    };
    let n_letters = after
        .bytes()
        .take(5)
        .take_while(|byte| matches!(byte, b'A'..=b'I'))
        .count();
    if matches!(n_letters, 1..=4) && after.as_bytes().get(n_letters) == Some(&b'Z') {
        pos + "IMGIMG".len() + n_letters + 1
    } else {
        pos
    }
}

fn indent_end(scan: Scan<'_>, pos: usize) -> usize {
    let rest = scan.text.as_bytes().get(pos..).unwrap_or_default();
    let length = match rest {
        [b'\t' | b'\n', ..] => 1,
        [b' ', b' ', b' ', b' ', ..] => 4,
        [b' ', b' ', ..] => 2,
        _ => 0,
    };
    pos + length
}
