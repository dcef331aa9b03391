//! Where does a path of the manifest lead? `repo://x`, `agent://x`, relative, absolute, and `~/` in credential files.
//!
//! What becomes a part of the payload is a regular file, read once and never through a link of its own name.

use std::path::{Component, Path, PathBuf};

use bastion_host::files::read_capped;

use crate::error::LaunchError;

/// A file of the payload may be this many bytes long.
pub(crate) const MAX_SOURCE_BYTES: u64 = 16 << 20;

/// The folders that paths start from.
#[derive(Debug, Clone)]
pub(crate) struct Bases {
    /// The agent's own folder.
    pub(crate) agent: PathBuf,
    /// The repository's root, where there is one.
    pub(crate) repo: Option<PathBuf>,
    /// The user's home.
    pub(crate) home: Option<PathBuf>,
}

impl Bases {
    /// Where `path` leads.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, LaunchError> {
        let missing = |what: &str| LaunchError::refused(format!("the path `{}`", path.escape_debug()), what);
        if let Some(rest) = path.strip_prefix("repo://") {
            let repo = self.repo.as_ref().ok_or_else(|| {
                missing("starts at the repository, and no folder above the agent has `.git`; give --repo")
            })?;
            return Ok(tidy(&repo.join(below(rest).ok_or_else(|| missing("is absolute behind `repo://`"))?)));
        }
        if let Some(rest) = path.strip_prefix("agent://") {
            return Ok(tidy(&self.agent.join(below(rest).ok_or_else(|| missing("is absolute behind `agent://`"))?)));
        }
        if path.contains("://") {
            return Err(missing("has an unknown prefix; there are repo:// and agent://"));
        }
        Ok(tidy(&self.agent.join(path)))
    }

    /// Where a credential file is: as [`Bases::resolve`], and `~/` is the home folder.
    pub(crate) fn credential(&self, path: &str) -> Result<PathBuf, LaunchError> {
        match (path.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => Ok(tidy(&home.join(below(rest).unwrap_or(Path::new(""))))),
            (Some(_), None) => {
                Err(LaunchError::refused(format!("the path `{path}`"), "starts at HOME, which is not set"))
            }
            (None, _) => self.resolve(path),
        }
    }

    /// Whether a path lies in the agent's folder or its repository.
    pub(crate) fn owns(&self, path: &Path) -> bool {
        path.starts_with(&self.agent) || self.repo.as_ref().is_some_and(|repo| path.starts_with(repo))
    }
}

fn below(rest: &str) -> Option<&Path> {
    let path = Path::new(rest);
    path.is_relative().then_some(path)
}

/// The path without `.` components: `agent://.` is the folder itself.
fn tidy(path: &Path) -> PathBuf {
    path.components().filter(|part| !matches!(part, Component::CurDir)).collect()
}

/// Reads a file that becomes a part of the agent, once.
pub(crate) fn read_source(what: &str, path: &Path) -> Result<Vec<u8>, LaunchError> {
    let refused = |why: String| LaunchError::refused(format!("{what} {}", path.display()), why);
    let meta = std::fs::symlink_metadata(path).map_err(|error| refused(format!("can't be read: {error}")))?;
    if !meta.is_file() {
        return Err(refused("is no regular file (links are not followed)".to_owned()));
    }
    read_capped(path, MAX_SOURCE_BYTES).map_err(|error| refused(format!("can't be read: {error}")))
}

/// A destination in the payload: relative, of plain components.
pub(crate) fn destination(path: &str) -> Result<PathBuf, LaunchError> {
    let refused = |why| LaunchError::refused(format!("the destination `{}`", path.escape_debug()), why);
    let given = Path::new(path);
    if given.is_absolute() {
        return Err(refused("is absolute; it is a place inside the payload"));
    }
    let mut out = PathBuf::new();
    for part in given.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            _ => return Err(refused("leaves the payload")),
        }
    }
    if out.as_os_str().is_empty() || path.ends_with('/') {
        return Err(refused("names no file"));
    }
    Ok(out)
}

/// The nearest folder of `path` and those above it that has `.git`.
pub(crate) fn repository_of(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok()).map(Path::to_owned)
}

/// Where `PATH` has this program.
pub(crate) fn which(program: &str, path: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs =
        |file: &PathBuf| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    path.split(':').filter(|dir| dir.starts_with('/')).map(|dir| Path::new(dir).join(program)).find(runs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bases() -> Bases {
        Bases { agent: "/repo/agents/a".into(), repo: Some("/repo".into()), home: Some("/home/me".into()) }
    }

    #[test]
    fn each_prefix_leads_to_its_base() {
        let to = |path: &str| bases().resolve(path).unwrap().to_string_lossy().into_owned();
        assert_eq!(to("repo://x/y"), "/repo/x/y");
        assert_eq!(to("agent://x"), "/repo/agents/a/x");
        assert_eq!(to("agent://."), "/repo/agents/a");
        assert_eq!(to("./x"), "/repo/agents/a/x");
        assert_eq!(to("../b/x"), "/repo/agents/a/../b/x");
        assert_eq!(to("/etc/x"), "/etc/x");
        assert!(bases().resolve("http://x").is_err());
        assert!(bases().resolve("repo:///etc/passwd").is_err());
        assert!(Bases { repo: None, ..bases() }.resolve("repo://x").is_err());
    }

    #[test]
    fn the_home_folder_is_for_credential_files_only() {
        assert_eq!(bases().credential("~/.codex/auth.json").unwrap(), Path::new("/home/me/.codex/auth.json"));
        assert_eq!(bases().credential("agent://x").unwrap(), Path::new("/repo/agents/a/x"));
        assert_eq!(bases().resolve("~/x").unwrap(), Path::new("/repo/agents/a/~/x"));
        assert!(Bases { home: None, ..bases() }.credential("~/x").is_err());
    }

    #[test]
    fn a_destination_stays_inside() {
        assert_eq!(destination("skills/./a.md").unwrap(), Path::new("skills/a.md"));
        for bad in ["", ".", "..", "/x", "a/../../x", "a/", "a/.."] {
            assert!(destination(bad).is_err(), "{bad}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_destination_leaves_the_payload(path in "[./a-c\\PC]{0,12}") {
            if let Ok(place) = destination(&path) {
                let inside = place.components().all(|part| matches!(part, Component::Normal(_)));
                assert!(inside && place.is_relative() && !place.as_os_str().is_empty(), "{path:?} → {place:?}");
            }
        }
    }

    #[test]
    fn a_source_is_a_regular_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, dir.path().join("link")).unwrap();
        assert_eq!(read_source("skill", &file).unwrap(), b"x");
        for bad in ["link", "missing", "."] {
            assert!(read_source("skill", &dir.path().join(bad)).is_err(), "{bad}");
        }
    }
}
