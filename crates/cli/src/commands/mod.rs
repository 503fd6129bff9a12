//! The commands, one a file. Each takes its arguments and the [`App`](crate::app::App).

pub(crate) mod benchmark;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod doctor;
pub(crate) mod inspect;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod ps;
pub(crate) mod pull;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod stop;
