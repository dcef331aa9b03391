//! One unattended agent: when does it run, may it, and what came of it?
//!
//! A cycle reads the manifest again, passes the gate, takes the lock, runs the stages and writes down what happened;
//! the loop sleeps until the next one is due. What the stages do is not known here: the caller gives a [`Runner`].
//!
//! It refuses to run anything without an [`Admitted`](bastion_trust::Admitted) and to call a run a success without
//! evidence. It keeps: every run and every refusal is one line of `run.jsonl`, and no failure ends the loop.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

pub mod cadence;
pub mod place;
pub mod record;
pub mod runner;
pub mod service;
pub mod state;

mod cycle;
mod sweep;

pub use cycle::{LOCK, RUN_LOG};
pub use record::v1::{GateRecord, LockReclaimed, RefusalRecord, RunRecord, StageRecord};
pub use runner::{Counts, Job, Report, Runner, StageReport, StageStatus};
pub use state::{RunState, STATE, Status, status};
pub use sweep::{Ended, Event, Sweep, SweepSettings, exit_status};
