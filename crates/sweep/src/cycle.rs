//! One cycle: the gate, the lock, the stages, the record.
//!
//! The order is the promise: nothing is written into a folder before the gate said whose it is, no stage runs
//! without the lock, and the record and the state are written while the lock is still held.

use std::io;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use bastion_host::clock::UtcMillis;
use bastion_host::files::create_private_dir;
use bastion_host::jsonl;
use bastion_host::lock::{Acquired, LockError, RunLock};
use bastion_trust::manifest::{Cadence, Stage};
use bastion_trust::{Admitted, RefusalCode, Refused};
use jiff::Timestamp;

use crate::place;
use crate::record::v1::{GateRecord, LockReclaimed, RunRecord, StageRecord, VERSION};
use crate::runner::{Job, Runner, StageReport, StageStatus};
use crate::state::{RunState, STATE};
use crate::sweep::{Event, Sweep};

/// The lock's file name in the output folder.
pub const LOCK: &str = "sweep.lock";
/// The run log's file name in the output folder.
pub const RUN_LOG: &str = "run.jsonl";

/// Why a run that the gate let begin is not ok.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error("{stage} {}: {}", status.as_str(), error.as_deref().unwrap_or("no reason given"))]
    Stage { stage: Stage, status: StageStatus, error: Option<String> },
    #[error("{0} did not report: without evidence it counts as not done")]
    Unreported(Stage),
    #[error("no stage did anything: all were skipped")]
    NothingDone,
    #[error("the run broke off: {0}")]
    Panicked(String),
    #[error("cannot make the output folder {}: {source}", path.display())]
    Out { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Lock(LockError),
    #[error("cannot write {}: {source}", path.display())]
    Record { path: PathBuf, source: io::Error },
}

/// How a cycle ended.
pub(crate) enum Verdict {
    Ok,
    Failed(String),
    Refused(RefusalCode, String),
}

impl Verdict {
    pub(crate) fn error(&self) -> Option<String> {
        match self {
            Self::Ok => None,
            Self::Failed(error) => Some(error.clone()),
            Self::Refused(code, detail) => Some(format!("{code}: {detail}")),
        }
    }
}

/// What a cycle leaves behind.
pub(crate) struct CycleEnd {
    pub(crate) verdict: Verdict,
    pub(crate) out: PathBuf,
    /// What was written into `run.state.json`, or should have been; none of a single-stage command.
    pub(crate) state: Option<RunState>,
}

/// What runs so far mean for the next: failures in a row and the cadence last admitted.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) cadence: Option<Cadence>,
    failures: Option<u32>,
    runs: u64,
}

impl Tally {
    /// The cadence that the loop keeps: the last admitted one, hourly before there was one.
    pub(crate) fn kept_cadence(&self) -> Cadence {
        self.cadence.unwrap_or(Cadence::Hourly)
    }

    /// Counts a run in and says what the state is after it.
    fn settle(&mut self, out: &Path, started: Timestamp, finished: Timestamp, error: Option<String>) -> RunState {
        // A restarted process goes on counting where the one before it stopped.
        let before = self
            .failures
            .unwrap_or_else(|| RunState::read(out).ok().flatten().map_or(0, |state| state.consecutive_failures));
        let failures = if error.is_some() { before.saturating_add(1) } else { 0 };
        self.failures = Some(failures);
        self.runs += 1;
        let cadence = self.kept_cadence();
        RunState {
            last_started: UtcMillis(started),
            last_finished: UtcMillis(finished),
            last_ok: error.is_none(),
            last_error: error,
            consecutive_failures: failures,
            sweep: cadence.as_str().to_owned(),
            next_due: crate::cadence::next_due(cadence, started, finished, failures).map(UtcMillis),
            pid: std::process::id(),
            runs_this_process: self.runs,
        }
    }
}

