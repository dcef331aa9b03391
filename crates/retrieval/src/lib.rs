//! Finding windows of text again: cutting, full text, vectors, embedding, ranking, and how well it all ranks.
//!
//! The crate takes text that may be shown and keys that are integers ([`ChunkKey`]). It knows nothing of manifests, of
//! what was hidden, or of where documents come from; who may see a document is a question it puts to its caller
//! (`allow` in [`Searcher::search`]), before it ranks.
//!
//! An index is a directory per generation. A finished one is never written again ([`IndexWriter`] makes the next one
//! beside it), so a reader of the last generation is undisturbed by the making of the next, and needs no lock.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

/// For the fuzz targets alone.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Reads the header of a file of vectors, with its checksum set right.
    pub fn vectors(bytes: &[u8]) {
        crate::vectors::fuzz(bytes);
    }
}

mod analysis;
pub mod embed;
pub mod eval;
mod fulltext;
mod index;
mod key;
pub mod models;
mod vectors;
mod windows;

pub use embed::{EmbedError, Embedder, Role};
pub use index::{Hit, INDEX_FINGERPRINT, IndexError, IndexWriter, SearchError, Searcher};
pub use key::{ChunkKey, ModelTag};
pub use windows::{OVERLAP_CHARS, WINDOW_CHARS, WINDOWS_FINGERPRINT, Window, windows};
