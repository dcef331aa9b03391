//! The write side: the next generation, invisible until its one commit.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bastion_host::clock::rfc3339_millis;
use bastion_host::files::{self, PRIVATE_FILE};
use rusqlite::{Connection, OptionalExtension, ToSql};

use crate::{ChunkRow, DocId, DocRow, Layout, NewDoc, PathRow, Pieces, StoreError, rows, served};

/// The lines of `catalog/files.jsonl` and `catalog/dirs.jsonl`.
const FILE_CARDS: &str = "SELECT card FROM path WHERE card IS NOT NULL ORDER BY shown, root, path";
const DIR_CARDS: &str = "SELECT card FROM dir ORDER BY shown, root";

/// The next generation while a sweep builds it.
///
/// Until the first write it reads the current generation in place, so that a sweep with nothing to do copies nothing.
/// Dropped without [`Draft::commit`] it leaves no trace. One at a time: the caller holds the sweep's lock.
#[derive(Debug)]
pub struct Draft {
    layout: Layout,
    base: Option<String>,
    /// The number that the new generation gets: never one that was used before.
    number: u64,
    rows: Connection,
    rows_path: PathBuf,
    /// The new generation's name, once something was written.
    name: Option<String>,
    /// Files that were among the pieces when the sweep began.
    piece_files: u64,
}

/// A generation that readers see now.
#[derive(Debug)]
pub struct Committed {
    layout: Layout,
    name: String,
    rows: Connection,
    rows_path: PathBuf,
}

impl Draft {
    /// Starts from the current generation, or from nothing. Removes what a crashed sweep left half-made.
    pub fn open(layout: &Layout) -> Result<Self, StoreError> {
        for dir in [layout.out().to_owned(), layout.index(), layout.sanitize(), layout.pieces()] {
            files::create_private_dir(&dir).map_err(StoreError::io(&dir))?;
        }
        let mut base = served::current(layout)?;
        let used = |name: &str| generation_number(name.trim_end()).unwrap_or(0);
        let exported = fs::read_to_string(layout.exported()).unwrap_or_default();
        let number = used(&exported).max(base.as_deref().map_or(0, used)) + 1;
        // A pointer to what is not there is no generation: the next one is made from the pieces.
        base = base.filter(|name| layout.generation(name).join("rows.db").exists());
        if base.is_some() {
            remove_other_generations(layout, base.as_deref())?;
        }
        remove_temporaries(layout.out(), &["walk.jsonl"])?;
        remove_temporaries(&layout.index(), &["current", "exported"])?;
        remove_temporaries(&layout.catalog(), &["files.jsonl", "dirs.jsonl"])?;
        keep_only(&layout.sanitize(), |name| {
            !(name.starts_with('.') && name.ends_with(".tmp") && !name.starts_with(".vault.db."))
        })?;
        let piece_files = keep_only(&layout.pieces(), |name| !(name.starts_with('.') && name.ends_with(".tmp")))?;
        let mut rows_path = layout.index().join("rows.db");
        let mut opened = None;
        if let Some(name) = &base {
            let path = layout.generation(name).join("rows.db");
            let rows = served::open_immutable(&path).map_err(failed(&path))?;
            if rows::is_known(&rows).map_err(failed(&path))? {
                rows_path = path;
                opened = Some(rows);
            } else {
                base = None; // another version's tables: everything is made anew from the pieces
            }
        }
        let rows = match opened {
            Some(rows) => rows,
            None => empty_in_memory().map_err(failed(&rows_path))?,
        };
        Ok(Self { layout: layout.clone(), base, number, rows, rows_path, name: None, piece_files })
    }

    /// Where the agent's files lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether anything was written.
    pub fn is_changed(&self) -> bool {
        self.name.is_some()
    }

    /// The name of the generation that readers will see when this draft is committed.
    pub fn generation(&self) -> Option<&str> {
        self.name.as_deref().or(self.base.as_deref())
    }

    /// The index folder of the generation this one starts from.
    pub fn base_search_dir(&self) -> Option<PathBuf> {
        self.base.as_ref().map(|name| self.layout.generation(name).join("search"))
    }

