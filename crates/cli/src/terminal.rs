//! What the terminal can show: colour, bars, aligned tables, human units. Results go to standard output, all else to
//! standard error; colour and bars appear only on a terminal, and not under `NO_COLOR` or `TERM=dumb`.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// What the user asked to see, and what the streams are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    /// Colour on standard output.
    pub(crate) colour: bool,
    /// Bars and spinners on standard error.
    pub(crate) bars: bool,
    /// No notes: only results and errors.
    pub(crate) quiet: bool,
}

impl Terminal {
    /// Looks at the streams and at the environment.
    pub(crate) fn detect(quiet: bool) -> Terminal {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
        Terminal {
            colour: !plain && io::stdout().is_terminal(),
            bars: !quiet
                && io::stderr().is_terminal()
                && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
            quiet,
        }
    }

    /// A remark for the person at the terminal, on standard error.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            // A closed standard error is no reason to fail.
            let _ = writeln!(io::stderr().lock(), "{text}");
        }
    }

    /// `text` dimmed, where colour is shown.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.style("2", text)
    }

    /// `text` bold, where colour is shown.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.style("1", text)
    }

    /// `text` in green or red by `good`, where colour is shown.
    pub(crate) fn verdict(&self, good: bool, text: &str) -> String {
        self.style(if good { "32" } else { "31" }, text)
    }

    fn style(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A bar over a number of bytes; hidden where bars are not shown.
    pub(crate) fn byte_bar(&self, total: Option<u64>, what: &str) -> ProgressBar {
        let bar = self.hidden_or(ProgressBar::new(total.unwrap_or(0)));
        let template = if total.is_some() {
            "{msg} {wide_bar} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}"
        } else {
            "{msg} {spinner} {decimal_bytes} {decimal_bytes_per_sec}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(what.to_owned());
        bar
    }

    fn hidden_or(&self, bar: ProgressBar) -> ProgressBar {
        if !self.bars {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar
    }
}

/// Writes a line of a result to standard output.
///
/// # Errors
/// The write's own error; a closed pipe among them, which ends the command quietly.
pub(crate) fn line(text: &str) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{text}")
}

/// Writes a value as indented JSON to standard output.
///
/// # Errors
/// As [`line()`].
pub(crate) fn json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(line(&serde_json::to_string_pretty(value)?)?)
}

/// How a column lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// Lines up `rows` under `head` with two spaces between the columns, and no space at the end of a line.
pub(crate) fn table(head: &[(&str, Align)], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count());
        cells
            .chain([head[column].0.chars().count()])
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let titles: Vec<String> = head.iter().map(|(title, _)| (*title).to_owned()).collect();
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        let mut line = String::new();
        for ((cell, (_, align)), width) in row.iter().zip(head).zip(&widths) {
            let pad = " ".repeat(width - cell.chars().count().min(*width));
            let _ = match align {
                Align::Left => write!(line, "{cell}{pad}  "),
                Align::Right => write!(line, "{pad}{cell}  "),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `98362432` as `98.4 MB`: decimal units, three figures.
pub(crate) fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = n as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match unit {
        0 => format!("{n} B"),
        _ if value < 9.995 => format!("{value:.2} {}", UNITS[unit]),
        _ if value < 99.95 => format!("{value:.1} {}", UNITS[unit]),
        _ => format!("{value:.0} {}", UNITS[unit]),
    }
}

/// `134515008` as `135 M`, for counts of parameters.
pub(crate) fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.0} K", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} M", n as f64 / 1e6),
        _ => format!("{:.2} B", n as f64 / 1e9),
    }
}

/// A file's text with everything that could steer a terminal taken out: names and templates come from strangers.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\n' && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_keep_three_figures() {
        for (n, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1_000, "1.00 kB"),
            (98_362_432, "98.4 MB"),
            (999_900, "1.00 MB"),
            (253_113_024, "253 MB"),
            (4_920_000_000, "4.92 GB"),
        ] {
            assert_eq!(bytes(n), text);
        }
        assert_eq!(count(134_515_008), "135 M");
        assert_eq!(count(1_543_714_304), "1.54 B");
    }

    #[test]
    fn columns_line_up_and_lines_do_not_trail() {
        let rows = vec![
            vec!["a".to_owned(), "10".to_owned()],
            vec!["longer".to_owned(), "1".to_owned()],
        ];
        let text = table(&[("NAME", Align::Left), ("N", Align::Right)], &rows);
        assert_eq!(text, "NAME     N\na       10\nlonger   1\n");
    }

    #[test]
    fn escape_sequences_are_disarmed() {
        assert_eq!(printable("a\u{1b}[31mb\n"), "a\u{fffd}[31mb\n");
    }
}
