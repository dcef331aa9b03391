//! Version 1 of a line of `run.jsonl`.

use bastion_host::clock::UtcMillis;
use bastion_host::lock::{Reclaimed, ReclaimedBecause};
use bastion_trust::{Admitted, Refused, Standing};
use serde::{Deserialize, Serialize};

use crate::runner::{Counts, StageReport, StageStatus};

/// The version that this module writes.
pub const VERSION: u32 = 1;

/// One run, or one refusal to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// [`VERSION`].
    pub v: u32,
    /// When the cycle began.
    pub started: UtcMillis,
    /// When it had ended, this record apart.
    pub finished: UtcMillis,
    /// From start to end, in seconds; 0 where the clock was set back meanwhile.
    pub seconds: f64,
    /// The manifest's absolute path.
    pub manifest: String,
    /// The output folder's absolute path.
    pub out: String,
    /// The agent's id; absent where the manifest is too broken to have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_id: Option<String>,
    /// The payload's digest; absent where the manifest is too broken to have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest_digest: Option<String>,
    /// What the gate said.
    pub gate: GateRecord,
    /// The stages that ended, in order.
    pub stages: Vec<StageRecord>,
    /// Whether every stage that should run ran and none failed.
    pub ok: bool,
    /// Why it is not ok.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether `--allow-unsigned` was given.
    pub allow_unsigned: bool,
    /// The stale lock that was taken over for this run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_reclaimed: Option<LockReclaimed>,
}

/// What the gate said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum GateRecord {
    /// The owner's signature verifies.
    Signed {
        /// The signer's common name.
        cn: String,
        /// The certificate's path as the manifest has it.
        cert: String,
        /// It chains to a root.
        chained: bool,
    },
    /// Nothing was verified.
    Bypassed {
        /// Why it was let pass.
        bypassed: String,
    },
    /// Nothing may run.
    Refused {
        /// Why.
        refused: RefusalRecord,
    },
}

/// Why the gate refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusalRecord {
    /// The check that failed (manifest.md §4).
    pub code: String,
    /// What was seen.
    pub detail: String,
}

/// How one stage went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Its name.
    pub stage: String,
    /// How it ended.
    pub status: StageStatus,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Its counts, as fields of this object.
    #[serde(flatten)]
    pub counts: Option<Counts>,
    /// Why it did not end well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Every host that text was sent to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// More figures of this stage.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub details: serde_json::Map<String, serde_json::Value>,
}

/// A stale lock that was taken over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockReclaimed {
    /// The pid in it; absent where it couldn't be read, as the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<UtcMillis>,
    /// Why it was stale.
    pub because: ReclaimedBecause,
}

impl From<&Admitted> for GateRecord {
    fn from(admitted: &Admitted) -> Self {
        match admitted.standing() {
            Standing::Signed { cn, cert, chained, .. } => {
                Self::Signed { cn: cn.clone(), cert: cert.clone(), chained: *chained }
            }
            Standing::Bypassed { reason } => Self::Bypassed { bypassed: reason.clone() },
        }
    }
}

impl From<&Refused> for GateRecord {
    fn from(refused: &Refused) -> Self {
        let (code, detail) = (refused.code.to_string(), refused.detail.clone());
        Self::Refused { refused: RefusalRecord { code, detail } }
    }
}

impl From<&StageReport> for StageRecord {
    fn from(report: &StageReport) -> Self {
        Self {
            stage: report.stage.as_str().to_owned(),
            status: report.status,
            seconds: report.seconds,
            counts: report.counts.clone(),
            error: report.error.clone(),
            hosts: report.hosts.clone(),
            details: report.details.clone(),
        }
    }
}

impl From<&Reclaimed> for LockReclaimed {
    fn from(reclaimed: &Reclaimed) -> Self {
        let holder = reclaimed.holder.as_ref();
        Self {
            pid: holder.map(|holder| holder.process.pid),
            taken: holder.map(|holder| holder.taken),
            because: reclaimed.because,
        }
    }
}
