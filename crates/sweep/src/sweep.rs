//! The loop: cycle, wait until the next is due, again; and how it ends.
//!
//! Invariants: no failure but a lock that somebody holds at the start ends the loop; a stop request ends it between
//! runs, never within one; the wall clock is looked at again after every nap.

use std::path::PathBuf;

use bastion_host::clock::{Clock, UtcMillis};
use bastion_host::lock::{Holder, LockError};
use bastion_host::signals::{Stop, StopSignal};
use bastion_trust::manifest::Stage;
use bastion_trust::{Gate, RefusalCode};
use jiff::{SignedDuration, Timestamp};

use crate::cadence::{FIRST_BACKOFF, clipped, nap};
use crate::cycle::{Cycle, CycleEnd, Tally, Verdict};
use crate::record::v1::RunRecord;
use crate::runner::{Job, Runner, StageReport};
use crate::state::RunState;

/// What a sweep was asked to do, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SweepSettings {
    /// The manifest, read again for every run.
    pub manifest: PathBuf,
    /// The output folder in place of the agent's own.
    pub out: Option<PathBuf>,
    /// End after one run, whatever the cadence.
    pub once: bool,
    /// FOR DEVELOPMENT ONLY: let a manifest pass that has no signature.
    pub allow_unsigned: bool,
}

/// A sweep of one manifest: what it is judged by, timed by and stopped by.
#[derive(Clone, Copy)]
pub struct Sweep<'a> {
    /// Judges the manifest before every run.
    pub gate: &'a Gate,
    /// For the loop the one that `stop` wakes: [`bastion_host::signals::WakingClock`].
    pub clock: &'a dyn Clock,
    /// Ends the loop between two runs.
    pub stop: &'a Stop,
    /// What was asked.
    pub settings: &'a SweepSettings,
}

/// What happens, as it happens: for a terminal or a log.
#[derive(Debug)]
pub enum Event<'a> {
    /// The gate let a run begin and the lock is held.
    Started {
        /// What will run.
        job: &'a Job<'a>,
    },
    /// A stage ended.
    StageDone(&'a StageReport),
    /// A run ended, or was refused; the record as it was (or should have been) written.
    Finished {
        /// The line of `run.jsonl`.
        record: &'a RunRecord,
        /// The state after it; none of a single-stage command.
        state: Option<&'a RunState>,
    },
    /// A record or the state could not be written; in words.
    NotRecorded(&'a str),
    /// Somebody else holds the lock; the loop tries again later.
    Held(&'a Holder),
    /// The loop waits until then (or less long, if the clock is set).
    Sleeping {
        /// When the next run is due.
        until: Timestamp,
    },
}

/// How a sweep ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Its last run was ok.
    Done,
    /// Its last run was not.
    Failed {
        /// Why.
        error: String,
    },
    /// The gate refused its last run.
    Refused {
        /// The check that failed.
        code: RefusalCode,
        /// What was seen.
        detail: String,
    },
    /// A signal ended the loop.
    Stopped(StopSignal),
}

/// The exit status of a command that ended so (manifest.md §7).
pub fn exit_status(ended: &Result<Ended, LockError>) -> u8 {
    match ended {
        Ok(Ended::Done) => 0,
        Ok(Ended::Failed { .. }) | Err(LockError::Io { .. }) => 1,
        Ok(Ended::Refused { .. }) => 3,
        Err(LockError::Held { .. }) => 4,
        Ok(Ended::Stopped(signal)) => signal.exit_status(),
    }
}

impl From<Verdict> for Ended {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Ok => Self::Done,
            Verdict::Failed(error) => Self::Failed { error },
            Verdict::Refused(code, detail) => Self::Refused { code, detail },
        }
    }
}