    /// The index folder of the new generation. Asking for it makes the new generation's folder.
    pub fn search_dir(&mut self) -> Result<PathBuf, StoreError> {
        self.write()?;
        let name = self.name.as_deref().unwrap_or_default();
        Ok(self.layout.generation(name).join("search"))
    }

    /// Every path row, in order.
    pub fn paths(&self) -> Result<Vec<PathRow>, StoreError> {
        self.paths_where("1 = 1", &[])
    }

    /// The paths that are not read, and those of files larger than `max_bytes`, in order.
    pub fn paths_to_read(&self, max_bytes: u64) -> Result<Vec<PathRow>, StoreError> {
        self.paths_where("status <> 'ok' OR bytes > ?1", &[&i64::try_from(max_bytes).unwrap_or(i64::MAX)])
    }

    /// How many paths there are.
    pub fn path_count(&self) -> Result<u64, StoreError> {
        let count = self.rows.query_row("SELECT count(*) FROM path", [], |row| row.get::<_, i64>(0));
        count.map(i64::cast_unsigned).map_err(failed(&self.rows_path))
    }

    /// The document of this id.
    pub fn doc(&self, doc: &DocId) -> Result<Option<DocRow>, StoreError> {
        self.rows
            .prepare_cached(&format!("SELECT {} FROM doc WHERE doc = ?1", DocRow::COLUMNS))
            .and_then(|mut query| query.query_row([doc.as_bytes()], DocRow::read).optional())
            .map_err(failed(&self.rows_path))
    }

    /// Every document, by id.
    pub fn docs(&self) -> Result<Vec<DocRow>, StoreError> {
        self.docs_where("1 = 1", &[])
    }

    /// Documents with text that were not read by the readers of `print`.
    pub fn docs_read_otherwise(&self, print: &str) -> Result<Vec<DocRow>, StoreError> {
        self.docs_where("extract_print <> ?1", &[&print])
    }

    /// Documents with text whose sanitized text was not made by the rules of `print`.
    pub fn docs_unsanitized(&self, print: &str) -> Result<Vec<DocRow>, StoreError> {
        self.docs_where("status = 'ok' AND (piece IS NULL OR sanitize_print IS NOT ?1)", &[&print])
    }

    /// Documents with sanitized text whose windows were not cut by the cutter of `print`.
    pub fn docs_unchunked(&self, print: &str) -> Result<Vec<DocRow>, StoreError> {
        self.docs_where("piece IS NOT NULL AND chunk_print IS NOT ?1", &[&print])
    }

    /// Documents with windows that have no vectors of `model`.
    pub fn docs_unembedded(&self, model: &str) -> Result<Vec<DocRow>, StoreError> {
        self.docs_where("chunks > 0 AND model IS NOT ?1", &[&model])
    }

    /// Documents that no path refers to any more.
    pub fn docs_orphaned(&self) -> Result<Vec<DocRow>, StoreError> {
        self.docs_where("NOT EXISTS (SELECT 1 FROM path WHERE path.doc = doc.doc)", &[])
    }

