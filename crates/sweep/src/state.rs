//! How is this agent? The latest state (`run.state.json`), and what a health check makes of it.

use std::io;
use std::path::{Path, PathBuf};

use bastion_host::clock::{Clock, UtcMillis};
use bastion_host::files::{PRIVATE_FILE, read_capped, replace};
use bastion_host::lock::{Holder, RunLock};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::cycle::LOCK;

/// The state's file name in the output folder.
pub const STATE: &str = "run.state.json";

/// A run is overdue only when it is this late: naps and the start itself take a moment.
const GRACE: SignedDuration = SignedDuration::from_secs(60);
const MAX_BYTES: u64 = 1 << 20;

/// The latest state, replaced as a whole after every run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// When the last run began.
    pub last_started: UtcMillis,
    /// When it ended.
    pub last_finished: UtcMillis,
    /// Whether it was ok.
    pub last_ok: bool,
    /// Why it was not.
    pub last_error: Option<String>,
    /// How many runs in a row were not ok.
    pub consecutive_failures: u32,
    /// The cadence that the loop keeps, as the manifest writes it.
    pub sweep: String,
    /// When the next run is due; none for `manual`.
    pub next_due: Option<UtcMillis>,
    /// The process that ran it.
    pub pid: u32,
    /// How many runs that process has made.
    pub runs_this_process: u64,
}

impl RunState {
    /// The state in the output folder `out`; `None` where there was no run yet.
    ///
    /// # Errors
    /// Where the file can't be read or is no such state.
    pub fn read(out: &Path) -> io::Result<Option<Self>> {
        match read_capped(&path(out), MAX_BYTES) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces the state in `out` in one step.
    pub(crate) fn write(&self, out: &Path) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.push(b'\n');
        replace(&path(out), &bytes, PRIVATE_FILE)
    }

    /// Whether the next run should have begun by `now`.
    pub fn overdue(&self, now: Timestamp) -> bool {
        self.next_due.is_some_and(|due| now.duration_since(due.0) > GRACE)
    }
}

/// What a health check wants to know of an output folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The latest state; `None` where there was no run yet.
    pub state: Option<RunState>,
    /// Who runs a sweep or a stage there at this moment.
    pub running: Option<Holder>,
    /// Whether a run should have begun and none goes on: the loop has died or never came back.
    pub overdue: bool,
}

/// The status of the agent whose output folder is `out`. Takes no lock and changes nothing.
///
/// # Errors
/// Where the state or the lock can't be read.
pub fn status(out: &Path, clock: &dyn Clock) -> io::Result<Status> {
    let state = RunState::read(out)?;
    let running = RunLock::holder(&out.join(LOCK), clock)?;
    let overdue = running.is_none() && state.as_ref().is_some_and(|state| state.overdue(clock.now()));
    Ok(Status { state, running, overdue })
}

fn path(out: &Path) -> PathBuf {
    out.join(STATE)
}
