//! Which files are in scope, and which of them changed since the last sweep?
//!
//! Nothing is opened here: names, kinds and times only. A folder that can't be read, a root that is gone, or a file
//! that lies elsewhere now never makes what was known of it disappear; only a file that is provably not there does.

use std::collections::HashSet;
use std::fs::{self, FileType};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bastion_private::Vault;
use bastion_store::{Draft, PathRow, PathStatus};
use bastion_trust::{Admitted, ResolvedRoot, Scope};
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};

use crate::open::Stat;
use crate::{Settings, StageError, Tally, names};

/// Files that leave out what an owner does not want prepared, written like a `.gitignore`.
const AGENT_IGNORE: &str = ".agentignore";
/// The largest of them that is read, in bytes.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// One thing that was found below a root.
#[derive(Debug)]
struct Found {
    path: String,
    stat: Stat,
    /// Why it is not to be read, where it is not.
    skip: Option<&'static str>,
}

/// All that one root holds.
#[derive(Debug, Default)]
struct Listing {
    found: Vec<Found>,
    /// Folders that could not be read: what was known below them is kept.
    unread: Vec<String>,
    /// An `.agentignore` that can't be obeyed, and why: then nothing is prepared.
    fault: Option<(PathBuf, String)>,
}

/// Compares the roots with what the store knows, and notes what is new, changed and gone.
pub(crate) fn walk(
    admitted: &Admitted,
    settings: &Settings,
    draft: &mut Draft,
    vault: &Vault,
) -> Result<Tally, StageError> {
    let own = own_folders(settings, draft.layout().out(), vault);
    let scope = Arc::new(admitted.scope().clone());
    let (listed, known) = std::thread::scope(|threads| {
        let lister = threads.spawn(|| {
            admitted
                .roots()
                .iter()
                .map(|root| list(root, &scope, &own, settings.workers))
                .collect::<Result<Vec<_>, _>>()
        });
        let known = draft.paths();
        (lister.join(), known)
    });
    let listed = listed.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    let known = known?;
    let mut tally = Tally::default();
    let mut changes = Changes::default();
    for (root, listing) in admitted.roots().iter().zip(listed) {
        let before: Vec<&PathRow> = known.iter().filter(|row| row.root == root.label).collect();
        // A scope that was narrowed to nothing is meant; a root that lost everything in scope is suspect.
        let had = || before.iter().any(|row| row.doc.is_some() && scope.contains(&row.root, &row.path, false));
        if listing.found.is_empty() && listing.unread.is_empty() && had() && !settings.accept_empty {
            return Err(StageError::EmptyRoot { root: root.label.clone() });
        }
        compare(&root.label, listing, &before, &mut tally, &mut changes);
    }
    let labels: HashSet<&str> = admitted.roots().iter().map(|root| root.label.as_str()).collect();
    for row in known.iter().filter(|row| !labels.contains(row.root.as_str())) {
        tally.removed += 1;
        changes.remove.push((row.root.clone(), row.path.clone()));
    }
    for row in &changes.put {
        draft.put_path(row)?;
    }
    for (root, path) in &changes.remove {
        draft.remove_path(root, path)?;
    }
    Ok(tally)
}

/// What the walk will write.
#[derive(Debug, Default)]
struct Changes {
    put: Vec<PathRow>,
    remove: Vec<(String, String)>,
}

/// Walks two lists in path order at once: what is there, and what was known.
fn compare(root: &str, listing: Listing, before: &[&PathRow], tally: &mut Tally, changes: &mut Changes) {
    let Listing { mut found, unread, fault: _ } = listing;
    found.sort_unstable_by(|a, b| (&a.path, a.skip.is_some()).cmp(&(&b.path, b.skip.is_some())));
    found.dedup_by(|a, b| a.path == b.path);
    let mut before = before.iter().copied().peekable();
    for item in found {
        while let Some(gone) = before.next_if(|row| row.path < item.path) {
            leave(gone, &unread, tally, changes);
        }
        let old = before.next_if(|row| row.path == item.path);
        tally.seen += 1;
        if let Some(reason) = item.skip {
            tally.skip(reason);
        }
        note(root, item, old, tally, changes);
    }
    for gone in before {
        leave(gone, &unread, tally, changes);
    }
}

