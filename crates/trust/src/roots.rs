//! Where on this machine are the manifest's roots? Labels as written become absolute paths.
//!
//! A relative root is read from the manifest's own folder and may not leave the folder that holds `.agent/` (or the
//! manifest's own folder, where that is not an `.agent`), neither by `..` nor through a symbolic link: a folder that
//! is copied takes its agent along, and never points outside.

use std::path::{Component, Path, PathBuf};

use crate::error::MalformedError;
use crate::manifest::{Manifest, Root};
use crate::scope::AGENT_DIR;

/// A root and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedRoot {
    /// The path as the manifest has it; names the root in the stores.
    pub label: String,
    /// The absolute path, without symbolic links as far as it is there. The folder itself may be missing.
    pub path: PathBuf,
    /// Whether other file systems mounted below may be entered.
    pub other_mounts: bool,
}

/// The roots of the manifest at `manifest_path` (canonical).
pub(crate) fn resolve(manifest: &Manifest, manifest_path: &Path) -> Result<Vec<ResolvedRoot>, MalformedError> {
    let base = manifest_path.parent().unwrap_or_else(|| Path::new("/"));
    let limit =
        if base.file_name().is_some_and(|name| name == AGENT_DIR) { base.parent().unwrap_or(base) } else { base };
    let mut resolved: Vec<ResolvedRoot> = Vec::with_capacity(manifest.roots.len());
    for root in &manifest.roots {
        let path = locate(root, base, limit)?;
        if resolved.iter().any(|other| other.path == path) {
            return Err(root.place.error(format!("`{}` is a folder that another root names already", root.path)));
        }
        resolved.push(ResolvedRoot { label: root.path.clone(), path, other_mounts: root.other_mounts });
    }
    Ok(resolved)
}

fn locate(root: &Root, base: &Path, limit: &Path) -> Result<PathBuf, MalformedError> {
    let written = Path::new(&root.path);
    if written.is_absolute() {
        return Ok(settle(&normal(written)));
    }
    let leaves = || {
        root.place.error(format!(
            "the relative root `{}` leaves {}; write an absolute path for a folder elsewhere",
            root.path,
            limit.display()
        ))
    };
    let lexical = normal(&base.join(written));
    if !lexical.starts_with(limit) {
        return Err(leaves());
    }
    let path = settle(&lexical);
    if path.starts_with(limit) { Ok(path) } else { Err(leaves()) }
}

/// The path without `.` and `..`, by its text alone.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}

/// The path with the symbolic links of the part that is there resolved.
fn settle(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let Ok(real) = ancestor.canonicalize() {
            let rest = path.strip_prefix(ancestor).unwrap_or_else(|_| Path::new(""));
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}