    /// How many documents match: all, with text, with windows.
    pub fn counts(&self) -> Result<(u64, u64, u64), StoreError> {
        self.rows
            .query_row("SELECT count(*), total(piece IS NOT NULL), total(chunks) FROM doc", [], |row| {
                #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // sums of small whole numbers
                Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get::<_, f64>(1)? as u64, row.get::<_, f64>(2)? as u64))
            })
            .map_err(failed(&self.rows_path))
    }

    /// A document's windows, in order.
    pub fn chunks(&self, ord: u32) -> Result<Vec<ChunkRow>, StoreError> {
        self.all("SELECT idx, start, end, print FROM chunk WHERE doc = ?1 ORDER BY idx", &[&ord], |row| {
            Ok(ChunkRow {
                index: row.get(0)?,
                start: row.get::<_, i64>(1)?.cast_unsigned(),
                end: row.get::<_, i64>(2)?.cast_unsigned(),
                print: row.get(3)?,
            })
        })
    }

    /// A value kept beside the rows.
    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        rows::meta(&self.rows, key).map_err(failed(&self.rows_path))
    }

    /// Keeps `value` under `key`; writes only where it is another one.
    pub fn set_meta(&mut self, key: &str, value: &str) -> Result<(), StoreError> {
        if self.meta(key)?.as_deref() == Some(value) {
            return Ok(());
        }
        self.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)", &[&key, &value])
    }

    /// Keeps a path's row, and forgets the card of a path whose document changed.
    pub fn put_path(&mut self, row: &PathRow) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO path (root, path, bytes, mtime_ns, ctime_ns, inode, doc, status, reason) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
             ON CONFLICT (root, path) DO UPDATE SET bytes = ?3, mtime_ns = ?4, ctime_ns = ?5, inode = ?6, \
             card = CASE WHEN doc IS ?7 THEN card END, doc = ?7, status = ?8, reason = ?9",
            &[
                &row.root,
                &row.path,
                &row.bytes.cast_signed(),
                &row.mtime_ns,
                &row.ctime_ns,
                &row.inode.cast_signed(),
                &row.doc.as_ref().map(DocId::as_bytes),
                &row.status.as_str(),
                &row.reason,
            ],
        )
    }

    /// Forgets a path.
    pub fn remove_path(&mut self, root: &str, path: &str) -> Result<(), StoreError> {
        self.execute("DELETE FROM path WHERE root = ?1 AND path = ?2", &[&root, &path])
    }

    /// Keeps what extract found; a document that is read anew loses what was made of its old text.
    pub fn put_doc(&mut self, new: &NewDoc) -> Result<(), StoreError> {
        self.execute(
            "INSERT INTO doc (doc, extract_print, mime, status, reason, pages, lang) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) \
             ON CONFLICT (doc) DO UPDATE SET extract_print = ?2, mime = ?3, status = ?4, reason = ?5, pages = ?6, lang = ?7, \
             piece = NULL, sanitize_print = NULL, chars = 0, title = NULL, hidden = '{}', chunk_print = NULL, summary = NULL",
            &[&new.doc.as_bytes(), &new.extract_print, &new.mime, &new.status, &new.reason, &new.pages, &new.lang],
        )
    }

    /// Forgets pieces that are no longer on the disk, so that they are made again.
    pub fn forget_lost_pieces(&mut self) -> Result<(), StoreError> {
        let (_, wanted, _) = self.counts()?; // a piece's name says whose it is: each document has its own
        // As many as there should be: nothing but a hand from outside takes one away, and a failed sweep only adds.
        if self.piece_files == wanted {
            return Ok(());
        }
        for row in self.docs_where("piece IS NOT NULL", &[])? {
            let lost = row.piece.as_ref().is_some_and(|piece| !self.layout.pieces().join(piece).exists());
            if lost {
                self.execute("UPDATE doc SET piece = NULL, sanitize_print = NULL WHERE ord = ?1", &[&row.ord])?;
            }
        }
        Ok(())
    }

    /// Keeps what sanitize made of a document; its windows are to be cut again.
    pub fn put_sanitized(
        &mut self,
        ord: u32,
        print: &str,
        piece: &str,
        chars: u64,
        title: Option<&str>,
        hidden: &BTreeMap<String, u64>,
    ) -> Result<(), StoreError> {
        let hidden = json(hidden);
        self.execute(
            "UPDATE doc SET sanitize_print = ?2, piece = ?3, chars = ?4, title = ?5, hidden = ?6, chunk_print = NULL, summary = NULL \
             WHERE ord = ?1",
            &[&ord, &print, &piece, &chars.cast_signed(), &title, &hidden],
        )
    }

    /// Replaces a document's windows; its vectors are to be made again.
    pub fn put_chunks(&mut self, ord: u32, print: &str, chunks: &[ChunkRow]) -> Result<(), StoreError> {
        self.execute("DELETE FROM chunk WHERE doc = ?1", &[&ord])?;
        for chunk in chunks {
            self.execute(
                "INSERT INTO chunk (doc, idx, start, end, print) VALUES (?1, ?2, ?3, ?4, ?5)",
                &[&ord, &chunk.index, &chunk.start.cast_signed(), &chunk.end.cast_signed(), &chunk.print],
            )?;
        }
        let count = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
        self.execute(
            "UPDATE doc SET chunk_print = ?2, chunks = ?3, model = NULL WHERE ord = ?1",
            &[&ord, &print, &count],
        )
    }

    /// Notes that the index holds a document's vectors of `model`.
    pub fn put_embedded(&mut self, ord: u32, model: &str) -> Result<(), StoreError> {
        self.execute("UPDATE doc SET model = ?2 WHERE ord = ?1", &[&ord, &model])
    }

    /// Keeps a document's summary.
    pub fn put_summary(&mut self, ord: u32, summary: &str) -> Result<(), StoreError> {
        self.execute("UPDATE doc SET summary = ?2 WHERE ord = ?1", &[&ord, &summary])
    }

    /// Forgets a document and its windows.
    pub fn remove_doc(&mut self, ord: u32) -> Result<(), StoreError> {
        self.execute("DELETE FROM chunk WHERE doc = ?1", &[&ord])?;
        self.execute("DELETE FROM doc WHERE ord = ?1", &[&ord])
    }

    /// What the card of a path was made of, where it has one.
    pub fn card_print(&self, root: &str, path: &str) -> Result<Option<i64>, StoreError> {
        self.rows
            .prepare_cached("SELECT card_print FROM path WHERE root = ?1 AND path = ?2 AND card IS NOT NULL")
            .and_then(|mut query| query.query_row([root, path], |row| row.get(0)).optional())
            .map_err(failed(&self.rows_path))
    }

    /// Keeps the card of a path, the sanitized path it is found under, and a print of what it was made of.
    pub fn put_card(&mut self, root: &str, path: &str, shown: &str, card: &str, print: i64) -> Result<(), StoreError> {
        self.execute(
            "UPDATE path SET shown = ?3, card = ?4, card_print = ?5 WHERE root = ?1 AND path = ?2",
            &[&root, &path, &shown, &card, &print],
        )
    }

    /// Windows with the same print as one that is to be embedded, in documents that have vectors of `model`.
    pub fn chunks_like(&self, print: i64, model: &str) -> Result<Vec<(u32, ChunkRow)>, StoreError> {
        self.all(
            "SELECT doc.ord, idx, start, end, print FROM chunk JOIN doc ON doc.ord = chunk.doc WHERE print = ?1 AND model = ?2 LIMIT 4",
            &[&print, &model],
            |row| {
                let (start, end) = (row.get::<_, i64>(2)?.cast_unsigned(), row.get::<_, i64>(3)?.cast_unsigned());
                Ok((row.get(0)?, ChunkRow { index: row.get(1)?, start, end, print: row.get(4)? }))
            },
        )
    }

    /// Documents whose windows were cut from a text that is no longer theirs, and were not cut again.
    pub fn docs_cut_from_old_text(&self) -> Result<Vec<DocRow>, StoreError> {
        self.docs_where("chunks > 0 AND chunk_print IS NULL", &[])
    }

    /// Forgets a document's windows; they are cut again by the next chunk.
    pub fn forget_chunks(&mut self, ord: u32) -> Result<(), StoreError> {
        self.execute("DELETE FROM chunk WHERE doc = ?1", &[&ord])?;
        self.execute("UPDATE doc SET chunks = 0, chunk_print = NULL, model = NULL WHERE ord = ?1", &[&ord])
    }

    /// The document of this number.
    pub fn doc_by_ord(&self, ord: u32) -> Result<Option<DocRow>, StoreError> {
        Ok(self.docs_where("ord = ?1", &[&ord])?.pop())
    }

    /// Replaces every folder card: (sanitized path, root, card).
    pub fn put_dirs(&mut self, dirs: &[(String, String, String)]) -> Result<(), StoreError> {
        self.execute("DELETE FROM dir", &[])?;
        for (shown, root, card) in dirs {
            self.execute("INSERT OR REPLACE INTO dir (shown, root, card) VALUES (?1, ?2, ?3)", &[shown, root, card])?;
        }
        Ok(())
    }

    /// Every file card, by sanitized path: the lines of `catalog/files.jsonl`.
    pub fn file_cards(&self) -> Result<Vec<String>, StoreError> {
        self.all(FILE_CARDS, &[], |row| row.get(0))
    }

    /// Every folder card, by sanitized path: the lines of `catalog/dirs.jsonl`.
    pub fn dir_cards(&self) -> Result<Vec<String>, StoreError> {
        self.all(DIR_CARDS, &[], |row| row.get(0))
    }

    /// Notes that texts or bundles are about to be written that no generation holds yet.
    pub fn mark_dirty(&self) -> Result<(), StoreError> {
        let path = self.layout.dirty();
        if path.exists() { Ok(()) } else { files::replace(&path, b"", PRIVATE_FILE).map_err(StoreError::io(&path)) }
    }

    /// The sanitized texts, for threads that write them.
    pub fn pieces(&self) -> Pieces {
        Pieces::new(self.layout.pieces())
    }

    /// Reads a piece whole.
    pub fn read_piece(&self, name: &str) -> Result<String, StoreError> {
        self.pieces().read(name)
    }

    /// Reads the beginning of a piece: at most `bytes` bytes, never half a character.
    pub fn read_piece_head(&self, name: &str, bytes: usize) -> Result<String, StoreError> {
        self.pieces().read_head(name, bytes)
    }

    /// Makes this generation the current one: everything it needs is durable, then one rename. `None`: nothing changed.
    ///
    /// The index folder must be finished before.
    pub fn commit(mut self) -> Result<Option<Committed>, StoreError> {
        let Some(name) = self.name.clone() else { return Ok(None) };
        self.rows.execute_batch("COMMIT").map_err(failed(&self.rows_path))?;
        let closed = std::mem::replace(&mut self.rows, Connection::open_in_memory().map_err(failed(&self.rows_path))?);
        closed.close().map_err(|(_, source)| StoreError::Rows { path: self.rows_path.clone(), source })?;
        let index = self.layout.index();
        let folder = fs::File::open(&index).map_err(StoreError::io(&index))?;
        // The pieces, the index and the rows were written without waiting for the disk; this waits for all of them once.
        rustix::fs::syncfs(&folder).map_err(io::Error::from).map_err(StoreError::io(&index))?;
        let pointer = self.layout.current();
        files::replace(&pointer, format!("{name}\n").as_bytes(), PRIVATE_FILE).map_err(StoreError::io(&pointer))?;
        self.name = None; // it is no draft any more: dropping must not remove it
        Committed::open(&self.layout, name).map(Some)
    }

    fn all<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: fn(&rusqlite::Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let run = || -> rusqlite::Result<Vec<T>> { self.rows.prepare_cached(sql)?.query_map(values, read)?.collect() };
        run().map_err(failed(&self.rows_path))
    }

    fn docs_where(&self, condition: &str, values: &[&dyn ToSql]) -> Result<Vec<DocRow>, StoreError> {
        let sql = format!("SELECT {} FROM doc WHERE {condition}", DocRow::COLUMNS);
        let mut docs = self.all(&sql, values, DocRow::read)?;
        docs.sort_unstable_by_key(|row| row.known.doc);
        Ok(docs)
    }

    /// Sorted here and not by SQL: an index in that order makes SQLite jump to each row of the table, matching or not,
    /// which was most of the time of a sweep with nothing to do.
    fn paths_where(&self, condition: &str, values: &[&dyn ToSql]) -> Result<Vec<PathRow>, StoreError> {
        let sql = format!("SELECT {} FROM path WHERE {condition}", PathRow::COLUMNS);
        let mut paths = self.all(&sql, values, PathRow::read)?;
        paths.sort_by(|a, b| (&a.root, &a.path).cmp(&(&b.root, &b.path)));
        Ok(paths)
    }

    fn execute(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<(), StoreError> {
        self.write()?;
        let run = || self.rows.prepare_cached(sql)?.execute(values);
        run().map(|_| ()).map_err(failed(&self.rows_path))
    }

    /// Makes the new generation's folder with a copy of the rows, at the first write.
    fn write(&mut self) -> Result<(), StoreError> {
        if self.name.is_some() {
            return Ok(());
        }
        let name = format!("gen-{}", self.number);
        let folder = self.layout.generation(&name);
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(StoreError::io(&folder))?; // left by a crash; `current` names another
        }
        files::create_private_dir(&folder).map_err(StoreError::io(&folder))?;
        self.name = Some(name);
        let path = folder.join("rows.db");
        if self.base.is_some() {
            fs::copy(&self.rows_path, &path).map_err(StoreError::io(&path))?;
        } else {
            files::write_new(&path, b"", PRIVATE_FILE).map_err(StoreError::io(&path))?;
        }
        self.rows = open_for_writing(&path, self.base.is_none()).map_err(failed(&path))?;
        self.rows_path = path;
        // Whatever is written now, the cards are to be looked at again.
        self.rows.execute("DELETE FROM meta WHERE key = 'catalog'", []).map_err(failed(&self.rows_path))?;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        // Where the commit failed after its rename, the pointer names this generation: then it stays.
        if served::current(&self.layout).is_ok_and(|current| current.as_deref() != Some(name)) {
            let _ = fs::remove_dir_all(self.layout.generation(name));
        }
    }
}