fn note(root: &str, item: Found, old: Option<&PathRow>, tally: &mut Tally, changes: &mut Changes) {
    let row = PathRow {
        root: root.to_owned(),
        path: item.path,
        bytes: item.stat.bytes,
        mtime_ns: item.stat.mtime_ns,
        ctime_ns: item.stat.ctime_ns,
        inode: item.stat.inode,
        // What lies elsewhere for now keeps its text; what became a link or a pipe is another thing.
        doc: old.and_then(|row| row.doc).filter(|_| matches!(item.skip, None | Some("placeholder"))),
        status: if item.skip.is_some() { PathStatus::Skipped } else { PathStatus::Pending },
        reason: item.skip.map(str::to_owned),
    };
    let Some(old) = old else {
        if item.skip.is_none() {
            tally.new += 1;
        }
        changes.put.push(row);
        return;
    };
    let same = (old.bytes, old.mtime_ns, old.ctime_ns, old.inode) == (row.bytes, row.mtime_ns, row.ctime_ns, row.inode);
    match item.skip {
        // What was skipped for a reason that only reading can show to be over is tried again by extract.
        None if same => tally.unchanged += 1,
        None => {
            tally.changed += 1;
            changes.put.push(row);
        }
        Some(_) if same && old.reason == row.reason && old.status == row.status => {}
        Some(_) => changes.put.push(row),
    }
}

/// A known path that was not found: gone, unless its folder could not be looked into.
fn leave(row: &PathRow, unread: &[String], tally: &mut Tally, changes: &mut Changes) {
    let hidden = unread.iter().any(|folder| {
        folder.is_empty()
            || row.path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    if hidden {
        tally.seen += 1;
        tally.skip("permission");
        if row.status != PathStatus::Skipped {
            changes.put.push(PathRow { status: PathStatus::Skipped, reason: Some("permission".into()), ..row.clone() });
        }
    } else {
        tally.removed += 1;
        changes.remove.push((row.root.clone(), row.path.clone()));
    }
}

/// Everything in scope below `root`.
fn list(
    root: &ResolvedRoot,
    scope: &Arc<Scope>,
    own: &Arc<HashSet<(u64, u64)>>,
    threads: usize,
) -> Result<Listing, StageError> {
    let missing = |source| StageError::Root { root: root.label.clone(), source };
    let meta = fs::metadata(&root.path).map_err(missing)?;
    if !meta.is_dir() {
        return Err(missing(std::io::ErrorKind::NotADirectory.into()));
    }
    fs::read_dir(&root.path).map_err(missing)?;
    let fault = Arc::new(Mutex::new(None));
    check_ignore_file(&root.path, &fault);
    let seen_fault = Arc::clone(&fault);
    let (label, base) = (root.label.clone(), root.path.clone());
    let (prune_scope, own) = (Arc::clone(scope), Arc::clone(own));
    let walker = WalkBuilder::new(&root.path)
        .standard_filters(false)
        .add_custom_ignore_filename(AGENT_IGNORE)
        .same_file_system(!root.other_mounts)
        .threads(threads)
        .filter_entry(move |entry| {
            if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
                return true;
            }
            let below = relative(&base, entry.path());
            check_ignore_file(entry.path(), &seen_fault)
                && prune_scope.may_hold(&label, &below)
                && entry.metadata().map_or(true, |meta| !own.contains(&(meta.dev(), meta.ino())))
        })
        .build_parallel();
    let all = Mutex::new(Listing::default());
    walker.visit(&mut Visitors { root, scope, all: &all });
    let mut all = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    let fault = fault.lock().unwrap_or_else(PoisonError::into_inner).take();
    match all.fault.take().or(fault) {
        Some((path, what)) => Err(StageError::AgentIgnore { path, what }),
        None => Ok(all),
    }
}

struct Visitors<'a> {
    root: &'a ResolvedRoot,
    scope: &'a Scope,
    all: &'a Mutex<Listing>,
}

/// One thread's part; handed in when the thread ends.
struct Visitor<'a> {
    root: &'a ResolvedRoot,
    scope: &'a Scope,
    all: &'a Mutex<Listing>,
    mine: Listing,
}

impl<'s> ParallelVisitorBuilder<'s> for Visitors<'s> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 's> {
        Box::new(Visitor { root: self.root, scope: self.scope, all: self.all, mine: Listing::default() })
    }
}

impl ParallelVisitor for Visitor<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        match entry {
            Ok(entry) => self.entry(&entry),
            Err(error) => self.unreadable(&error),
        }
        WalkState::Continue
    }
}

