//! From sanitized text to windows, and the windows into the full-text index.

use bastion_retrieval::{ChunkKey, WINDOWS_FINGERPRINT, windows};
use bastion_store::{ChunkRow, Draft};
use bastion_trust::Stage;

use crate::index::NextIndex;
use crate::progress::Progress;
use crate::{StageError, Tally};

/// Cuts every document whose sanitized text is new.
pub(crate) fn chunk(draft: &mut Draft, index: &mut NextIndex, progress: &dyn Progress) -> Result<Tally, StageError> {
    let print = format!("{WINDOWS_FINGERPRINT} {}", bastion_retrieval::INDEX_FINGERPRINT);
    let work = draft.docs_unchunked(&print)?;
    let (_, with_text, _) = draft.counts()?;
    let redone = work.iter().filter(|row| row.chunks > 0).count() as u64;
    let mut tally = Tally { seen: with_text, changed: redone, new: work.len() as u64 - redone, ..Tally::default() };
    tally.unchanged = with_text - work.len() as u64;
    progress.begin(Stage::Chunk, Some(work.len() as u64));
    for row in work {
        progress.item(&row.known.doc.to_string()[..12]);
        let Some(piece) = &row.piece else { continue };
        let text = draft.read_piece(piece)?;
        let tokens: Vec<_> = bastion_sanitize::tokens(&text).collect();
        let cut = windows(&text, &tokens);
        let writer = index.writer(draft)?;
        writer.remove_doc(row.ord);
        let mut rows = Vec::with_capacity(cut.len());
        for window in cut {
            let part = &text[window.bytes];
            writer.add(ChunkKey { doc: row.ord, index: window.index }, row.known.lang.as_deref(), part);
            rows.push(ChunkRow { index: window.index, start: window.start, end: window.end, print: text_print(part) });
        }
        draft.put_chunks(row.ord, &print, &rows)?;
    }
    Ok(tally)
}

/// A short hash: where it is another, so is the text.
pub(crate) fn text_print(text: &str) -> i64 {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(text.as_bytes());
    i64::from_be_bytes(std::array::from_fn(|at| digest[at]))
}
