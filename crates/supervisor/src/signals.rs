//! Was this process asked to stop, and did a child end? Both wake the loop through one pipe.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

/// A signal that asks us to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager, `kill`. A terminal that hangs up counts as one.
    Terminate,
}

impl StopSignal {
    /// 128 and the signal's number.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// The signal, to be handed on.
    pub fn signal(self) -> Signal {
        match self {
            Self::Interrupt => Signal::INT,
            Self::Terminate => Signal::TERM,
        }
    }
}

/// The signals that this process listens to, for its whole life.
#[derive(Debug)]
pub struct Signals {
    pipe: UnixStream,
    stop: Arc<AtomicUsize>,
}

impl Signals {
    /// Listens from now on. As PID 1 a process gets only the signals that it asks for.
    pub fn listen() -> io::Result<Self> {
        let (pipe, write) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let stop = Arc::new(AtomicUsize::new(0));
        let mut stops = vec![(SIGTERM, SIGTERM), (SIGINT, SIGINT)];
        if !ignored(SIGHUP) {
            stops.push((SIGHUP, SIGTERM)); // `nohup` has us ignore it, and so it stays
        }
        for (signal, means) in stops {
            signal_hook::flag::register_usize(signal, stop.clone(), usize::try_from(means).unwrap_or(0))?;
            signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(SIGCHLD, write)?;
        Ok(Self { pipe, stop })
    }

    /// The signal that asked us to stop, the latest where there were more.
    pub fn stop(&self) -> Option<StopSignal> {
        match self.stop.load(Ordering::SeqCst) {
            0 => None,
            signal if usize::try_from(SIGINT) == Ok(signal) => Some(StopSignal::Interrupt),
            _ => Some(StopSignal::Terminate),
        }
    }

    /// What to poll for input.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Forgets what woke us.
    pub fn drain(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.pipe).read(&mut bytes), Ok(n) if n > 0) {}
    }
}

/// Whether this process was started with `signal` ignored.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Collects every child that has ended: as PID 1 also those that others left behind. Answers the exit status of
/// `ours` where it was among them, 128 + the signal's number for one that a signal ended.
pub fn reap(ours: Option<Pid>) -> Option<i32> {
    let mut found = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if Some(pid) == ours {
            found = Some(exit_code(status));
        }
    }
    found
}

fn exit_code(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(1)
}
