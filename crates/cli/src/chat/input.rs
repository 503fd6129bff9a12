//! Where lines come from: a person at the terminal, with history and editing, or a pipe.

use std::borrow::Cow;
use std::io::{BufRead, IsTerminal};

use anyhow::Context;
use reedline::{
    FileBackedHistory, Prompt, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus,
    Reedline, Signal, ValidationResult, Validator,
};

use crate::paths::Paths;

/// One thing that was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A text or a command.
    Text(String),
    /// Ctrl-C at the prompt.
    Interrupted,
    /// Ctrl-D, or the end of the pipe.
    End,
}

/// Where lines come from.
pub(crate) enum Input {
    /// A person.
    Terminal(Box<Reedline>),
    /// A pipe.
    Pipe,
}

const HISTORY_LINES: usize = 1000;
const FENCE: &str = "\"\"\"";

impl Input {
    /// The terminal, if both ends are one; else the pipe.
    ///
    /// # Errors
    /// A history file that cannot be used.
    pub(crate) fn open(paths: &Paths) -> anyhow::Result<Input> {
        if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
            return Ok(Input::Pipe);
        }
        let path = paths.history();
        let history = FileBackedHistory::with_file(HISTORY_LINES, path.clone())
            .with_context(|| format!("cannot use the history file {}", path.display()))?;
        let editor = Reedline::create()
            .with_history(Box::new(history))
            .with_validator(Box::new(Fenced))
            .use_bracketed_paste(true);
        Ok(Input::Terminal(Box::new(editor)))
    }

    /// Whether a person types.
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Input::Terminal(_))
    }

    /// Waits for what is typed next; texts between `"""` come without them.
    ///
    /// # Errors
    /// A terminal that fails.
    pub(crate) fn next(&mut self) -> anyhow::Result<Line> {
        match self {
            Input::Pipe => read_pipe(&mut std::io::stdin().lock()),
            Input::Terminal(editor) => {
                match editor.read_line(&Caret).context("the terminal failed")? {
                    Signal::Success(text) => Ok(Line::Text(unfence(&text))),
                    Signal::CtrlD => Ok(Line::End),
                    _ => Ok(Line::Interrupted),
                }
            }
        }
    }
}

fn read_pipe(lines: &mut impl BufRead) -> anyhow::Result<Line> {
    let mut text = String::new();
    if lines.read_line(&mut text)? == 0 {
        return Ok(Line::End);
    }
    while !is_closed(&text) && lines.read_line(&mut text)? > 0 {}
    Ok(Line::Text(unfence(&text)))
}

/// Whether a text that begins with `"""` has its second one.
fn is_closed(text: &str) -> bool {
    text.trim_start()
        .strip_prefix(FENCE)
        .is_none_or(|rest| rest.contains(FENCE))
}

fn unfence(text: &str) -> String {
    let text = text.trim_end_matches(['\n', '\r']);
    match text.trim().strip_prefix(FENCE) {
        Some(rest) => rest
            .strip_suffix(FENCE)
            .unwrap_or(rest)
            .trim_matches('\n')
            .to_owned(),
        None => text.to_owned(),
    }
}

/// Enter goes to the next line while a `"""` is open.
struct Fenced;

impl Validator for Fenced {
    fn validate(&self, line: &str) -> ValidationResult {
        if is_closed(line) {
            ValidationResult::Complete
        } else {
            ValidationResult::Incomplete
        }
    }
}

/// The prompt.
struct Caret;

impl Prompt for Caret {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed(">>> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("... ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "nothing ",
        };
        Cow::Owned(format!("({found}found for `{}`) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut lines = text.as_bytes();
        let mut found = Vec::new();
        while let Line::Text(text) = read_pipe(&mut lines).unwrap() {
            found.push(text);
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_pipe_gives_lines_and_fenced_texts() {
        check("one\ntwo", &["one", "two"]);
        check("\"\"\"one\ntwo\"\"\"\nthree\n", &["one\ntwo", "three"]);
        check("\"\"\"\none\n\"\"\"\n", &["one"]);
        check("\"\"\"never closed\n", &["never closed"]);
        check("\"\"\"one line\"\"\"\n", &["one line"]);
    }
}
