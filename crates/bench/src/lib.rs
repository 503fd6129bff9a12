//! Benchmarks of a model on this machine, with the machine's own limits beside them.
//!
//! Prefill and decode are measured on the model itself, as steps of a known number of rows; the time to the first token on
//! the engine, as a user meets it. Each measurement is repeated, its median shown with its spread. The machine's int8 peak
//! and read bandwidth are measured between the repeats, because neighbours on the machine move them within minutes: only a
//! share of what the machine gave at that time means something.
//!
//! This crate does not print: [`run`] returns a [`Report`], which serializes and renders as a [`table`].

mod measure;
mod options;
mod process;
mod report;
mod spread;
mod table;
mod work;

pub use measure::{BenchError, run};
pub use options::BenchOptions;
pub use process::{peak_resident_bytes, resident_bytes};
pub use report::{
    DecodeResult, FirstTokenResult, MachineReport, ModelReport, PrefillResult, Report,
};
pub use spread::Spread;
pub use table::table;
pub use work::Work;
