//! What kept a process from being caged: which layer, why, and what the owner can do about it.

use std::fmt;
use std::io;

/// A mechanism of the kernel that the cage is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    /// The platform has none of the mechanisms.
    Platform,
    /// `prctl`: no new privileges, no dumps or tracing, death with the parent.
    Process,
    /// `setrlimit`: memory, descriptors, file size.
    Limits,
    /// Landlock: no file system, no network.
    Landlock,
    /// seccomp: the list of system calls.
    Seccomp,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Platform => "platform",
            Self::Process => "process controls",
            Self::Limits => "resource limits",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
        })
    }
}

/// A process could not be caged. Always the machine's fault, never that of a document.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CageError {
    /// Not Linux, or a processor the filter has no list for.
    #[error("no process can be caged on this platform")]
    Unsupported,
    /// `prctl` refused.
    #[error("{control} could not be set: {source}")]
    Process {
        /// Which control.
        control: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// `setrlimit` refused.
    #[error("the limit on {limit} could not be set: {source}")]
    Limit {
        /// What is limited.
        limit: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel has Landlock and refused the rules.
    #[error("Landlock refused: {source}")]
    Landlock {
        /// The library's answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The filter could not be built or installed.
    #[error("the system call filter was refused: {source}")]
    Seccomp {
        /// The library's answer.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Everything said yes and yet something forbidden worked.
    #[error("the cage is installed and yet {deed} worked")]
    Leaks {
        /// What should have failed.
        deed: &'static str,
    },
}

impl CageError {
    /// The layer that is missing.
    pub fn layer(&self) -> Layer {
        match self {
            Self::Unsupported => Layer::Platform,
            Self::Process { .. } => Layer::Process,
            Self::Limit { .. } => Layer::Limits,
            Self::Landlock { .. } => Layer::Landlock,
            Self::Seccomp { .. } | Self::Leaks { .. } => Layer::Seccomp,
        }
    }

    /// What the owner can do, one sentence.
    pub fn mend(&self) -> &'static str {
        match self {
            Self::Unsupported => "run it on Linux (x86-64 or ARM64)",
            Self::Process { .. } | Self::Limit { .. } => {
                "run it without the limits of an outer sandbox or service manager"
            }
            Self::Landlock { .. } => "update the kernel, or start it without Landlock (lsm=)",
            Self::Seccomp { .. } => "use a kernel with CONFIG_SECCOMP_FILTER, or let the outer container allow seccomp",
            Self::Leaks { .. } => "report it: this kernel or emulator does not enforce what it accepts",
        }
    }
}
