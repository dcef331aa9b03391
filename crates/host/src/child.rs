//! Runs another program to its end: for a bounded time, with bounded memory, and so that a stop request ends it.
//!
//! The program gets a process group of its own, so that what it started ends with it and Ctrl-C at the terminal
//! reaches it through us, once. What it prints is kept up to a limit (the end of it) and never waited for after the
//! program itself has ended for more than two seconds: a background child may hold the pipe.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::signals::{Stop, StopSignal};

/// How often the stop request and the time limit are looked at.
const TICK: Duration = Duration::from_millis(25);
/// Between the polite signal and the one that can't be ignored.
const GRACE: Duration = Duration::from_secs(3);
/// How long the pipes are read after the program has ended.
const LINGER: Duration = Duration::from_secs(2);

/// A program to run, and within which bounds.
#[derive(Clone, Default)]
pub struct Job {
    /// The program: a path, or a name that `PATH` resolves.
    pub program: OsString,
    /// Its arguments. Anyone on the machine can read these: no secret belongs here.
    pub args: Vec<OsString>,
    /// Variables added to the environment.
    pub env: Vec<(OsString, OsString)>,
    /// Variables taken out of it.
    pub unset: Vec<OsString>,
    /// Where it runs; none: where we are.
    pub cwd: Option<PathBuf>,
    /// How long it may take; none: as long as it likes.
    pub limit: Option<Duration>,
    /// Bytes kept of each output stream; of more the end is kept.
    pub keep: usize,
}

impl fmt::Debug for Job {
    /// Of the environment the names alone: values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        let mut shown = f.debug_struct("Job");
        shown.field("program", &self.program).field("args", &self.args).field("env", &names);
        shown.field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// Which of its two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself.
    Exited(ExitStatus),
    /// It took too long and was ended.
    TimedOut,
    /// A stop was requested and it was ended.
    Interrupted(StopSignal),
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub how: End,
    /// The kept end of its standard output.
    pub stdout: Vec<u8>,
    /// The kept end of its standard error.
    pub stderr: Vec<u8>,
    /// Whether more was printed than is kept.
    pub truncated: bool,
}

/// Runs `job` to its end with no input; `heard` gets every piece of output as it comes.
///
/// # Errors
/// Where the program can't be started or waited for.
pub fn run(job: &Job, stop: &Stop, heard: &mut dyn FnMut(Stream, &[u8])) -> io::Result<Ended> {
    let mut child = command(job).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (send, receive) = sync_channel(16);
    if let Some(pipe) = child.stdout.take() {
        pump(pipe, Stream::Stdout, send.clone());
    }
    if let Some(pipe) = child.stderr.take() {
        pump(pipe, Stream::Stderr, send.clone());
    }
    drop(send);
    let mut ended = Ended { how: End::TimedOut, stdout: Vec::new(), stderr: Vec::new(), truncated: false };
    let started = Instant::now();
    ended.how = loop {
        collect(&receive, TICK, job.keep, &mut ended, heard);
        if let Some(status) = child.try_wait()? {
            break End::Exited(status);
        }
        if let Some(signal) = stop.requested() {
            end(&mut child)?;
            break End::Interrupted(signal);
        }
        if job.limit.is_some_and(|limit| started.elapsed() >= limit) {
            end(&mut child)?;
            break End::TimedOut;
        }
    };
    // what is in the pipes already is taken, however slow `heard` is; what a background child adds is not
    let (over, mut last) = (Instant::now(), Instant::now());
    while last.elapsed() < LINGER && over.elapsed() < LINGER * 5 {
        match collect(&receive, TICK, job.keep, &mut ended, heard) {
            Came::Output => last = Instant::now(),
            Came::Nothing => {}
            Came::End => break,
        }
    }
    Ok(ended)
}

/// Starts `job` and leaves it running, its output going to `log`.
///
/// # Errors
/// Where the program can't be started.
pub fn start(job: &Job, log: File) -> io::Result<Child> {
    command(job).stderr(log.try_clone()?).stdout(log).spawn()
}

/// Starts `program`, which outlives us, gives it `input` and then nothing more to read, and hands on its output. What it
/// says of errors is let go.
///
/// # Errors
/// Where it can't be started, or does not take its input.
pub fn start_fed(program: &Path, args: &[&str], input: &[u8]) -> io::Result<(Child, ChildStdout)> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let fed = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(input));
    match (fed, child.stdout.take()) {
        (Ok(()), Some(stdout)) => Ok((child, stdout)),
        (fed, _) => {
            let _ = child.kill();
            let _ = child.wait();
            Err(fed.err().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into()))
        }
    }
}

