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
//! Sandboxes are Linux: elsewhere there is nothing here.
#![cfg(target_os = "linux")]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![allow(clippy::disallowed_methods)] // a program of its own: it owns its processes, clock, settings and files

pub mod adapters;
pub mod clock;
pub mod console;
pub mod cycle;
pub mod decide;
pub mod files;
pub mod launch;
pub mod outcome;
pub mod output_log;
pub mod payload;
pub mod record;
pub mod report;
pub mod runner;
pub mod scan;
pub mod settings;
pub mod signals;
pub mod state;
pub mod subagent;
pub mod supervise;
pub mod tail;
pub mod transport;

/// `runtime/entrypoint.sh` of a payload: starts the supervisor that lies beside it.
pub const ENTRYPOINT: &str = include_str!("../runtime/entrypoint.sh");

/// `runtime/subagent.sh` of a payload: the command that prompts use to run a subagent.
pub const SUBAGENT: &str = include_str!("../runtime/subagent.sh");

/// What every line of the supervisor's own begins with, on stderr.
pub const PREFIX: &str = "openshell-agent: ";
