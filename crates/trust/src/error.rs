//! Why something was refused: one type per family of operations, each naming its subject.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// The file is not a manifest: what is wrong, and where (both counted from 1, the column in characters).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct MalformedError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong and what would be right.
    pub what: String,
}

/// Which check of the gate failed. The order is the order of the checks (manifest.md §4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefusalCode {
    /// The file can't be read or is no manifest.
    Malformed,
    /// There is no signature.
    Unsigned,
    /// The signature is of a kind this program does not know.
    UnknownAlg,
    /// There is no readable CA root to trust.
    NoRoot,
    /// The signer's certificate can't be read.
    CertUnreadable,
    /// The certificate's subject has no common name, or several.
    CnCount,
    /// The common name has characters that no name has.
    CnInvalid,
    /// The common name is not the manifest's `owner.host`.
    CnMismatch,
    /// No chain of valid signatures and CA rights reaches a root.
    NotChained,
    /// A certificate of the chain, the root included, has ended.
    Expired,
    /// A certificate of the chain, the root included, has not begun.
    NotYetValid,
    /// The CA took a certificate of the chain back.
    Revoked,
    /// The certificate's key is not P-256.
    WrongKey,
    /// The signature is not one of this payload under this key.
    BadSignature,
    /// This machine accepted a higher serial before, or one where now is none.
    RolledBack,
    /// This machine accepted another manifest with the same serial.
    SerialReused,
    /// The floor (what this machine accepted before) can't be read or written.
    FloorUnusable,
    /// The clock is more than a day behind the latest time that this machine saw.
    Clock,
}

impl RefusalCode {
    /// Every code, in the order of the checks.
    pub const ALL: [Self; 18] = [
        Self::Malformed,
        Self::Unsigned,
        Self::UnknownAlg,
        Self::NoRoot,
        Self::CertUnreadable,
        Self::CnCount,
        Self::CnInvalid,
        Self::CnMismatch,
        Self::NotChained,
        Self::Expired,
        Self::NotYetValid,
        Self::Revoked,
        Self::WrongKey,
        Self::BadSignature,
        Self::RolledBack,
        Self::SerialReused,
        Self::FloorUnusable,
        Self::Clock,
    ];

    /// The code as it stands in logs and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unsigned => "unsigned",
            Self::UnknownAlg => "unknown_alg",
            Self::NoRoot => "no_root",
            Self::CertUnreadable => "cert_unreadable",
            Self::CnCount => "cn_count",
            Self::CnInvalid => "cn_invalid",
            Self::CnMismatch => "cn_mismatch",
            Self::NotChained => "not_chained",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Revoked => "revoked",
            Self::WrongKey => "wrong_key",
            Self::BadSignature => "bad_signature",
            Self::RolledBack => "rolled_back",
            Self::SerialReused => "serial_reused",
            Self::FloorUnusable => "floor_unusable",
            Self::Clock => "clock",
        }
    }
}

impl fmt::Display for RefusalCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The gate's No: which check failed, and in words what it saw and how to mend it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{code}: {detail}")]
#[non_exhaustive]
pub struct Refused {
    /// The check that failed.
    pub code: RefusalCode,
    /// What the gate saw and how to mend it. For the owner; never for one who may not read.
    pub detail: String,
    /// The manifest's path as it was given.
    pub path: PathBuf,
    /// The agent's id, where the file parsed.
    pub manifest_id: Option<String>,
    /// The digest of the payload, where the file parsed.
    pub manifest_digest: Option<String>,
}

/// One failed check before it is known which manifest or peer it is about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {detail}")]
pub struct Fault {
    /// The check that failed.
    pub code: RefusalCode,
    /// What was seen and how to mend it.
    pub detail: String,
}

impl Fault {
    pub(crate) fn new(code: RefusalCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

/// A file of ours or the owner's could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn at(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self { path, source }
    }
}
