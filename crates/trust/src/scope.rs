//! Is this path in scope? One implementation for the walker, which prepares, and the endpoint, which serves.
//!
//! Globs have gitignore syntax (<https://git-scm.com/docs/gitignore>) and are matched on the `/`-separated path
//! below the root. Without `include` everything is in scope but [`BUILTIN_EXCLUDES`]; `exclude` adds to those and
//! wins over everything; an `include` that names an excluded thing brings it back. A root's own `include` stands
//! in place of the manifest's; excludes add up. `.agent` is never in scope, at any depth, whatever the globs say.
//!
//! What "names" means: a path segment of the include glob that is not all wildcards matches the excluded name.
//! `*.md` or `**` do not bring `node_modules/` back, `node_modules/` and `vendor/node_modules/**/*.md` do.

use std::collections::HashMap;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::manifest::Manifest;

/// The folder that holds an agent's own files; never in scope.
pub const AGENT_DIR: &str = ".agent";

/// What is left out unless an `include` names it. One file or folder name each; a `/` at the end: folders only.
pub const BUILTIN_EXCLUDES: &[&str] = &[
    // version control
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".bzr",
    "_darcs",
    ".pijul",
    "CVS/",
    ".fslckout",
    // package folders
    "node_modules/",
    "bower_components/",
    "jspm_packages/",
    "site-packages/",
    ".venv/",
    "venv/",
    ".virtualenv/",
    ".tox/",
    ".nox/",
    ".eggs/",
    "*.egg-info/",
    ".cargo/",
    ".rustup/",
    ".npm/",
    ".nvm/",
    ".yarn/",
    ".pnpm-store/",
    ".bundle/",
    ".gradle/",
    ".m2/",
    ".ivy2/",
    ".nuget/",
    ".stack/",
    ".cabal/",
    ".opam/",
    ".conda/",
    "Pods/",
    "Carthage/",
    // caches
    ".cache/",
    "__pycache__/",
    ".mypy_cache/",
    ".pytest_cache/",
    ".ruff_cache/",
    ".ipynb_checkpoints/",
    ".parcel-cache/",
    ".sass-cache/",
    ".eslintcache",
    ".next/",
    ".nuxt/",
    ".svelte-kit/",
    ".turbo/",
    ".terraform/",
    ".direnv/",
    "CachedData/",
    ".thumbnails/",
    "Thumbs.db",
    "ehthumbs.db",
    "desktop.ini",
    ".DS_Store",
    "._*",
    "__MACOSX/",
    ".Spotlight-V100/",
    ".fseventsd/",
    ".TemporaryItems/",
    ".DocumentRevisions-V100/",
    ".Trash/",
    ".Trashes/",
    ".Trash-*/",
    "$RECYCLE.BIN/",
    "System Volume Information/",
    "lost+found/",
    ".stversions/",
    ".stfolder/",
    ".dropbox.cache/",
    ".sync/",
    // build output
    "build/",
    "_build/",
    ".build/",
    "dist/",
    "target/",
    "cmake-build-*/",
    "DerivedData/",
    "*.o",
    "*.obj",
    "*.pyc",
    "*.pyo",
    "*.class",
    "*.rlib",
    "*.rmeta",
    // lock and temp files
    "*.lock",
    "*.lck",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "go.sum",
    "~$*",
    ".~lock.*#",
    ".~*",
    "*.tmp",
    "*.temp",
    "*.swp",
    "*.swo",
    "*~",
    ".#*",
    "\\#*#",
    "*.part",
    "*.partial",
    "*.crdownload",
    "*.download/",
    ".sync-conflict-*",
    ".nfs*",
    ".fuse_hidden*",
];

/// Which paths of which root are in scope.
#[derive(Debug, Clone)]
pub struct Scope {
    builtin: Gitignore,
    roots: HashMap<String, RootScope>,
}

#[derive(Debug, Clone)]
struct RootScope {
    include: Vec<Pattern>,
    /// The manifest's and the root's own: neither takes back what the other excludes.
    exclude: [Gitignore; 2],
}

/// One glob, whole and by its path segments.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    whole: Gitignore,
    negated: bool,
    /// The glob has a `/` before its end, so it is matched from the root on.
    anchored: bool,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone)]
