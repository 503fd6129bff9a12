//! Looks at the first bytes of a download, so that a model that cannot be run is refused before the rest is fetched.

use anyhow::{Context, bail};

use super::part::Part;
use crate::model_file;

/// Watches one file grow.
pub(crate) struct Probe {
    /// Length at which to look next; `None` once the header was judged, or where there is none to judge.
    next: Option<u64>,
}

impl Probe {
    /// Watches a file; the later shards of a set have nothing to judge.
    pub(crate) fn new(has_header: bool) -> Probe {
        Probe {
            next: has_header.then_some(model_file::FIRST_LOOK_BYTES),
        }
    }

    /// Looks, if enough has come since the last time.
    ///
    /// # Errors
    /// The file is no GGUF file, or cannot be run.
    pub(crate) fn look(&mut self, part: &Part, total: Option<u64>) -> anyhow::Result<()> {
        let Some(next) = self.next.filter(|&next| part.len() >= next) else {
            return Ok(());
        };
        // Where the server does not tell the length, the tensors' places are judged at the end.
        let judged = self.judge(part, total.unwrap_or(u64::MAX))?;
        self.next = (!judged).then_some(next.saturating_mul(2));
        Ok(())
    }

    /// Looks at the finished file.
    ///
    /// # Errors
    /// As [`look`](Probe::look); also a file that ends inside its header.
    pub(crate) fn finish(&mut self, part: &Part) -> anyhow::Result<()> {
        if self.next.is_some() && !self.judge(part, part.len())? {
            bail!("the file ends inside its header");
        }
        self.next = None;
        Ok(())
    }

    fn judge(&self, part: &Part, file_len: u64) -> anyhow::Result<bool> {
        let prefix = part.prefix(part.len().min(model_file::MAX_HEADER_BYTES))?;
        let report = model_file::judge(&prefix, file_len).context("the download was stopped")?;
        if let Some(why) = report.as_ref().and_then(|report| report.refused.as_ref()) {
            bail!("{why}; the download was stopped");
        }
        Ok(report.is_some())
    }
}
