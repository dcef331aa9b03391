//! One generation of the index: a folder with full text (`text/`), vectors (`vectors.i8`) and the name of its format
//! (`format`), which is written last. A folder without it was never finished and is not opened.

mod best;
mod error;
mod searcher;
mod writer;

use std::io;
use std::path::Path;

pub(crate) use best::{Best, Filter, Scored};
pub use error::{IndexError, SearchError};
pub use searcher::{Hit, Searcher};
pub use writer::IndexWriter;

use crate::fulltext::OpenFailure;
use crate::vectors;

/// Names the format of the files and the rules by which texts become terms. A generation of another fingerprint is
/// neither opened nor built upon: everything is added afresh.
pub const INDEX_FINGERPRINT: &str = "index-1 terms-1 tantivy-0.27 vectors-1";

const FORMAT: &str = "format";
const TEXT: &str = "text";
/// The largest list of segments or files that we read, in bytes.
const MAX_META: u64 = 16 << 20;

/// What the file `format` says: the formats, whether vectors belong to the generation, and the checksum of the two small
/// files by which tantivy finds and checks all others.
fn format(dir: &Path, has_vectors: bool) -> Result<String, IndexError> {
    let mut checksum = crc32fast::Hasher::new();
    for name in ["meta.json", ".managed.json"] {
        let path = dir.join(TEXT).join(name);
        match bastion_host::files::read_capped(&path, MAX_META) {
            Ok(bytes) => checksum.update(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(IndexError::Damaged { path, what: "it is missing" });
            }
            Err(source) => return Err(IndexError::Io { path, source }),
        }
    }
    let vectors = if has_vectors { "vectors" } else { "no vectors" };
    Ok(format!("{INDEX_FINGERPRINT}\n{vectors}\n{:08x}\n", checksum.finalize()))
}

/// Refuses a folder that is no finished generation of this version.
fn check_format(dir: &Path) -> Result<(), IndexError> {
    let path = dir.join(FORMAT);
    let found = match bastion_host::files::read_capped(&path, 4_096) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(IndexError::Unfinished { dir: dir.to_owned() });
        }
        Err(source) => return Err(IndexError::Io { path, source }),
    };
    let first = found.lines().next().unwrap_or_default();
    if first != INDEX_FINGERPRINT {
        return Err(IndexError::OtherFormat { dir: dir.to_owned(), found: first.to_owned() });
    }
    let has_vectors = dir.join(vectors::FILE).exists();
    if found == format(dir, has_vectors)? {
        Ok(())
    } else if found == format(dir, true)? {
        Err(IndexError::Damaged { path: dir.join(vectors::FILE), what: "it is missing" })
    } else {
        Err(IndexError::Damaged { path: dir.join(TEXT), what: "its list of files is another" })
    }
}

/// Puts a failure of the full text into words; `text` is its folder.
fn text_failure(text: &Path, failure: OpenFailure) -> IndexError {
    match failure {
        OpenFailure::Tantivy(source) => IndexError::Text { dir: text.to_owned(), source },
        OpenFailure::Checksum(file) => IndexError::Damaged { path: text.join(file), what: "its checksum is another" },
        OpenFailure::Unfinished => IndexError::Damaged { path: text.to_owned(), what: "it is not as it was finished" },
    }
}
