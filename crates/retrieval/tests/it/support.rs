//! Small indexes to ask.

use std::path::{Path, PathBuf};

use bastion_retrieval::{ChunkKey, Hit, IndexWriter, ModelTag, Searcher};
use tempfile::TempDir;

pub(crate) fn key(doc: u32, index: u32) -> ChunkKey {
    ChunkKey { doc, index }
}

pub(crate) fn model(name: &str, dims: usize) -> ModelTag {
    ModelTag { name: name.to_owned(), dims }
}

/// A folder of generations.
pub(crate) struct Home {
    dir: TempDir,
    made: u32,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), made: 0 }
    }

    /// Makes the next generation from `previous` and finishes it.
    pub(crate) fn generation(&mut self, previous: Option<&Path>, write: impl FnOnce(&mut IndexWriter)) -> PathBuf {
        let dir = self.fresh();
        let mut writer = IndexWriter::create(&dir, previous).unwrap();
        write(&mut writer);
        writer.finish().unwrap();
        dir
    }

    pub(crate) fn fresh(&mut self) -> PathBuf {
        self.made += 1;
        self.dir.path().join(self.made.to_string())
    }
}

/// An index of one window a document.
pub(crate) fn of_texts(texts: &[&str]) -> (Home, Searcher) {
    let mut home = Home::new();
    let dir = home.generation(None, |writer| {
        for (doc, text) in (0..).zip(texts) {
            writer.add(key(doc, 0), Some("en"), text);
        }
    });
    let searcher = Searcher::open(&dir).unwrap();
    (home, searcher)
}

pub(crate) fn ask(searcher: &Searcher, question: &str) -> Vec<Hit> {
    searcher.search(question, None, 50, &|_| true).unwrap()
}

pub(crate) fn docs(hits: &[Hit]) -> Vec<u32> {
    hits.iter().map(|hit| hit.key.doc).collect()
}

/// Every file below `dir` and its bytes.
pub(crate) fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

/// Different every call, the same every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit)).unwrap()
    }

    pub(crate) fn vector(&mut self, dims: usize) -> Vec<f32> {
        (0..dims).map(|_| f32::from(i16::try_from(self.below(2_001)).unwrap() - 1_000) / 1_000.0).collect()
    }

    pub(crate) fn text(&mut self, words: u32) -> String {
        const WORDS: [&str; 24] = [
            "wing",
            "flow",
            "shear",
            "house",
            "houses",
            "running",
            "ran",
            "contract",
            "contracts",
            "invoice",
            "payment",
            "river",
            "bank",
            "engine",
            "engines",
            "heat",
            "plate",
            "layer",
            "boundary",
            "mach",
            "number",
            "supersonic",
            "pressure",
            "the",
        ];
        (0..words).map(|_| WORDS[self.below(24) as usize]).collect::<Vec<_>>().join(" ")
    }
}
