//! What was asked, by whom, and what went out: `<out>/serve.audit.jsonl`, one line an answer.
//!
//! The writer keeps three promises. A line is one `write`, whole or taken back. It is in the file before its answer
//! goes out. And a file that was deleted, replaced or cut under us is never passed over: the answer at hand is
//! refused, and that refusal is the first line of the file that is made anew. The query is in no line, only its hash.

mod summary;
mod writer;

pub use summary::{Summary, SummaryRow, summarize};
pub(crate) use writer::{AuditError, AuditLog};

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The file's name in the output folder; rotated ones are `serve.audit.<time>.jsonl` beside it.
pub const AUDIT_FILE: &str = "serve.audit.jsonl";

/// Where the audit of the agent with the output folder `out` lies.
pub fn audit_path(out: &Path) -> PathBuf {
    out.join(AUDIT_FILE)
}

/// One line (docs/serve.md gives each field's type and meaning).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// When the answer was ready, RFC 3339, UTC, milliseconds.
    pub ts: String,
    /// The peer's one common name; null where its certificate has none, or several.
    pub cn: Option<String>,
    /// `search`, `read_range`, `catalog`, `catalog_dirs`, `status` or `health`; null where no route was named.
    pub op: Option<String>,
    /// The route without its query; null where the request had no readable head.
    pub path: Option<String>,
    /// The HTTP status.
    pub status: u16,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// Of a search: the first 16 hex digits of the query's SHA-256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<String>,
    /// Of a search: how many windows went out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hits: Option<u64>,
    /// Of a `read_range`: the first 16 hex digits of the document's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doc: Option<String>,
    /// Of a `read_range`: how many characters went out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars: Option<u64>,
    /// Of a catalog: the size of the page that was asked for, as it was held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// Of a catalog: how many cards there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Why the manifest was obeyed although nothing was verified (`--allow-unsigned`); absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bypassed: Option<String>,
}

/// What of a query may be written down: the first 16 hex digits of its SHA-256.
pub fn query_mark(query: &str) -> String {
    Sha256::digest(query.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
