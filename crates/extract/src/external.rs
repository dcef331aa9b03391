//! Programs of the machine that read what the built-in readers can't: `pdftotext`, `tesseract`, `soffice`.

use std::path::PathBuf;

use crate::{Job, Outcome};

/// A program and where it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// Where it is, `None` where it is not.
    pub path: Option<PathBuf>,
    /// What it says of its version, one line.
    pub version: Option<String>,
}

/// The programs in use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExternalReaders {
    tools: Vec<Tool>,
}

impl ExternalReaders {
    /// No program is started (`FREEAGENT_NO_EXTERNAL=1`).
    pub fn none() -> Self {
        Self::default()
    }

    /// The tools in use.
    pub fn tools(&self) -> impl Iterator<Item = &Tool> {
        self.tools.iter()
    }
}

/// Looks for the programs.
pub fn probe_external() -> Vec<Tool> {
    Vec::new()
}

pub(crate) fn fill(_external: &ExternalReaders, _job: &Job<'_>, outcome: Outcome) -> Outcome {
    outcome
}

impl ExternalReaders {
    /// Every program that is found on the search path.
    pub fn found() -> Self {
        Self { tools: probe_external().into_iter().filter(|tool| tool.path.is_some()).collect() }
    }
}
