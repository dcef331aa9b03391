//! A sandbox for an agent on this machine: what it is made of, and how one is started.
//!
//! [`Plan::prepare`] asks whether every layer is there and refuses where one is not; [`Prepared::start`] builds the
//! sandbox with bubblewrap and returns when everything is in force; [`Running`] is the way to its output and its end.
//! Inside, the first program is the supervisor as [`init`]: it opens the one way out, a listening socket in the
//! sandbox's own network namespace, hands it to the launcher, closes the cage around itself and becomes the command.
//!
//! Order and invariants:
//!
//! - Nothing of the agent runs before the launcher has taken exactly one descriptor, judged it and closed the channel.
//! - Neither bubblewrap's arguments nor its environment, which are readable inside, hold anything of ours.
//! - A layer that is missing is a [`SandboxError`] with its mend. Only what the contract calls best effort (Landlock on
//!   a kernel without it, limits on memory without a cgroup) is told in [`Enforced`], and `hard_requirement` makes a
//!   refusal of that too.
//! - When the process that called [`Prepared::start`] ends, in any way, everything inside ends.

mod error;
mod identity;

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

pub use error::{Layer, SandboxError};
pub use identity::Identity;

/// Where [`Plan::program`] is found inside.
pub const INIT: &str = "/run/bastion/supervisor";

/// Where the proxy listens inside the sandbox.
pub const PROXY: std::net::SocketAddrV4 = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 3128);

/// The first argument that makes [`Plan::program`] call [`stage`], on the host.
pub const STAGE: &str = "stage";

/// The first argument that makes [`Plan::program`] call [`init`], inside.
pub const INIT_ARGUMENT: &str = "init";

/// A sandbox that is wanted.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The supervisor's program on this host. It is run here as `stage` and, bound read-only at [`INIT`], inside as
    /// `init`; so it must run without anything but `/usr`.
    pub program: PathBuf,
    /// What is bound, in order, after `/usr`, `/proc`, `/dev`, `/tmp` and `/etc`, which the cage makes itself.
    pub mounts: Vec<Mount>,
    /// Small read-only files that stand on no host disk. They win over the synthetic `/etc`.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// PEM, for every place where programs look for the system's roots.
    pub ca_bundle: Vec<u8>,
    /// The whole environment of the command.
    pub env: Vec<(String, String)>,
    /// What init becomes: a program by its path inside, and its arguments.
    pub command: Vec<String>,
    /// The command's folder, inside.
    pub cwd: PathBuf,
    /// The sandbox's name of itself.
    pub hostname: String,
    /// What it may use.
    pub limits: Limits,
    /// Refuse where a layer of best effort is missing.
    pub hard_requirement: bool,
    /// Who it is on the host.
    pub identity: Identity,
}

/// Something of the host, or an empty folder, inside the sandbox. Destinations are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mount {
    /// A folder or file that can be read and run. Started by root, one that is not open to everybody is given to the
    /// sandbox's user.
    ReadOnly {
        /// On the host.
        source: PathBuf,
        /// Inside.
        destination: PathBuf,
    },
    /// A folder or file that can be changed.
    Writable {
        /// On the host.
        source: PathBuf,
        /// Inside.
        destination: PathBuf,
    },
    /// An empty folder in memory.
    Tmpfs {
        /// Inside.
        destination: PathBuf,
        /// In bytes.
        size: u64,
        /// Permissions, such as `0o1777`.
        mode: u32,
    },
}

/// What a sandbox may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of memory of all processes and in-memory files together where there is a cgroup; of the private memory
    /// of each process where there is none.
    pub memory: Option<u64>,
    /// Processes and threads at once.
    pub pids: u64,
    /// Thousandths of a processor, all processes together; needs a cgroup.
    pub cpu_millis: Option<u32>,
    /// Bytes of `/tmp`.
    pub tmp_size: u64,
    /// Descriptors that a process may have open.
    pub open_files: u64,
}

impl Default for Limits {
    /// 4 GiB, 512 processes, all processors, 512 MiB of `/tmp`, 4096 descriptors.
    fn default() -> Self {
        Self { memory: Some(4 << 30), pids: 512, cpu_millis: None, tmp_size: 512 << 20, open_files: 4096 }
    }
}

/// What is in force in a sandbox that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enforced {
    /// The kernel's version of Landlock, `None` where it has none.
    pub landlock: Option<u8>,
    /// Who counts memory and processes.
    pub limited_by: LimitedBy,
    /// Sentences for the user: what is weaker than it could be, and the mend.
    pub notes: Vec<String>,
}

/// Who counts what all of a sandbox's processes use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedBy {
    /// A cgroup of the sandbox's own.
    Cgroup,
    /// A scope of the user's systemd.
    SystemdScope,
    /// Nobody: each process has its limits, and their number is limited.
    RlimitsOnly,
}

/// One layer of this machine, for `bastion doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub layer: Layer,
    /// Whether it is there.
    pub state: State,
    /// What was found.
    pub detail: String,
    /// What the owner can do, where something is missing.
    pub mend: Option<String>,
}

/// Whether a layer is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// All of it.
    Enforced,
    /// Some of it; `hard_requirement` refuses.
    Partial,
    /// A sandbox is refused.
    Missing,
}

/// Looks at every layer of this machine.
pub fn survey() -> Vec<Finding> {
    Vec::new()
}

/// A sandbox whose every layer is there.
#[derive(Debug)]
#[must_use = "nothing runs yet"]
pub struct Prepared {
    _plan: Plan,
}

impl Plan {
    /// Asks for every layer, and refuses where one is missing.
    pub fn prepare(self) -> Result<Prepared, SandboxError> {
        Ok(Prepared { _plan: self })
    }
}

impl Prepared {
    /// Builds the sandbox. Returns when init has handed over the listener and everything is in force; at most 10 s.
    pub fn start(self) -> Result<Running, SandboxError> {
        Err(SandboxError::TimedOut)
    }
}

/// A sandbox that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    listener: Option<TcpListener>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
    enforced: Enforced,
    supervisor: u32,
}

impl Running {
    /// The socket that listens at [`PROXY`] inside; once.
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
        self.supervisor
    }

    /// Asks the command to end (SIGTERM). No error where it has ended already.
    pub fn terminate(&self) -> std::io::Result<()> {
        Ok(())
    }

    /// Ends everything inside at once, and waits for it.
    pub fn kill(&mut self) {}

    /// The command's exit status, where it has ended; one that a signal ended has 128 and its number.
    pub fn try_wait(&mut self) -> std::io::Result<Option<ExitStatus>> {
        Ok(None)
    }

    /// Waits for the command's exit status; one that a signal ended has 128 and its number.
    pub fn wait(&mut self) -> std::io::Result<ExitStatus> {
        Ok(ExitStatus::default())
    }
}

/// The program between the launcher and bubblewrap (`bastion-supervisor stage`). Returns only where it failed.
pub fn stage() -> ExitCode {
    ExitCode::FAILURE
}

/// The first program inside (`bastion-supervisor init`). Returns only where it failed.
pub fn init() -> ExitCode {
    ExitCode::FAILURE
}
