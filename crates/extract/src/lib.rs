//! What text does a file hold? Asked of bytes that may be hostile, answered by a process that can do nothing else.
//!
//! [`Pool`] keeps worker processes (the program itself, started again and caged by `bastion-cage` before it reads a
//! byte) and gives each file to one of them over a pipe. A file that crashes, hangs or eats its worker costs itself
//! only: it comes back as [`Outcome::Failed`] with a reason, and the worker is replaced. Failures of a file are data;
//! a [`PoolError`] is the machine's fault (no program to start, no cage to be had) and ends the stage.
//!
//! What a worker answers is not trusted either: the pool checks that it is UTF-8, within the limit, and free of
//! control characters. Neither errors nor details ever hold text of a document.
//!
//! Readers live in [`readers`](crate), one per family of formats: bytes → text, chosen by content first
//! ([`fn@detect`]) and by name second. `docs/readers.md` lists formats, choices and known gaps.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

/// For the fuzz targets alone.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Reads a document as a worker would, in this process.
    pub fn read(name: &str, bytes: &[u8]) {
        let _ = crate::readers::read(name, bytes.to_vec(), &crate::readers::Budget::new(1 << 20, 1));
    }
}

mod charset;
mod detect;
mod document;
mod external;
mod language;
mod pool;
mod readers;
mod tidy;
mod wire;
mod worker;

pub use detect::{Detected, Kind, detect};
pub use document::{Document, FailReason, Job, Limits, Outcome, SkipReason};
pub use external::{ExternalReaders, Tool, probe_external};
pub use pool::{Pool, PoolConfig, PoolError};
pub use worker::worker_main;

/// Version of the built-in readers: raised in every commit that changes what any of them makes of a file.
const READERS: u32 = 1;

/// The libraries whose work is in the text, and the versions in `Cargo.lock` (a test holds the two together).
const LIBRARIES: [(&str, &str); 5] = [
    ("docling", "2.62.0"),
    ("pdf_oxide", "0.3.78"),
    ("mail-parser", "0.11.9"),
    ("calamine", "0.37.0"),
    ("chardetng", "1.0.0"),
];

/// Names the readers, their libraries and the external programs in use. A change means "extract again": a text that
/// was made under another fingerprint may differ from what would be made now.
pub fn fingerprint(external: &ExternalReaders) -> String {
    let mut parts = vec![format!("readers {READERS}")];
    parts.extend(LIBRARIES.iter().map(|(name, version)| format!("{name} {version}")));
    parts.extend(external.tools().map(|tool| tool.version.clone().unwrap_or_else(|| tool.name.to_owned())));
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_names_the_libraries_that_are_linked() {
        let lock = include_str!("../../../Cargo.lock");
        for (name, version) in LIBRARIES {
            assert!(lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")), "{name} {version}");
            assert!(fingerprint(&ExternalReaders::none()).contains(&format!("{name} {version}")));
        }
    }
}
