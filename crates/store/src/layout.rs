//! Where things lie in an agent's output folder.

use std::path::{Path, PathBuf};

/// The paths below one agent's output folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    out: PathBuf,
}

impl Layout {
    /// The layout of the output folder `out`.
    pub fn new(out: impl Into<PathBuf>) -> Self {
        Self { out: out.into() }
    }

    /// The output folder itself.
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// The walk map.
    pub fn walk(&self) -> PathBuf {
        self.out.join("walk.jsonl")
    }

    /// Plaintext: never served.
    pub fn extract(&self) -> PathBuf {
        self.out.join("extract")
    }

    /// Sanitized text as the spec names it, one file a document.
    pub fn sanitize(&self) -> PathBuf {
        self.out.join("sanitize")
    }

    /// The immutable pieces behind `sanitize/<doc>.txt`.
    pub fn pieces(&self) -> PathBuf {
        self.sanitize().join("pieces")
    }

    /// Generations and the pointer to the current one.
    pub fn index(&self) -> PathBuf {
        self.out.join("index")
    }

    /// The pointer: one line, the name of the current generation.
    pub fn current(&self) -> PathBuf {
        self.index().join("current")
    }

    /// The name of the generation whose JSONL files were written last.
    pub fn exported(&self) -> PathBuf {
        self.index().join("exported")
    }

    /// There while a run has written texts or bundles that no generation holds yet: if the run ends without a commit,
    /// the next one removes what nothing refers to.
    pub fn dirty(&self) -> PathBuf {
        self.index().join("dirty")
    }

    /// One generation's folder.
    pub fn generation(&self, name: &str) -> PathBuf {
        self.index().join(name)
    }

    /// The cards as JSONL.
    pub fn catalog(&self) -> PathBuf {
        self.out.join("catalog")
    }

    /// Sealed bundles.
    pub fn seal(&self) -> PathBuf {
        self.out.join("seal")
    }
}