impl Sweep<'_> {
    /// Runs on the manifest's cadence until it is stopped; once for `manual` and where the settings say so.
    ///
    /// # Errors
    /// [`LockError::Held`] where somebody else sweeps this folder when the first run is to begin. Later the loop waits
    /// for such a one (a stage run by hand).
    pub fn run(&self, runner: &mut dyn Runner, events: &mut dyn FnMut(&Event<'_>)) -> Result<Ended, LockError> {
        let mut tally = Tally::default();
        let mut first = true;
        loop {
            if let Some(signal) = self.stop.requested() {
                return Ok(Ended::Stopped(signal));
            }
            let cycle = Cycle { sweep: self, only: None, tally: Some(&mut tally), events };
            let end = match cycle.run(runner) {
                Ok(end) => Some(end),
                Err(LockError::Held { holder, .. }) if !first && !self.settings.once => {
                    events(&Event::Held(&holder));
                    None
                }
                Err(error) => return Err(error),
            };
            first = false;
            let due = match &end {
                Some(CycleEnd { state: Some(RunState { next_due: Some(due), .. }), .. }) => due.0,
                Some(_) => self.clock.now(),
                None => after(self.clock.now(), FIRST_BACKOFF),
            };
            let goes_on = !self.settings.once && tally.kept_cadence().period().is_some();
            match end {
                Some(end) if !goes_on => return Ok(end.verdict.into()),
                end => self.wait(due, &tally, end.as_ref(), events),
            }
        }
    }

    /// Runs once, whatever the cadence.
    ///
    /// # Errors
    /// [`LockError::Held`] where somebody else sweeps this folder.
    pub fn run_once(&self, runner: &mut dyn Runner, events: &mut dyn FnMut(&Event<'_>)) -> Result<Ended, LockError> {
        let mut tally = Tally::default();
        let end = Cycle { sweep: self, only: None, tally: Some(&mut tally), events }.run(runner)?;
        Ok(end.verdict.into())
    }

    /// Runs one stage: same gate, same lock, same record. The state is left alone: it tells of whole runs.
    ///
    /// # Errors
    /// [`LockError::Held`] where somebody else sweeps this folder.
    pub fn run_single_stage(
        &self,
        stage: Stage,
        runner: &mut dyn Runner,
        events: &mut dyn FnMut(&Event<'_>),
    ) -> Result<Ended, LockError> {
        let end = Cycle { sweep: self, only: Some(stage), tally: None, events }.run(runner)?;
        Ok(end.verdict.into())
    }

    /// Waits until `due` or until it is asked to stop.
    fn wait(&self, mut due: Timestamp, tally: &Tally, end: Option<&CycleEnd>, events: &mut dyn FnMut(&Event<'_>)) {
        let Some(period) = tally.kept_cadence().period() else { return };
        let mut announced = None;
        while self.stop.requested().is_none() {
            let now = self.clock.now();
            let clip = clipped(due, now, period);
            if clip != due {
                due = clip;
                if let Some(CycleEnd { out, state: Some(state), .. }) = end {
                    move_due(out, state, due);
                }
            }
            let Some(rest) = nap(due, now) else { return };
            if announced != Some(due) {
                announced = Some(due);
                events(&Event::Sleeping { until: due });
            }
            self.clock.nap(rest);
        }
    }
}

/// Writes the due time that a set clock made necessary, unless another process has written the state meanwhile. It is
/// a help to the health check only: where it fails, the next run mends it.
fn move_due(out: &std::path::Path, state: &RunState, due: Timestamp) {
    let there = RunState::read(out).ok().flatten();
    if there.is_some_and(|there| (there.pid, there.runs_this_process) == (state.pid, state.runs_this_process)) {
        let _ = RunState { next_due: Some(UtcMillis(due)), ..state.clone() }.write(out);
    }
}

fn after(time: Timestamp, wait: std::time::Duration) -> Timestamp {
    SignedDuration::try_from(wait).ok().and_then(|wait| time.checked_add(wait).ok()).unwrap_or(Timestamp::MAX)
}
