//! What kept a sandbox from being started: which layer, why, and what the owner can do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What a sandbox is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layer {
    /// bubblewrap, and the namespaces and mounts that it makes.
    Namespaces,
    /// The user that the sandbox is on the host.
    Identity,
    /// Landlock: rules on files.
    Landlock,
    /// seccomp: the list of system calls.
    Seccomp,
    /// Memory, processes, processor time.
    Limits,
    /// What was asked for.
    Plan,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Identity => "identity",
            Self::Landlock => "Landlock",
            Self::Seccomp => "seccomp",
            Self::Limits => "limits",
            Self::Plan => "plan",
        })
    }
}

/// A sandbox could not be started. Nothing of the agent has run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// There is no bubblewrap.
    #[error("bubblewrap (bwrap) is not installed, and no agent runs here without it")]
    NoBubblewrap,
    /// bubblewrap is too old, writable by others, or no program.
    #[error("{path} can't be used: {why}")]
    BadBubblewrap {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// bubblewrap could not make the namespaces or a mount.
    #[error("bubblewrap could not make the sandbox: {said}")]
    Bubblewrap {
        /// Its message, one line.
        said: String,
    },
    /// A step of our own failed, outside or inside.
    #[error("{layer}: {step}: {why}")]
    Step {
        /// Which layer.
        layer: Layer,
        /// What was tried.
        step: String,
        /// The answer.
        why: String,
    },
    /// A layer of best effort is missing, and the agent insists on it.
    #[error("hard_requirement is set, and {layer} is not complete: {why}")]
    Incomplete {
        /// Which layer.
        layer: Layer,
        /// What is missing.
        why: String,
    },
    /// A path or text of the plan can't be obeyed.
    #[error("{subject}: {why}")]
    Plan {
        /// The path or value.
        subject: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What came over the channel is not the one listening socket that was expected.
    #[error("the sandbox handed over something else than its listening socket: {why}")]
    Handover {
        /// What it was.
        why: &'static str,
    },
    /// It did not come up in time.
    #[error("the sandbox did not start within 10 s")]
    TimedOut,
    /// The launcher could not start a process, a thread or a socket.
    #[error("{step}: {source}")]
    Launcher {
        /// What was tried.
        step: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl SandboxError {
    /// The layer that is missing.
    pub fn layer(&self) -> Layer {
        match self {
            Self::NoBubblewrap | Self::BadBubblewrap { .. } | Self::Bubblewrap { .. } => Layer::Namespaces,
            Self::Step { layer, .. } | Self::Incomplete { layer, .. } => *layer,
            Self::Plan { .. } => Layer::Plan,
            Self::Handover { .. } | Self::TimedOut | Self::Launcher { .. } => Layer::Namespaces,
        }
    }

    /// What the owner can do, one sentence.
    pub fn mend(&self) -> String {
        String::new()
    }
}
