//! The main process of an agent's sandbox: it runs bounded harness cycles and acts on what each one says.
//!
//! A *harness* (Codex, Claude Code, any command) is run once per *cycle*, in a process group of its own, with limits
//! on its time and silence. Its output is passed on byte for byte; its last word, one line with a JSON object,
//! decides whether the supervisor ends, sleeps or tries again. In watch mode nothing that a harness does ends it but
//! `complete` and `terminal_failure`. The contract is `docs/supervisor.md`.
//!
//! It needs nothing else in the image, and refuses to take a result from anything but the harness's final message.
//! Memory is bounded whatever the harness prints. There is one thread: a `poll` loop over pipes, signals and time.
//!
//! Elsewhere than on Linux there are only the two shell files, for a launcher to put into a payload.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![allow(clippy::disallowed_methods)] // a program of its own: it owns its processes, clock, settings and files

#[cfg(target_os = "linux")]
pub mod adapters;
#[cfg(target_os = "linux")]
pub mod clock;
#[cfg(target_os = "linux")]
pub mod console;
#[cfg(target_os = "linux")]
pub mod cycle;
#[cfg(target_os = "linux")]
pub mod decide;
#[cfg(target_os = "linux")]
pub mod files;
#[cfg(target_os = "linux")]
pub mod launch;
#[cfg(target_os = "linux")]
pub mod outcome;
#[cfg(target_os = "linux")]
pub mod output_log;
#[cfg(target_os = "linux")]
pub mod payload;
#[cfg(target_os = "linux")]
pub mod record;
#[cfg(target_os = "linux")]
pub mod report;
#[cfg(target_os = "linux")]
pub mod runner;
#[cfg(target_os = "linux")]
pub mod scan;
#[cfg(target_os = "linux")]
pub mod settings;
#[cfg(target_os = "linux")]
pub mod signals;
#[cfg(target_os = "linux")]
pub mod state;
#[cfg(target_os = "linux")]
pub mod subagent;
#[cfg(target_os = "linux")]
pub mod supervise;
#[cfg(target_os = "linux")]
pub mod tail;
#[cfg(target_os = "linux")]
pub mod transport;

/// `runtime/entrypoint.sh` of a payload: starts the supervisor that lies beside it.
pub const ENTRYPOINT: &str = include_str!("../runtime/entrypoint.sh");

/// `runtime/subagent.sh` of a payload: the command that prompts use to run a subagent.
pub const SUBAGENT: &str = include_str!("../runtime/subagent.sh");

/// What every line of the supervisor's own begins with, on stderr.
pub const PREFIX: &str = "openshell-agent: ";
