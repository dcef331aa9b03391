//! What names a window in the index, and what names the model that its vector came from.

use serde::{Deserialize, Serialize};

/// A window of a document. Ordered by document, then place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkKey {
    /// The document, an integer that the store gives.
    pub doc: u32,
    /// The window's place in its document, from 0.
    pub index: u32,
}

impl ChunkKey {
    /// The key as one integer that sorts as the key does.
    pub(crate) fn packed(self) -> u64 {
        u64::from(self.doc) << 32 | u64::from(self.index)
    }

    pub(crate) fn unpacked(packed: u64) -> Self {
        #[allow(clippy::cast_possible_truncation)] // the two halves
        Self { doc: (packed >> 32) as u32, index: packed as u32 }
    }
}

/// A model of embedding: vectors of two models, or of two sizes, must never be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelTag {
    /// The model's name as its server or package gives it.
    pub name: String,
    /// Numbers in each vector.
    pub dims: usize,
}
