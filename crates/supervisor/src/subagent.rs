//! `bastion-supervisor subagent ID < task`: one more bounded execution of the harness, for its own agent.
//!
//! The final message goes to stdout once it is whole, with result lines quoted: a subagent's result is never its
//! parent's. The parent's result file is not handed down either.

use std::ffi::OsString;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::stdin;

use crate::adapters::{self, Task, Tools};
use crate::console::{Console, timespec};
use crate::cycle::{HARNESS_PATH, RESULT_FILE};
use crate::decide::TIMED_OUT;
use crate::files::{self, Scratch};
use crate::launch;
use crate::payload::Payload;
use crate::runner::{self, Ending, Plan};
use crate::scan;
use crate::settings::Settings;
use crate::signals::{Signals, StopSignal};

/// A task is not larger, in bytes.
const LARGEST_TASK: u64 = 8 << 20;
/// How long a subagent may take where its parent's cycles have no limit.
const TIMEOUT: Duration = Duration::from_secs(3600);
/// Time between TERM and KILL: less than the parent's own, so that ours is over before the parent kills us.
const GRACE: Duration = Duration::from_secs(5);

/// Why a subagent does not run.
#[derive(Debug, thiserror::Error)]
enum NotRun {
    #[error("unknown subagent {id}; known: {known}")]
    Unknown { id: String, known: String },
    #[error("the task is larger than {LARGEST_TASK} bytes")]
    TooLarge,
    #[error("{0}")]
    Harness(#[from] adapters::Unusable),
    #[error("cannot prepare the subagent: {0}")]
    Prepare(#[from] io::Error),
}

/// Runs subagent `id`; the answer is the exit status.
pub fn subagent(
    id: &str,
    settings: &Settings,
    console: &mut Console,
    signals: &Signals,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> u8 {
    let code = run(id, settings, console, signals, env).unwrap_or_else(|error| {
        console.say(&error.to_string());
        1
    });
    console.finish();
    code
}

fn run(
    id: &str,
    settings: &Settings,
    console: &mut Console,
    signals: &Signals,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<u8, NotRun> {
    let payload = Payload::new(&settings.payload_dir);
    let definition = payload.subagent(id).map_err(|known| NotRun::Unknown {
        id: id.escape_debug().to_string(),
        known: if known.is_empty() { "none".into() } else { known.join(", ") },
    })?;
    let mut adapter = adapters::find(&settings.harness, &payload)?;
    let scratch = Scratch::new(&[&settings.tmp_dir, &settings.state_dir])?;
    let (prompt, task_file) = (scratch.path().join("prompt.md"), scratch.path().join("task.md"));
    let limit = settings.cycle_timeout.unwrap_or(TIMEOUT);
    let start = Instant::now();
    let task = match read_task(signals, start + limit)? {
        Given::Task(task) => task,
        Given::Stop(stop) => return Ok(stop.exit_status()),
        Given::Late => {
            console.say(&format!("subagent {id} was given no task that ends; write it to a file: < task.md"));
            return Ok(TIMED_OUT);
        }
    };
    files::create_new(&task_file)?.write_all(&task)?;
    let mut composed = std::fs::read(definition)?;
    composed.extend_from_slice(b"\n\n# Task\n\n");
    composed.extend_from_slice(&task);
    files::create_new(&prompt)?.write_all(&composed)?;

    let task = Task { prompt: &prompt, scratch: scratch.path(), subagent: Some((id, &task_file)) };
    let plan = Plan {
        time: Some(limit.saturating_sub(start.elapsed())),
        silence: settings.silence_timeout,
        grace: GRACE,
        heartbeat: settings.heartbeat,
        pass: [false, true],
    };
    let path = env(HARNESS_PATH).filter(|path| !path.is_empty());
    let mut launch = adapter.launch(&task, &mut Tools { console, signals, env, path: path.clone() })?;
    launch.without.push(RESULT_FILE);
    if let Some(path) = path {
        launch = launch.env("PATH", path);
    }
    let beat = |seconds| format!("still running subagent {id} after {seconds}s");
    let mut ran = match runner::run(&launch, &plan, console, signals, &beat) {
        Ok(ran) => ran,
        Err(error) => {
            console.say(&format!("cannot start harness {}: {error}", settings.harness));
            return Ok(u8::try_from(launch::exit_of(&error)).unwrap_or(1));
        }
    };
    if let Some(stop) = signals.stop() {
        return Ok(stop.exit_status());
    }
    console.out.push(&scan::quote(&adapter.message(&task, &mut ran.stdout)));
    console.drain(signals);
    if ran.ending != Ending::Own {
        console.say(&format!("subagent {id} ran out of time"));
        return Ok(TIMED_OUT);
    }
    Ok(u8::try_from(ran.exit).unwrap_or(1))
}

/// What came on stdin.
enum Given {
    Task(Vec<u8>),
    /// We were asked to stop before it ended.
    Stop(StopSignal),
    /// It did not end in time.
    Late,
}

/// Reads the task from stdin, which may be a pipe that nobody ever closes.
fn read_task(signals: &Signals, until: Instant) -> Result<Given, NotRun> {
    let mut task = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some(stop) = signals.stop() {
            return Ok(Given::Stop(stop));
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Given::Late);
        }
        let mut fds =
            [PollFd::from_borrowed_fd(stdin(), PollFlags::IN), PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        if poll(&mut fds, Some(&timespec(left))).is_err() {
            continue; // interrupted: the next turn looks again
        }
        if !fds[1].revents().is_empty() {
            signals.drain();
        }
        if fds[0].revents().is_empty() {
            continue;
        }
        match rustix::io::read(stdin(), &mut buffer[..]) {
            Ok(0) => return Ok(Given::Task(task)),
            Ok(count) => task.extend_from_slice(&buffer[..count]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(NotRun::Prepare(error.into())),
        }
        if task.len() as u64 > LARGEST_TASK {
            return Err(NotRun::TooLarge);
        }
    }
}
