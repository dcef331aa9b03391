//! What did the owner write down? The manifest's fields (manifest.md §1), typed and checked.
//!
//! [`parse`] reads the bytes once. What is verified ([`ParsedManifest::payload`]) and what is obeyed
//! ([`ParsedManifest::manifest`]) come from that same reading, never from a second one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::civil::Date;
use sha2::{Digest, Sha256};

pub use crate::error::MalformedError;
pub use crate::names::AgentId;
use crate::read;
use crate::yaml::{self, Place};

/// A manifest may be this many bytes long.
pub const MAX_MANIFEST_BYTES: usize = 1 << 20;

/// Everything a manifest says, with the defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The format's version, 1.
    pub v: u64,
    /// The agent's name in logs and paths.
    pub id: AgentId,
    /// The common name of the signer's and of the owner's client certificate; a lower-case host name.
    pub owner_host: String,
    /// Folders in scope, at least one.
    pub roots: Vec<Root>,
    /// Globs (gitignore syntax) for every root without an `include` of its own; empty: everything.
    pub include: Vec<String>,
    /// Globs that are never in scope, in any root.
    pub exclude: Vec<String>,
    /// Which stages run, in this order.
    pub stages: Vec<Stage>,
    /// How often a sweep starts.
    pub sweep: Cadence,
    /// The mask: which operations the endpoint offers at all.
    pub ops: Ops,
    /// Who else may read.
    pub grants: Vec<Grant>,
    /// Bounds on what is read.
    pub limits: Limits,
    /// Rises with every signing.
    pub serial: Option<u64>,
    /// The owner's signature over everything else.
    pub signature: Option<Signature>,
}

/// A folder in scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The path as the owner wrote it; also the root's label.
    pub path: String,
    /// Globs for this root; where there are any they stand in place of the manifest's own `include`.
    pub include: Vec<String>,
    /// Globs that are never in scope in this root, besides the manifest's own `exclude`.
    pub exclude: Vec<String>,
    /// Whether other file systems mounted below may be entered.
    pub other_mounts: bool,
    pub(crate) place: Place,
}

/// One step of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the documentation; stages.md has the rest
pub enum Stage {
    Walk,
    Extract,
    Sanitize,
    Sterilize,
    Chunk,
    Embed,
    Catalog,
    Seal,
}

/// How often a sweep starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Cadence {
    QuarterHour,
    Hourly,
    Daily,
    Manual,
}

/// What a peer may ask of the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Op {
    Search,
    ReadRange,
}

/// A set of operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Ops(u8);

/// One other host that may read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The common name of the host's client certificate.
    pub host: String,
    /// What it may ask (the manifest's mask still applies).
    pub ops: Ops,
    /// The last day (UTC) on which it may.
    pub until: Date,
}

/// Bounds on what is read from the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Larger files are skipped. Bytes.
    pub max_file_bytes: u64,
    /// A document's text may be this long. Characters.
    pub max_doc_chars: u64,
    /// A file may take this long to read. Seconds.
    pub extract_seconds: u64,
    /// How many archives in each other are opened; 0: they are listed only.
    pub archive_depth: u32,
}

/// The signature block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// What kind of signature it is.
    pub alg: String,
    /// The certificate's path, read relative to the manifest.
    pub cert: String,
    /// Base64 of the DER signature.
    pub value: String,
}

/// A manifest as it was read once: the typed fields, and the very value they came from.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedManifest {
    manifest: Manifest,
    payload: Vec<u8>,
    digest: String,
}

/// Reads a manifest.
///
/// # Errors
/// What is wrong, with line and column, for anything that manifest.md §1 refuses.
pub fn parse(bytes: &[u8]) -> Result<ParsedManifest, MalformedError> {
    let root = tree(bytes)?;
    from_tree(&root)
}

/// The bytes as a strict YAML tree.
///
/// # Errors
/// Where they are too many, no UTF-8 or no strict YAML.
pub fn tree(bytes: &[u8]) -> Result<yaml::Node, MalformedError> {
    let start = Place { line: 1, column: 1 };
    if bytes.len() > MAX_MANIFEST_BYTES {
        return Err(start.error(format!("the file is larger than {MAX_MANIFEST_BYTES} bytes")));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
        let line = good.matches('\n').count() + 1;
        let column = good.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Place { line, column }.error("not UTF-8")
    })?;
    yaml::read(text)
}

/// The typed manifest and its payload, both from one tree.
pub(crate) fn from_tree(root: &yaml::Node) -> Result<ParsedManifest, MalformedError> {
    let manifest = read::manifest(root)?;
    let mut json = root.to_json();
    if let Some(object) = json.as_object_mut() {
        object.remove("signature");
    }
    let payload = serde_json_canonicalizer::to_vec(&json)
        .map_err(|error| root.error(format!("has no canonical JSON form: {error}")))?;
    let digest = hex(&Sha256::digest(&payload));
    Ok(ParsedManifest { manifest, payload, digest })
}

