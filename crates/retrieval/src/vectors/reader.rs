//! Reading a finished file of vectors: the nearest to a question's.

use std::io;
use std::path::Path;
use std::sync::OnceLock;

use rayon::prelude::*;
use tantivy::directory::error::OpenReadError;
use tantivy::directory::{Directory, MmapDirectory, OwnedBytes};

use super::file::Layout;
use super::signs::Signs;
use super::{quantize, scan};
use crate::index::{Best, Filter, IndexError, SearchError};
use crate::key::{ChunkKey, ModelTag};

/// Rows a thread takes at a time: their products fit the nearest cache.
const BLOCK: usize = 2_048;
/// Up to so many rows all are compared in full.
const MANY: usize = 65_536;
/// Of more, at least so many, and so many for each that is wanted.
const NEAR: usize = 16_384;
const NEAR_OF_EACH: usize = 64;

/// The vectors of a generation, mapped from their file.
pub(crate) struct Vectors {
    layout: Layout,
    bytes: OwnedBytes,
    keys: Vec<u64>,
    scales: Vec<f32>,
    signs: OnceLock<Signs>,
}

impl Vectors {
    /// Opens the file; none where there is none.
    pub(crate) fn open(dir: &Path, name: &str) -> Result<Option<Self>, IndexError> {
        let path = dir.join(name);
        let Some(bytes) = map(dir, name)? else { return Ok(None) };
        let layout = Layout::read(&bytes).map_err(|what| IndexError::Damaged { path, what })?;
        let keys = bytes[layout.keys.clone()]
            .chunks_exact(8)
            .map(|key| u64::from_le_bytes(key.try_into().unwrap_or_default()))
            .collect();
        let scales = bytes[layout.scales.clone()]
            .chunks_exact(4)
            .map(|scale| f32::from_le_bytes(scale.try_into().unwrap_or_default()))
            .collect();
        Ok(Some(Self { layout, bytes, keys, scales, signs: OnceLock::new() }))
    }

    pub(crate) fn model(&self) -> &ModelTag {
        &self.layout.model
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Keys, ascending.
    pub(super) fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// The row of a key.
    pub(super) fn find(&self, key: ChunkKey) -> Option<usize> {
        self.keys.binary_search(&key.packed()).ok()
    }

    pub(super) fn scale(&self, row: usize) -> f32 {
        self.scales[row]
    }

    pub(super) fn row(&self, row: usize) -> &[u8] {
        let dims = self.layout.model.dims;
        &self.rows()[row * dims..(row + 1) * dims]
    }

    fn rows(&self) -> &[u8] {
        &self.bytes[self.layout.rows.clone()]
    }

    /// The nearest `depth` that the filter lets through, by cosine, best first.
    ///
    /// All rows are compared in eight bits (of more than [`MANY`] those whose signs are near); the best of that are compared
    /// again with the question's full precision.
    pub(crate) fn search(
        &self,
        vector: &[f32],
        depth: usize,
        filter: &Filter<'_>,
    ) -> Result<Vec<crate::index::Scored>, SearchError> {
        let ModelTag { name, dims } = self.model();
        if vector.len() != *dims {
            return Err(SearchError::Dims { model: name.clone(), expected: *dims, found: vector.len() });
        }
        let unit = quantize::unit(vector).ok_or(SearchError::NotFinite)?;
        let query = quantize::quantize(vector).ok_or(SearchError::NotFinite)?.values;
        let none = || Best::new(depth, filter);
        let best = if self.len() <= MANY {
            let blocks = self.rows().par_chunks(BLOCK * dims).enumerate();
            let scan = |mut best, (block, rows): (usize, &[u8])| {
                self.scan(&query, rows, block * BLOCK, &mut best);
                best
            };
            blocks.fold(none, scan).reduce(none, Best::joined)
        } else {
            let signs = self.signs.get_or_init(|| Signs::of(self.rows(), *dims));
            let near = signs.near(&query, NEAR.max(depth.saturating_mul(NEAR_OF_EACH)), &self.keys, filter);
            let scan = |mut best, rows: &[usize]| {
                for row in rows {
                    let mut product = [0];
                    scan::products(&query, self.row(*row), &mut product);
                    self.offer(product[0], *row, &mut best);
                }
                best
            };
            near.par_chunks(BLOCK).fold(none, scan).reduce(none, Best::joined)
        };
        let mut again = Best::new(depth, filter);
        for scored in best.into_sorted() {
            if let Some(row) = self.find(scored.key) {
                again.offer(scored.key, scan::exact(&unit, self.row(row)) * self.scales[row]);
            }
        }
        Ok(again.into_sorted())
    }

    fn scan(&self, query: &[i8], rows: &[u8], first: usize, best: &mut Best<'_>) {
        let mut products = [0; BLOCK];
        let count = rows.len() / query.len();
        scan::products(query, rows, &mut products[..count]);
        for (row, product) in (first..first + count).zip(products) {
            self.offer(product, row, best);
        }
    }

    fn offer(&self, product: i32, row: usize, best: &mut Best<'_>) {
        #[allow(clippy::cast_precision_loss)]
        let score = product as f32 * self.scales[row];
        if best.would_take(score) {
            best.offer(ChunkKey::unpacked(self.keys[row]), score);
        }
    }
}

/// Maps a file into memory; none where it is missing. (tantivy's mapping is the one we may use without `unsafe`.)
pub(super) fn map(dir: &Path, name: &str) -> Result<Option<OwnedBytes>, IndexError> {
    let path = dir.join(name);
    let io = |source: io::Error| IndexError::Io { path: path.clone(), source };
    let directory = MmapDirectory::open(dir).map_err(|error| io(io::Error::other(error)))?;
    match directory.open_read(Path::new(name)) {
        Ok(slice) => slice.read_bytes().map(Some).map_err(io),
        Err(OpenReadError::FileDoesNotExist(_)) => Ok(None),
        Err(error) => Err(io(io::Error::other(error))),
    }
}
