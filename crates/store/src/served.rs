//! The read side: one generation, opened whole.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bastion_host::seen::SeenFile;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::{CatalogPage, ChunkRow, DocId, DocRow, Layout, SanitizedText, StoreError, rows};

/// Sanitized texts kept in memory, in bytes, at the most.
const TEXT_CACHE_BYTES: usize = 64 << 20;
/// Documents whose rows are kept in memory, at the most.
const KEPT_DOCS: usize = 4096;
/// `index/current` holds a name and nothing else.
const MAX_POINTER_BYTES: u64 = 64;

/// One generation of the served store. It stays as it was even when a later sweep commits; see [`Served::is_current`].
#[derive(Debug)]
pub struct Served {
    layout: Layout,
    name: String,
    rows_path: PathBuf,
    rows: Mutex<Connection>,
    texts: Mutex<TextCache>,
    /// Documents that were asked for; a generation's rows never change.
    docs: Mutex<HashMap<DocId, DocRow>>,
    pointer: SeenFile,
}

/// Which documents and which of their paths a reader may be told of now. Made by [`Served::allowed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    docs: Bits,
    paths: Bits,
    /// Whether that is every path there is.
    everything: bool,
}

impl Allowed {
    /// Whether the document of this number is among them.
    pub fn contains(&self, ord: u32) -> bool {
        self.docs.contains(ord)
    }
}

/// A set of small numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Bits(Vec<u64>);

impl Bits {
    fn contains(&self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn insert(&mut self, number: u32) {
        let at = number as usize / 64;
        if self.0.len() <= at {
            self.0.resize(at + 1, 0);
        }
        self.0[at] |= 1 << (number % 64);
    }
}

impl Served {
    /// Opens the current generation. `None`: no sweep has committed yet.
    pub fn open(layout: &Layout) -> Result<Option<Self>, StoreError> {
        loop {
            let Some((name, pointer)) = pointer(layout)? else { return Ok(None) };
            match Self::open_named(layout, &name, pointer) {
                // A commit came between: the pointer names another generation by now.
                Err(error) if error.is_gone() && current(layout)?.is_none_or(|now| now != name) => {}
                other => return other.map(Some),
            }
        }
    }

    fn open_named(layout: &Layout, name: &str, pointer: SeenFile) -> Result<Self, StoreError> {
        let rows_path = layout.generation(name).join("rows.db");
        std::fs::metadata(&rows_path).map_err(StoreError::io(&rows_path))?;
        let rows = open_immutable(&rows_path).map_err(|source| StoreError::Rows { path: rows_path.clone(), source })?;
        Ok(Self {
            layout: layout.clone(),
            name: name.to_owned(),
            rows_path,
            rows: Mutex::new(rows),
            texts: Mutex::new(TextCache::default()),
            docs: Mutex::default(),
            pointer,
        })
    }

    /// The generation's name.
    pub fn generation(&self) -> &str {
        &self.name
    }

    /// Whether no later sweep has committed. One look at the pointer's file, which is read where it changed.
    pub fn is_current(&self) -> bool {
        self.pointer.is_still()
    }

    /// The folder of the full-text and vector index.
    pub fn search_dir(&self) -> PathBuf {
        self.layout.generation(&self.name).join("search")
    }

    /// A value kept beside the rows.
    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        rows::meta(&self.lock(), key).map_err(self.failed())
    }

    /// The document of this id.
    pub fn doc(&self, doc: &DocId) -> Result<Option<DocRow>, StoreError> {
        let known = || self.docs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = known().get(doc) {
            return Ok(Some(row.clone()));
        }
        let row = one_doc(&self.lock(), "doc", params![doc.as_bytes()]).map_err(self.failed())?;
        if let Some(row) = &row {
            let mut docs = known();
            if docs.len() >= KEPT_DOCS {
                docs.clear();
            }
            docs.insert(*doc, row.clone());
        }
        Ok(row)
    }

    /// The document of this number.
    pub fn doc_by_ord(&self, ord: u32) -> Result<Option<DocRow>, StoreError> {
        let rows = self.lock();
        one_doc(&rows, "ord", params![ord]).map_err(self.failed())
    }

    /// One window of a document.
    pub fn chunk(&self, ord: u32, index: u32) -> Result<Option<ChunkRow>, StoreError> {
        let rows = self.lock();
        let mut query = rows
            .prepare_cached("SELECT start, end, print FROM chunk WHERE doc = ?1 AND idx = ?2")
            .map_err(self.failed())?;
        query
            .query_row(params![ord, index], |row| {
                Ok(ChunkRow {
                    index,
                    start: row.get::<_, i64>(0)?.cast_unsigned(),
                    end: row.get::<_, i64>(1)?.cast_unsigned(),
                    print: row.get(2)?,
                })
            })
            .optional()
            .map_err(self.failed())
    }