impl Committed {
    fn open(layout: &Layout, name: String) -> Result<Self, StoreError> {
        let rows_path = layout.generation(&name).join("rows.db");
        let rows = served::open_immutable(&rows_path).map_err(failed(&rows_path))?;
        Ok(Self { layout: layout.clone(), name, rows, rows_path })
    }

    /// The current generation, where its JSONL files were not written to the end (a crash came between).
    pub fn unexported(layout: &Layout) -> Result<Option<Self>, StoreError> {
        let Some(current) = Self::current(layout)? else { return Ok(None) };
        let done = fs::read_to_string(layout.exported()).is_ok_and(|text| text.trim_end() == current.name);
        Ok(if done { None } else { Some(current) })
    }

    /// The current generation, if there is one.
    pub fn current(layout: &Layout) -> Result<Option<Self>, StoreError> {
        let name = served::current(layout)?.filter(|name| layout.generation(name).join("rows.db").exists());
        name.map(|name| Self::open(layout, name)).transpose()
    }

    /// A value kept beside the rows.
    pub fn meta(&self, key: &str) -> Result<Option<String>, StoreError> {
        rows::meta(&self.rows, key).map_err(failed(&self.rows_path))
    }

    /// The generation's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Every document id that is part of the generation.
    pub fn docs(&self) -> Result<HashSet<DocId>, StoreError> {
        let run = || -> rusqlite::Result<HashSet<DocId>> {
            let mut query = self.rows.prepare("SELECT doc FROM doc")?;
            query.query_map([], |row| row.get(0).map(DocId::from_bytes))?.collect()
        };
        run().map_err(failed(&self.rows_path))
    }

