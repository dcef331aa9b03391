//! A sandbox that runs: its output, its end.

use std::io;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::Sender;

use rustix::io::Errno;
use rustix::process::{Signal, pidfd_send_signal};

use super::Enforced;
use super::group::Group;
use super::start::read_some;

/// What the sandbox dies with: the thread that started it, and our end of a pipe.
#[derive(Debug)]
pub(super) struct Keeper {
    _thread: Sender<()>,
    _lifeline: OwnedFd,
}

impl Keeper {
    pub(super) fn new(thread: Sender<()>, lifeline: OwnedFd) -> Self {
        Self { _thread: thread, _lifeline: lifeline }
    }
}

/// Processes by descriptor, so that a signal reaches them or nobody.
#[derive(Debug)]
pub(super) struct Processes {
    /// Process 1 of the sandbox's namespace: with it end all.
    pub(super) first: OwnedFd,
    pub(super) supervisor: OwnedFd,
}

/// A sandbox that runs. It ends when this is dropped, and when the process ends that has it.
#[derive(Debug)]
pub struct Running {
    child: Child,
    listener: Option<TcpListener>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    enforced: Enforced,
    processes: Option<Processes>,
    pid: u32,
    // Dropped in this order, after the child has ended.
    group: Group,
    _keeper: Keeper,
}

impl Running {
    pub(super) fn new(
        child: Child,
        keeper: Keeper,
        group: Group,
        (stdout, stderr): (Option<OwnedFd>, Option<OwnedFd>),
        notes: Vec<String>,
    ) -> Self {
        let enforced = Enforced::new(&group, notes);
        Self { child, listener: None, stdout, stderr, enforced, processes: None, pid: 0, group, _keeper: keeper }
    }

    pub(super) fn met(&mut self, listener: TcpListener, processes: Processes, pid: u32, landlock: Option<u8>) {
        self.listener = Some(listener);
        self.processes = Some(processes);
        self.pid = pid;
        self.enforced.landlock = landlock;
    }

    /// What was said on stderr until everything ended.
    pub(super) fn last_words(&mut self) -> String {
        self.kill();
        self.stderr.take().map(read_some).unwrap_or_default()
    }

    /// The socket that listens at [`super::PROXY`] inside; once.
    pub fn listener(&mut self) -> Option<TcpListener> {
        self.listener.take()
    }

    /// The command's output; once.
    pub fn stdout(&mut self) -> Option<OwnedFd> {
        self.stdout.take()
    }

    /// The command's messages; once.
    pub fn stderr(&mut self) -> Option<OwnedFd> {
        self.stderr.take()
    }

    /// What is in force.
    pub fn enforced(&self) -> &Enforced {
        &self.enforced
    }

    /// The command's process on the host.
    pub fn supervisor_pid(&self) -> u32 {
        self.pid
    }

    /// Asks the command to end (SIGTERM). No error where it has ended already.
    pub fn terminate(&self) -> io::Result<()> {
        match self.processes.as_ref().map(|process| pidfd_send_signal(&process.supervisor, Signal::TERM)) {
            None | Some(Ok(()) | Err(Errno::SRCH)) => Ok(()),
            Some(Err(error)) => Err(error.into()),
        }
    }

    /// Ends everything inside at once, and waits for it.
    pub fn kill(&mut self) {
        self.group.kill();
        let _ = self.child.kill(); // each may have ended
        if let Some(processes) = &self.processes {
            let _ = pidfd_send_signal(&processes.first, Signal::KILL);
        }
        let _ = self.child.wait();
    }

    /// The command's exit status, where it has ended; one that a signal ended has 128 and its number.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Waits for the command's exit status; one that a signal ended has 128 and its number.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
