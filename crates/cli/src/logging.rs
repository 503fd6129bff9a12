//! What is logged, to standard error.

use std::io::IsTerminal;

use tracing_subscriber::filter::LevelFilter;

use crate::args::{Global, LogLevel};

/// Starts logging. `quiet` and `-v` move the level that suits the command.
pub(crate) fn start(global: &Global, is_server: bool) {
    let level = global
        .log_level
        .map_or_else(|| level_of(global, is_server), filter);
    let colour = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let logging = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(colour)
        .with_target(level >= LevelFilter::DEBUG);
    // A second start (only in tests) keeps the first.
    let _ = if is_server {
        logging.try_init()
    } else {
        logging.without_time().try_init()
    };
}

fn level_of(global: &Global, is_server: bool) -> LevelFilter {
    match (global.quiet, global.verbose_log) {
        (true, _) => LevelFilter::ERROR,
        (false, 0) if is_server => LevelFilter::INFO,
        (false, 0) => LevelFilter::WARN,
        (false, 1) if is_server => LevelFilter::DEBUG,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
