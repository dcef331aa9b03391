//! The extract store: every document's plaintext, and what the readers said of it.
//!
//! `extract/<doc>.txt` is the text; `extract/index.jsonl` has a row a document. While a sweep goes on rows are only
//! appended, so that work done before a crash is found again; after the commit the file is written whole.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bastion_host::files::{self, PRIVATE_FILE};
use bastion_host::jsonl;
use bastion_store::DocId;
use serde::{Deserialize, Serialize};

/// What the readers said of one document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractRow {
    /// The document.
    pub doc: DocId,
    /// Media type, where it was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime: Option<String>,
    /// The reader that made the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reader: Option<String>,
    /// Length of the text in characters.
    pub chars: u64,
    /// Length of the text in bytes.
    pub bytes: u64,
    /// Pages, where the format has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<u32>,
    /// The document's own title: plaintext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// ISO 639-1 code of the language, where it is clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lang: Option<String>,
    /// `ok`, `empty`, `skipped` or `failed`.
    pub status: String,
    /// Why skipped or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Which readers made it; another print means: read again.
    pub readers: String,
    /// The paths with these bytes, relative to their root.
    #[serde(default)]
    pub paths: Vec<String>,
}

/// The plaintext of one agent.
#[derive(Debug)]
pub struct ExtractStore {
    dir: PathBuf,
    rows: HashMap<DocId, ExtractRow>,
    journal: Option<fs::File>,
}

impl ExtractStore {
    /// Opens the store below `dir`. Its rows are read only when asked for.
    pub fn open(dir: &Path) -> io::Result<Self> {
        files::create_private_dir(dir)?;
        Ok(Self { dir: dir.to_owned(), rows: HashMap::new(), journal: None })
    }

    /// Reads what earlier sweeps, whole or broken off, left.
    pub fn load(&mut self) -> io::Result<()> {
        if self.rows.is_empty() {
            let rows: Vec<ExtractRow> = jsonl::read(&self.index())?;
            self.rows = rows.into_iter().map(|row| (row.doc, row)).collect();
        }
        Ok(())
    }

    /// The row of `doc`, where these very `readers` made it and its text is whole on disk. Needs [`Self::load`].
    pub fn row(&self, doc: &DocId, readers: &str) -> Option<&ExtractRow> {
        let row = self.rows.get(doc).filter(|row| row.readers == readers)?;
        let whole = row.status != "ok" || fs::metadata(self.text_path(doc)).is_ok_and(|meta| meta.len() == row.bytes);
        whole.then_some(row)
    }

    /// The row of `doc`, whichever readers made it. Needs [`Self::load`].
    pub fn any_row(&self, doc: &DocId) -> Option<&ExtractRow> {
        self.rows.get(doc)
    }

