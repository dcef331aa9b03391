//! The promises of `docs/supervisor.md`, each tried on the real program with small shell scripts as harnesses.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bounded;
mod contract;
mod doc;
mod init;
mod limits;
mod output;
mod real;
mod results;
mod sandboxed;
mod server;
mod settings;
mod signals;
mod state;
mod subagent;
mod support;
mod watch;
