//! Our own stdout and stderr: written without ever blocking the loop, so that limits and signals hold also while
//! nobody reads. Lines of our own go the same way as the harness's, in order.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;

use crate::PREFIX;
use crate::output_log::OutputLog;
use crate::signals::{Signals, StopSignal, reap};

/// Lines of our own that may wait for a reader, in bytes; more are let go.
const LARGEST_BACKLOG: usize = 256 << 10;
/// A pipe or socket that polls as writable takes this much without blocking (`PIPE_BUF`).
const STEP: usize = 4096;
/// How long the last words may wait for a reader when the supervisor ends.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// A sleep is cut into naps no longer than this, since `poll` does not count the time of a suspended machine.
const LONGEST_NAP: Duration = Duration::from_secs(30);

/// One of the two.
#[derive(Debug)]
pub struct Outlet {
    standard: BorrowedFd<'static>,
    nonblocking: Option<OwnedFd>,
    regular: bool,
    pending: Vec<u8>,
    at: usize,
    closed: bool,
    mid_line: bool,
}

impl Outlet {
    fn new(standard: BorrowedFd<'static>, path: &str) -> Self {
        let kind = fstat(standard).map(|stat| FileType::from_raw_mode(stat.st_mode));
        // A description of our own, since O_NONBLOCK on the shared one would change it for everybody else.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let nonblocking = if kind == Ok(FileType::Fifo) { open(path, flags, Mode::empty()).ok() } else { None };
        let regular = kind == Ok(FileType::RegularFile);
        Self { standard, nonblocking, regular, pending: Vec::new(), at: 0, closed: false, mid_line: false }
    }

    /// Whether something waits for the reader.
    pub fn blocked(&self) -> bool {
        !self.pending.is_empty()
    }

    /// What to poll for room.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.standard
    }

    /// Takes in bytes and writes what there is room for.
    pub fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else { return };
        self.mid_line = *last != b'\n';
        if !self.closed {
            self.pending.extend_from_slice(bytes);
            self.flush();
        }
    }

    /// Writes what there is room for. A reader that is gone is no failure: the rest is let go.
    pub fn flush(&mut self) {
        while self.at < self.pending.len() {
            let rest = &self.pending[self.at..];
            let written = match &self.nonblocking {
                Some(fd) => rustix::io::write(fd, rest),
                None if self.regular => rustix::io::write(self.standard, rest),
                None if writable(self.standard) => rustix::io::write(self.standard, &rest[..rest.len().min(STEP)]),
                None => return,
            };
            match written {
                Ok(n) => self.at += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.closed = true;
                    break;
                }
            }
        }
        self.pending.clear();
        self.at = 0;
    }
}

/// Both, and the log that keeps the end of what went through them.
#[derive(Debug)]
pub struct Console {
    /// Our stdout.
    pub out: Outlet,
    /// Our stderr.
    pub err: Outlet,
    /// The kept output, where there is a state folder.
    pub log: Option<OutputLog>,
}

impl Console {
    /// The process's own. Made before it becomes undumpable, which closes `/proc/self/fd` to it.
    pub fn new() -> Self {
        let (out, err) = (rustix::stdio::stdout(), rustix::stdio::stderr());
        Self { out: Outlet::new(out, "/proc/self/fd/1"), err: Outlet::new(err, "/proc/self/fd/2"), log: None }
    }

    /// Passes on what the harness printed.
    pub fn pass(&mut self, stderr: bool, chunk: &[u8]) {
        if stderr {
            self.err.push(chunk);
        } else {
            self.out.push(chunk);
        }
        if let Some(log) = &mut self.log {
            log.push(chunk);
        }
    }

    /// Prints a line of our own, on a line of its own.
    pub fn say(&mut self, message: &str) {
        let start = if self.err.mid_line { "\n" } else { "" };
        let line = format!("{start}{PREFIX}{message}\n");
        if self.err.pending.len() < LARGEST_BACKLOG {
            self.err.push(line.as_bytes());
        }
        if let Some(log) = &mut self.log {
            log.push(line.as_bytes());
        }
    }

    /// Writes kept output to the disk where it is due; `cut` makes it due, and brings the file down to its size.
    pub fn flush_log(&mut self, cut: bool) {
        let Some(log) = &mut self.log else { return };
        if cut || log.due().is_some_and(|due| due <= Instant::now()) {
            let written = log.flush(cut);
            if let Err(error) = written {
                self.say(&format!("cannot keep output: {error}"));
            }
        }
    }

    /// Waits until `until` of the boot clock, or until asked to stop. Children that end meanwhile are collected.
    pub fn sleep(&mut self, until: Duration, signals: &Signals) -> Option<StopSignal> {
        loop {
            reap(None);
            if let Some(stop) = signals.stop() {
                return Some(stop);
            }
            let left = until.saturating_sub(crate::clock::since_boot());
            if left.is_zero() {
                return None;
            }
            self.flush_log(false);
            let due = self.log.as_ref().and_then(OutputLog::due).map(|due| due - Instant::now().min(due));
            let nap = left.min(LONGEST_NAP).min(due.unwrap_or(LONGEST_NAP));
            let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
            for outlet in [&self.out, &self.err].into_iter().filter(|outlet| outlet.blocked()) {
                fds.push(PollFd::from_borrowed_fd(outlet.fd(), PollFlags::OUT));
            }
            let _ = poll(&mut fds, Some(&timespec(nap)));
            drop(fds);
            signals.drain();
            self.out.flush();
            self.err.flush();
        }
    }

    /// Waits until stdout's reader has everything, or we are asked to stop.
    pub fn drain(&mut self, signals: &Signals) {
        while self.out.blocked() && signals.stop().is_none() {
            let until = crate::clock::since_boot() + Duration::from_millis(100);
            self.sleep(until, signals);
        }
    }

    /// Waits a little for a slow reader of the last words.
    pub fn finish(&mut self) {
        self.flush_log(true);
        let until = Instant::now() + LAST_WORDS;
        while (self.out.blocked() || self.err.blocked()) && Instant::now() < until {
            let mut fds: Vec<PollFd<'_>> = [&self.out, &self.err]
                .into_iter()
                .filter(|outlet| outlet.blocked())
                .map(|outlet| PollFd::from_borrowed_fd(outlet.fd(), PollFlags::OUT))
                .collect();
            let _ = poll(&mut fds, Some(&timespec(until.saturating_duration_since(Instant::now()))));
            drop(fds);
            self.out.flush();
            self.err.flush();
        }
    }
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

/// A duration for `poll`, rounded up to a millisecond so that it is never a busy loop.
pub fn timespec(duration: Duration) -> Timespec {
    let nanos = duration.subsec_nanos().max(u32::from(duration.as_secs() == 0) * 1_000_000);
    Timespec { tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), tv_nsec: nanos.into() }
}

fn writable(fd: BorrowedFd<'_>) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut fds = [PollFd::new(&fd, PollFlags::OUT)];
    matches!(poll(&mut fds, Some(&now)), Ok(n) if n > 0)
}
