//! What kept a sandbox from being started: which layer, why, and what the owner can do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What a sandbox is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
        match self {
            Self::NoBubblewrap => {
                "install it: apt install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora), \
                 pacman -S bubblewrap (Arch)"
            }
            Self::BadBubblewrap { .. } => "install your distribution's bubblewrap, 0.8 or newer, owned by root",
            Self::Bubblewrap { said } => return namespaces(said).to_owned(),
            Self::Step { layer, .. } | Self::Incomplete { layer, .. } => of_layer(*layer),
            Self::Plan { .. } => "correct it in agent.yaml or in the command's options",
            Self::Handover { .. } => "report it: this build of bastion-supervisor and bastion do not fit together",
            Self::TimedOut => "try again when the machine is less busy",
            Self::Launcher { .. } => "look whether processes, descriptors or memory of this user are used up",
        }
        .to_owned()
    }
}

fn of_layer(layer: Layer) -> &'static str {
    match layer {
        Layer::Namespaces => "see bastion doctor for what this machine allows",
        Layer::Identity => {
            "start it as an ordinary user, or put the folder on a file system that knows idmapped mounts (ext4, xfs, \
             btrfs, tmpfs; Linux 5.12 or newer)"
        }
        Layer::Landlock => "use Linux 5.13 or newer with Landlock (lsm=landlock,… on the kernel's command line)",
        Layer::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER, or let the outer container allow seccomp",
        Layer::Limits => {
            "log in to a session with a systemd of the user's own (loginctl enable-linger), or give the user a cgroup \
             to write"
        }
        Layer::Plan => "correct it in agent.yaml or in the command's options",
    }
}

/// What keeps bubblewrap from making namespaces differs from one distribution to the other.
fn namespaces(said: &str) -> &'static str {
    let is = |path: &str, value: &str| std::fs::read_to_string(path).is_ok_and(|found| found.trim() == value);
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
        "let AppArmor allow bubblewrap its user namespaces: apt install apparmor-profiles, then link \
         /usr/share/apparmor/extra-profiles/bwrap-userns-restrict into /etc/apparmor.d and reload it"
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        "allow user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        "allow user namespaces: sysctl -w user.max_user_namespaces=15000"
    } else if said.contains("ermission") || said.contains("not permitted") {
        "let the outer container or service manager allow user namespaces and mounts"
    } else {
        "see whether the folders that are bound are still there"
    }
}
