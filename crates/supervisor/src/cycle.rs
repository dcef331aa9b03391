//! One cycle: run the harness within its limits, then find what it had to say.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::adapters::{Adapter, Task, Tools};
use crate::console::Console;
use crate::files::{self, Scratch};
use crate::launch;
use crate::outcome::{Limit, Outcome};
use crate::payload::Payload;
use crate::runner::{self, Ending, Plan, Ran};
use crate::scan;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::transport;

/// Time between TERM and KILL.
const GRACE: Duration = Duration::from_secs(10);
/// A result file that is larger, in bytes, is no result.
const LARGEST_RESULT: u64 = 1 << 20;
/// Names the file that a harness may put its result in.
pub const RESULT_FILE: &str = "OPENSHELL_AGENT_RESULT_FILE";
/// The `PATH` that found the harness, for its subagents: a harness's login shell may have put another in its place.
pub const HARNESS_PATH: &str = "OPENSHELL_AGENT_HARNESS_PATH";

/// What came of a cycle.
#[derive(Debug)]
pub struct Cycle {
    /// The harness's exit status; none where it was not even tried, since we were asked to stop.
    pub exit: Option<i32>,
    /// What follows from it.
    pub outcome: Outcome,
}

/// Runs cycle `number`. `once`: none comes after it, so that an exit status can be a result.
pub fn run(
    number: u64,
    settings: &Settings,
    once: bool,
    adapter: &mut dyn Adapter,
    console: &mut Console,
    signals: &Signals,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Cycle {
    let scratch = match Scratch::new(&[&settings.tmp_dir, &settings.state_dir]) {
        Ok(scratch) => scratch,
        Err(error) => return not_started(&error, settings, once, adapter, console),
    };
    let prompt = Payload::new(&settings.payload_dir).prompt();
    let task = Task { prompt: &prompt, scratch: scratch.path(), subagent: None };
    let result_file = scratch.path().join("result.json");
    let plan = Plan {
        time: settings.cycle_timeout,
        silence: settings.silence_timeout,
        grace: GRACE,
        heartbeat: settings.heartbeat,
        pass: [true; 2],
    };
    let (mode, harness) = (settings.mode.name(), &settings.harness);
    let beat = |seconds| format!("still running {mode} cycle {number} with harness {harness} after {seconds}s");
    let launch = adapter.launch(&task, &mut Tools { console, signals, env, path: None });
    if let Some(stop) = signals.stop() {
        let exit = stop.exit_status().into();
        return Cycle { exit: None, outcome: Outcome::Missing { exit, transport: false } };
    }
    let ran = launch
        .map(|launch| launch.env(RESULT_FILE, &result_file).env(HARNESS_PATH, env("PATH").unwrap_or_default()))
        .and_then(|launch| runner::run(&launch, &plan, console, signals, &beat));
    match ran {
        Ok(ran) => judge(ran, &task, &result_file, settings, once, adapter),
        Err(error) => not_started(&error, settings, once, adapter, console),
    }
}

/// The result file wins over the final message; either wins over how the harness ended.
fn judge(mut ran: Ran, task: &Task<'_>, file: &Path, settings: &Settings, once: bool, adapter: &dyn Adapter) -> Cycle {
    let said = in_file(file).or_else(|| {
        let message = adapter.message(task, &mut ran.stdout);
        scan::result_line(&message).map(Outcome::read)
    });
    let overran = |limit, allowed: Option<Duration>| Outcome::Overran(limit, allowed.unwrap_or_default().as_secs());
    let outcome = match (ran.ending, said) {
        (_, Some(Outcome::Result(result))) => Outcome::Result(result),
        (Ending::Time, _) => overran(Limit::Time, settings.cycle_timeout),
        (Ending::Silence, _) => overran(Limit::Silence, settings.silence_timeout),
        (Ending::Own, Some(said)) => said,
        (Ending::Own, None) => {
            let lost = transport::shown(ran.stdout.lines(), ran.stderr.all());
            silent(ran.exit, lost, once, adapter)
        }
    };
    Cycle { exit: Some(ran.exit), outcome }
}

/// What the result file says; `None` where there is none, or nothing in it.
fn in_file(path: &Path) -> Option<Outcome> {
    match files::read_whole(path, LARGEST_RESULT) {
        Ok(text) if text.trim_ascii().is_empty() => None,
        Ok(text) => Some(Outcome::read(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(_) => Some(Outcome::Malformed),
    }
}

/// No result at all: for some harnesses the exit status is one.
fn silent(exit: i32, transport: bool, once: bool, adapter: &dyn Adapter) -> Outcome {
    if once && adapter.exit_is_result() {
        return Outcome::Exit(exit);
    }
    Outcome::Missing { exit, transport }
}

fn not_started(
    error: &io::Error,
    settings: &Settings,
    once: bool,
    adapter: &dyn Adapter,
    console: &mut Console,
) -> Cycle {
    console.say(&format!("cannot start harness {}: {error}", settings.harness));
    let exit = launch::exit_of(error);
    Cycle { exit: Some(exit), outcome: silent(exit, false, once, adapter) }
}
