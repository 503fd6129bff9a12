//! What `serve`, `ps` and `stop` share: flags of another server's command line, the listener, and the files by which
//! running servers are found.

pub(crate) mod client;
pub(crate) mod foreign;
pub(crate) mod listen;
pub(crate) mod registry;
