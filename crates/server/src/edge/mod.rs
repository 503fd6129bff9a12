//! What every request passes before its handler: log and panic guard, Host and Origin, keys.

pub(crate) mod gate;
pub(crate) mod hosts;
pub(crate) mod keys;
pub(crate) mod observe;
