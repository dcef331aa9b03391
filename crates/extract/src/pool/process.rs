//! One worker process, from the pool's side: started with an empty environment, spoken to over pipes with a deadline,
//! killed and reaped when dropped.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::PoolError;
use super::verdict::{self, Death};
use crate::wire::{self, Answer, Ask, PREAMBLE};
use crate::{FailReason, Job, Outcome};

/// How long a new worker may take to cage itself and say so. Generous: it is a busy machine's whole start of a program.
const START: Duration = Duration::from_secs(60);
/// A worker is replaced after this many files, so that what a library leaves behind stays small.
const MAX_FILES: u32 = 500;
/// A worker that keeps more than this after a file, in bytes, is replaced: its memory is bounded for the next file.
const MAX_KEPT: u64 = 384 << 20;
/// Of standard error, this many bytes are kept to find the cause of a death.
const MAX_STDERR: usize = 16 * 1024;

/// How to start a worker.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) uncaged: bool,
}

/// A running worker.
#[derive(Debug)]
pub(super) struct Worker {
    child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    stderr: ChildStderr,
    /// The last words on standard error.
    said: Vec<u8>,
    stderr_open: bool,
    files: u32,
    /// A reader panicked in it.
    shaken: bool,
}

/// How a file's reading ended.
pub(super) enum End {
    /// The worker answered and waits for the next file.
    Answered(Outcome),
    /// The worker is no more.
    Died(Death),
}

/// Why there is no whole frame.
enum Broken {
    /// The deadline passed.
    Late,
    /// The worker closed its pipe: it has ended.
    Closed,
    /// It wrote something that is no frame.
    Malformed,
}

