//! Writing a generation's vectors: those of the one before that stay, and the new ones.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::reader::map;
use super::{FILE, Vectors, file, quantize};
use crate::fulltext::link;
use crate::index::IndexError;
use crate::key::{ChunkKey, ModelTag};

/// New rows wait here, in the order they came, until the writer finishes: memory holds their keys alone.
const NEW_ROWS: &str = "vectors.new";

pub(crate) struct VectorsWriter {
    dir: PathBuf,
    previous_file: Option<PathBuf>,
    previous: Option<Vectors>,
    model: Option<ModelTag>,
    /// Documents of the previous generation that do not stay.
    removed: HashSet<u32>,
    new: NewRows,
}

#[derive(Default)]
struct NewRows {
    file: Option<BufWriter<File>>,
    written: usize,
    /// By packed key: place in the file and factor.
    by_key: BTreeMap<u64, (usize, f32)>,
}

impl VectorsWriter {
    pub(crate) fn create(dir: &Path, previous: Option<&Path>) -> Result<Self, IndexError> {
        let vectors = previous.map(|previous| Vectors::open(previous, FILE)).transpose()?.flatten();
        let model = vectors.as_ref().map(|vectors| vectors.model().clone());
        let previous_file = previous.map(|previous| previous.join(FILE));
        Ok(Self {
            dir: dir.to_owned(),
            previous_file,
            previous: vectors,
            model,
            removed: HashSet::new(),
            new: NewRows::default(),
        })
    }

    pub(crate) fn set_model(&mut self, model: Option<&ModelTag>) {
        if self.model.as_ref() != model {
            self.previous = self.previous.take().filter(|previous| Some(previous.model()) == model);
            self.new = NewRows::default();
            self.model = model.cloned();
        }
    }

    pub(crate) fn remove(&mut self, doc: u32) {
        self.removed.insert(doc);
        let all = ChunkKey { doc, index: 0 }.packed()..=ChunkKey { doc, index: u32::MAX }.packed();
        let keys: Vec<u64> = self.new.by_key.range(all).map(|(key, _)| *key).collect();
        for key in keys {
            self.new.by_key.remove(&key);
        }
    }

    pub(crate) fn has(&self, key: ChunkKey) -> bool {
        self.new.by_key.contains_key(&key.packed())
            || !self.removed.contains(&key.doc)
                && self.previous.as_ref().is_some_and(|previous| previous.find(key).is_some())
    }

    pub(crate) fn add(&mut self, key: ChunkKey, vector: &[f32]) -> Result<(), IndexError> {
        let model = self.model.as_ref().ok_or(IndexError::NoModel)?;
        if vector.len() != model.dims || vector.len() > file::MAX_DIMS || vector.is_empty() {
            return Err(IndexError::Dims { model: model.name.clone(), expected: model.dims, found: vector.len() });
        }
        let row = quantize::quantize(vector).ok_or_else(|| IndexError::NotFinite { model: model.name.clone() })?;
        let bytes: Vec<u8> = row.values.iter().map(|value| value.cast_unsigned()).collect();
        self.put(key, row.scale, &bytes)
    }

    pub(crate) fn copy(&mut self, from: ChunkKey, to: ChunkKey) -> Result<bool, IndexError> {
        if let Some((place, scale)) = self.new.by_key.get(&from.packed()).copied() {
            // Two keys may share a row until the file is written.
            self.new.by_key.insert(to.packed(), (place, scale));
            return Ok(true);
        }
        let found = self
            .previous
            .as_ref()
            .and_then(|previous| previous.find(from).map(|row| (previous.scale(row), previous.row(row).to_vec())));
        let Some((scale, row)) = found else { return Ok(false) };
        self.put(to, scale, &row)?;
        Ok(true)
    }

    fn put(&mut self, key: ChunkKey, scale: f32, row: &[u8]) -> Result<(), IndexError> {
        let path = self.dir.join(NEW_ROWS);
        let io = |source| IndexError::Io { path: path.clone(), source };
        let file = match &mut self.new.file {
            Some(file) => file,
            empty => {
                let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path).map_err(io)?;
                empty.insert(BufWriter::with_capacity(1 << 18, file))
            }
        };
        file.write_all(row).map_err(io)?;
        self.new.by_key.insert(key.packed(), (self.new.written, scale));
        self.new.written += 1;
        Ok(())
    }

    /// Writes the file and makes it durable. Without vectors there is none.
    pub(crate) fn finish(mut self, path: &Path) -> Result<(), IndexError> {
        let io = |source| IndexError::Io { path: path.to_owned(), source };
        if let Some(mut rows) = self.new.file.take() {
            rows.flush().map_err(io)?;
        }
        if self.model.is_some() {
            self.write(path).map_err(io)?;
        }
        match std::fs::remove_file(self.dir.join(NEW_ROWS)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(error)),
            _ => Ok(()),
        }
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        let Some(model) = &self.model else { return Ok(()) };
        let kept = self.kept();
        if kept.len() == self.previous.as_ref().map_or(0, Vectors::len) && self.new.by_key.is_empty() {
            match (&self.previous, &self.previous_file) {
                (Some(_), Some(file)) => return link(file, path),
                _ => return Ok(()),
            }
        }
        let new_rows = map(&self.dir, NEW_ROWS).map_err(std::io::Error::other)?;
        let new_rows = new_rows.as_deref().unwrap_or_default();
        let mut rows: Vec<(u64, f32, Source)> = kept;
        rows.extend(self.new.by_key.iter().map(|(key, (place, scale))| (*key, *scale, Source::New(*place))));
        rows.sort_unstable_by_key(|(key, _, _)| *key);
        let bytes = |source: &Source| match (source, &self.previous) {
            (Source::Previous(row), Some(previous)) => previous.row(*row),
            (Source::New(place), _) => &new_rows[place * model.dims..(place + 1) * model.dims],
            (Source::Previous(_), None) => &[],
        };
        bastion_host::files::replace_with(path, bastion_host::files::PRIVATE_FILE, |file| {
            file::write(file, model, rows.len(), || {
                rows.iter().map(|(key, scale, source)| (*key, *scale, bytes(source)))
            })
        })
    }

    /// Rows of the previous generation that stay and are not replaced.
    fn kept(&self) -> Vec<(u64, f32, Source)> {
        let Some(previous) = &self.previous else { return Vec::new() };
        let stays = |key: ChunkKey| !self.removed.contains(&key.doc) && !self.new.by_key.contains_key(&key.packed());
        let rows = previous.keys().iter().enumerate().filter(|(_, key)| stays(ChunkKey::unpacked(**key)));
        rows.map(|(row, key)| (*key, previous.scale(row), Source::Previous(row))).collect()
    }
}

#[derive(Clone, Copy)]
enum Source {
    Previous(usize),
    New(usize),
}