    /// Writes a document's text (only of status `ok`); part of what [`Self::put`] needs, callable from any thread.
    pub fn write_text(&self, doc: &DocId, text: &str) -> io::Result<()> {
        let path = self.text_path(doc);
        let temporary = files::temporary_beside(&path);
        let written =
            files::write_new(&temporary, text.as_bytes(), PRIVATE_FILE).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Appends a row; its text, where it has one, was written before.
    pub fn put(&mut self, row: ExtractRow) -> io::Result<()> {
        if row.status != "ok" {
            remove_if_there(&self.text_path(&row.doc))?;
        }
        let journal = match &mut self.journal {
            Some(file) => file,
            None => self.journal.insert(open_journal(&self.dir.join("index.jsonl"))?),
        };
        let mut line = serde_json::to_vec(&row)?;
        line.push(b'\n');
        journal.write_all(&line)?;
        self.rows.insert(row.doc, row);
        Ok(())
    }

    /// The plaintext of `doc`.
    pub fn text(&self, doc: &DocId) -> io::Result<String> {
        fs::read_to_string(self.text_path(doc))
    }

    /// Writes the index whole, with the paths of each document, and removes whatever belongs to no document of `live`.
    pub fn finish(&mut self, live: &HashSet<DocId>, paths: &[(DocId, String)]) -> io::Result<()> {
        self.load()?;
        self.journal = None;
        self.rows.retain(|doc, _| live.contains(doc));
        let mut by_doc: HashMap<DocId, Vec<String>> = HashMap::new();
        for (doc, path) in paths {
            by_doc.entry(*doc).or_default().push(path.clone());
        }
        let mut rows: Vec<&mut ExtractRow> = self.rows.values_mut().collect();
        rows.sort_by_key(|row| row.doc);
        for row in &mut rows {
            row.paths = by_doc.remove(&row.doc).unwrap_or_default();
        }
        files::replace_with(&self.dir.join("index.jsonl"), PRIVATE_FILE, |file| {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            for row in &rows {
                serde_json::to_writer(&mut out, row)?;
                out.write_all(b"\n")?;
            }
            out.flush()
        })?;
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let doc = |name: &str| name.strip_suffix(".txt").and_then(|doc| doc.parse().ok());
            let leftover = |name: &str| name.starts_with('.') && name.ends_with(".tmp");
            let goes =
                name.to_str().is_some_and(|name| leftover(name) || doc(name).is_some_and(|doc| !live.contains(&doc)));
            if goes && entry.file_type()?.is_file() {
                remove_if_there(&entry.path())?;
            }
        }
        Ok(())
    }

    fn index(&self) -> PathBuf {
        self.dir.join("index.jsonl")
    }

    fn text_path(&self, doc: &DocId) -> PathBuf {
        self.dir.join(format!("{doc}.txt"))
    }
}

/// Opens the index for appending, with a torn last line closed.
fn open_journal(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE_FILE).open(path)?;
    if jsonl::ends_torn(&mut file)? {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: u8, text: &str) -> ExtractRow {
        ExtractRow {
            doc: DocId::from_bytes([n; 32]),
            mime: Some("text/plain".into()),
            reader: Some("text".into()),
            chars: text.chars().count() as u64,
            bytes: text.len() as u64,
            pages: None,
            title: None,
            lang: None,
            status: "ok".into(),
            reason: None,
            readers: "r1".into(),
            paths: Vec::new(),
        }
    }

    #[test]
    fn rows_appended_before_a_crash_are_found_again_and_a_short_text_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = ExtractStore::open(dir.path()).unwrap();
        for (n, text) in [(1, "one"), (2, "two")] {
            store.write_text(&DocId::from_bytes([n; 32]), text).unwrap();
            store.put(row(n, text)).unwrap();
        }
        drop(store); // no finish: the sweep was killed
        fs::write(dir.path().join(format!("{}.txt", DocId::from_bytes([2; 32]))), "t").unwrap();
        let mut again = ExtractStore::open(dir.path()).unwrap();
        again.load().unwrap();
        assert!(again.row(&DocId::from_bytes([1; 32]), "r1").is_some());
        assert!(again.row(&DocId::from_bytes([1; 32]), "r2").is_none());
        assert!(again.row(&DocId::from_bytes([2; 32]), "r1").is_none());
    }

    #[test]
    fn finish_keeps_what_lives_and_removes_the_rest() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = ExtractStore::open(dir.path()).unwrap();
        for n in [1, 2] {
            store.write_text(&DocId::from_bytes([n; 32]), "text").unwrap();
            store.put(row(n, "text")).unwrap();
        }
        fs::write(dir.path().join(".x.tmp"), "left over").unwrap();
        let one = DocId::from_bytes([1; 32]);
        store.finish(&HashSet::from([one]), &[(one, "a.txt".into()), (one, "b.txt".into())]).unwrap();
        let rows: Vec<ExtractRow> = jsonl::read(&dir.path().join("index.jsonl")).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].paths, ["a.txt", "b.txt"]);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
