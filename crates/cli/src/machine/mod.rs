//! What this machine is and has.

pub(crate) mod cpu;
pub(crate) mod disk;
pub(crate) mod kernels;
pub(crate) mod memory;
