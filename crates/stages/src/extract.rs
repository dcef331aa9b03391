//! From files to plaintext: every new or changed file is read once, hashed, and its text kept.
//!
//! The file is opened beneath its root without following links, and what is hashed is what is read. The bytes go to
//! a caged worker process; whatever it does, the file alone pays for it.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};

use bastion_extract::{Job, Limits, Outcome, Pool, PoolConfig};
use bastion_private::{ExtractRow, ExtractStore, Vault};
use bastion_store::{DocId, Draft, NewDoc, PathRow, PathStatus};
use bastion_trust::{Admitted, Stage};

use crate::open::{RootDir, Stat, Unread};
use crate::progress::Progress;
use crate::{Settings, StageError, Tally, names};

/// What a thread found out about one path.
enum Done {
    /// The bytes are known already, or another thread is at them.
    Known(Stat, DocId),
    /// Read by a reader.
    Read(Stat, DocId, Box<ExtractRow>),
    /// Not read.
    Unread(Unread),
}

/// Reads every pending path, and every document that older readers made.
pub(crate) fn extract(
    admitted: &Admitted,
    settings: &Settings,
    draft: &mut Draft,
    vault: &Vault,
    extracts: &mut ExtractStore,
    progress: &dyn Progress,
) -> Result<Tally, StageError> {
    let limits = admitted.manifest().limits;
    let print = print(settings, admitted);
    let work = pending(draft, extracts, &print, limits.max_file_bytes)?;
    let (known, ..) = draft.counts()?;
    let mut tally = Tally { seen: known, ..Tally::default() };
    progress.begin(Stage::Extract, Some(work.len() as u64));
    if work.is_empty() {
        tally.unchanged = known;
        return Ok(tally);
    }
    draft.mark_dirty()?;
    extracts.load().map_err(StageError::io(draft.layout().extract()))?;
    let pool = Pool::new(PoolConfig {
        worker: settings.worker.clone(),
        worker_args: settings.worker_args.clone(),
        workers: settings.workers,
        uncaged: settings.uncaged,
        external: settings.external.clone(),
    })?;
    let mut roots = HashMap::new();
    for root in admitted.roots() {
        let opened =
            RootDir::open(&root.path).map_err(|source| StageError::Root { root: root.label.clone(), source })?;
        roots.insert(root.label.clone(), opened);
    }
    let reader = Reader {
        pool,
        roots,
        vault,
        print: &print,
        max_bytes: limits.max_file_bytes,
        limits: Limits {
            max_doc_chars: limits.max_doc_chars,
            seconds: u32::try_from(limits.extract_seconds).unwrap_or(u32::MAX),
            archive_depth: limits.archive_depth,
        },
        started: Mutex::new(HashSet::new()),
    };
    run(&reader, &work, settings.workers, draft, extracts, progress, &mut tally)?;
    tally.unchanged = tally.seen.saturating_sub(tally.changed + tally.new);
    Ok(tally)
}

/// What made a text: readers and limits. Another print means that every file is read again.
pub(crate) fn print(settings: &Settings, admitted: &Admitted) -> String {
    let limits = admitted.manifest().limits;
    let readers = bastion_extract::fingerprint(&settings.external);
    format!("{readers} {}c {}s {}d", limits.max_doc_chars, limits.extract_seconds, limits.archive_depth)
}

/// The paths to read: those that the walk found new or different, and one path of each document that is to be read anew.
fn pending(
    draft: &Draft,
    extracts: &mut ExtractStore,
    print: &str,
    max_bytes: u64,
) -> Result<Vec<PathRow>, StageError> {
    let mut stale: HashSet<DocId> = draft.docs_read_otherwise(print)?.into_iter().map(|row| row.known.doc).collect();
    // A text that sanitize will ask for and that is gone from the disk is read again.
    let wanted = draft.docs_unsanitized(bastion_sanitize::FINGERPRINT)?;
    if !wanted.is_empty() {
        extracts.load().map_err(StageError::io(draft.layout().extract()))?;
        stale.extend(wanted.into_iter().map(|row| row.known.doc).filter(|doc| extracts.row(doc, print).is_none()));
    }
    // Loading every path costs more than all else in a sweep with nothing to do.
    let mut rows = if stale.is_empty() { draft.paths_to_read(max_bytes)? } else { draft.paths()? };
    rows.retain(|row| match row.status {
        PathStatus::Pending => true,
        PathStatus::Ok => row.bytes > max_bytes || row.doc.is_none_or(|doc| stale.contains(&doc)),
        PathStatus::Skipped => row.reason.as_deref().is_some_and(Unread::is_worth_a_try),
    });
    Ok(rows)
}

struct Reader<'a> {
    pool: Pool,
    roots: HashMap<String, RootDir>,
    vault: &'a Vault,
    print: &'a str,
    max_bytes: u64,
    limits: Limits,
    /// Documents that a thread has taken on in this run.
    started: Mutex<HashSet<DocId>>,
}

