//! Writing the segments of a generation, beginning with those of the one before.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tantivy::directory::MmapDirectory;
use tantivy::index::SegmentId;
use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::{Index, IndexSettings, TantivyDocument, Term};

use super::analyzer::{self, Analyzer};
use super::reader::OpenFailure;
use super::{Fields, schema};
use crate::analysis::Language;
use crate::key::ChunkKey;

/// Threads that find terms and write postings.
const THREADS: usize = 2;
/// Memory of each for terms not yet written, in bytes. A full one becomes a segment.
const MEMORY: usize = 128 << 20;
/// A segment of this many windows is only written anew where something was removed from it.
const LARGE: u32 = 200_000;

pub(crate) struct TextWriter {
    dir: PathBuf,
    fields: Fields,
    writer: tantivy::IndexWriter,
}

impl TextWriter {
    /// An empty index in the new folder `dir`, or one that begins as `previous` is.
    pub(crate) fn create(dir: &Path, previous: Option<&Path>) -> Result<Self, OpenFailure> {
        bastion_host::files::create_private_dir(dir)?;
        let (schema, fields) = schema();
        let index = match previous {
            None => Index::create(MmapDirectory::open(dir)?, schema, IndexSettings::default())?,
            Some(previous) => {
                link_all(previous, dir)?;
                let index = Index::open(MmapDirectory::open(dir)?)?;
                // The library's merging threads end the process where they meet damage.
                if let Some(damaged) = index.validate_checksum()?.into_iter().min() {
                    return Err(OpenFailure::Checksum(damaged));
                }
                index
            }
        };
        index.tokenizers().register(analyzer::NAME, Analyzer);
        let options =
            IndexWriterOptions::builder().num_worker_threads(THREADS).memory_budget_per_thread(MEMORY).build();
        let writer = index.writer_with_options(options)?;
        writer.set_merge_policy(Box::new(NoMergePolicy));
        Ok(Self { dir: dir.to_owned(), fields, writer })
    }

    /// Takes away every window of `doc` that was added before this call.
    pub(crate) fn remove(&self, doc: u32) {
        self.writer.delete_term(Term::from_field_u64(self.fields.doc, u64::from(doc)));
    }

    pub(crate) fn add(&self, key: ChunkKey, language: Option<Language>, text: &str) -> tantivy::Result<()> {
        let mut document = TantivyDocument::default();
        document.add_u64(self.fields.doc, u64::from(key.doc));
        document.add_u64(self.fields.key, key.packed());
        document.add_text(self.fields.language, language.map_or("", Language::name));
        document.add_text(self.fields.text, analyzer::with_language(language, text));
        self.writer.add_document(document).map(drop)
    }

    /// Commits, drops what was removed, and makes it all durable.
    pub(crate) fn finish(mut self) -> tantivy::Result<()> {
        self.writer.commit()?;
        let stale = self.to_rewrite()?;
        if !stale.is_empty() {
            self.writer.merge(&stale).wait()?;
        }
        self.writer.garbage_collect_files().wait()?;
        self.writer.wait_merging_threads()?;
        for entry in fs::read_dir(&self.dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "lock") {
                fs::remove_file(&path)?;
            } else {
                File::open(&path)?.sync_all()?;
            }
        }
        File::open(&self.dir)?.sync_all()?;
        Ok(())
    }

    /// Segments that hold something removed, and small ones that together are as large as the next: so their number
    /// grows with the logarithm of the index, and a window is written anew a few times in its life.
    fn to_rewrite(&self) -> tantivy::Result<Vec<SegmentId>> {
        let mut segments = self.writer.index().searchable_segment_metas()?;
        segments.sort_by_key(|segment| (segment.num_docs(), segment.id()));
        let (mut small, mut windows) = (Vec::new(), 0);
        for segment in &segments {
            if segment.num_docs() > LARGE || (!small.is_empty() && segment.num_docs() > 2 * windows) {
                break;
            }
            windows += segment.num_docs();
            small.push(segment.id());
        }
        if small.len() < 2 {
            small.clear();
        }
        let removed = segments.iter().filter(|segment| segment.has_deletes()).map(|segment| segment.id());
        small.extend(removed);
        small.sort_unstable();
        small.dedup();
        Ok(small)
    }
}

/// Makes the files of `from` those of `to`: segment files never change, so they are shared; what tantivy replaces is copied.
fn link_all(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match source.extension().and_then(|extension| extension.to_str()) {
            Some("lock") => {}
            Some("json") => drop(fs::copy(&source, &target)?),
            _ => link(&source, &target)?,
        }
    }
    Ok(())
}

/// A hard link, or a copy where the file system has no links.
pub(crate) fn link(source: &Path, target: &Path) -> io::Result<()> {
    fs::hard_link(source, target).or_else(|_| fs::copy(source, target).map(drop))
}
