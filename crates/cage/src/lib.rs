//! How a process of ours gives up what it does not need, for good, before it touches bytes that may be hostile.
//!
//! [`prepare`] builds everything that needs memory or the kernel's answers while failing is still harmless;
//! [`Prepared::restrict`] limits the process and takes the file system from it and from every thread it starts
//! afterwards; [`Restricted::seal`] takes every system call that is not on a short list from all its threads, tries
//! the forbidden ones, and only then hands out a [`Caged`]. [`Prepared::enforce`] does both for a process of one
//! thread. The order is in the types: each step consumes the one before.
//!
//! It fails closed: a layer that the machine can't enforce is a [`CageError`] with a way to mend it, never a note.
//! The one exception is Landlock on a kernel without it, since the system call filter alone already keeps the same
//! promise (no file can be opened); [`Caged::landlock`] says which it was.
//!
//! Promises, each kept by a test in `tests/it`: inside the cage no file can be opened, made or removed, no socket
//! made, no program or process started, no other process signalled or traced, no executable memory made, and no
//! more memory mapped than the [`Profile`] allows; the process dies with the thread that started it.
//!
//! What surrounds a whole agent on this machine, its tools and its way out, is in the module `sandbox`.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

mod error;
#[cfg(target_os = "linux")]
mod filesystem;
#[cfg(target_os = "linux")]
mod limits;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
pub mod sandbox;
#[cfg(target_os = "linux")]
mod steps;
#[cfg(not(target_os = "linux"))]
#[path = "elsewhere.rs"]
mod steps;
#[cfg(target_os = "linux")]
mod syscalls;

pub use error::{CageError, Layer};
#[cfg(target_os = "linux")]
pub use program::{CagedProgram, PreparedProgram, ProgramProfile, prepare_program};
pub use steps::{Prepared, Restricted, prepare};

/// What a caged process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// Address space in bytes (`RLIMIT_AS`): an allocation beyond it fails.
    pub memory: u64,
    /// Descriptors that may be open at once; the ones open already stay open.
    pub open_files: u64,
}

/// Proof that this process is caged. Only [`Restricted::seal`] and [`Prepared::enforce`] make one.
#[derive(Debug)]
pub struct Caged {
    landlock: Option<u8>,
}

impl Caged {
    /// The version of the Landlock interface that is enforced, `None` on a kernel without Landlock.
    pub fn landlock(&self) -> Option<u8> {
        self.landlock
    }
}
