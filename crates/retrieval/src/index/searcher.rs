//! Ranking: the best windows by their words and, where the question has a vector, by their meaning, fused.

use std::collections::HashMap;
use std::path::Path;

use super::{Best, Filter, IndexError, SearchError, TEXT, check_format, text_failure};
use crate::fulltext::TextReader;
use crate::key::{ChunkKey, ModelTag};
use crate::vectors::{self, Vectors};

/// How many of each ranking are fused, at least; the most a caller of the endpoint can ask for.
const DEPTH: usize = 50;
/// The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009).
const RANK_OFFSET: f32 = 60.0;

/// A window that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The window.
    pub key: ChunkKey,
    /// Higher is better. To be compared within one answer only: it is a sum of reciprocal ranks where a vector was given, else BM25.
    pub score: f32,
}

/// A finished generation, open for searching. To be shared among threads; it takes no lock and writes nothing.
///
/// It goes on to answer while its folder is being removed (the files stay mapped).
pub struct Searcher {
    text: TextReader,
    vectors: Option<Vectors>,
}

impl Searcher {
    /// Opens the generation in `dir`. All files are read once, to check their checksums.
    ///
    /// # Errors
    /// [`IndexError::Unfinished`], [`IndexError::OtherFormat`], [`IndexError::Damaged`]: build the index afresh;
    /// [`IndexError::Io`], [`IndexError::Text`]: the machine could not read.
    pub fn open(dir: &Path) -> Result<Self, IndexError> {
        check_format(dir)?;
        let text_dir = dir.join(TEXT);
        let text = TextReader::open(&text_dir).map_err(|failure| text_failure(&text_dir, failure))?;
        Ok(Self { text, vectors: Vectors::open(dir, vectors::FILE)? })
    }

    /// The model that questions must be embedded with; none where there are no vectors and words alone rank.
    pub fn model(&self) -> Option<&ModelTag> {
        self.vectors.as_ref().map(Vectors::model)
    }

    /// Windows in the index.
    pub fn windows(&self) -> u64 {
        self.text.len()
    }

    /// Windows that have a vector.
    pub fn vectors(&self) -> u64 {
        self.vectors.as_ref().map_or(0, |vectors| vectors.len() as u64)
    }

    /// The best `k` windows of the documents that `allow` lets through, best first; of equals the smaller key first.
    ///
    /// `allow` is asked at most once for a document, before anything is cut to `k`, from any thread. Every string is a
    /// question: words in quotes lift the windows where they follow one another, nothing else has a meaning. Where the
    /// index has no vectors `query_vector` has no effect.
    ///
    /// # Errors
    /// [`SearchError::Dims`] and [`SearchError::NotFinite`] for a vector of another model than [`Searcher::model`].
    pub fn search(
        &self,
        query: &str,
        query_vector: Option<&[f32]>,
        k: usize,
        allow: &(dyn Fn(u32) -> bool + Sync),
    ) -> Result<Vec<Hit>, SearchError> {
        let filter = Filter::new(allow);
        let vectors = self.vectors.as_ref().zip(query_vector);
        let depth = if vectors.is_some() { k.max(DEPTH) } else { k };
        let mut by_words = Best::new(depth, &filter);
        self.text.search(query, &mut by_words)?;
        let by_words = by_words.into_sorted();
        let Some((vectors, vector)) = vectors else {
            return Ok(by_words.into_iter().map(|one| Hit { key: one.key, score: one.score }).collect());
        };
        let by_meaning = vectors.search(vector, depth, &filter)?;
        let mut fused: HashMap<ChunkKey, f32> = HashMap::with_capacity(by_words.len() + by_meaning.len());
        for ranking in [by_words, by_meaning] {
            let mut rank = RANK_OFFSET;
            for one in ranking {
                rank += 1.0;
                *fused.entry(one.key).or_default() += 1.0 / rank;
            }
        }
        let mut hits: Vec<_> = fused.into_iter().map(|(key, score)| Hit { key, score }).collect();
        hits.sort_unstable_by(|one, other| other.score.total_cmp(&one.score).then(one.key.cmp(&other.key)));
        hits.truncate(k);
        Ok(hits)
    }
}
