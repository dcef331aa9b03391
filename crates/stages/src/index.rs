//! The index of the next generation, made when the first stage asks for it.

use std::path::Path;

use bastion_retrieval::{IndexError, IndexWriter};
use bastion_store::Draft;

use crate::StageError;

/// An index that can't be built upon is made anew: every document is cut and indexed again.
fn afresh(dir: &Path, draft: &mut Draft) -> Result<IndexWriter, StageError> {
    if dir.exists() {
        std::fs::remove_dir_all(dir).map_err(StageError::io(dir))?;
    }
    for row in draft.docs()? {
        draft.forget_chunks(row.ord)?;
    }
    Ok(IndexWriter::create(dir, None)?)
}

/// The writer of the next generation's index.
#[derive(Default)]
pub(crate) struct NextIndex {
    writer: Option<IndexWriter>,
}

impl NextIndex {
    /// The writer; the first call takes over what the current generation has.
    pub(crate) fn writer(&mut self, draft: &mut Draft) -> Result<&mut IndexWriter, StageError> {
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => {
                let base = draft.base_search_dir();
                let dir = draft.search_dir()?;
                match IndexWriter::create(&dir, base.as_deref()) {
                    Err(
                        IndexError::OtherFormat { .. } | IndexError::Unfinished { .. } | IndexError::Damaged { .. },
                    ) => afresh(&dir, draft)?,
                    made => made?,
                }
            }
        };
        Ok(self.writer.insert(writer))
    }

    /// Finishes the index of a draft that changed; a draft that did not has none.
    pub(crate) fn finish(mut self, draft: &mut Draft) -> Result<(), StageError> {
        if draft.is_changed() {
            self.writer(draft)?;
        }
        match self.writer {
            Some(writer) => Ok(writer.finish().map_err(|source: IndexError| StageError::Index { source })?),
            None => Ok(()),
        }
    }
}
