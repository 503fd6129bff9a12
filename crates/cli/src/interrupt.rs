//! Ctrl-C, and the signal by which a process manager asks for an end. By default either ends the process at once (codes 130
//! and 143); while an answer is being written or a server runs they only ask for an end, and a second one ends the process.

use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use signal_hook::consts::{SIGINT, SIGTERM};
use tokio::sync::watch;

use crate::exit;

/// What the next Ctrl-C does.
enum Mode {
    /// Ends the process, after saying this.
    Exit(String),
    /// Tells whoever watches; `true` once pressed.
    Tell(watch::Sender<bool>),
}

/// A shell's code for a process ended by `SIGTERM`.
const TERMINATED: i32 = 143;

static MODE: Mutex<Mode> = Mutex::new(Mode::Exit(String::new()));

fn mode() -> MutexGuard<'static, Mode> {
    MODE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the thread that waits for Ctrl-C; later calls do nothing. Without it (no thread to be had) the signal keeps its
/// plain meaning.
pub(crate) fn install() {
    static STARTED: OnceLock<()> = OnceLock::new();
    STARTED.get_or_init(|| {
        if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) {
            let wait = move || signals.forever().for_each(received);
            let _ = std::thread::Builder::new()
                .name("interrupt".to_owned())
                .spawn(wait);
        }
    });
}

fn received(signal: i32) {
    let code = if signal == SIGTERM {
        TERMINATED
    } else {
        i32::from(exit::INTERRUPTED)
    };
    match &*mode() {
        Mode::Exit(last_words) => end(last_words, code),
        Mode::Tell(sender) => {
            if sender.send_replace(true) {
                end("", code);
            }
        }
    }
}

// The one place that ends the process from another thread: destructors do not run, and everything that must survive
// (downloaded parts) is on disk by then.
#[allow(clippy::exit)]
fn end(last_words: &str, code: i32) {
    let mut stderr = std::io::stderr().lock();
    let _ = if last_words.is_empty() {
        writeln!(stderr)
    } else {
        writeln!(stderr, "\n{last_words}")
    };
    std::process::exit(code);
}

/// While this lives, Ctrl-C means something else; the former meaning comes back on drop.
pub(crate) struct Guard(Option<Mode>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(former) = self.0.take() {
            *mode() = former;
        }
    }
}

/// From here, Ctrl-C ends the process after printing `last_words`.
pub(crate) fn exit_saying(last_words: String) -> Guard {
    install();
    Guard(Some(std::mem::replace(
        &mut *mode(),
        Mode::Exit(last_words),
    )))
}

/// From here, the first Ctrl-C turns the receiver's value to `true`; a second one ends the process.
pub(crate) fn watch() -> (Guard, watch::Receiver<bool>) {
    install();
    let (sender, receiver) = watch::channel(false);
    (
        Guard(Some(std::mem::replace(&mut *mode(), Mode::Tell(sender)))),
        receiver,
    )
}
