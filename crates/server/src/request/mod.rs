//! What the dialects' requests have in common: reading fields, sampling parameters, limits, prompts.

pub(crate) mod body;
pub(crate) mod fields;
pub(crate) mod options;
pub(crate) mod prompt;
pub(crate) mod refused;
pub(crate) mod sampling;
