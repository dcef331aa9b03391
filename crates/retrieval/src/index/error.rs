//! What can go wrong with an index, whose fault it is, and what mends it.

use std::io;
use std::path::PathBuf;

use tantivy::TantivyError;

/// Making or opening a generation failed.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The folder for a new generation is there already: the caller's mistake.
    #[error("{dir} is there already; a generation of the index needs a new folder")]
    Exists {
        /// The folder.
        dir: PathBuf,
    },
    /// The folder is missing or its making was interrupted.
    #[error("{dir} holds no finished index; run a sweep to build it")]
    Unfinished {
        /// The folder.
        dir: PathBuf,
    },
    /// Written by another version.
    #[error("the index in {dir} has the format {found:?}, this version writes {expected:?}; the next sweep builds it afresh", expected = super::INDEX_FINGERPRINT)]
    OtherFormat {
        /// The folder.
        dir: PathBuf,
        /// The format named there.
        found: String,
    },
    /// A file is not what was written: cut short, changed, or from another place.
    #[error("{path} is damaged ({what}); remove the index and run a sweep to build it afresh")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The machine could not read or write.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The full-text library could not read or write its files.
    #[error("the full text in {dir} can't be read or written: {source}")]
    Text {
        /// The folder.
        dir: PathBuf,
        /// The library's answer.
        source: TantivyError,
    },
    /// A vector was given without naming its model first: the caller's mistake.
    #[error("a vector was added before its model was named")]
    NoModel,
    /// A vector that is not of the model's size.
    #[error("a vector of {found} numbers, but the model {model} makes {expected}")]
    Dims {
        /// The model's name.
        model: String,
        /// What it makes.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// A vector with an infinite number or none at all in a place: the model's fault.
    #[error("the model {model} made a vector with a number that is not finite")]
    NotFinite {
        /// The model's name.
        model: String,
    },
}

/// A search failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The question was embedded by another model than the index was.
    #[error(
        "the question's vector has {found} numbers, those of the index (model {model}) have {expected}; embed with the same model, or run a sweep"
    )]
    Dims {
        /// The index's model.
        model: String,
        /// Numbers in its vectors.
        expected: usize,
        /// Numbers in the question's.
        found: usize,
    },
    /// The question's vector has an infinite number, or one that is none: the model's fault.
    #[error("the question's vector has a number that is not finite")]
    NotFinite,
    /// The full-text library could not read its files.
    #[error("the full text can't be read: {0}")]
    Text(#[from] TantivyError),
}