/// One pass through gate, lock, stages and record.
pub(crate) struct Cycle<'c> {
    pub(crate) sweep: &'c Sweep<'c>,
    /// The one stage to run in place of the manifest's.
    pub(crate) only: Option<Stage>,
    /// Counts the run into the state; none for a single-stage command, whose success must not hide a failing sweep.
    pub(crate) tally: Option<&'c mut Tally>,
    pub(crate) events: &'c mut dyn FnMut(&Event<'_>),
}

impl Cycle<'_> {
    /// Runs the cycle. Everything that can go wrong ends up in its verdict, but for a lock that somebody holds.
    pub(crate) fn run(mut self, runner: &mut dyn Runner) -> Result<CycleEnd, LockError> {
        let started = self.sweep.clock.now();
        let settings = self.sweep.settings;
        match self.sweep.gate.judge(&settings.manifest, settings.allow_unsigned) {
            Ok(admitted) => self.admitted(&admitted, started, runner),
            Err(refused) => Ok(self.refused(&refused, started)),
        }
    }

    fn admitted(
        &mut self,
        admitted: &Admitted,
        started: Timestamp,
        runner: &mut dyn Runner,
    ) -> Result<CycleEnd, LockError> {
        let manifest = admitted.manifest();
        if let Some(tally) = &mut self.tally {
            tally.cadence = Some(manifest.sweep);
        }
        let out = place::of_admitted(self.sweep.settings.out.as_deref(), admitted);
        let mut record = self.record(&out, started, GateRecord::from(admitted));
        record.manifest_id = Some(manifest.id.to_string());
        record.manifest_digest = Some(admitted.digest());

        let acquired = match self.lock(&out) {
            Ok(acquired) => acquired,
            Err(RunError::Lock(held @ LockError::Held { .. })) => return Err(held),
            // Without the lock the state is not ours to write, but a line can be added to the log.
            Err(error) => return Ok(self.settle(record, out, Verdict::Failed(error.to_string()), None)),
        };
        record.lock_reclaimed = acquired.reclaimed.as_ref().map(LockReclaimed::from);
        let only = self.only.map(|stage| [stage]);
        let stages = only.as_ref().map_or(manifest.stages.as_slice(), <[Stage; 1]>::as_slice);
        let job = Job { admitted, out: &out, stages };
        (self.events)(&Event::Started { job: &job });
        let result = self.stages(&job, &acquired.lock, &mut record.stages, runner);
        let verdict = result.map_or_else(|error| Verdict::Failed(error.to_string()), |()| Verdict::Ok);
        Ok(self.settle(record, out, verdict, Some(acquired.lock)))
    }

    /// Nothing runs, and that is recorded. The lock is taken for the state only: a line is appended in any case.
    fn refused(&mut self, refused: &Refused, started: Timestamp) -> CycleEnd {
        let out = place::of_refused(self.sweep.settings.out.as_deref(), refused);
        let mut record = self.record(&out, started, GateRecord::from(refused));
        record.manifest_id.clone_from(&refused.manifest_id);
        record.manifest_digest.clone_from(&refused.manifest_digest);
        let lock = self.lock(&out).ok().map(|acquired| {
            record.lock_reclaimed = acquired.reclaimed.as_ref().map(LockReclaimed::from);
            acquired.lock
        });
        self.settle(record, out, Verdict::Refused(refused.code, refused.detail.clone()), lock)
    }

    fn lock(&self, out: &Path) -> Result<Acquired, RunError> {
        create_private_dir(out).map_err(|source| RunError::Out { path: out.to_owned(), source })?;
        RunLock::acquire(&out.join(LOCK), self.sweep.clock).map_err(RunError::Lock)
    }

    /// Runs the stages and looks for the evidence that each was done.
    fn stages(
        &mut self,
        job: &Job<'_>,
        lock: &RunLock,
        records: &mut Vec<StageRecord>,
        runner: &mut dyn Runner,
    ) -> Result<(), RunError> {
        let mut reports: Vec<StageReport> = Vec::with_capacity(job.stages.len());
        let mut report = |report: StageReport| {
            // Those who can't see this process judge it by the lock's age. A failure is no reason to stop a stage.
            let _ = lock.refresh(self.sweep.clock);
            records.push(StageRecord::from(&report));
            (self.events)(&Event::StageDone(&report));
            let ends = report.status.ends_run();
            reports.push(report);
            if ends { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        // A stage that panics is a failed run with a record, not a loop that is no longer there.
        let ran = catch_unwind(AssertUnwindSafe(|| runner.run(job, &mut report)));
        if let Err(panic) = ran {
            return Err(RunError::Panicked(panic_words(&*panic)));
        }
        judge(job.stages, reports)
    }

    fn record(&self, out: &Path, started: Timestamp, gate: GateRecord) -> RunRecord {
        let settings = self.sweep.settings;
        RunRecord {
            v: VERSION,
            started: UtcMillis(started),
            finished: UtcMillis(started),
            seconds: 0.0,
            manifest: shown(&settings.manifest),
            out: shown(out),
            manifest_id: None,
            manifest_digest: None,
            gate,
            stages: Vec::new(),
            ok: false,
            error: None,
            allow_unsigned: settings.allow_unsigned,
            lock_reclaimed: None,
        }
    }

    /// Writes record and state. A run whose record can't be written is a failed one: nobody could see it.
    fn settle(&mut self, mut record: RunRecord, out: PathBuf, mut verdict: Verdict, lock: Option<RunLock>) -> CycleEnd {
        let started = record.started.0;
        let finished = self.sweep.clock.now();
        record.finished = UtcMillis(finished);
        record.seconds = seconds_between(started, finished);
        record.error = verdict.error();
        record.ok = record.error.is_none();
        if let Err(error) = append(&out, &record) {
            (self.events)(&Event::NotRecorded(&error.to_string()));
            if matches!(verdict, Verdict::Ok) {
                record.ok = false;
                record.error = Some(error.to_string());
                verdict = Verdict::Failed(error.to_string());
            }
        }
        let state = self.tally.as_mut().map(|tally| tally.settle(&out, started, finished, verdict.error()));
        if let (Some(state), Some(_held)) = (&state, &lock)
            && let Err(source) = state.write(&out)
        {
            let error = RunError::Record { path: out.join(STATE), source };
            (self.events)(&Event::NotRecorded(&error.to_string()));
        }
        drop(lock);
        (self.events)(&Event::Finished { record: &record, state: state.as_ref() });
        CycleEnd { verdict, out, state }
    }
}

/// Success needs evidence: every stage was reported, none ended badly, and at least one did something.
fn judge(expected: &[Stage], reports: Vec<StageReport>) -> Result<(), RunError> {
    let done: Vec<(Stage, StageStatus)> = reports.iter().map(|report| (report.stage, report.status)).collect();
    if let Some(bad) = reports.into_iter().find(|report| report.status.ends_run()) {
        return Err(RunError::Stage { stage: bad.stage, status: bad.status, error: bad.error });
    }
    if let Some(missing) = expected.iter().find(|stage| done.iter().all(|(reported, _)| reported != *stage)) {
        return Err(RunError::Unreported(*missing));
    }
    if !expected.is_empty() && done.iter().all(|(_, status)| *status == StageStatus::Skipped) {
        return Err(RunError::NothingDone);
    }
    Ok(())
}

fn append(out: &Path, record: &RunRecord) -> Result<(), RunError> {
    let path = out.join(RUN_LOG);
    serde_json::to_string(record)
        .map_err(io::Error::from)
        .and_then(|line| jsonl::append(&path, &line))
        .map_err(|source| RunError::Record { path, source })
}

/// Seconds to the millisecond, as the times beside them.
fn seconds_between(started: Timestamp, finished: Timestamp) -> f64 {
    let milliseconds = finished.as_millisecond().saturating_sub(started.as_millisecond()).max(0);
    std::time::Duration::from_millis(milliseconds.unsigned_abs()).as_secs_f64()
}

fn shown(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).to_string_lossy().into_owned()
}

fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    words.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a stage panicked".to_owned())
}
