//! The one place where errors become words, a hint and an exit status.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Error;
use bastion_launch::LaunchError;
use bastion_trust::{RefusalCode, Refused};

use crate::terminal::printable_text;

/// What went wrong, where the exit status is not simply 1 (manifest.md §7).
#[derive(Debug)]
pub(crate) enum Exit {
    /// The gate refused.
    Refused(String),
    /// Somebody holds the lock.
    Held(String),
    /// It was told already what went wrong.
    Silent(u8),
    /// Wrong usage that the grammar can't see.
    Usage(String),
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(text) | Self::Held(text) | Self::Usage(text) => f.write_str(text),
            Self::Silent(status) => write!(f, "exit status {status}"),
        }
    }
}

impl std::error::Error for Exit {}

impl Exit {
    /// The gate refused `manifest`; with the mend, where there is one.
    pub(crate) fn refused(manifest: &Path, code: RefusalCode, detail: &str) -> Self {
        let path = manifest.display();
        let mend = match code {
            RefusalCode::Unsigned | RefusalCode::BadSignature => {
                format!(". If what it says is meant: bastion sign {path}")
            }
            RefusalCode::NotChained => {
                ". Was it signed on another machine, or under another BASTION_STATE_DIR?".to_owned()
            }
            _ => String::new(),
        };
        Self::Refused(format!("{path}: the gate refuses it ({code}): {detail}{mend}"))
    }
}

impl From<&Refused> for Exit {
    fn from(refused: &Refused) -> Self {
        Self::refused(&refused.path, refused.code, &refused.detail)
    }
}

/// Prints what went wrong and gives the exit status.
pub(crate) fn exit_code(result: Result<ExitCode, Error>) -> ExitCode {
    let error = match result {
        Ok(code) => return code,
        Err(error) => error,
    };
    let status = match error.downcast_ref::<Exit>() {
        Some(Exit::Silent(status)) => return ExitCode::from(*status),
        Some(Exit::Refused(_)) => 3,
        Some(Exit::Held(_)) => 4,
        Some(Exit::Usage(_)) => 2,
        None => error.downcast_ref::<LaunchError>().map_or(1, LaunchError::exit_status),
    };
    if is_broken_pipe(&error) {
        return ExitCode::SUCCESS; // whoever reads us (head, a pager) has seen enough
    }
    // what an error quotes may come from a file name, a sandbox or a peer
    eprintln!("bastion: {}", printable_text(&told(&error)));
    ExitCode::from(status)
}

/// The error and its causes, each said once: many errors name their cause themselves.
fn told(error: &Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        text
    })
}

fn is_broken_pipe(error: &Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