impl Visitor<'_> {
    fn entry(&mut self, entry: &DirEntry) {
        let Some(kind) = entry.file_type() else { return };
        if let Some(error) = entry.error() {
            self.mine.fault.get_or_insert_with(|| (entry.path().to_owned(), error.to_string()));
        }
        if kind.is_dir() || entry.file_name() == AGENT_IGNORE {
            return;
        }
        let path = relative(&self.root.path, entry.path());
        let (path, placeholder) = match placeholder_for(&path) {
            Some(real) => (real, true),
            None => (path, false),
        };
        if !self.scope.contains(&self.root.label, &path, false) {
            return;
        }
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            Err(error) => return self.unreadable(&error),
        };
        let skip = if placeholder { Some("placeholder") } else { self.reason(kind, entry.path()) };
        if skip != Some("") {
            self.mine.found.push(Found { path, stat: Stat::of(&meta), skip });
        }
    }

    /// Why what is no plain file is not read; `Some("")`: it is not even counted.
    fn reason(&self, kind: FileType, path: &Path) -> Option<&'static str> {
        if kind.is_file() {
            None
        } else if kind.is_symlink() {
            // What a link inside the root leads to is walked at its own place, so each file is there once and a loop
            // ends; a link that leads out of the root is left alone.
            match fs::canonicalize(path) {
                Ok(target) if target.starts_with(&self.root.path) => Some(""),
                Ok(_) => Some("outside_root"),
                Err(_) => Some("broken_link"),
            }
        } else if kind.is_fifo() {
            Some("fifo")
        } else if kind.is_socket() {
            Some("socket")
        } else {
            Some("device")
        }
    }

    fn unreadable(&mut self, error: &ignore::Error) {
        if let Some(path) = path_of(error) {
            self.mine.unread.push(relative(&self.root.path, path));
        }
    }
}

impl Drop for Visitor<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.found.append(&mut self.mine.found);
        all.unread.append(&mut self.mine.unread);
        if all.fault.is_none() {
            all.fault = self.mine.fault.take();
        }
    }
}

/// Whether the folder's `.agentignore`, if there is one, is a plain file of a sane size that can be read: it is opened
/// by a library that would wait for a pipe and read a device without end.
fn check_ignore_file(dir: &Path, fault: &Mutex<Option<(PathBuf, String)>>) -> bool {
    let path = dir.join(AGENT_IGNORE);
    let what = match fs::symlink_metadata(&path) {
        Err(_) => return true, // none; a folder that can't be looked into is noticed by the walk itself
        Ok(meta) if !meta.is_file() => "it is no regular file".to_owned(),
        Ok(meta) if meta.len() > MAX_IGNORE_BYTES => format!("it is larger than {MAX_IGNORE_BYTES} bytes"),
        Ok(_) => match fs::File::open(&path) {
            Ok(_) => return true,
            Err(error) => error.to_string(),
        },
    };
    fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert((path, what));
    false
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => path_of(err),
        _ => None,
    }
}

fn relative(root: &Path, path: &Path) -> String {
    names::escape(path.strip_prefix(root).unwrap_or(path))
}

/// A stub that a sync program keeps in the place of a file that is not on this disk: the path it stands for.
/// iCloud writes `.name.icloud`, the Nextcloud and ownCloud clients `name.nextcloud` and `name.owncloud`.
fn placeholder_for(path: &str) -> Option<String> {
    let name = names::file_name(path);
    let folder = &path[..path.len() - name.len()];
    let real = match name.strip_prefix('.').and_then(|name| name.strip_suffix(".icloud")) {
        Some(real) => real,
        None => name.strip_suffix(".nextcloud").or_else(|| name.strip_suffix(".owncloud"))?,
    };
    (!real.is_empty()).then(|| format!("{folder}{real}"))
}

/// Device and inode of every folder of ours, wherever it lies: an agent never reads its own output or its state.
fn own_folders(settings: &Settings, out: &Path, vault: &Vault) -> Arc<HashSet<(u64, u64)>> {
    let dirs = settings.own_dirs.iter().map(PathBuf::as_path).chain([out]).chain(vault.path().parent());
    Arc::new(dirs.filter_map(|dir| fs::metadata(dir).ok()).map(|meta| (meta.dev(), meta.ino())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stub_stands_for_the_file_it_names() {
        assert_eq!(placeholder_for("a/.tax.pdf.icloud").as_deref(), Some("a/tax.pdf"));
        assert_eq!(placeholder_for("tax.pdf.nextcloud").as_deref(), Some("tax.pdf"));
        assert_eq!(placeholder_for("a/icloud"), None);
        assert_eq!(placeholder_for(".icloud"), None);
    }
}
