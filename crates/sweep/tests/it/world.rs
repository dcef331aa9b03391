//! A folder with a manifest, a gate, a clock that is set by hand, and stages that do as they are told.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bastion_host::clock::ManualClock;
use bastion_host::lock::LockError;
use bastion_host::signals::Stop;
use bastion_sweep::{Counts, Ended, Event, Job, Report, RunRecord, RunState, Runner, StageReport, StageStatus};
use bastion_sweep::{Sweep, SweepSettings};
use bastion_trust::manifest::Stage;
use bastion_trust::{Gate, GateSettings};

pub(crate) const START: &str = "2026-01-01T00:00:00Z";

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) gate: Gate,
    pub(crate) stop: Stop,
    pub(crate) settings: SweepSettings,
}

impl World {
    /// `<dir>/docs` with an unsigned manifest of these stages and this cadence.
    pub(crate) fn new(sweep: &str, stages: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(START.parse().unwrap()));
        let state_dir = dir.path().join("state");
        let gate = Gate::new(GateSettings { ca_root: None, crl: None, state_dir }, clock.clone());
        let agent = dir.path().join("docs/.agent");
        std::fs::create_dir_all(&agent).unwrap();
        let manifest = agent.join("manifest.yaml");
        let settings = SweepSettings { manifest, out: None, once: false, allow_unsigned: true };
        let world = Self { dir, clock, gate, stop: Stop::new(), settings };
        world.write_manifest(sweep, stages);
        world
    }

    pub(crate) fn write_manifest(&self, sweep: &str, stages: &str) {
        self.write_raw(&format!(
            "v: 1\nid: notes\nowner:\n  host: owner.example\nroots:\n  - ..\nstages: [{stages}]\nsweep: {sweep}\n"
        ));
    }

    /// An edit after signing.
    pub(crate) fn write_manifest_keeping_signature(&self, sweep: &str, stages: &str) {
        let there = std::fs::read_to_string(&self.settings.manifest).unwrap();
        let signature = &there[there.find("\nsignature:").unwrap() + 1..];
        self.write_manifest(sweep, stages);
        let edited = std::fs::read_to_string(&self.settings.manifest).unwrap();
        self.write_raw(&format!("{edited}{signature}"));
    }

    pub(crate) fn write_raw(&self, text: &str) {
        std::fs::write(&self.settings.manifest, text).unwrap();
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.settings.out.clone().unwrap_or_else(|| self.dir.path().canonicalize().unwrap().join("docs/.agent"))
    }

    pub(crate) fn sweep(&self) -> Sweep<'_> {
        Sweep { gate: &self.gate, clock: &*self.clock, stop: &self.stop, settings: &self.settings }
    }

    pub(crate) fn run(&self, runner: &mut dyn Runner) -> Result<Ended, LockError> {
        self.sweep().run(runner, &mut |_: &Event<'_>| {})
    }

    pub(crate) fn once(&self, runner: &mut dyn Runner) -> Result<Ended, LockError> {
        self.sweep().run_once(runner, &mut |_: &Event<'_>| {})
    }

    pub(crate) fn records(&self) -> Vec<RunRecord> {
        records(&self.out())
    }

    pub(crate) fn state(&self) -> RunState {
        RunState::read(&self.out()).unwrap().unwrap()
    }
}

pub(crate) fn records(out: &Path) -> Vec<RunRecord> {
    bastion_host::jsonl::read(&out.join("run.jsonl")).unwrap()
}

/// Plays the stages: `play` says how each ends, given the number of the run (from 1).
pub(crate) struct Player<F> {
    play: F,
    pub(crate) runs: u32,
    pub(crate) executed: Vec<Stage>,
}

impl<F: FnMut(u32, Stage, &Job<'_>) -> StageReport> Player<F> {
    pub(crate) fn new(play: F) -> Self {
        Self { play, runs: 0, executed: Vec::new() }
    }
}

impl<F: FnMut(u32, Stage, &Job<'_>) -> StageReport> Runner for Player<F> {
    fn run(&mut self, job: &Job<'_>, report: &mut Report<'_>) -> ControlFlow<()> {
        self.runs += 1;
        for stage in job.stages {
            self.executed.push(*stage);
            report((self.play)(self.runs, *stage, job))?;
        }
        ControlFlow::Continue(())
    }
}

pub(crate) fn ok(stage: Stage) -> StageReport {
    let counts = Counts { seen: 3, new: 1, unchanged: 2, ..Counts::default() };
    StageReport::new(stage, StageStatus::Ok, 0.25).with_counts(counts)
}

pub(crate) fn failed(stage: Stage) -> StageReport {
    StageReport::new(stage, StageStatus::Failed, 0.5).with_error("the root is not there")
}