    /// A document's sanitized text. `None`: it has none.
    pub fn text(&self, doc: &DocRow) -> Result<Option<Arc<SanitizedText>>, StoreError> {
        let Some(piece) = &doc.piece else { return Ok(None) };
        if let Some(text) = self.cache().get(doc.ord) {
            return Ok(Some(text));
        }
        let path = self.layout.pieces().join(piece);
        let bytes = std::fs::read(&path).map_err(StoreError::io(&path))?;
        let text = String::from_utf8(bytes).map_err(|_| StoreError::Damaged { path: path.clone() })?;
        let text = SanitizedText::new(text);
        if text.chars() as u64 != doc.chars {
            return Err(StoreError::Damaged { path });
        }
        let text = Arc::new(text);
        self.cache().put(doc.ord, &text);
        Ok(Some(text))
    }

    /// The paths of a document: (root as the manifest writes it, path below it, the sanitized path).
    pub fn paths_of(&self, doc: &DocId) -> Result<Vec<(String, String, Option<String>)>, StoreError> {
        let rows = self.lock();
        let mut query = rows
            .prepare_cached("SELECT root, path, shown FROM path WHERE doc = ?1 ORDER BY root, path")
            .map_err(self.failed())?;
        let found = query
            .query_map([doc.as_bytes()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .map_err(self.failed())?;
        found.collect::<Result<_, _>>().map_err(self.failed())
    }

    /// The paths for which `in_scope(root, path)` holds, and the documents that have at least one of them.
    pub fn allowed(&self, in_scope: impl Fn(&str, &str) -> bool) -> Result<Allowed, StoreError> {
        let mut allowed = Allowed { docs: Bits::default(), paths: Bits::default(), everything: true };
        let rows = self.lock();
        let mut query = rows
            .prepare_cached(
                "SELECT path.id, path.root, path.path, doc.ord FROM path LEFT JOIN doc ON doc.doc = path.doc",
            )
            .map_err(self.failed())?;
        let mut each = || -> rusqlite::Result<()> {
            let mut found = query.query([])?;
            while let Some(row) = found.next()? {
                if in_scope(row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?) {
                    allowed.paths.insert(row.get(0)?);
                    if let Some(ord) = row.get(3)? {
                        allowed.docs.insert(ord);
                    }
                } else {
                    allowed.everything = false;
                }
            }
            Ok(())
        };
        each().map_err(self.failed())?;
        Ok(allowed)
    }

    /// File cards whose sanitized path begins with `prefix` and whose path is among the allowed, in path order.
    pub fn file_cards(
        &self,
        prefix: &str,
        offset: u64,
        limit: u64,
        allowed: &Allowed,
    ) -> Result<CatalogPage, StoreError> {
        let rows = self.lock();
        let upper = rows::after_prefix(prefix);
        let (offset, limit) = (bounded(offset), bounded(limit));
        let read = || -> rusqlite::Result<CatalogPage> {
            if allowed.everything {
                let total: i64 = rows
                    .prepare_cached(
                        "SELECT count(*) FROM path WHERE card IS NOT NULL AND shown >= ?1 AND (?2 IS NULL OR shown < ?2)",
                    )?
                    .query_row(params![prefix, upper], |row| row.get(0))?;
                let cards = rows
                    .prepare_cached(
                        "SELECT card FROM path WHERE card IS NOT NULL AND shown >= ?1 AND (?2 IS NULL OR shown < ?2) \
                         ORDER BY shown, id LIMIT ?3 OFFSET ?4",
                    )?
                    .query_map(params![prefix, upper, limit, offset], |row| row.get(0))?
                    .collect::<rusqlite::Result<_>>()?;
                return Ok(CatalogPage { cards, total: total.cast_unsigned() });
            }
            // the index on (shown, id) answers this alone; only the page's own rows are read
            let mut query = rows.prepare_cached(
                "SELECT id FROM path WHERE card IS NOT NULL AND shown >= ?1 AND (?2 IS NULL OR shown < ?2) ORDER BY shown, id",
            )?;
            let mut found = query.query(params![prefix, upper])?;
            let mut card = rows.prepare_cached("SELECT card FROM path WHERE id = ?1")?;
            let mut page = CatalogPage { cards: Vec::new(), total: 0 };
            while let Some(row) = found.next()? {
                let id: u32 = row.get(0)?;
                if !allowed.paths.contains(id) {
                    continue;
                }
                let at = bounded(page.total);
                if at >= offset && at - offset < limit {
                    page.cards.push(card.query_row([id], |row| row.get(0))?);
                }
                page.total += 1;
            }
            Ok(page)
        };
        read().map_err(self.failed())
    }

    /// Folder cards whose sanitized path begins with `prefix`, in path order.
    pub fn dir_cards(&self, prefix: &str, offset: u64, limit: u64) -> Result<CatalogPage, StoreError> {
        let rows = self.lock();
        let upper = rows::after_prefix(prefix);
        let total: i64 = rows
            .prepare_cached("SELECT count(*) FROM dir WHERE shown >= ?1 AND (?2 IS NULL OR shown < ?2)")
            .and_then(|mut query| query.query_row(params![prefix, upper], |row| row.get(0)))
            .map_err(self.failed())?;
        let mut query = rows
            .prepare_cached("SELECT card FROM dir WHERE shown >= ?1 AND (?2 IS NULL OR shown < ?2) ORDER BY shown, root LIMIT ?3 OFFSET ?4")
            .map_err(self.failed())?;
        let found = query
            .query_map(params![prefix, upper, bounded(limit), bounded(offset)], |row| row.get(0))
            .map_err(self.failed())?;
        Ok(CatalogPage { cards: found.collect::<Result<_, _>>().map_err(self.failed())?, total: total.cast_unsigned() })
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, TextCache> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
        |source| StoreError::Rows { path: self.rows_path.clone(), source }
    }
}

/// A number as SQLite can take it.
fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn one_doc(rows: &Connection, column: &str, value: impl rusqlite::Params) -> rusqlite::Result<Option<DocRow>> {
    rows.prepare_cached(&format!("SELECT {} FROM doc WHERE {column} = ?1", DocRow::COLUMNS))?
        .query_row(value, DocRow::read)
        .optional()
}

/// The name in `index/current`. `None`: there is no such file.
pub(crate) fn current(layout: &Layout) -> Result<Option<String>, StoreError> {
    Ok(pointer(layout)?.map(|(name, _)| name))
}

fn pointer(layout: &Layout) -> Result<Option<(String, SeenFile)>, StoreError> {
    let path = layout.current();
    let file = SeenFile::read(&path, MAX_POINTER_BYTES).map_err(StoreError::io(&path))?;
    let Some(bytes) = file.bytes() else { return Ok(None) };
    let name = std::str::from_utf8(bytes).map(str::trim_end).ok().filter(|name| {
        name.strip_prefix("gen-").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    });
    let Some(name) = name.map(str::to_owned) else { return Err(StoreError::Pointer { path }) };
    Ok(Some((name, file)))
}

/// A database that nobody writes any more: no locks, no journal, nothing made beside it.
pub(crate) fn open_immutable(path: &std::path::Path) -> rusqlite::Result<Connection> {
    use std::os::unix::ffi::OsStrExt;
    // SQLite's URI form; every byte that means something in a URI is percent-encoded.
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let rows = Connection::open_with_flags(uri, flags)?;
    rows.pragma_update(None, "mmap_size", 1_i64 << 30)?;
    rows.set_prepared_statement_cache_capacity(32);
    Ok(rows)
}

/// Texts that were read lately, the least used thrown out first.
#[derive(Debug, Default)]
struct TextCache {
    texts: HashMap<u32, (u64, Arc<SanitizedText>)>,
    bytes: usize,
    clock: u64,
}

impl TextCache {
    fn get(&mut self, ord: u32) -> Option<Arc<SanitizedText>> {
        self.clock += 1;
        let (used, text) = self.texts.get_mut(&ord)?;
        *used = self.clock;
        Some(Arc::clone(text))
    }

    fn put(&mut self, ord: u32, text: &Arc<SanitizedText>) {
        let size = text.as_str().len();
        if size > TEXT_CACHE_BYTES {
            return;
        }
        self.clock += 1;
        if let Some((_, old)) = self.texts.insert(ord, (self.clock, Arc::clone(text))) {
            self.bytes -= old.as_str().len();
        }
        self.bytes += size;
        while self.bytes > TEXT_CACHE_BYTES {
            let Some(oldest) = self.texts.iter().min_by_key(|(_, (used, _))| *used).map(|(ord, _)| *ord) else { break };
            if let Some((_, text)) = self.texts.remove(&oldest) {
                self.bytes -= text.as_str().len();
            }
        }
    }
}
