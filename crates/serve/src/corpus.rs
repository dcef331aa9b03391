//! What the last whole sweep left to be served, and which part of it the manifest of now lets out.
//!
//! A generation is taken up when the next request comes, without a restart. Scope is judged by the manifest of that
//! request, not by the sweep's: a document all of whose paths have left it is gone at once.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bastion_retrieval::{Hit, IndexError, ModelTag, SearchError, Searcher};
use bastion_store::{Allowed, DocId, DocRow, Layout, Served, StoreError};
use bastion_trust::Admitted;

/// Verdicts kept for one generation; more manifests than that don't come between two sweeps in earnest.
const KEPT_VERDICTS: usize = 8;

/// What lies on the disk can't be read as it should be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CorpusError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the index: {0}")]
    Index(#[source] Arc<IndexError>),
    #[error("the index: {0}")]
    Search(#[from] SearchError),
    #[error("{}: {source}", path.display())]
    State { path: PathBuf, source: std::io::Error },
}

/// The agent's store, as it is now.
#[derive(Debug)]
pub(crate) struct Corpus {
    layout: Layout,
    current: Mutex<Option<Arc<Generation>>>,
}

/// One generation, open.
pub(crate) struct Generation {
    served: Served,
    searcher: OnceLock<Result<Searcher, Arc<IndexError>>>,
    /// By the manifest's digest.
    verdicts: Mutex<HashMap<String, Arc<Allowed>>>,
}

impl std::fmt::Debug for Generation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generation").field("served", &self.served).finish_non_exhaustive()
    }
}

impl Corpus {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, current: Mutex::new(None) }
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Runs `read` on the current generation; on `None` where no sweep has committed yet. Where the generation was
    /// replaced while it was read, and files of it are gone, `read` runs once more on the new one.
    pub(crate) fn read<T>(
        &self,
        read: impl Fn(Option<&Arc<Generation>>) -> Result<T, CorpusError>,
    ) -> Result<T, CorpusError> {
        let generation = self.current()?;
        let result = read(generation.as_ref());
        match (result, generation) {
            (Err(_), Some(generation)) if !generation.served.is_current() => read(self.current()?.as_ref()),
            (Err(CorpusError::Store(error)), Some(generation)) if error.is_gone() => {
                self.forget(&generation);
                read(self.current()?.as_ref())
            }
            (result, _) => result,
        }
    }

    fn current(&self) -> Result<Option<Arc<Generation>>, CorpusError> {
        let known = self.known().clone();
        if known.as_ref().is_some_and(|generation| generation.served.is_current()) {
            return Ok(known);
        }
        let mut current = self.known();
        // another request may have opened it meanwhile
        if current.as_ref().is_none_or(|generation| !generation.served.is_current()) {
            *current = Served::open(&self.layout)?.map(|served| Arc::new(Generation::new(served)));
        }
        Ok(current.clone())
    }

    fn known(&self) -> MutexGuard<'_, Option<Arc<Generation>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, generation: &Arc<Generation>) {
        let mut current = self.known();
        if current.as_ref().is_some_and(|known| Arc::ptr_eq(known, generation)) {
            *current = None;
        }
    }
}

impl Generation {
    fn new(served: Served) -> Self {
        Self { served, searcher: OnceLock::new(), verdicts: Mutex::new(HashMap::new()) }
    }

    pub(crate) fn served(&self) -> &Served {
        &self.served
    }

    /// Which documents may be told of under this manifest.
    pub(crate) fn allowed(&self, admitted: &Admitted) -> Result<Arc<Allowed>, CorpusError> {
        let digest = admitted.digest();
        let known = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).get(&digest).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let allowed = Arc::new(self.served.allowed(|root, path| admitted.scope().contains(root, path, false))?);
        let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if verdicts.len() >= KEPT_VERDICTS {
            verdicts.clear();
        }
        verdicts.insert(digest, Arc::clone(&allowed));
        Ok(allowed)
    }

    /// The document of this id, where it has sanitized text and is in scope. Whether it is unknown or out of scope
    /// can't be told from the answer.
    pub(crate) fn doc(&self, id: &DocId, admitted: &Admitted) -> Result<Option<DocRow>, CorpusError> {
        let doc = self.served.doc(id)?;
        let allowed = self.allowed(admitted)?;
        Ok(doc.filter(|doc| doc.piece.is_some() && allowed.contains(doc.ord)))
    }

    /// The model that a question must be embedded with to be compared with this generation's vectors.
    pub(crate) fn model(&self) -> Result<Option<&ModelTag>, CorpusError> {
        Ok(self.searcher()?.and_then(Searcher::model))
    }

    /// The best `k` windows in scope.
    pub(crate) fn search(
        &self,
        query: &str,
        vector: Option<&[f32]>,
        k: usize,
        admitted: &Admitted,
    ) -> Result<Vec<Hit>, CorpusError> {
        let allowed = self.allowed(admitted)?;
        let Some(searcher) = self.searcher()? else { return Ok(Vec::new()) };
        Ok(searcher.search(query, vector, k, &|ord| allowed.contains(ord))?)
    }

    /// The index, opened by the first who asks. `None`: this generation has none, its sweep made no windows.
    fn searcher(&self) -> Result<Option<&Searcher>, CorpusError> {
        let dir = self.served.search_dir();
        if self.searcher.get().is_none() && !dir.exists() && self.served.is_current() {
            return Ok(None);
        }
        match self.searcher.get_or_init(|| Searcher::open(&dir).map_err(Arc::new)) {
            Ok(searcher) => Ok(Some(searcher)),
            Err(error) => Err(CorpusError::Index(Arc::clone(error))),
        }
    }
}