/// Ends a child and what it started: TERM, and KILL where that is not heard.
///
/// # Errors
/// Where it can't be waited for.
pub fn end(child: &mut Child) -> io::Result<()> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    signal(Signal::TERM);
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() >= GRACE {
            signal(Signal::KILL);
            child.wait()?;
            break;
        }
        std::thread::sleep(TICK);
    }
    signal(Signal::KILL); // what it left behind in its group
    Ok(())
}

fn command(job: &Job) -> Command {
    let mut command = Command::new(&job.program);
    command.args(&job.args).stdin(Stdio::null()).process_group(0);
    for name in &job.unset {
        command.env_remove(name);
    }
    command.envs(job.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &job.cwd {
        command.current_dir(cwd);
    }
    command
}

fn pump(mut pipe: impl Read + Send + 'static, stream: Stream, send: SyncSender<(Stream, Vec<u8>)>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(n) = pipe.read(&mut buffer) {
            if n == 0 || send.send((stream, buffer[..n].to_vec())).is_err() {
                break;
            }
        }
    });
}

/// What came out of the pipes.
enum Came {
    Output,
    Nothing,
    /// Both are closed.
    End,
}

/// Takes what has come within `wait`.
fn collect(
    receive: &Receiver<(Stream, Vec<u8>)>,
    wait: Duration,
    keep: usize,
    ended: &mut Ended,
    heard: &mut dyn FnMut(Stream, &[u8]),
) -> Came {
    match receive.recv_timeout(wait) {
        Ok((stream, bytes)) => {
            heard(stream, &bytes);
            let kept = if stream == Stream::Stdout { &mut ended.stdout } else { &mut ended.stderr };
            kept.extend_from_slice(&bytes);
            if kept.len() > keep {
                kept.drain(..kept.len() - keep);
                ended.truncated = true;
            }
            Came::Output
        }
        Err(RecvTimeoutError::Timeout) => Came::Nothing,
        Err(RecvTimeoutError::Disconnected) => {
            // both pipes are closed and the program still runs: it is waited for, not spun on
            std::thread::sleep(Duration::from_millis(5));
            Came::End
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Job {
        Job { program: "sh".into(), args: vec!["-c".into(), script.into()], keep: 1000, ..Job::default() }
    }

    fn run_quiet(job: &Job, stop: &Stop) -> Ended {
        run(job, stop, &mut |_, _| {}).unwrap()
    }

    #[test]
    fn both_outputs_and_the_status_come_back() {
        let mut heard = Vec::new();
        let job = Job { env: vec![("GREETING".into(), "hi".into())], ..sh("echo $GREETING; echo no >&2; exit 3") };
        let ended = run(&job, &Stop::new(), &mut |_, bytes| heard.extend_from_slice(bytes)).unwrap();
        assert_eq!((ended.stdout.as_slice(), ended.stderr.as_slice()), (&b"hi\n"[..], &b"no\n"[..]));
        assert!(matches!(ended.how, End::Exited(status) if status.code() == Some(3)));
        assert_eq!(heard.len(), 6);
    }

    #[test]
    fn values_of_the_environment_are_not_printed() {
        let job = Job { env: vec![("NAME".into(), "value-of-it".into())], ..sh("true") };
        let shown = format!("{job:?}");
        assert!(shown.contains("NAME") && !shown.contains("value-of-it"), "{shown}");
    }

    #[test]
    fn what_hangs_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let job = Job {
            limit: Some(Duration::from_millis(300)),
            ..sh(&format!("sleep 60 & echo $! > {}; wait", pid.display()))
        };
        let started = Instant::now();
        assert_eq!(run_quiet(&job, &Stop::new()).how, End::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(10));
        let pid: u32 = std::fs::read_to_string(pid).unwrap().trim().parse().unwrap();
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z"), "{state}");
    }

    #[test]
    fn a_stop_request_ends_it() {
        let stop = Stop::new();
        let asked = stop.clone();
        let job = sh("sleep 60");
        let asker = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(100));
            asked.request(StopSignal::Interrupt);
        });
        assert_eq!(run_quiet(&job, &stop).how, End::Interrupted(StopSignal::Interrupt));
        asker.join().unwrap();
    }

    #[test]
    fn a_background_child_that_holds_the_pipe_is_not_waited_for() {
        let started = Instant::now();
        let ended = run_quiet(&sh("(sleep 30; true) & echo done"), &Stop::new());
        assert_eq!(ended.stdout, b"done\n");
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn the_end_of_long_output_is_kept() {
        let ended = run_quiet(&sh("head -c 100000 /dev/zero; echo end"), &Stop::new());
        assert!(ended.truncated && ended.stdout.len() == 1000 && ended.stdout.ends_with(b"end\n"));
    }
}
