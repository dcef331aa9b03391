//! Which runs has this machine started, and what was last heard of each? One small file per run in the state folder.
//!
//! What a sandbox reports is hostile: sizes are capped, text loses what a terminal would act on, links are not
//! followed. The last record that was seen is kept, so that a sandbox that is gone still has a last word.

mod report;

use std::path::{Path, PathBuf};

use bastion_host::clock::{Clock, UtcMillis};
use bastion_host::files::{self, read_capped};
use bastion_host::signals::Stop;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::driver::Driver;
use crate::error::LaunchError;
use crate::local::RunFolder;
use crate::name;
use crate::plan::LaunchPlan;
use crate::settings::Target;
use crate::text::plain;

pub use report::{Report, read_folder};

/// A report is not larger, in bytes.
pub const MAX_REPORT: usize = 8 << 20;
const MAX_RECORD: u64 = 1 << 20;
const STATE_DIR: &str = "OPENSHELL_AGENT_STATE_DIR";

/// A run, as this machine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Version of the record, 1.
    pub v: u32,
    /// The sandbox's name, unique on this machine.
    pub name: String,
    /// Which driver runs it.
    pub driver: String,
    /// The gateway, where there is one.
    pub gateway: Option<String>,
    /// The agent's id.
    pub agent: String,
    /// Digest of all that the agent brought in.
    pub digest: String,
    /// The harness.
    pub harness: String,
    /// `once` or `watch`.
    pub run_mode: String,
    /// Whether the sandbox stays when the run has ended.
    pub keep: bool,
    /// When it was started.
    pub started: UtcMillis,
    /// Where the supervisor keeps its state, where that is not the usual place.
    pub state_dir: Option<String>,
    /// Its exit status, of a run that was attached and has ended.
    pub exit: Option<u8>,
    /// Why it was ended, where it did not end by itself and that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// What was last heard.
    pub last: Option<Heard>,
}

/// What was heard of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// When it was asked.
    pub at: UtcMillis,
    /// Whether the sandbox was gone; what follows is then from before.
    pub gone: bool,
    /// The supervisor's last record, fit for a terminal.
    pub record: Option<Record>,
}

/// A supervisor's record (supervisor.md), capped and fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Record {
    /// When it was written, as the sandbox says.
    pub recorded_at: Option<String>,
    /// The cycle.
    pub cycle: Option<u64>,
    /// `running`, `sleeping`, `terminal`.
    pub state: Option<String>,
    /// The harness's exit status.
    pub harness_exit_code: Option<i64>,
    /// The result's status.
    pub status: Option<String>,
    /// The result's reason.
    pub reason: Option<String>,
    /// The result's notes.
    pub notes: Option<String>,
    /// When the next cycle begins.
    pub next_cycle_at: Option<String>,
}

impl Run {
    pub(crate) fn new(plan: &LaunchPlan, driver: &str, now: Timestamp) -> Self {
        Self {
            v: 1,
            name: plan.sandbox.clone(),
            driver: driver.to_owned(),
            gateway: match &plan.target {
                Target::Local => None,
                Target::Gateway(name) => Some(name.clone()),
            },
            agent: plan.agent.clone(),
            digest: plan.digest.clone(),
            harness: plan.harness.clone(),
            run_mode: plan.run_mode.as_str().to_owned(),
            keep: plan.keep,
            started: UtcMillis(now),
            state_dir: supervisor_state(plan),
            exit: None,
            why: None,
            last: None,
        }
    }

    /// What can be done with it, as it could be typed.
    pub fn commands(&self) -> Vec<String> {
        let over = self.gateway.is_none() && self.exit.is_some() && !self.keep;
        let verbs = ["show", "logs", "egress", "stop", "rm"].into_iter();
        // what goes out of a gateway's sandbox the gateway alone knows
        let verbs = verbs.filter(|verb| self.gateway.is_none() || *verb != "egress");
        let verbs = verbs.filter(|verb| !over || *verb != "stop");
        verbs.map(|verb| format!("bastion runs {verb} {}", self.name)).collect()
    }

    /// The state in a few words: what a supervisor that was there said last, how the run ended, `gone` or `unknown`.
    pub fn state(&self) -> String {
        let alive = self.last.as_ref().filter(|heard| !heard.gone);
        let said = alive.and_then(|heard| heard.record.as_ref()).and_then(|record| record.state.clone());
        match (said, self.exit, &self.last) {
            // on a gateway a run can go on when the program that was attached to it has ended
            (Some(said), _, _) if said != "terminal" && (self.gateway.is_some() || self.exit.is_none()) => said,
            (_, Some(0), _) => "ended".to_owned(),
            (_, Some(status), _) => format!("ended with status {status}"),
            (Some(said), None, _) => said,
            (None, None, Some(heard)) if heard.gone => "gone".to_owned(),
            (None, None, _) => "unknown".to_owned(),
        }
    }

