//! Making the next generation from the one before it.

use std::path::{Path, PathBuf};

use super::{FORMAT, IndexError, TEXT, check_format, format, text_failure};
use crate::analysis::Language;
use crate::fulltext::TextWriter;
use crate::key::{ChunkKey, ModelTag};
use crate::vectors::{self, VectorsWriter};

/// Writes one generation of the index.
///
/// A failure of a step is kept and returned by [`IndexWriter::finish`]; steps after it do nothing. A writer that is
/// dropped before it finished leaves a folder that does not open.
pub struct IndexWriter {
    dir: PathBuf,
    text: TextWriter,
    vectors: VectorsWriter,
    failure: Option<IndexError>,
}

impl IndexWriter {
    /// Begins a generation in the new folder `dir` with all that `previous` has.
    ///
    /// The previous one is only read: its files that never change are shared by hard links.
    ///
    /// # Errors
    /// [`IndexError::Exists`] where `dir` is there and not empty; [`IndexError::Unfinished`], [`IndexError::OtherFormat`] or
    /// [`IndexError::Damaged`] where `previous` can't be built upon: begin without it and add everything.
    pub fn create(dir: &Path, previous: Option<&Path>) -> Result<Self, IndexError> {
        let io = |source| IndexError::Io { path: dir.to_owned(), source };
        if let Some(previous) = previous {
            check_format(previous)?;
        }
        if std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(IndexError::Exists { dir: dir.to_owned() });
        }
        bastion_host::files::create_private_dir(dir).map_err(io)?;
        let vectors = VectorsWriter::create(dir, previous)?;
        let text_dir = dir.join(TEXT);
        let text = TextWriter::create(&text_dir, previous.map(|previous| previous.join(TEXT)).as_deref());
        let text = text.map_err(|failure| text_failure(&text_dir, failure))?;
        Ok(Self { dir: dir.to_owned(), text, vectors, failure: None })
    }

    /// Takes a document's windows and vectors away; those added after this call stay.
    pub fn remove_doc(&mut self, doc: u32) {
        self.text.remove(doc);
        self.vectors.remove(doc);
    }

    /// Adds a window's text. `lang` is an ISO 639 code or a BCP 47 tag; the text is stemmed where it has a stemmer.
    ///
    /// A key must not be added twice without [`IndexWriter::remove_doc`] of its document between.
    pub fn add(&mut self, key: ChunkKey, lang: Option<&str>, text: &str) {
        if self.failure.is_none() {
            let added = self.text.add(key, lang.and_then(Language::of), text);
            self.failure = added.err().map(|source| IndexError::Text { dir: self.dir.join(TEXT), source });
        }
    }

    /// Names the model of the vectors to come. Vectors of another model, or of another size, are all dropped.
    ///
    /// Without this call the vectors of documents that stay are kept with their model.
    pub fn set_vectors(&mut self, model: &ModelTag) {
        self.vectors.set_model(Some(model));
    }

    /// Drops all vectors: there is no model any more.
    pub fn drop_vectors(&mut self) {
        self.vectors.set_model(None);
    }

    /// Whether the window has a vector of the model, so that it need not be embedded.
    pub fn has_vector(&self, key: ChunkKey) -> bool {
        self.vectors.has(key)
    }

    /// Adds or replaces a window's vector, of any length: only its direction is kept.
    pub fn add_vector(&mut self, key: ChunkKey, vector: &[f32]) {
        if self.failure.is_none() {
            self.failure = self.vectors.add(key, vector).err();
        }
    }

    /// Gives the window `to` the vector that `from` had in the previous generation (or has by now), for a window whose
    /// text is the same under a new key. False where there is none of this model. It works after `from` was removed too.
    pub fn copy_vector(&mut self, from: ChunkKey, to: ChunkKey) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.vectors.copy(from, to).unwrap_or_else(|error| {
            self.failure = Some(error);
            false
        })
    }

    /// Finishes the generation: all of it is on the disk when this returns, and from then on nothing in it changes.
    ///
    /// # Errors
    /// The first failure of any step. The folder then does not open.
    pub fn finish(self) -> Result<(), IndexError> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let text_dir = self.dir.join(TEXT);
        self.text.finish().map_err(|source| IndexError::Text { dir: text_dir, source })?;
        self.vectors.finish(&self.dir.join(vectors::FILE))?;
        let path = self.dir.join(FORMAT);
        let format = format(&self.dir, self.dir.join(vectors::FILE).exists())?;
        let written = bastion_host::files::replace(&path, format.as_bytes(), bastion_host::files::PRIVATE_FILE);
        written
            .and_then(|()| bastion_host::files::sync_parent(&self.dir))
            .map_err(|source| IndexError::Io { path, source })
    }
}
