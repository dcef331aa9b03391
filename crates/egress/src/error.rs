//! Why can the proxy not start? After it has started, a fault is an answer to its client and a line in the log.

use std::io;
use std::path::PathBuf;

use crate::policy::PolicyError;

/// Why the proxy could not start. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The certificates of the run could not be made.
    #[error("the run's certificates could not be made: {source}")]
    Ca {
        /// What the library said.
        source: rcgen::Error,
    },
    /// TLS could not be set up: a root that is no certificate, most likely.
    #[error("TLS can't be set up: {source}")]
    Tls {
        /// What the library said.
        source: rustls::Error,
    },
    /// The log can't be written, and without it nothing goes out.
    #[error("the egress log can't be written: {}: {source}", path.display())]
    Log {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A credential does not fit the policy.
    #[error(transparent)]
    Credential(#[from] PolicyError),
    /// The system has no thread or poll to give, or the listening socket is of no use.
    #[error("the proxy can't be started: {source}")]
    System {
        /// What it said.
        source: io::Error,
    },
}
