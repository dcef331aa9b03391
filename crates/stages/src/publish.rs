//! After a commit: the files that are written from the generation, and the removal of what it does not hold.
//!
//! All of it can be done again, and is, by the next sweep, where a crash came between.

use bastion_private::{ExtractStore, Vault};
use bastion_store::{Committed, Layout};

use crate::pipeline::{BUNDLES, DROP};
use crate::{StageError, catalog, seal};

/// Writes every file that is made from the generation, and removes what is no longer part of it from every store.
pub(crate) fn publish(
    committed: &Committed,
    layout: &Layout,
    extracts: &mut ExtractStore,
    vault: &Vault,
) -> Result<(), StageError> {
    committed.export()?;
    let live = committed.docs()?;
    extracts.finish(&live, &committed.doc_paths()?).map_err(StageError::io(layout.extract()))?;
    vault.sweep_out(|doc| *doc == catalog::NAMES || live.contains(doc))?;
    if committed.meta(BUNDLES)?.as_deref() == Some(DROP) {
        seal::remove_all(&layout.seal()).map_err(StageError::io(layout.seal()))?;
    }
    seal::prune(&layout.seal()).map_err(StageError::io(layout.seal()))?;
    Ok(committed.mark_exported()?)
}
