//! One generation of the index: a folder with full text (`text/`), vectors (`vectors.i8`) and the name of its format
//! (`format`), which is written last. A folder without it was never finished and is not opened.

mod best;
mod error;
mod searcher;
mod writer;

pub(crate) use best::{Best, Filter, Scored};
pub use error::{IndexError, SearchError};
pub use searcher::{Hit, Searcher};
pub use writer::IndexWriter;

/// Names the format of the files and the rules by which texts become terms. A generation of another fingerprint is
/// neither opened nor built upon: everything is added afresh.
pub const INDEX_FINGERPRINT: &str = "index-1 terms-1 tantivy-0.27 vectors-1";

const FORMAT: &str = "format";
const TEXT: &str = "text";

/// The content of the file `format`.
fn format(has_vectors: bool) -> String {
    format!("{INDEX_FINGERPRINT}\n{}\n", if has_vectors { "vectors" } else { "no vectors" })
}

/// Refuses a folder that is no finished generation of this version; says whether a file of vectors belongs to it.
fn check_format(dir: &std::path::Path) -> Result<bool, IndexError> {
    let path = dir.join(FORMAT);
    let bytes = match bastion_host::files::read_capped(&path, 4_096) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(IndexError::Unfinished { dir: dir.to_owned() });
        }
        Err(source) => return Err(IndexError::Io { path, source }),
    };
    let found = String::from_utf8_lossy(&bytes);
    let has_vectors = if found == format(true) {
        true
    } else if found == format(false) {
        false
    } else {
        let found = found.lines().next().unwrap_or_default().to_owned();
        return Err(IndexError::OtherFormat { dir: dir.to_owned(), found });
    };
    if has_vectors && !dir.join(crate::vectors::FILE).exists() {
        return Err(IndexError::Damaged { path: dir.join(crate::vectors::FILE), what: "it is missing" });
    }
    Ok(has_vectors)
}