fn run(
    reader: &Reader<'_>,
    work: &[PathRow],
    workers: usize,
    draft: &mut Draft,
    extracts: &mut ExtractStore,
    progress: &dyn Progress,
    tally: &mut Tally,
) -> Result<(), StageError> {
    let (next, broken) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::sync_channel(64);
    let shared = Mutex::new(extracts);
    std::thread::scope(|threads| {
        for _ in 0..workers.clamp(1, work.len()) {
            let (send, next, broken, shared) = (send.clone(), &next, &broken, &shared);
            threads.spawn(move || {
                while let Some(row) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if broken.load(Ordering::Relaxed) {
                        break;
                    }
                    progress.item(&row.path);
                    let done = reader.read(row, shared);
                    broken.fetch_or(done.is_err(), Ordering::Relaxed);
                    if send.send((row, done)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        let mut result = Ok(());
        for (row, done) in receive {
            if result.is_ok() {
                result = done.and_then(|done| keep(row, done, draft, tally));
                broken.fetch_or(result.is_err(), Ordering::Relaxed);
            }
        }
        result
    })
}

impl Reader<'_> {
    fn read(&self, row: &PathRow, extracts: &Mutex<&mut ExtractStore>) -> Result<Done, StageError> {
        let (Some(root), Some(path)) = (self.roots.get(&row.root), names::unescape(&row.path)) else {
            return Ok(Done::Unread(Unread::Gone));
        };
        let content = match root.read(&path, self.max_bytes) {
            Ok(content) => content,
            Err(Unread::Unsupported) => return Err(StageError::NoOpenBeneath),
            Err(unread) => return Ok(Done::Unread(unread)),
        };
        let doc = self.vault.key().doc_id(&content.bytes);
        if !lock(&self.started).insert(doc) {
            return Ok(Done::Known(content.stat, doc));
        }
        if let Some(known) = lock(extracts).row(&doc, self.print) {
            let known = Box::new(known.clone());
            return Ok(Done::Read(content.stat, doc, known));
        }
        let job = Job { name: names::file_name(&row.path), bytes: &content.bytes, limits: self.limits };
        let outcome = self.pool.extract(job)?;
        let (row, text) = describe(doc, self.print, outcome);
        let mut extracts = lock(extracts);
        let dir = || PathBuf::from("extract");
        if let Some(text) = text {
            extracts.write_text(&doc, &text).map_err(|source| StageError::Io { path: dir(), source })?;
        }
        extracts.put(row.clone()).map_err(|source| StageError::Io { path: dir(), source })?;
        Ok(Done::Read(content.stat, doc, Box::new(row)))
    }
}

/// The row of an outcome, and its text where there is one.
fn describe(doc: DocId, print: &str, outcome: Outcome) -> (ExtractRow, Option<String>) {
    let mut row = ExtractRow {
        doc,
        mime: None,
        reader: None,
        chars: 0,
        bytes: 0,
        pages: None,
        title: None,
        lang: None,
        status: String::new(),
        reason: None,
        readers: print.to_owned(),
        paths: Vec::new(),
    };
    match outcome {
        Outcome::Text(document) => {
            row.status = "ok".into();
            row.mime = Some(document.mime);
            row.reader = Some(document.reader);
            row.chars = document.text.chars().count() as u64;
            row.bytes = document.text.len() as u64;
            (row.pages, row.title, row.lang) = (document.pages, document.title, document.lang);
            (row, Some(document.text))
        }
        Outcome::Empty { mime, reader } => {
            row.status = "empty".into();
            (row.mime, row.reader) = (Some(mime), Some(reader));
            (row, None)
        }
        Outcome::Skipped { mime, reason } => {
            row.status = "skipped".into();
            (row.mime, row.reason) = (mime, Some(reason.as_str().into()));
            (row, None)
        }
        Outcome::Failed { mime, reason, detail: _ } => {
            row.status = "failed".into();
            (row.mime, row.reason) = (mime, Some(reason.as_str().into()));
            (row, None)
        }
    }
}

fn keep(before: &PathRow, done: Done, draft: &mut Draft, tally: &mut Tally) -> Result<(), StageError> {
    let mut row = before.clone();
    match done {
        Done::Unread(unread) => {
            tally.skip(unread.reason());
            row.status = PathStatus::Skipped;
            row.reason = Some(unread.reason().into());
            if matches!(unread, Unread::TooLarge) {
                row.doc = None; // what it held before is not what it holds now
            }
        }
        Done::Known(stat, doc) => note(&mut row, stat, doc),
        Done::Read(stat, doc, found) => {
            note(&mut row, stat, doc);
            keep_doc(&found, draft, tally)?;
        }
    }
    if before.doc.is_some() && before.doc != row.doc {
        tally.changed += 1;
    }
    if row != *before {
        draft.put_path(&row)?;
    }
    Ok(())
}

fn note(row: &mut PathRow, stat: Stat, doc: DocId) {
    (row.bytes, row.mtime_ns, row.ctime_ns, row.inode) = (stat.bytes, stat.mtime_ns, stat.ctime_ns, stat.inode);
    (row.status, row.reason, row.doc) = (PathStatus::Ok, None, Some(doc));
}

/// Notes what the readers said of a document, where that is news.
fn keep_doc(found: &ExtractRow, draft: &mut Draft, tally: &mut Tally) -> Result<(), StageError> {
    let known = draft.doc(&found.doc)?;
    if known.as_ref().is_some_and(|row| row.known.extract_print == found.readers) {
        return Ok(());
    }
    if known.is_none() {
        tally.seen += 1;
        tally.new += 1;
    } else {
        tally.changed += 1;
    }
    let reason = found.reason.as_deref().unwrap_or("");
    match found.status.as_str() {
        "skipped" => tally.skip(reason),
        "empty" => tally.skip("empty"),
        "failed" => tally.fail(reason),
        _ => {}
    }
    draft.put_doc(&NewDoc {
        doc: found.doc,
        extract_print: found.readers.clone(),
        mime: found.mime.clone(),
        status: found.status.clone(),
        reason: found.reason.clone(),
        pages: found.pages,
        lang: found.lang.clone(),
    })?;
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
