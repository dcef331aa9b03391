//! A sandbox for an agent on this machine: what it is made of, and how one is started.
//!
//! [`Plan::prepare`] asks for every layer and refuses where one is missing; [`Prepared::start`] builds the
//! sandbox with bubblewrap and returns when everything is in force; [`Running`] is the way to its output and its end.
//! Inside, the first program is the supervisor as [`init()`]: it opens the one way out, a listening socket in the
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

mod bubblewrap;
mod error;
mod filter;
mod group;
mod identity;
mod init;
mod kernel;
mod options;
mod rules;
mod running;
mod stage;
mod start;
mod survey;
mod wire;

use std::path::PathBuf;

pub use error::{Layer, SandboxError};
pub use identity::Identity;
pub use init::init;
pub use running::Running;
pub use stage::stage;
pub use start::Prepared;
pub use survey::survey;

/// Where [`Plan::program`] is found inside.
pub const INIT: &str = "/run/bastion/supervisor";

/// Where the proxy listens inside the sandbox.
pub const PROXY: std::net::SocketAddrV4 = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 3128);

/// The first argument that makes [`Plan::program`] call [`stage()`], on the host.
pub const STAGE: &str = "stage";

/// The first argument that makes [`Plan::program`] call [`init()`], inside.
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
