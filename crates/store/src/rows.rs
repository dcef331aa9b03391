//! The rows of a generation: their shapes, and the SQL that both sides share.

use std::collections::BTreeMap;
use std::str::FromStr;

use rusqlite::{Connection, Row};

use crate::DocId;

/// The tables of `rows.db`. Its number is in `PRAGMA user_version`; a file of another number is made anew.
pub(crate) const SCHEMA_VERSION: i64 = 1;

pub(crate) const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE doc (
  ord INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so that an index entry can't change its document
  doc BLOB NOT NULL UNIQUE,
  extract_print TEXT NOT NULL, mime TEXT, status TEXT NOT NULL, reason TEXT, pages INTEGER, lang TEXT,
  piece TEXT, sanitize_print TEXT, chars INTEGER NOT NULL DEFAULT 0, title TEXT, hidden TEXT NOT NULL DEFAULT '{}',
  chunk_print TEXT, chunks INTEGER NOT NULL DEFAULT 0, model TEXT, summary TEXT
);
CREATE TABLE path (
  id INTEGER PRIMARY KEY, root TEXT NOT NULL, path TEXT NOT NULL,
  bytes INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, ctime_ns INTEGER NOT NULL, inode INTEGER NOT NULL,
  doc BLOB, status TEXT NOT NULL, reason TEXT, shown TEXT, card TEXT, card_print INTEGER,
  UNIQUE (root, path)
);
CREATE INDEX path_doc ON path (doc);
CREATE INDEX path_shown ON path (shown, id) WHERE card IS NOT NULL;
CREATE TABLE chunk (
  doc INTEGER NOT NULL, idx INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL, print INTEGER NOT NULL,
  PRIMARY KEY (doc, idx)
) WITHOUT ROWID;
CREATE INDEX chunk_print ON chunk (print);
CREATE TABLE dir (shown TEXT NOT NULL, root TEXT NOT NULL, card TEXT NOT NULL, PRIMARY KEY (shown, root)) WITHOUT ROWID;
";

/// What the walk knows of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStatus {
    /// Read: `doc` is what it holds.
    Ok,
    /// New or changed, and not read yet: `doc`, where there is one, is what it held before.
    Pending,
    /// In scope, but not read: see the reason. What was known of it before is kept.
    Skipped,
}

impl PathStatus {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Pending => "pending",
            Self::Skipped => "skipped",
        }
    }
}

impl FromStr for PathStatus {
    type Err = std::convert::Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(match word {
            "ok" => Self::Ok,
            "pending" => Self::Pending,
            _ => Self::Skipped,
        })
    }
}

/// One path of the walk map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRow {
    /// The root as the manifest writes it.
    pub root: String,
    /// Relative to the root, `/`-separated, escaped (see `stages::names`).
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Time of the last change of content, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Time of the last change of the inode, nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Inode number.
    pub inode: u64,
    /// The document, once its bytes were read.
    pub doc: Option<DocId>,
    /// Read or skipped.
    pub status: PathStatus,
    /// Why skipped.
    pub reason: Option<String>,
}

impl PathRow {
    pub(crate) const COLUMNS: &str = "root, path, bytes, mtime_ns, ctime_ns, inode, doc, status, reason";

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            root: row.get(0)?,
            path: row.get(1)?,
            bytes: row.get::<_, i64>(2)?.cast_unsigned(),
            mtime_ns: row.get(3)?,
            ctime_ns: row.get(4)?,
            inode: row.get::<_, i64>(5)?.cast_unsigned(),
            doc: row.get::<_, Option<[u8; 32]>>(6)?.map(DocId::from_bytes),
            status: row.get_ref(7)?.as_str()?.parse().unwrap_or(PathStatus::Skipped),
            reason: row.get(8)?,
        })
    }
}

/// What extract found out about a document, as far as it may be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDoc {
    /// The document.
    pub doc: DocId,
    /// Which readers made it.
    pub extract_print: String,
    /// Media type, where it was recognised.
    pub mime: Option<String>,
    /// `ok`, `empty`, `skipped` or `failed`.
    pub status: String,
    /// Why skipped or failed.
    pub reason: Option<String>,
    /// Pages, where the format has them.
    pub pages: Option<u32>,
    /// ISO 639-1 code of the main language, where it is clear.
    pub lang: Option<String>,
}

/// One document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocRow {
    /// Its number in the index; never used again for another document.
    pub ord: u32,
    /// Extract's part.
    pub known: NewDoc,
    /// The file below `sanitize/pieces/` that holds the sanitized text.
    pub piece: Option<String>,
    /// Which rules made the piece.
    pub sanitize_print: Option<String>,
    /// Length of the sanitized text in characters.
    pub chars: u64,
    /// The sanitized title.
    pub title: Option<String>,
    /// What was hidden: counts by type.
    pub hidden: BTreeMap<String, u64>,
    /// Which cutter made the windows.
    pub chunk_print: Option<String>,
    /// How many windows there are.
    pub chunks: u32,
    /// The model whose vectors are in the index.
    pub model: Option<String>,
    /// A summary of the sanitized text, where a summarizer is set.
    pub summary: Option<String>,
}

impl DocRow {
    pub(crate) const COLUMNS: &str = "ord, doc, extract_print, mime, status, reason, pages, lang, piece, sanitize_print, chars, title, \
                                      hidden, chunk_print, chunks, model, summary";

    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            ord: row.get(0)?,
            known: NewDoc {
                doc: DocId::from_bytes(row.get(1)?),
                extract_print: row.get(2)?,
                mime: row.get(3)?,
                status: row.get(4)?,
                reason: row.get(5)?,
                pages: row.get(6)?,
                lang: row.get(7)?,
            },
            piece: row.get(8)?,
            sanitize_print: row.get(9)?,
            chars: row.get::<_, i64>(10)?.cast_unsigned(),
            title: row.get(11)?,
            hidden: serde_json::from_str(row.get_ref(12)?.as_str()?).unwrap_or_default(),
            chunk_print: row.get(13)?,
            chunks: row.get(14)?,
            model: row.get(15)?,
            summary: row.get(16)?,
        })
    }
}

/// One window: positions in the document's sanitized text, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRow {
    /// Its number within the document.
    pub index: u32,
    /// First character.
    pub start: u64,
    /// One past the last character.
    pub end: u64,
    /// A short hash of its text: where it is the same, a vector can be taken over after the texts were compared.
    pub print: i64,
}

/// One page of cards, each a line of JSON as it stands in `catalog/*.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogPage {
    /// The cards.
    pub cards: Vec<String>,
    /// How many there are in all below the prefix.
    pub total: u64,
}

/// Whether the file holds the tables this version knows.
pub(crate) fn is_known(rows: &Connection) -> rusqlite::Result<bool> {
    Ok(rows.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))? == SCHEMA_VERSION)
}

/// The value kept under `key`.
pub(crate) fn meta(rows: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    use rusqlite::OptionalExtension;
    rows.prepare_cached("SELECT value FROM meta WHERE key = ?1")?.query_row([key], |row| row.get(0)).optional()
}

/// The smallest string above every string that begins with `prefix`, for a range scan; `None`: there is no bound.
pub(crate) fn after_prefix(prefix: &str) -> Option<String> {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            chars.push(next);
            return Some(chars.into_iter().collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_of_a_prefix_is_above_all_it_begins() {
        assert_eq!(after_prefix(""), None);
        assert_eq!(after_prefix("ab").as_deref(), Some("ac"));
        assert_eq!(after_prefix("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(after_prefix("\u{d7ff}").as_deref(), Some("\u{e000}"));
    }
}