enum Segment {
    /// `**`: any number of folders.
    Any,
    Name {
        glob: GlobMatcher,
        literal: bool,
    },
}

impl Scope {
    /// The scope that `manifest` describes. Globs that don't compile never get here: reading the manifest refuses
    /// them; were there one nonetheless, its root has nothing in scope.
    pub(crate) fn of(manifest: &Manifest) -> Self {
        let roots = manifest.roots.iter().filter_map(|root| {
            let include = if root.include.is_empty() { &manifest.include } else { &root.include };
            let include = include.iter().map(|glob| Pattern::new(glob)).collect::<Result<_, _>>().ok()?;
            let exclude = [&manifest.exclude, &root.exclude];
            let exclude = exclude.map(|globs| matcher(globs.iter().map(String::as_str)));
            let [Ok(of_all), Ok(own)] = exclude else { return None };
            let exclude = [of_all, own];
            Some((root.path.clone(), RootScope { include, exclude }))
        });
        Self {
            builtin: matcher(BUILTIN_EXCLUDES.iter().copied()).unwrap_or_else(|_| Gitignore::empty()),
            roots: roots.collect(),
        }
    }

    /// Whether `path` (`/`-separated, below the root, no `.` or `..` in it) of the root labelled `root` is in scope.
    /// For a folder: whether all that lies in it would be, were nothing excluded further down.
    pub fn contains(&self, root: &str, path: &str, is_dir: bool) -> bool {
        let (Some(root), Some(names)) = (self.roots.get(root), names(path)) else { return false };
        if root.shuts_out(path, &names, is_dir) {
            return false;
        }
        let naming = root.included_by(path, is_dir);
        if !root.include.is_empty() && naming.is_none() {
            return false;
        }
        let naming = naming.unwrap_or_default();
        self.builtin_hits(&names, is_dir).all(|hit| naming.iter().any(|pattern| pattern.names(names[hit])))
    }

    /// Whether anything below the folder `path` can be in scope; where not, the walker need not enter it. The root
    /// itself is the empty path.
    pub fn may_hold(&self, root: &str, path: &str) -> bool {
        let Some(root) = self.roots.get(root) else { return false };
        if path.is_empty() {
            return true;
        }
        let Some(names) = names(path) else { return false };
        if root.shuts_out(path, &names, true) {
            return false;
        }
        let positive = || root.include.iter().filter(|pattern| !pattern.negated);
        if !root.include.is_empty() && !positive().any(|pattern| pattern.may_reach(&names)) {
            return false;
        }
        self.builtin_hits(&names, true).all(|hit| positive().any(|pattern| pattern.names(names[hit])))
    }

    /// The labels of the roots that the scope knows.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.roots.keys().map(String::as_str)
    }

    /// Which names of the path the built-in excludes hit, as positions in it.
    fn builtin_hits(&self, names: &[&str], is_dir: bool) -> impl Iterator<Item = usize> {
        let dirs = names.len() - usize::from(!is_dir);
        names
            .iter()
            .enumerate()
            .filter(move |(i, name)| self.builtin.matched(Path::new(name), *i < dirs).is_ignore())
            .map(|(i, _)| i)
    }
}

impl RootScope {
    /// Whether the path is out whatever is included. An `.agent` is one in any case: some file systems say so.
    fn shuts_out(&self, path: &str, names: &[&str], is_dir: bool) -> bool {
        names.iter().any(|name| name.eq_ignore_ascii_case(AGENT_DIR))
            || self.exclude.iter().any(|globs| is_ignored(globs, path, is_dir))
    }

    /// The include globs that hold for the path, where the path is included: some glob matches it or a folder above
    /// it, and no later `!` glob takes the same or a nearer one out again.
    fn included_by(&self, path: &str, is_dir: bool) -> Option<Vec<&Pattern>> {
        let mut holding = Vec::new();
        for (i, ancestor) in ancestors(path).enumerate() {
            let last = self.include.iter().rev().find(|pattern| pattern.matches(ancestor, i > 0 || is_dir));
            match last {
                Some(pattern) if pattern.negated => return if holding.is_empty() { None } else { Some(holding) },
                Some(_) => holding.extend(
                    self.include
                        .iter()
                        .filter(|pattern| !pattern.negated && pattern.matches(ancestor, i > 0 || is_dir)),
                ),
                None => {}
            }
        }
        if holding.is_empty() { None } else { Some(holding) }
    }
}