    /// The paths of every document, as (doc, path), in order.
    pub fn doc_paths(&self) -> Result<Vec<(DocId, String)>, StoreError> {
        let run = || -> rusqlite::Result<Vec<(DocId, String)>> {
            let mut query =
                self.rows.prepare("SELECT doc, path FROM path WHERE doc IS NOT NULL ORDER BY doc, root, path")?;
            query.query_map([], |row| Ok((DocId::from_bytes(row.get(0)?), row.get(1)?)))?.collect()
        };
        run().map_err(failed(&self.rows_path))
    }

    /// Writes `walk.jsonl`, `sanitize/` and `catalog/` from the generation, and removes whatever is no longer part of
    /// it: older generations, pieces, texts. Running it again after a crash gives the same files.
    pub fn export(&self) -> Result<(), StoreError> {
        self.write_lines(
            &self.layout.walk(),
            &format!("SELECT {} FROM path ORDER BY root, path", PathRow::COLUMNS),
            |row| PathRow::read(row).map(|row| walk_line(&row)),
        )?;
        self.write_lines(
            &self.layout.sanitize().join("index.jsonl"),
            &format!("SELECT {} FROM doc WHERE piece IS NOT NULL ORDER BY doc", DocRow::COLUMNS),
            |row| DocRow::read(row).map(|row| sanitize_line(&row)),
        )?;
        let catalog = self.layout.catalog();
        files::create_private_dir(&catalog).map_err(StoreError::io(&catalog))?;
        self.write_lines(&catalog.join("files.jsonl"), FILE_CARDS, |row| row.get(0))?;
        self.write_lines(&catalog.join("dirs.jsonl"), DIR_CARDS, |row| row.get(0))?;
        self.link_texts()?;
        remove_other_generations(&self.layout, Some(&self.name))
    }

