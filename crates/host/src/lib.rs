//! The one door to the machine: clock, durable files, locks, processes.
//!
//! Everything the rest of Bastion does to the outside world that must survive a crash, or that a test must be
//! able to fake, passes through here. The crate knows nothing of the domain: no manifest, no stage, no document.
//!
//! It refuses to follow a half-written file (every replacement is atomic) and to make a private file public for
//! even a moment (files are created with their final mode, never changed afterwards).
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]
#![allow(clippy::disallowed_methods)] // this crate is the door that the bans point to

pub mod child;
pub mod clock;
pub mod files;
pub mod jsonl;
pub mod lock;
pub mod process;
pub mod seen;
pub mod signals;
