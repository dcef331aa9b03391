//! What may be served: sanitized text, the rows that describe it, and one atomic commit per sweep.
//!
//! A *generation* is a folder below `index/` that is complete before anyone can see it and never changes afterwards.
//! The file `index/current` names the one that counts; replacing that file is the commit. A reader therefore sees the
//! state of the last whole sweep before, during and after a crash of the next one.
//!
//! The write side is [`Draft`], the read side is [`Served`]. Nothing here knows plaintext or the vault.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

mod draft;
mod ids;
mod layout;
mod pieces;
mod rows;
mod served;
mod text;

pub use draft::{Committed, Draft};
pub use ids::{DocId, InvalidDocId};
pub use layout::Layout;
pub use pieces::Pieces;
pub use rows::{CatalogPage, ChunkRow, DocRow, NewDoc, PathRow, PathStatus};
pub use served::{Allowed, Served};
pub use text::SanitizedText;

use std::path::PathBuf;

/// Why the store could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The operating system refused a read or write below the output folder (full, missing permission, gone).
    #[error("{path}: {source}")]
    Io {
        /// The file or folder at hand.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The rows of a generation could not be read or written.
    #[error("the rows in {path}: {source}")]
    Rows {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// `index/current` names no generation. The next sweep makes one from scratch once the file is removed.
    #[error("{path} names no generation; remove it, and the next sweep makes a new one")]
    Pointer {
        /// The pointer file.
        path: PathBuf,
    },
    /// A sanitized text is not what its row says it is.
    #[error("{path} is not the text that its row describes; the next sweep makes it again")]
    Damaged {
        /// The text's file.
        path: PathBuf,
    },
}

impl StoreError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Whether a file that the rows name is gone: the generation was replaced under the reader, who opens again.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }
}
