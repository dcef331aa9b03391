//! A detached run has a launcher of its own: this program again, in a session of its own, which gets the job through a
//! pipe (it holds secrets: no file, no argument, no variable) and answers once the sandbox is up.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use bastion_host::child;
use bastion_host::clock::Clock;
use bastion_host::signals::Stop;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::job::Job;
use super::run::{self, Event};
use crate::error::LaunchError;

/// The argument that makes this program a launcher. Not for users.
pub const LAUNCHER: &str = "__launcher";
/// A job is not larger, in bytes.
const MAX_JOB: u64 = 256 << 20;
/// How long a sandbox may take to come up.
const LIMIT: Duration = Duration::from_secs(60);
const TICK: Duration = Duration::from_millis(50);

/// What the launcher says, one line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Said {
    Up(Vec<String>),
    Failed { status: u8, text: String },
}

/// Starts the launcher and waits until the sandbox is up. Gives what the user should know.
///
/// # Errors
/// Where it does not come up; nothing of the agent ran then.
pub(crate) fn start(program: &Path, job: &Job, stop: &Stop) -> Result<Vec<String>, LaunchError> {
    let failed = |what: String| LaunchError::refused("the launcher of the run", what);
    let input = Zeroizing::new(serde_json::to_vec(job).map_err(|error| failed(format!("gets no job: {error}")))?);
    let (mut child, said) =
        child::start_fed(program, &[LAUNCHER], &input).map_err(|error| failed(format!("can't be started: {error}")))?;
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(said.take(1 << 20)).read_line(&mut line);
        let _ = send.send(line);
    });
    let mut waited = Duration::ZERO;
    let line = loop {
        match receive.recv_timeout(TICK) {
            Ok(line) => break line,
            Err(RecvTimeoutError::Timeout) => waited += TICK,
            Err(RecvTimeoutError::Disconnected) => break String::new(),
        }
        if let Some(signal) = stop.requested() {
            kill(&mut child);
            let during = "while the sandbox was being started".to_owned();
            return Err(LaunchError::Interrupted { signal, during, done: Vec::new() });
        }
        if waited >= LIMIT {
            kill(&mut child);
            return Err(failed(format!("did not have the sandbox up within {} s", LIMIT.as_secs())));
        }
    };
    match serde_json::from_str(&line) {
        Ok(Said::Up(notes)) => Ok(notes),
        Ok(Said::Failed { text, .. }) => {
            let _ = child.wait();
            Err(LaunchError::Refused { subject: text, what: String::new() })
        }
        Err(_) => {
            kill(&mut child);
            Err(failed("ended without a word".to_owned()))
        }
    }
}

/// Ends a launcher that is of no use; what it started dies with it.
fn kill(child: &mut std::process::Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// What a launcher does: reads its job, answers, and stays with the run to its end. Gives its exit status.
pub fn launcher(stop: &Stop, clock: Arc<dyn Clock>) -> u8 {
    if run::harden().is_err() {
        return 1;
    }
    // the terminal may go; where we lead a group already, we have a session of our own
    let _ = rustix::process::setsid();
    let mut bytes = Zeroizing::new(Vec::new());
    let read = std::io::stdin().lock().take(MAX_JOB).read_to_end(&mut bytes);
    let job: Result<Job, String> = read
        .map_err(|error| error.to_string())
        .and_then(|_| serde_json::from_slice(&bytes).map_err(|_| "is no job".to_owned()));
    drop(bytes);
    let say = |said: &Said| {
        let mut line = serde_json::to_string(said).unwrap_or_default();
        line.push('\n');
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
    };
    let job = match job {
        Ok(job) => job,
        Err(text) => {
            say(&Said::Failed { status: 1, text: format!("the launcher's input {text}") });
            return 1;
        }
    };
    let ended = run::run(&job, stop, clock, &mut |event| {
        if let Event::Up(notes) = event {
            say(&Said::Up(notes.to_vec()));
            // who started us may go now, and takes its pipe along
            if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
                let _ = rustix::stdio::dup2_stdout(&null);
            }
        }
    });
    match ended {
        Ok(ending) => ending.exit,
        Err(error) => {
            say(&Said::Failed { status: error.exit_status(), text: error.to_string() });
            error.exit_status()
        }
    }
}