    /// Whether there may be something to ask: it was not seen to end.
    pub fn may_live(&self) -> bool {
        self.exit.is_none() && !self.last.as_ref().is_some_and(|heard| heard.gone)
    }
}

/// Where a plan has the supervisor keep its state, where that is not the usual place.
pub(crate) fn supervisor_state(plan: &LaunchPlan) -> Option<String> {
    plan.env.iter().find(|variable| variable.name == STATE_DIR).map(|variable| variable.value.clone())
}

fn dir(state_dir: &Path) -> PathBuf {
    state_dir.join("runs")
}

fn record_file(state_dir: &Path, name: &str) -> PathBuf {
    dir(state_dir).join(format!("{name}.json"))
}

/// Whether this machine has started a run of this name.
pub(crate) fn is_known(state_dir: &Path, name: &str) -> bool {
    record_file(state_dir, name).symlink_metadata().is_ok()
}

/// Where the output of a program goes that is left running.
pub(crate) fn output_file(state_dir: &Path, name: &str) -> PathBuf {
    dir(state_dir).join(format!("{name}.log"))
}

/// Writes a new run down, which takes its name.
///
/// # Errors
/// Where it can't be written, or another launch took the name meanwhile; that one's record stays.
pub(crate) fn begin(state_dir: &Path, run: &Run) -> Result<(), LaunchError> {
    let dir = dir(state_dir);
    files::create_private_dir(&dir).map_err(LaunchError::file(&dir))?;
    let file = record_file(state_dir, &run.name);
    files::write_new(&file, b"", files::PRIVATE_FILE).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => LaunchError::refused(
            format!("the name `{}`", run.name),
            "was taken by another launch meanwhile; launch again",
        ),
        _ => LaunchError::file(&file)(error),
    })?;
    save(state_dir, run).inspect_err(|_| {
        let _ = std::fs::remove_file(&file);
    })
}

/// Replaces a run's record.
///
/// # Errors
/// Where it can't be written.
pub fn save(state_dir: &Path, run: &Run) -> Result<(), LaunchError> {
    let file = record_file(state_dir, &run.name);
    let bytes = serde_json::to_vec(run).map_err(|error| LaunchError::file(&file)(error.into()))?;
    files::replace(&file, &bytes, files::PRIVATE_FILE).map_err(LaunchError::file(&file))
}

/// Every run, the oldest first, and what is wrong with each record that can't be read.
///
/// # Errors
/// Where the folder can't be read.
pub fn list(state_dir: &Path) -> Result<(Vec<Run>, Vec<LaunchError>), LaunchError> {
    let dir = dir(state_dir);
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
        Err(error) => return Err(LaunchError::file(&dir)(error)),
    };
    let (mut runs, mut faults) = (Vec::new(), Vec::new());
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension().is_some_and(|end| end == "json") {
            match read(&path) {
                Ok(run) => runs.push(run),
                Err(fault) => faults.push(fault),
            }
        }
    }
    runs.sort_by(|a, b| (a.started, &a.name).cmp(&(b.started, &b.name)));
    Ok((runs, faults))
}

/// The record in a file, which must be of the run that the file is named after.
fn read(file: &Path) -> Result<Run, LaunchError> {
    let bytes = read_capped(file, MAX_RECORD).map_err(LaunchError::file(file))?;
    let run: Run = serde_json::from_slice(&bytes).map_err(|error| LaunchError::file(file)(error.into()))?;
    if run.v != 1 || file.file_stem().is_none_or(|stem| stem != run.name.as_str()) {
        let what =
            std::io::Error::new(std::io::ErrorKind::InvalidData, "is no record of this run, or of another version");
        return Err(LaunchError::file(file)(what));
    }
    Ok(run)
}

/// The run of this name.
///
/// # Errors
/// Where there is none, or its record can't be read.
pub fn find(state_dir: &Path, name: &str) -> Result<Run, LaunchError> {
    let none = || LaunchError::NoRun { name: crate::text::plain(name) };
    name::given(name).map_err(|_| none())?; // it becomes a file's name
    let file = record_file(state_dir, name);
    match file.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(none()),
        _ => read(&file),
    }
}

