//! What does a run ask of the stages, and what do they tell? The seam between the loop and the work.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

use bastion_trust::Admitted;
use bastion_trust::manifest::Stage;
use serde::{Deserialize, Serialize};

/// One run's work.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The manifest that allows it.
    pub admitted: &'a Admitted,
    /// The output folder. It is there, and locked for this run.
    pub out: &'a Path,
    /// The stages to run, in this order: the manifest's, or the one of a single-stage command.
    pub stages: &'a [Stage],
}

/// Takes a stage's report and says whether the run goes on.
pub type Report<'a> = dyn FnMut(StageReport) -> ControlFlow<()> + 'a;

/// Does the work of a run.
pub trait Runner {
    /// Runs the job's stages in order and reports each as it ends. A report is answered with
    /// [`ControlFlow::Break`] when it ends the run, and then no later stage may start: `report(…)?` does that.
    ///
    /// A stage is never interrupted. One that is not reported counts as one that failed.
    fn run(&mut self, job: &Job<'_>, report: &mut Report<'_>) -> ControlFlow<()>;
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageStatus {
    /// It did its work.
    Ok,
    /// It broke.
    Failed,
    /// It ended in good order and refused to go on (a service it depends on failed): as bad as failed.
    Stopped,
    /// There was nothing that it is set up to do.
    Skipped,
}

impl StageStatus {
    /// Whether the run ends here.
    pub fn ends_run(self) -> bool {
        matches!(self, Self::Failed | Self::Stopped)
    }

    /// The word as records have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Skipped => "skipped",
        }
    }
}

/// What a stage counted: files or documents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Looked at.
    pub seen: u64,
    /// Not there before.
    pub new: u64,
    /// There before, and different.
    pub changed: u64,
    /// There before, and the same.
    pub unchanged: u64,
    /// No longer there.
    pub removed: u64,
    /// Left out, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, u64>,
    /// Not done though they should have been, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failed: BTreeMap<String, u64>,
}

/// How one stage went.
#[derive(Debug, Clone, PartialEq)]
pub struct StageReport {
    /// Which stage.
    pub stage: Stage,
    /// How it ended.
    pub status: StageStatus,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What it counted, where it came so far.
    pub counts: Option<Counts>,
    /// Why it did not end well.
    pub error: Option<String>,
    /// Every host that text was sent to.
    pub hosts: Vec<String>,
    /// More figures of this stage, by name.
    pub details: serde_json::Map<String, serde_json::Value>,
}

impl StageReport {
    /// A report with nothing but its outcome.
    pub fn new(stage: Stage, status: StageStatus, seconds: f64) -> Self {
        Self { stage, status, seconds, counts: None, error: None, hosts: Vec::new(), details: serde_json::Map::new() }
    }

    /// The same with counts.
    #[must_use]
    pub fn with_counts(self, counts: Counts) -> Self {
        Self { counts: Some(counts), ..self }
    }

    /// The same with the reason why it did not end well.
    #[must_use]
    pub fn with_error(self, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..self }
    }
}
