//! Bytes → text, one module per family of formats. Runs inside the worker; nothing here opens anything.
//!
//! To add a format: a [`Kind`] and its signature in `detect`, an arm in [`by_kind`], a reader that returns
//! [`Read`], a small real file in `tests/it/formats.rs`, a line in `docs/readers.md`, and a raised `READERS` version.

mod archive;
mod fb2;
mod flatten;
mod mail;
mod office;
mod pdf;
mod sheet;
mod text;

use std::cell::Cell;

use crate::{Detected, Document, FailReason, Kind, Outcome, SkipReason, detect, language, tidy};

/// What one file, with all that is inside it, may still cost.
#[derive(Debug)]
pub(crate) struct Budget {
    max_chars: u64,
    archive_depth: u32,
    /// Files inside the file (attachments, archive entries) that may still be read.
    inner_files: Cell<u32>,
    /// Bytes that archives may still unpack to.
    unpacked: Cell<u64>,
    /// Archives around the file at hand.
    archives: Cell<u32>,
}

/// Files inside a file that are read; the rest are named only.
const INNER_FILES: u32 = 1000;
/// Bytes that the archives in one file may unpack to, all together.
const UNPACKED: u64 = 512 << 20;
/// Messages in messages, files in archives: how deep they are followed.
const INNER_DEPTH: u32 = 4;

impl Budget {
    pub(crate) fn new(max_chars: u64, archive_depth: u32) -> Self {
        Self {
            max_chars,
            archive_depth,
            inner_files: Cell::new(INNER_FILES),
            unpacked: Cell::new(UNPACKED),
            archives: Cell::new(0),
        }
    }

    /// Takes the right to read one more inner file.
    fn take_file(&self) -> bool {
        let left = self.inner_files.get();
        self.inner_files.set(left.saturating_sub(1));
        left > 0
    }

    /// Goes one archive deeper; `None` where that is too deep. Comes back when the level is dropped.
    fn enter_archive(&self) -> Option<Level<'_>> {
        let around = self.archives.get();
        if around > 0 && around >= self.archive_depth {
            return None;
        }
        self.archives.set(around + 1);
        Some(Level(self))
    }

    /// Whether the archive at hand is opened, not only listed.
    fn opens_archives(&self) -> bool {
        self.archives.get() <= self.archive_depth
    }
}

/// Being inside an archive.
struct Level<'a>(&'a Budget);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.archives.set(self.0.archives.get().saturating_sub(1));
    }
}

/// What a reader found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Not tidied yet.
    pub(crate) text: String,
    pub(crate) pages: Option<u32>,
    pub(crate) title: Option<String>,
    /// The reader where it is not the family's usual one.
    pub(crate) reader: &'static str,
}

/// Why a reader found nothing. The words are ours: a library's may quote the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Encrypted,
    Unsupported,
    Damaged(&'static str),
    TooLarge(&'static str),
}

pub(crate) type Read = Result<Found, Refusal>;

/// Reads a file.
pub(crate) fn read(name: &str, bytes: Vec<u8>, budget: &Budget) -> Outcome {
    let Detected { mime, kind } = detect(name, &bytes);
    if bytes.is_empty() {
        return Outcome::Empty { mime: "application/x-empty".to_owned(), reader: "text".to_owned() };
    }
    match by_kind(kind, name, bytes, budget, 0) {
        Ok(found) => finish(mime, found, budget),
        Err(Refusal::Encrypted) => Outcome::Skipped { mime: Some(mime.to_owned()), reason: SkipReason::Encrypted },
        Err(Refusal::Unsupported) => Outcome::Skipped { mime: Some(mime.to_owned()), reason: SkipReason::Unsupported },
        Err(Refusal::Damaged(detail)) => failed(mime, FailReason::Damaged, detail),
        Err(Refusal::TooLarge(detail)) => failed(mime, FailReason::TooLarge, detail),
    }
}

fn failed(mime: &str, reason: FailReason, detail: &str) -> Outcome {
    Outcome::Failed { mime: Some(mime.to_owned()), reason, detail: detail.to_owned() }
}

fn finish(mime: &str, found: Found, budget: &Budget) -> Outcome {
    let Found { text, pages, title, reader } = found;
    // Four bytes a character at most: this refuses the hopeless before the copy.
    if text.len() as u64 / 4 > budget.max_chars {
        return failed(mime, FailReason::TooLarge, "more characters than max_doc_chars");
    }
    let tidied = tidy::tidy(&text);
    drop(text);
    if tidied.trim().is_empty() {
        return Outcome::Empty { mime: mime.to_owned(), reader: reader.to_owned() };
    }
    if tidied.chars().count() as u64 > budget.max_chars {
        return failed(mime, FailReason::TooLarge, "more characters than max_doc_chars");
    }
    let lang = language::of(&tidied);
    let title = title.as_deref().and_then(tidy::title);
    Outcome::Text(Document { mime: mime.to_owned(), reader: reader.to_owned(), text: tidied, pages, title, lang })
}

/// The reader of each kind. `depth` counts the files around this one.
fn by_kind(kind: Kind, name: &str, bytes: Vec<u8>, budget: &Budget, depth: u32) -> Read {
    match kind {
        Kind::Text | Kind::Markdown | Kind::Csv | Kind::Json | Kind::Xml => text::read(kind, &bytes, budget),
        Kind::Html => text::html(bytes),
        Kind::Pdf => pdf::read(bytes, budget),
        Kind::Xlsx | Kind::Xlsb | Kind::Xls => sheet::read(kind, bytes, budget),
        Kind::Docx
        | Kind::Pptx
        | Kind::Doc
        | Kind::Ppt
        | Kind::Rtf
        | Kind::Odt
        | Kind::Ods
        | Kind::Odp
        | Kind::Epub => office::read(kind, bytes),
        Kind::OtherOffice => office::other(name, bytes),
        Kind::Fb2 => fb2::read(bytes),
        Kind::Eml => mail::message(&bytes, budget, depth),
        Kind::Msg => mail::outlook(bytes, budget, depth),
        Kind::Mbox => mail::mailbox(&bytes, budget, depth),
        Kind::Zip | Kind::Tar | Kind::SevenZip | Kind::Gzip => archive::read(kind, name, bytes, budget, depth),
        Kind::EncryptedOffice => Err(Refusal::Encrypted),
        Kind::Image | Kind::Unknown => Err(Refusal::Unsupported),
    }
}

/// Reads a file inside a file and appends its text under its name. What goes wrong inside stays inside: the file around
/// it is still worth its own text.
fn inner(into: &mut String, name: &str, bytes: Vec<u8>, budget: &Budget, depth: u32) {
    use std::fmt::Write;
    let _ = write!(into, "\n\n## {}\n", tidy::title(name).unwrap_or_default());
    if depth >= INNER_DEPTH || bytes.is_empty() || into.len() as u64 / 4 > budget.max_chars || !budget.take_file() {
        return;
    }
    let kind = detect(name, &bytes).kind;
    let read = std::panic::AssertUnwindSafe(|| by_kind(kind, name, bytes, budget, depth + 1));
    if let Ok(Ok(found)) = std::panic::catch_unwind(read) {
        into.push('\n');
        into.push_str(&found.text);
    }
}
