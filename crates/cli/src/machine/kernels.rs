//! The kernels: which sets this processor can run, which one runs, and whether it computes right.

use dynalm_kernels::Isa;
use serde::{Serialize, Serializer};

/// What is known of the kernels.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Kernels {
    /// The set in use.
    pub(crate) chosen: &'static str,
    /// The sets this processor can run, best first.
    pub(crate) available: Vec<&'static str>,
    /// Why `DYNALM_ISA` cannot be honoured.
    pub(crate) refused: Option<String>,
    /// Whether the chosen set computes what it should.
    #[serde(serialize_with = "as_text")]
    pub(crate) self_test: Result<(), String>,
}

impl Kernels {
    /// Looks, and runs the self-test.
    pub(crate) fn examine() -> Kernels {
        let refused = Isa::from_environment().err();
        Kernels {
            chosen: Isa::active().name(),
            available: Isa::available().iter().map(|isa| isa.name()).collect(),
            refused,
            self_test: self_test(),
        }
    }

    /// What speaks against serving.
    pub(crate) fn problem(&self) -> Option<String> {
        let failed = self
            .self_test
            .as_ref()
            .err()
            .map(|error| format!("the kernels compute wrong: {error}"));
        self.refused.clone().or(failed)
    }
}

fn as_text<S: Serializer>(result: &Result<(), String>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(result.as_ref().map_or_else(String::as_str, |()| "passed"))
}

/// The seam to the kernels' own test.
fn self_test() -> Result<(), String> {
    dynalm_kernels::self_test(Isa::active())
}
