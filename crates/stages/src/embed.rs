//! From windows to vectors, where there is a model. Only windows whose text is new are embedded.

use bastion_retrieval::ChunkKey;
use bastion_retrieval::embed::{Embedder, Role};
use bastion_store::{ChunkRow, DocRow, Draft, SanitizedText};
use bastion_trust::Stage;

use crate::index::NextIndex;
use crate::progress::Progress;
use crate::{StageError, Tally};

/// Windows given to the model at once.
const BATCH: usize = 64;

/// Embeds every document that has no vectors of this model yet.
pub(crate) fn embed(
    embedder: &dyn Embedder,
    host: Option<&str>,
    draft: &mut Draft,
    index: &mut NextIndex,
    progress: &dyn Progress,
) -> Result<Tally, StageError> {
    let tag = embedder.tag().clone();
    let model = format!("{} {}", tag.name, tag.dims);
    let work = draft.docs_unembedded(&model)?;
    let (.., all) = draft.counts()?;
    let todo: u64 = work.iter().map(|row| u64::from(row.chunks)).sum();
    progress.begin(Stage::Embed, Some(todo));
    let mut tally = Tally { seen: all, new: todo, unchanged: all - todo, ..Tally::default() };
    if !work.is_empty() {
        tally.hosts.extend(host.map(str::to_owned));
        index.writer(draft)?.set_vectors(&tag);
    }
    let mut batch = Batch { embedder, texts: Vec::new(), keys: Vec::new() };
    for row in &work {
        let Some(text) = text_of(draft, row)? else { continue };
        for chunk in draft.chunks(row.ord)? {
            progress.item(&row.known.doc.to_string()[..12]);
            let key = ChunkKey { doc: row.ord, index: chunk.index };
            let part = slice(&text, &chunk);
            if take_over(draft, index, &model, key, &chunk, part)? {
                tally.new -= 1;
                tally.unchanged += 1;
                continue;
            }
            batch.push(key, part.to_owned());
            if batch.keys.len() == BATCH {
                batch.flush(draft, index)?;
            }
        }
    }
    batch.flush(draft, index)?;
    for row in &work {
        draft.put_embedded(row.ord, &model)?;
    }
    Ok(tally)
}

/// Takes the vector of a window with the very same text, where the index has one.
fn take_over(
    draft: &mut Draft,
    index: &mut NextIndex,
    model: &str,
    key: ChunkKey,
    chunk: &ChunkRow,
    part: &str,
) -> Result<bool, StageError> {
    for (ord, like) in draft.chunks_like(chunk.print, model)? {
        let Some(row) = draft.doc_by_ord(ord)? else { continue };
        let Some(text) = text_of(draft, &row)? else { continue };
        if slice(&text, &like) == part
            && index.writer(draft)?.copy_vector(ChunkKey { doc: ord, index: like.index }, key)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

fn text_of(draft: &Draft, row: &DocRow) -> Result<Option<SanitizedText>, StageError> {
    let text = row.piece.as_deref().map(|piece| draft.read_piece(piece)).transpose()?;
    Ok(text.map(SanitizedText::new))
}

fn slice<'a>(text: &'a SanitizedText, chunk: &ChunkRow) -> &'a str {
    let at = |char: u64| usize::try_from(char).unwrap_or(usize::MAX);
    text.slice(at(chunk.start)..at(chunk.end))
}

/// Texts that wait for the model.
struct Batch<'a> {
    embedder: &'a dyn Embedder,
    texts: Vec<String>,
    keys: Vec<ChunkKey>,
}

impl Batch<'_> {
    fn push(&mut self, key: ChunkKey, text: String) {
        self.keys.push(key);
        self.texts.push(text);
    }

    fn flush(&mut self, draft: &mut Draft, index: &mut NextIndex) -> Result<(), StageError> {
        if self.keys.is_empty() {
            return Ok(());
        }
        let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
        let vectors = self.embedder.embed(&texts, Role::Passage)?;
        let writer = index.writer(draft)?;
        for (key, vector) in self.keys.drain(..).zip(vectors) {
            writer.add_vector(key, &vector);
        }
        self.texts.clear();
        Ok(())
    }
}