    /// Notes that every file made from the generation is written.
    pub fn mark_exported(&self) -> Result<(), StoreError> {
        let path = self.layout.exported();
        files::replace(&path, format!("{}\n", self.name).as_bytes(), PRIVATE_FILE).map_err(StoreError::io(&path))?;
        match fs::remove_file(self.layout.dirty()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::Io { path: self.layout.dirty(), source: error })
            }
            _ => Ok(()),
        }
    }

    fn write_lines(
        &self,
        path: &Path,
        sql: &str,
        line: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<String>,
    ) -> Result<(), StoreError> {
        let mut broken = None;
        let written = files::replace_with(path, PRIVATE_FILE, |file| {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            let mut write_all = || -> rusqlite::Result<io::Result<()>> {
                let mut query = self.rows.prepare(sql)?;
                let mut found = query.query([])?;
                while let Some(row) = found.next()? {
                    if let Err(error) = writeln!(out, "{}", line(row)?) {
                        return Ok(Err(error));
                    }
                }
                Ok(out.flush())
            };
            write_all().unwrap_or_else(|error| {
                broken = Some(error);
                Err(io::Error::other("the rows can't be read"))
            })
        });
        match broken {
            Some(source) => Err(StoreError::Rows { path: self.rows_path.clone(), source }),
            None => written.map_err(StoreError::io(path)),
        }
    }

    /// `sanitize/<doc>.txt` for every document, as a second name of its piece; what belongs to none is removed.
    fn link_texts(&self) -> Result<(), StoreError> {
        let run = || -> rusqlite::Result<Vec<(DocId, String)>> {
            let mut query = self.rows.prepare("SELECT doc, piece FROM doc WHERE piece IS NOT NULL")?;
            query.query_map([], |row| Ok((DocId::from_bytes(row.get(0)?), row.get(1)?)))?.collect()
        };
        let live = run().map_err(failed(&self.rows_path))?;
        let (pieces, texts) = (self.layout.pieces(), self.layout.sanitize());
        for (doc, piece) in &live {
            link_over(&pieces.join(piece), &texts.join(format!("{doc}.txt")))?;
        }
        let names: HashSet<String> = live.iter().map(|(doc, _)| format!("{doc}.txt")).collect();
        let is_text = |name: &str| name.strip_suffix(".txt").is_some_and(|doc| doc.parse::<DocId>().is_ok());
        keep_only(&texts, |name| !is_text(name) || names.contains(name))?;
        let names: HashSet<&str> = live.iter().map(|(_, piece)| piece.as_str()).collect();
        keep_only(&pieces, |name| names.contains(name)).map(|_| ())
    }
}

