//! How a command ends: 0 done, 1 failed, 2 wrong usage, 130 interrupted.

use std::fmt;
use std::process::ExitCode;

/// Wrong usage: a flag, a setting or a name that cannot be meant.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// The user pressed Ctrl-C. The text says what was left behind, or is empty.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) String);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Interrupted {}

/// A shell's code for a process ended by Ctrl-C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Makes a wrong-usage error.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(message.into()))
}

/// The exit code that an error stands for. A reader that closed the pipe has had all it wanted: that is success.
pub(crate) fn code_of(error: &anyhow::Error) -> ExitCode {
    if is_closed_pipe(error) {
        return ExitCode::SUCCESS;
    }
    if error.chain().any(|cause| cause.is::<Interrupted>()) {
        return ExitCode::from(INTERRUPTED);
    }
    if error.chain().any(|cause| cause.is::<Usage>()) {
        return ExitCode::from(2);
    }
    ExitCode::from(1)
}

/// Whether the error only says that nobody reads standard output any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn context_does_not_hide_the_kind_of_an_error() {
        let error = Err::<(), _>(usage("no such flag"))
            .context("while parsing")
            .unwrap_err();
        assert_eq!(code_of(&error), ExitCode::from(2));
        let error = anyhow::Error::new(Interrupted(String::new())).context("pull");
        assert_eq!(code_of(&error), ExitCode::from(130));
        assert_eq!(code_of(&anyhow::anyhow!("disk")), ExitCode::from(1));
    }
}
