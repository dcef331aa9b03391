//! What a stage did, in numbers.

use std::collections::BTreeMap;
use std::time::Duration;

use bastion_sweep::{Counts, StageReport, StageStatus};
use bastion_trust::Stage;

/// The counts of one stage's run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Items looked at.
    pub seen: u64,
    /// Items there for the first time.
    pub new: u64,
    /// Items known before that are different now.
    pub changed: u64,
    /// Items that cost nothing.
    pub unchanged: u64,
    /// Items that are gone.
    pub removed: u64,
    /// Items left out, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Items that failed, by reason.
    pub failed: BTreeMap<String, u64>,
    /// What was hidden, by type (sanitize alone).
    pub hidden: BTreeMap<String, u64>,
    /// Hosts that text was sent to.
    pub hosts: Vec<String>,
}

impl Tally {
    /// Counts one more item left out for `reason`.
    pub fn skip(&mut self, reason: &str) {
        *self.skipped.entry(reason.to_owned()).or_default() += 1;
    }

    /// Counts one more item that failed for `reason`.
    pub fn fail(&mut self, reason: &str) {
        *self.failed.entry(reason.to_owned()).or_default() += 1;
    }
}

impl Tally {
    /// The report of a stage that went well.
    pub(crate) fn report(self, stage: Stage, took: Duration) -> StageReport {
        let Self { seen, new, changed, unchanged, removed, skipped, failed, hidden, hosts } = self;
        let counts = Counts { seen, new, changed, unchanged, removed, skipped, failed };
        let mut report = StageReport::new(stage, StageStatus::Ok, took.as_secs_f64()).with_counts(counts);
        report.hosts = hosts;
        if !hidden.is_empty() {
            report.details.insert("hidden".into(), serde_json::json!(hidden));
        }
        report
    }
}
