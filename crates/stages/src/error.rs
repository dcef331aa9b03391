//! Why a stage failed as a whole. What is wrong with one file is a row with a reason, never an error.

use std::io;
use std::path::PathBuf;

use bastion_store::{DocId, StoreError};

use crate::seal::SealError;
use crate::summarize::SummarizeError;

/// Why a stage failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageError {
    /// A root is gone or can't be looked into. Nothing is removed: it may only be unmounted.
    #[error(
        "the root {root} can't be read: {source}. Nothing was removed; mount it, or take it out of the manifest and sign again"
    )]
    Root {
        /// The root as the manifest writes it.
        root: String,
        /// What the system said.
        source: io::Error,
    },
    /// A root that had files has none.
    #[error(
        "the root {root} is empty and had files before. Nothing was removed; if that is meant, run the sweep once with --accept-empty"
    )]
    EmptyRoot {
        /// The root as the manifest writes it.
        root: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The vault failed.
    #[error(transparent)]
    Vault(#[from] bastion_private::VaultError),
    /// The machine can't run caged readers.
    #[error(transparent)]
    Readers(#[from] bastion_extract::PoolError),
    /// The index failed.
    #[error(transparent)]
    Index {
        /// What the index said.
        #[from]
        source: bastion_retrieval::IndexError,
    },
    /// The embedding model failed.
    #[error(transparent)]
    Embed(#[from] bastion_retrieval::embed::EmbedError),
    /// Sealing failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The summary service failed.
    #[error(transparent)]
    Summarize(#[from] SummarizeError),
    /// The rules refuse a text; no document of this sweep goes on.
    #[error("document {doc}: {source}")]
    Rules {
        /// The document.
        doc: DocId,
        /// What the rules said.
        source: bastion_sanitize::SanitizeError,
    },
    /// A text that was extracted is gone.
    #[error(
        "the extracted text of {doc} can't be read: {source}. Remove the output folder's extract/index.jsonl, and the next sweep reads the file again"
    )]
    LostText {
        /// The document.
        doc: DocId,
        /// What the system said.
        source: io::Error,
    },
    /// A document was read and has no sanitized text of its current bytes.
    #[error("document {doc} was read and has no sanitized text; no card is made of it")]
    Unsanitized {
        /// The document.
        doc: DocId,
    },
    /// A file of ours can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The output folder is one of the folders that are prepared.
    #[error("{out} is a root of this manifest; what is prepared from it must lie elsewhere: name another --out")]
    OutIsRoot {
        /// The folder.
        out: PathBuf,
    },
    /// The output folder holds files of others.
    #[error("{out} holds `{entry}`, which is not ours; name an --out that is new or empty")]
    ForeignOut {
        /// The folder.
        out: PathBuf,
        /// What is in it.
        entry: String,
    },
    /// A stage was asked for that the owner did not sign.
    #[error("the manifest does not list the stage `{stage}`; add it and sign again")]
    NotInManifest {
        /// The stage.
        stage: bastion_trust::Stage,
    },
    /// The file that says what to leave out can't be obeyed.
    #[error("{path}: {what}; nothing below it was looked at. Mend the file or remove it")]
    AgentIgnore {
        /// The file or its folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The kernel can't open a file beneath a folder without following links.
    #[error("this kernel lacks openat2 (Linux 5.6), without which no file is opened safely")]
    NoOpenBeneath,
    /// The rules broke on a text. The text is not in this message.
    #[error("document {doc}: the rules broke; no document of this sweep goes on. This is a fault of the program")]
    RulesBroke {
        /// The document.
        doc: DocId,
    },
    /// `sterilize` needs services that this version does not have.
    #[error(
        "the stage `sterilize` is not yet part of this version; write `sanitize` in the manifest and sign it again"
    )]
    NotYet,
}

impl StageError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }

    /// Whether the stage stopped by itself to keep something from going on (fail closed).
    pub(crate) fn is_stop(&self) -> bool {
        matches!(
            self,
            Self::Rules { .. }
                | Self::RulesBroke { .. }
                | Self::Unsanitized { .. }
                | Self::Vault(bastion_private::VaultError::Clash { .. })
        )
    }
}