/// Removes every file of `dir` that has a name of ours which `keep` refuses. Other names, and folders, stay. Gives how many
/// files stay.
fn keep_only(dir: &Path, keep: impl Fn(&str) -> bool) -> Result<u64, StoreError> {
    let mut kept = 0;
    for entry in fs::read_dir(dir).map_err(StoreError::io(dir))? {
        let entry = entry.map_err(StoreError::io(dir))?;
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && entry.file_name().to_str().is_some_and(|name| !keep(name)) {
            let path = entry.path();
            fs::remove_file(&path).map_err(StoreError::io(&path))?;
        } else {
            kept += u64::from(is_file);
        }
    }
    Ok(kept)
}

/// Gives `piece` the second name `name`, in one step where `name` is there already. Copies where links can't be made.
fn link_over(piece: &Path, name: &Path) -> Result<(), StoreError> {
    use std::os::unix::fs::MetadataExt;
    let there = fs::metadata(name).ok();
    if let (Some(there), Ok(wanted)) = (&there, fs::metadata(piece))
        && there.ino() == wanted.ino()
        && there.dev() == wanted.dev()
    {
        return Ok(());
    }
    let temporary = files::temporary_beside(name);
    let made = match fs::hard_link(piece, &temporary) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(error),
        Err(_) => fs::copy(piece, &temporary).map(|_| ()),
    };
    made.and_then(|()| fs::rename(&temporary, name)).map_err(StoreError::io(name))
}