impl Pattern {
    /// `glob` compiled, or why it is none.
    pub(crate) fn new(glob: &str) -> Result<Self, String> {
        if glob.chars().any(char::is_control) {
            return Err("a glob has a control character in it".to_owned());
        }
        if glob.trim().is_empty() || glob.starts_with('#') {
            return Err(format!("`{glob}` matches nothing (write `\\#…` for a name that begins with `#`)"));
        }
        let (negated, body) = match glob.strip_prefix('!') {
            Some(body) => (true, body),
            None => (false, glob),
        };
        let whole = matcher([body])?;
        if whole.len() != 1 {
            return Err(format!("`{glob}` matches nothing"));
        }
        let body = body.trim_end();
        let path = body.strip_suffix('/').unwrap_or(body);
        let anchored = path.contains('/');
        let path = path.strip_prefix('/').unwrap_or(path);
        if path.is_empty() || path.split('/').any(|name| matches!(name, "" | "." | "..")) {
            return Err(format!("`{glob}` matches nothing: globs are paths below the root"));
        }
        let segments = path.split('/').map(Segment::new).collect::<Result<_, _>>()?;
        Ok(Self { whole, negated, anchored, segments })
    }

    fn matches(&self, path: &str, is_dir: bool) -> bool {
        matches!(self.whole.matched(Path::new(path), is_dir), Match::Ignore(_) | Match::Whitelist(_))
    }

    /// Whether one of the glob's segments names this file or folder, other than by wildcards alone.
    fn names(&self, name: &str) -> bool {
        self.segments
            .iter()
            .any(|segment| matches!(segment, Segment::Name { glob, literal: true } if glob.is_match(name)))
    }

    /// Whether the glob can match the folder, something above it or something below it.
    fn may_reach(&self, names: &[&str]) -> bool {
        if !self.anchored {
            return true;
        }
        for (segment, name) in self.segments.iter().zip(names) {
            match segment {
                Segment::Any => return true,
                Segment::Name { glob, .. } if !glob.is_match(name) => return false,
                Segment::Name { .. } => {}
            }
        }
        true
    }
}

impl Segment {
    fn new(text: &str) -> Result<Self, String> {
        if text == "**" {
            return Ok(Self::Any);
        }
        let glob = GlobBuilder::new(text)
            .literal_separator(true)
            .backslash_escape(true)
            .build()
            .map_err(|error| error.to_string())?
            .compile_matcher();
        let mut literal = false;
        let mut class = false;
        for c in text.chars() {
            match c {
                '[' => class = true,
                ']' => class = false,
                '*' | '?' | '\\' => {}
                _ => literal |= !class,
            }
        }
        Ok(Self::Name { glob, literal })
    }
}

/// The names of a path below a root, if it is one.
fn names(path: &str) -> Option<Vec<&str>> {
    let names: Vec<&str> = path.split('/').collect();
    (!names.iter().any(|name| matches!(*name, "" | "." | ".."))).then_some(names)
}

/// The path, the folder it lies in, and so on up.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| path.rfind('/').map(|at| &path[..at]))
}

/// Whether the path or a folder above it is ignored, judged from the top as git does: what lies in an excluded
/// folder can't be taken out of it by `!`.
fn is_ignored(globs: &Gitignore, path: &str, is_dir: bool) -> bool {
    if globs.is_empty() {
        return false;
    }
    ancestors(path).enumerate().any(|(i, ancestor)| globs.matched(Path::new(ancestor), i > 0 || is_dir).is_ignore())
}

fn matcher<'g>(globs: impl IntoIterator<Item = &'g str>) -> Result<Gitignore, String> {
    let mut builder = GitignoreBuilder::new("");
    for glob in globs {
        builder.add_line(None, glob).map_err(|error| error.to_string())?;
    }
    builder.build().map_err(|error| error.to_string())
}
