//! Why a launch did not happen, or did not end well: whose fault it is, and the exit status that says so.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use bastion_host::signals::StopSignal;
use bastion_trust::{MalformedError, RefusalCode, SignError};

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// An option or a variable of the environment has no such value, or two don't go together.
    #[error("{option} {what}")]
    Usage {
        /// The option or variable.
        option: String,
        /// What is wrong with it.
        what: String,
    },
    /// A file that the agent brings in is not what it should be: with line and column.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: MalformedError,
    },
    /// Something of the agent can't be launched as it is; nothing was done.
    #[error("{subject} {what}")]
    Refused {
        /// What is refused.
        subject: String,
        /// Why, and what would be right.
        what: String,
    },
    /// The gate refused the agent's signature, or the lack of one.
    #[error("{}: the gate refuses it ({code}): {detail}", path.display())]
    Gate {
        /// The agent's manifest.
        path: PathBuf,
        /// The check that failed.
        code: RefusalCode,
        /// What was seen and how to mend it.
        detail: String,
    },
    /// Nobody said yes to an agent from elsewhere.
    #[error("the agent `{agent}` is not trusted on this machine: {what}")]
    Untrusted {
        /// The agent's id.
        agent: String,
        /// What is missing.
        what: &'static str,
    },
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A credential's source gave nothing that can be used.
    #[error("the credential {env} of the provider `{provider}`: {what}")]
    Credential {
        /// The provider's id.
        provider: String,
        /// The variable that was to be filled.
        env: String,
        /// What is wrong, without any value.
        what: String,
    },
    /// A step on the gateway failed; the ones before it are done.
    #[error("{step} failed: {what}{}", already(done))]
    Step {
        /// The call, as it could be typed, without secrets.
        step: String,
        /// The program's own message, secrets masked, or what became of it.
        what: String,
        /// What was already done on the gateway.
        done: Vec<String>,
    },
    /// A run could not be asked or ended.
    #[error("{step} failed: {what}")]
    Asked {
        /// The call, as it could be typed.
        step: String,
        /// The program's own message, or what became of it.
        what: String,
    },
    /// A signal stopped the launch.
    #[error("stopped by {} {during}{}", signal.name(), already(done))]
    Interrupted {
        /// The signal.
        signal: StopSignal,
        /// What was going on.
        during: String,
        /// What was already done on the gateway.
        done: Vec<String>,
    },
    /// There is no such run on this machine.
    #[error("there is no run `{name}`; `bastion runs` lists them")]
    NoRun {
        /// The name that was asked for.
        name: String,
    },
    /// The agent was not signed.
    #[error(transparent)]
    Sign(#[from] SignError),
}

impl LaunchError {
    /// The process's exit status: 1 it failed, 2 usage, 3 refused, 130 and 143 stopped by a signal.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Malformed { .. } | Self::Refused { .. } | Self::Gate { .. } | Self::Untrusted { .. } => 3,
            Self::Interrupted { signal, .. } => signal.exit_status(),
            Self::File { .. }
            | Self::Credential { .. }
            | Self::Step { .. }
            | Self::Asked { .. }
            | Self::NoRun { .. }
            | Self::Sign(_) => 1,
        }
    }

    pub(crate) fn usage(option: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Usage { option: option.into(), what: what.into() }
    }

    pub(crate) fn refused(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Refused { subject: subject.into(), what: what.into() }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}

fn already(done: &[String]) -> String {
    if done.is_empty() {
        return "\nNothing was done on the gateway before.".to_owned();
    }
    done.iter().fold("\nAlready done:".to_owned(), |mut text, step| {
        let _ = write!(text, "\n  {step}");
        text
    })
}