/// A crash in the middle of a replacement leaves the new file under its temporary name.
fn remove_temporaries(dir: &Path, ours: &[&str]) -> Result<(), StoreError> {
    let is_ours = |name: &str| ours.iter().any(|file| files::is_temporary_of(name, file));
    if dir.is_dir() { keep_only(dir, |name| !is_ours(name)).map(|_| ()) } else { Ok(()) }
}

fn remove_other_generations(layout: &Layout, keep: Option<&str>) -> Result<(), StoreError> {
    let index = layout.index();
    for entry in fs::read_dir(&index).map_err(StoreError::io(&index))? {
        let entry = entry.map_err(StoreError::io(&index))?;
        let name = entry.file_name();
        if let Some(name) = name.to_str()
            && generation_number(name).is_some()
            && Some(name) != keep
        {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(StoreError::io(&path))?;
        }
    }
    Ok(())
}

fn generation_number(name: &str) -> Option<u64> {
    name.strip_prefix("gen-")?.parse().ok()
}

fn empty_in_memory() -> rusqlite::Result<Connection> {
    let rows = Connection::open_in_memory()?;
    rows.execute_batch(rows::SCHEMA)?;
    Ok(rows)
}

/// Opens the draft's own file. No journal: until the commit nobody reads it, and a crash throws it away. What is deleted is
/// overwritten, so that what left the folder is not left in free pages.
fn open_for_writing(path: &Path, fresh: bool) -> rusqlite::Result<Connection> {
    let rows = Connection::open(path)?;
    rows.execute_batch("PRAGMA secure_delete = ON; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -65536;")?;
    rows.set_prepared_statement_cache_capacity(64);
    if fresh {
        rows.execute_batch(rows::SCHEMA)?;
        rows.pragma_update(None, "user_version", rows::SCHEMA_VERSION)?;
    }
    rows.execute_batch("BEGIN")?;
    Ok(rows)
}

fn walk_line(row: &PathRow) -> String {
    #[derive(serde::Serialize)]
    struct Line<'a> {
        path: &'a str,
        root: &'a str,
        bytes: u64,
        mtime: String,
        inode: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        doc: Option<DocId>,
        status: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<&'a str>,
    }
    let mtime = jiff::Timestamp::from_nanosecond(row.mtime_ns.into()).unwrap_or_default();
    json(&Line {
        path: &row.path,
        root: &row.root,
        bytes: row.bytes,
        mtime: rfc3339_millis(mtime),
        inode: row.inode,
        doc: row.doc,
        status: row.status.as_str(),
        reason: row.reason.as_deref(),
    })
}

fn sanitize_line(row: &DocRow) -> String {
    #[derive(serde::Serialize)]
    struct Line<'a> {
        doc: DocId,
        chars: u64,
        hidden: &'a BTreeMap<String, u64>,
        rules: Option<&'a str>,
    }
    json(&Line { doc: row.known.doc, chars: row.chars, hidden: &row.hidden, rules: row.sanitize_print.as_deref() })
}

/// JSON of plain data: strings, numbers and maps with string keys, which can't fail.
fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> StoreError + '_ {
    |source| StoreError::Rows { path: path.to_owned(), source }
}