/// The canonical payload of a manifest's bytes: what is signed (RFC 8785 JSON, no newline at the end).
///
/// # Errors
/// As [`parse`].
pub fn payload(bytes: &[u8]) -> Result<Vec<u8>, MalformedError> {
    Ok(parse(bytes)?.payload)
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl ParsedManifest {
    /// The fields.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The bytes that are signed: the value without `signature`, as RFC 8785 JSON.
    pub fn payload(&self) -> Vec<u8> {
        self.payload.clone()
    }

    /// Lower-case hex SHA-256 of the payload.
    pub fn digest(&self) -> String {
        self.digest.clone()
    }
}

impl Manifest {
    /// The grant of `host`, whether it has ended or not.
    pub fn grant(&self, host: &str) -> Option<&Grant> {
        self.grants.iter().find(|grant| grant.host == host)
    }
}

impl Grant {
    /// Whether the grant still holds at `now`: its `until` is the last day, in UTC.
    pub fn holds_at(&self, now: jiff::Timestamp) -> bool {
        now.to_zoned(jiff::tz::TimeZone::UTC).date() <= self.until
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_file_bytes: 256 << 20, max_doc_chars: 10_000_000, extract_seconds: 30, archive_depth: 0 }
    }
}

impl Stage {
    /// Every stage, in the default order, `sterilize` after `sanitize` whose place it takes.
    pub const ALL: [Self; 8] = [
        Self::Walk,
        Self::Extract,
        Self::Sanitize,
        Self::Sterilize,
        Self::Chunk,
        Self::Embed,
        Self::Catalog,
        Self::Seal,
    ];

    /// The stages of a manifest that names none.
    pub const DEFAULT: [Self; 7] =
        [Self::Walk, Self::Extract, Self::Sanitize, Self::Chunk, Self::Embed, Self::Catalog, Self::Seal];

    /// The stage's name in the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Walk => "walk",
            Self::Extract => "extract",
            Self::Sanitize => "sanitize",
            Self::Sterilize => "sterilize",
            Self::Chunk => "chunk",
            Self::Embed => "embed",
            Self::Catalog => "catalog",
            Self::Seal => "seal",
        }
    }

    /// What must have run before, because this stage reads what it writes.
    pub(crate) fn needs(self) -> &'static [Self] {
        match self {
            Self::Walk => &[],
            Self::Extract => &[Self::Walk],
            Self::Sanitize | Self::Sterilize => &[Self::Extract],
            Self::Chunk | Self::Catalog => &[Self::Sanitize],
            Self::Embed => &[Self::Chunk],
            Self::Seal => &[Self::Chunk, Self::Catalog],
        }
    }
}

impl Cadence {
    /// Every cadence.
    pub const ALL: [Self; 4] = [Self::QuarterHour, Self::Hourly, Self::Daily, Self::Manual];

    /// The cadence's name in the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::QuarterHour => "15m",
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Manual => "manual",
        }
    }

    /// The time between two starts; none for `manual`.
    pub fn period(self) -> Option<Duration> {
        match self {
            Self::QuarterHour => Some(Duration::from_secs(900)),
            Self::Hourly => Some(Duration::from_secs(3_600)),
            Self::Daily => Some(Duration::from_secs(86_400)),
            Self::Manual => None,
        }
    }
}

impl Op {
    /// Every operation.
    pub const ALL: [Self; 2] = [Self::Search, Self::ReadRange];

    /// The operation's name in the manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::ReadRange => "read_range",
        }
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl Ops {
    /// No operation.
    pub const NONE: Self = Self(0);
    /// Every operation.
    pub const ALL: Self = Self(0b11);

    /// Whether `op` is in the set.
    pub fn contains(self, op: Op) -> bool {
        self.0 & op.bit() != 0
    }

    /// The set with `op` in it.
    #[must_use]
    pub fn with(self, op: Op) -> Self {
        Self(self.0 | op.bit())
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The operations of the set, `search` first.
    pub fn iter(self) -> impl Iterator<Item = Op> {
        Op::ALL.into_iter().filter(move |op| self.contains(*op))
    }
}

impl FromIterator<Op> for Ops {
    fn from_iter<I: IntoIterator<Item = Op>>(ops: I) -> Self {
        ops.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The text names nothing of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is none of {known}")]
pub struct UnknownName {
    name: String,
    known: String,
}

macro_rules! named {
    ($($kind:ty),*) => {$(
        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl FromStr for $kind {
            type Err = UnknownName;
            fn from_str(text: &str) -> Result<Self, UnknownName> {
                Self::ALL.into_iter().find(|item| item.as_str() == text).ok_or_else(|| UnknownName {
                    name: text.to_owned(),
                    known: Self::ALL.map(Self::as_str).join(", "),
                })
            }
        }
    )*};
}
named!(Stage, Cadence, Op);