/// Asks the run's sandbox, keeps what it said, and gives both. Where the sandbox is gone the report is none and the
/// last record stays.
///
/// # Errors
/// Where there is no such run, or it can't be asked.
pub fn show(
    state_dir: &Path,
    name: &str,
    driver: &dyn Driver,
    clock: &dyn Clock,
    stop: &Stop,
) -> Result<(Run, Option<Report>), LaunchError> {
    let mut run = find(state_dir, name)?;
    let report = ask(state_dir, &mut run, driver, clock, stop, false)?;
    Ok((run, report))
}

/// The end of the run's output, as far as the supervisor keeps it, fit for a terminal; none where the sandbox is gone.
///
/// # Errors
/// As [`show`].
pub fn logs(
    state_dir: &Path,
    name: &str,
    driver: &dyn Driver,
    clock: &dyn Clock,
    stop: &Stop,
) -> Result<Option<String>, LaunchError> {
    let mut run = find(state_dir, name)?;
    Ok(ask(state_dir, &mut run, driver, clock, stop, true)?.map(|report| report.output))
}

/// Ends the run: takes its last record and removes its sandbox. Its record stays. Says whether the sandbox was there.
///
/// # Errors
/// Where there is no such run, or it can't be ended.
pub fn stop(
    state_dir: &Path,
    name: &str,
    driver: &dyn Driver,
    clock: &dyn Clock,
    stop: &Stop,
) -> Result<bool, LaunchError> {
    let mut run = find(state_dir, name)?;
    // a sandbox that can't answer any more is ended all the same
    let _ = ask(state_dir, &mut run, driver, clock, stop, false);
    let there = driver.remove(&run, stop)?;
    let record = run.last.take().and_then(|heard| heard.record);
    run.last = Some(Heard { at: UtcMillis(clock.now()), gone: true, record });
    save(state_dir, &run)?;
    Ok(there)
}

/// Hands on what went out of a local run and what was denied: the lines of its `egress.jsonl`, the oldest first, each an
/// object. The hosts and paths in them were chosen by what runs in the sandbox. Says whether there is such a log here.
///
/// # Errors
/// Where there is no such run, or its log can't be read.
pub fn egress(state_dir: &Path, name: &str, each: &mut dyn FnMut(serde_json::Value)) -> Result<bool, LaunchError> {
    let run = find(state_dir, name)?;
    RunFolder::of(state_dir, &run.name).decisions(each)
}

/// Ends the run and forgets it.
///
/// # Errors
/// As [`stop`]; the record then stays.
pub fn rm(
    state_dir: &Path,
    name: &str,
    driver: &dyn Driver,
    clock: &dyn Clock,
    stopping: &Stop,
) -> Result<bool, LaunchError> {
    let there = stop(state_dir, name, driver, clock, stopping)?;
    forget(state_dir, name)?;
    Ok(there)
}

/// Forgets a run, and ends nothing: what is left where its record can't be read.
///
/// # Errors
/// Where a file can't be removed.
pub fn forget(state_dir: &Path, name: &str) -> Result<(), LaunchError> {
    name::given(name).map_err(|_| LaunchError::NoRun { name: crate::text::plain(name) })?;
    let folder = RunFolder::of(state_dir, name);
    if folder.is_held()? {
        let what = "has a launcher that is alive; end it first, or its process";
        return Err(LaunchError::refused(format!("the run {name}"), what));
    }
    folder.remove()?;
    for file in [record_file(state_dir, name), output_file(state_dir, name)] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(LaunchError::file(&file)(error)),
            _ => {}
        }
    }
    Ok(())
}

fn ask(
    state_dir: &Path,
    run: &mut Run,
    driver: &dyn Driver,
    clock: &dyn Clock,
    stop: &Stop,
    log: bool,
) -> Result<Option<Report>, LaunchError> {
    let said = driver.report(run, log, stop)?;
    let report = said.as_ref().map(|word| Report::read(&word.report));
    run.exit = said.as_ref().and_then(|word| word.exit).or(run.exit);
    run.why = said.as_ref().and_then(|word| word.why.as_deref().map(plain)).or(run.why.take());
    // a sandbox of this machine lasts no longer than its run, unless it is kept
    let gone = said.as_ref().is_none_or(|word| word.exit.is_some() && !run.keep);
    let before = run.last.take().and_then(|heard| heard.record);
    let record = report.as_ref().and_then(|report| report.record.clone()).or(before);
    run.last = Some(Heard { at: UtcMillis(clock.now()), gone, record });
    save(state_dir, run)?;
    Ok(report)
}