impl Worker {
    /// Starts a worker and waits until it is caged.
    #[expect(clippy::disallowed_methods, reason = "the pool is one of the three places that start processes")]
    pub(super) fn start(recipe: &Recipe) -> Result<Self, PoolError> {
        let spawn_failed = |source| PoolError::Spawn { worker: recipe.program.clone(), source };
        let mut command = Command::new(&recipe.program);
        command.args(&recipe.args).env_clear().current_dir("/");
        for (name, value) in ENVIRONMENT {
            command.env(name, value);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(spawn_failed)?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(spawn_failed(io::Error::other("no pipes")));
        };
        let mut worker =
            Self { child, stdin, stdout, stderr, said: Vec::new(), stderr_open: true, files: 0, shaken: false };
        for pipe in [worker.stdin.as_fd(), worker.stdout.as_fd(), worker.stderr.as_fd()] {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|errno| PoolError::Pipe { source: errno.into() })?;
        }
        let not_a_worker = || PoolError::NotAWorker { worker: recipe.program.clone() };
        let start =
            wire::head(&Ask::Start { uncaged: recipe.uncaged }, 0).map_err(|source| PoolError::Pipe { source })?;
        let answer = worker.exchange(&[&start], 0, Instant::now() + START)?;
        match answer {
            Ok((Answer::Ready, _)) => Ok(worker),
            Ok((Answer::Uncaged { layer, cause, mend }, _)) => Err(PoolError::Uncaged { layer, cause, mend }),
            Ok(_) | Err(_) => Err(not_a_worker()),
        }
    }

    /// Gives the worker a file and waits for its answer, at most the file's seconds.
    pub(super) fn read(&mut self, job: &Job<'_>) -> Result<End, PoolError> {
        self.files += 1;
        let ask = Ask::Read {
            name: clip(job.name),
            max_doc_chars: job.limits.max_doc_chars,
            archive_depth: job.limits.archive_depth,
        };
        let head = wire::head(&ask, job.bytes.len()).map_err(|source| PoolError::Pipe { source })?;
        let seconds = u64::from(job.limits.seconds);
        self.limit_processor_time(seconds);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        // A character is at most four bytes of UTF-8.
        let max_body = job.limits.max_doc_chars.saturating_mul(4);
        Ok(match self.exchange(&[&head, job.bytes], max_body, deadline)? {
            Ok((answer, body)) => match verdict::outcome(answer, body, &job.limits) {
                Some(outcome) => {
                    self.shaken = matches!(outcome, Outcome::Failed { reason: FailReason::Crashed, .. });
                    End::Answered(outcome)
                }
                None => End::Died(self.end(Death::Nonsense)),
            },
            Err(Broken::Malformed) => End::Died(self.end(Death::Nonsense)),
            Err(Broken::Late) => {
                let processor = self.processor_seconds().unwrap_or(f64::MAX);
                End::Died(self.end(Death::Late { processor }))
            }
            Err(Broken::Closed) => {
                let status = self.wait_briefly();
                let death = verdict::death(status, &self.said);
                End::Died(self.end(death))
            }
        })
    }

    /// Whether the worker should not get another file.
    pub(super) fn worn_out(&self) -> bool {
        self.shaken || self.files >= MAX_FILES || self.resident_bytes().map_or(cfg!(target_os = "linux"), |bytes| bytes > MAX_KEPT)
    }

    fn end(&mut self, death: Death) -> Death {
        let _ = self.child.kill();
        let _ = self.child.wait();
        death
    }

    /// Backs up the pool's own timer inside the kernel, should the pool be stopped: a soft limit a little beyond it.
    /// Best effort by design: the timer is what keeps the promise.
    #[cfg(target_os = "linux")]
    fn limit_processor_time(&self, seconds: u64) {
        use rustix::process::{Pid, Resource, Rlimit, prlimit};
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of one process")]
        let used = self.processor_seconds().unwrap_or(0.0).ceil() as u64;
        let limit = Rlimit { current: Some(used.saturating_add(seconds).saturating_add(1)), maximum: None };
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = prlimit(Some(pid), Resource::Cpu, limit);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn limit_processor_time(&self, _seconds: u64) {}

    /// Processor seconds used so far, from proc(5): fields 14 and 15 of `stat`, in ticks of 1/100 s (`USER_HZ`).
    fn processor_seconds(&self) -> Option<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks: u32 = fields.get(11)?.parse::<u32>().ok()?.checked_add(fields.get(12)?.parse().ok()?)?;
        Some(f64::from(ticks) / 100.0)
    }

    /// Bytes in memory now, from proc(5): the second field of `statm`, in pages.
    fn resident_bytes(&self) -> Option<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).ok()?;
        let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
        Some(pages.saturating_mul(rustix::param::page_size() as u64))
    }

    /// Sends `parts`, then reads one frame. Standard error is drained all the while.
    fn exchange(
        &mut self,
        parts: &[&[u8]],
        max_body: u64,
        deadline: Instant,
    ) -> Result<Result<(Answer, Vec<u8>), Broken>, PoolError> {
        let mut outgoing = Outgoing { parts, part: 0, at: 0 };
        let mut incoming = Incoming::new(max_body);
        loop {
            if incoming.whole() {
                let frame = incoming.finish();
                return Ok(frame.map_err(|_| Broken::Malformed));
            }
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return Ok(Err(Broken::Late)) };
            let ready = self.wait_for(!outgoing.done(), left)?;
            if ready.stderr {
                self.drain_stderr();
            }
            if ready.stdin {
                match outgoing.send(&mut self.stdin) {
                    Ok(()) => {}
                    // The worker has ended; what it said last is still in its pipes.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => outgoing.part = parts.len(),
                    Err(source) => return Err(PoolError::Pipe { source }),
                }
            }
            if ready.stdout {
                match incoming.receive(&mut self.stdout) {
                    Ok(true) => {}
                    Ok(false) => {
                        self.drain_stderr();
                        return Ok(Err(Broken::Closed));
                    }
                    Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Err(Broken::Malformed)),
                    Err(source) => return Err(PoolError::Pipe { source }),
                }
            }
        }
    }

    fn wait_for(&self, sending: bool, left: Duration) -> Result<Ready, PoolError> {
        // A closed pipe that is watched wakes us for ever, so only those still of use are.
        let mut pipes = Vec::with_capacity(3);
        pipes.push(PollFd::new(&self.stdout, PollFlags::IN));
        if sending {
            pipes.push(PollFd::new(&self.stdin, PollFlags::OUT));
        }
        if self.stderr_open {
            pipes.push(PollFd::new(&self.stderr, PollFlags::IN));
        }
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut pipes, timeout.as_ref()) {
            Ok(_) => {
                let mut woken = pipes.iter().map(|pipe| !pipe.revents().is_empty());
                let mut next = |watched: bool| watched && woken.next().unwrap_or(false);
                Ok(Ready { stdout: next(true), stdin: next(sending), stderr: next(self.stderr_open) })
            }
            Err(rustix::io::Errno::INTR) => Ok(Ready::default()),
            Err(errno) => Err(PoolError::Pipe { source: errno.into() }),
        }
    }

    /// Takes what is there, and keeps the end of it: the last words tell the cause.
    fn drain_stderr(&mut self) {
        let mut buffer = [0; 4096];
        loop {
            match self.stderr.read(&mut buffer) {
                Ok(0) => {
                    self.stderr_open = false;
                    return;
                }
                Ok(read) => {
                    self.said.extend_from_slice(&buffer[..read]);
                    let surplus = self.said.len().saturating_sub(MAX_STDERR);
                    self.said.drain(..surplus);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// The pipe is closed, so the end is near; a worker that lingers is killed.
    fn wait_briefly(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.drain_stderr();
                    return Some(status);
                }
                Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                Err(_) => return None,
            }
        }
        None
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The whole environment of a worker: no setting of the owner's reaches a library.
const ENVIRONMENT: &[(&str, &str)] = &[
    // One arena: a second one would reserve address space that the limit counts.
    ("MALLOC_ARENA_MAX", "1"),
    ("RUST_BACKTRACE", "0"),
    ("LC_ALL", "C.UTF-8"),
    ("TZ", "UTC"),
    // The office library's own bound on a part of a package, as `readers::office::MAX_PART`.
    ("DOCLING_RS_MAX_PART_BYTES", "268435456"),
];

/// A name is a hint, and its end (`.docx`) the part that hints.
fn clip(name: &str) -> String {
    let skip = name.chars().count().saturating_sub(200);
    name.chars().skip(skip).collect()
}

#[derive(Default)]
struct Ready {
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

struct Outgoing<'a> {
    parts: &'a [&'a [u8]],
    part: usize,
    at: usize,
}

impl Outgoing<'_> {
    fn done(&self) -> bool {
        self.part >= self.parts.len()
    }

    fn send(&mut self, pipe: &mut ChildStdin) -> io::Result<()> {
        while let Some(part) = self.parts.get(self.part) {
            if self.at == part.len() {
                self.part += 1;
                self.at = 0;
                continue;
            }
            match pipe.write(&part[self.at..]) {
                Ok(sent) => self.at += sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

struct Incoming {
    bytes: Vec<u8>,
    max_body: u64,
    /// Lengths of head and body once the preamble is there.
    lengths: Option<(usize, usize)>,
}

impl Incoming {
    fn new(max_body: u64) -> Self {
        Self { bytes: Vec::new(), max_body, lengths: None }
    }

    fn whole(&self) -> bool {
        self.lengths.is_some_and(|(head, body)| self.bytes.len() >= PREAMBLE + head + body)
    }

    /// Takes what is there. `false` at the end of the pipe.
    fn receive(&mut self, pipe: &mut ChildStdout) -> io::Result<bool> {
        let mut buffer = [0; 64 * 1024];
        match pipe.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(read) => self.bytes.extend_from_slice(&buffer[..read]),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if self.lengths.is_none()
            && let Some(preamble) = self.bytes.first_chunk::<PREAMBLE>()
        {
            self.lengths = Some(wire::lengths(preamble, self.max_body)?);
        }
        match self.lengths {
            Some((head, body)) if self.bytes.len() > PREAMBLE + head + body => {
                Err(wire::malformed("more than a frame"))
            }
            _ => Ok(true),
        }
    }

    fn finish(mut self) -> io::Result<(Answer, Vec<u8>)> {
        let (head, _) = self.lengths.ok_or_else(|| wire::malformed("no preamble"))?;
        let message = wire::message(&self.bytes[PREAMBLE..PREAMBLE + head])?;
        self.bytes.drain(..PREAMBLE + head);
        Ok((message, self.bytes))
    }
}
