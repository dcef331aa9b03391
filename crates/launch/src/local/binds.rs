//! Which folders of this machine may a sandbox see, and what in them stays read-only?
//!
//! A folder that can be written is a way to have code run outside: Git obeys what lies in `.git` (hooks, `config` with
//! its programs, `commondir` and `worktrees/` that lead to other configurations, an index that names submodules). So in
//! a writable bind every repository that is there stays read-only as a whole, the folders that lead to it can't be moved
//! away, and a repository itself (a `.git`, a bare one, a part of one) can't be bound writable at all.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agent::Bind;
use crate::error::LaunchError;
use crate::options::Machine;

/// A writable bind may hold so many files and folders: each is looked at before the run.
const MOST_ENTRIES: usize = 2_000_000;
/// Places that are the sandbox's own: nothing is put there, below or above.
const RESERVED: &[&str] =
    &["/usr", "/etc", "/proc", "/dev", "/sys", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/run", "/boot"];
/// Places of the sandbox that others may be put below.
const SHARED: &[&str] = &["/tmp", "/sandbox", "/opt", "/var", "/home", "/root", "/mnt", "/srv", "/media"];

/// Where programs keep keys and tokens in a home folder.
const KEYS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".password-store",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".codex",
    ".claude",
    ".claude.json",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".vault-token",
    ".cargo/credentials.toml",
    ".config/gh",
    ".config/gcloud",
    ".config/opencode",
    ".local/share/opencode",
    ".local/share/keyrings",
    ".mozilla",
    ".config/chromium",
    ".config/google-chrome",
];

/// Something of this machine inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bound {
    pub(crate) source: PathBuf,
    pub(crate) destination: PathBuf,
    pub(crate) writable: bool,
}

/// Judges the binds of a launch. Gives them in the order in which they are put in.
///
/// # Errors
/// The first one that is refused, and what would be right.
pub(crate) fn judge(binds: &[Bind], machine: &Machine) -> Result<Vec<Bound>, LaunchError> {
    let mut bound: Vec<Bound> = Vec::new();
    for bind in binds {
        let refused = |why: String| LaunchError::refused(format!("the bind of {}", bind.source.escape_debug()), why);
        let source = fs::canonicalize(&bind.source).map_err(|error| refused(format!("can't be looked at: {error}")))?;
        check_source(&source, machine).map_err(&refused)?;
        let destination = match &bind.destination {
            Some(place) => PathBuf::from(place),
            None => source.clone(),
        };
        check_destination(&destination).map_err(&refused)?;
        if let Some(other) = bound
            .iter()
            .find(|other| other.destination.starts_with(&destination) || destination.starts_with(&other.destination))
        {
            return Err(refused(format!(
                "is in the way of {}, bound at {}",
                other.source.display(),
                other.destination.display()
            )));
        }
        if bind.writable {
            check_not_in_repository(&source).map_err(&refused)?;
        }
        let repositories = if bind.writable { repositories(&source).map_err(&refused)? } else { BTreeSet::new() };
        bound.push(Bound { source: source.clone(), destination: destination.clone(), writable: bind.writable });
        for (path, pinned) in pins(&source, &repositories) {
            let inside = destination.join(path.strip_prefix(&source).unwrap_or(Path::new("")));
            bound.push(Bound { source: path, destination: inside, writable: pinned });
        }
    }
    Ok(bound)
}

/// What is mounted on itself: each repository read-only, and the folders that lead to it writable, since a folder with
/// a mount on it can't be moved or removed while one above a mount can.
fn pins(source: &Path, repositories: &BTreeSet<PathBuf>) -> Vec<(PathBuf, bool)> {
    let mut folders = BTreeSet::new();
    for repository in repositories {
        let above = repository.ancestors().skip(1).take_while(|above| *above != source && above.starts_with(source));
        folders.extend(above.map(Path::to_owned));
    }
    let mut pins: Vec<(PathBuf, bool)> = folders.into_iter().map(|folder| (folder, true)).collect();
    pins.extend(repositories.iter().map(|repository| (repository.clone(), false)));
    // a folder before what is in it
    pins.sort();
    pins
}

fn check_source(source: &Path, machine: &Machine) -> Result<(), String> {
    if source == Path::new("/") {
        return Err("is the whole machine; bind the folder that is needed".to_owned());
    }
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(home) = &machine.home {
        let home = real(home);
        if home.starts_with(source) {
            return Err("is or holds your home folder; bind the folder that is needed".to_owned());
        }
        for keys in KEYS {
            let keys = home.join(keys);
            if source.starts_with(&keys) || keys.starts_with(source) {
                return Err(format!("is or holds {}, which holds keys", keys.display()));
            }
        }
    }
    for (dir, what) in [(&machine.state_dir, "state"), (&machine.config_dir, "configuration")] {
        let dir = real(dir);
        if source.starts_with(&dir) || dir.starts_with(source) {
            return Err(format!("is, holds or lies in Bastion's own {what} folder {}", dir.display()));
        }
    }
    for dir in ["/proc", "/sys", "/dev", "/run", "/boot", "/etc", "/var/run", "/var/lib", "/root", "/home"] {
        let exact = matches!(dir, "/root" | "/home" | "/var/lib");
        if source == Path::new(dir) || (!exact && source.starts_with(dir)) || Path::new(dir).starts_with(source) {
            return Err(format!("is, holds or lies in {dir}, which is the machine's own"));
        }
    }
    let kind = fs::metadata(source).map_err(|error| format!("can't be looked at: {error}"))?;
    if kind.is_file() {
        if is_key(source) {
            return Err("is a private key".to_owned());
        }
    } else if kind.is_dir() {
        let entries = fs::read_dir(source).map_err(|error| format!("can't be read: {error}"))?;
        for entry in entries.flatten().take(10_000) {
            if is_key(&entry.path()) {
                return Err(format!("holds the private key {}", entry.file_name().to_string_lossy().escape_debug()));
            }
        }
    } else {
        return Err("is neither a folder nor a file".to_owned());
    }
    Ok(())
}

/// Whether a regular file begins as a private key does.
fn is_key(path: &Path) -> bool {
    let flags = (rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW).bits().cast_signed();
    let Ok(file) = fs::OpenOptions::new().read(true).custom_flags(flags).open(path) else { return false };
    if !file.metadata().is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut start = Vec::new();
    let _ = file.take(4096).read_to_end(&mut start);
    let text = String::from_utf8_lossy(&start);
    text.contains("PRIVATE KEY-----") || text.contains("AGE-SECRET-KEY-")
}

fn check_destination(place: &Path) -> Result<(), String> {
    let shown = place.display();
    let plain = place.is_absolute()
        && place.components().skip(1).all(|part| matches!(part, Component::Normal(_)))
        && place.to_str().is_some_and(|text| !text.contains("//") && !text.ends_with('/') && !text.contains("/./"));
    if !plain {
        return Err(format!("would be at {shown}, which is no plain absolute path"));
    }
    let taken = RESERVED.iter().find(|own| place.starts_with(own) || Path::new(own).starts_with(place));
    let taken = taken.or_else(|| SHARED.iter().find(|own| Path::new(own).starts_with(place)));
    let harness = super::harness::PLACE;
    match taken {
        Some(own) => Err(format!("would be at {shown}, and {own} is the sandbox's own; say where: DIR:/somewhere")),
        None if place.starts_with(harness) || Path::new(harness).starts_with(place) => {
            Err(format!("would be at {shown}, where the harness is"))
        }
        None => Ok(()),
    }
}

/// A part of a repository that could be written would be obeyed as the whole is.
fn check_not_in_repository(source: &Path) -> Result<(), String> {
    for above in source.ancestors() {
        if is_git_dir(above) || above.file_name().is_some_and(|name| name == ".git") {
            return Err(format!(
                "is a Git repository or lies in one ({}); Git runs what its configuration and hooks say, so it can be \
                 bound read-only alone. Bind the work tree, or clone it inside the sandbox",
                above.display()
            ));
        }
    }
    Ok(())
}

/// Whether Git would take this folder for a repository: as `is_git_directory()` of Git does, and a little more widely.
fn is_git_dir(dir: &Path) -> bool {
    let there = |name: &str| dir.join(name).symlink_metadata().is_ok();
    there("HEAD") && (there("commondir") || (there("objects") && there("refs")))
}

/// Every repository in a folder: `.git`, whatever it is, and bare ones.
fn repositories(source: &Path) -> Result<BTreeSet<PathBuf>, String> {
    let mut found = BTreeSet::new();
    if !source.is_dir() {
        return Ok(found);
    }
    let mut folders = vec![source.to_owned()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let unreadable = |error: io::Error| {
            format!(
                "can't be made writable: {} can't be read ({error}), so repositories in it can't be found",
                folder.display()
            )
        };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            seen += 1;
            if seen > MOST_ENTRIES {
                return Err(format!(
                    "can't be made writable: it holds more than {MOST_ENTRIES} files, too many to look for repositories; bind a smaller folder"
                ));
            }
            let (kind, path) = (entry.file_type().map_err(unreadable)?, entry.path());
            if entry.file_name() == ".git" {
                if kind.is_symlink() {
                    return Err(format!(
                        "can't be made writable: {} is a link, which can't be protected",
                        path.display()
                    ));
                }
                found.insert(path);
            } else if kind.is_dir() {
                if is_git_dir(&path) {
                    found.insert(path);
                } else {
                    folders.push(path);
                }
            }
        }
    }
    Ok(found)
}

/// The repositories in the writable binds now, which a run may have made: for a warning when it has ended.
pub(crate) fn new_repositories(bound: &[Bound]) -> Vec<PathBuf> {
    let known: BTreeSet<&Path> = bound.iter().map(|bound| bound.source.as_path()).collect();
    let tops = bound.iter().filter(|bind| {
        bind.writable
            && !bound.iter().any(|other| bind.source != other.source && bind.source.starts_with(&other.source))
    });
    let found = tops.flat_map(|bind| repositories(&bind.source).unwrap_or_default());
    found.filter(|repository| !known.contains(repository.as_path())).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use bastion_host::clock::SystemClock;
    use bastion_trust::{Gate, GateSettings};

    use super::*;
    use crate::options::Supervisor;

    fn machine(root: &Path) -> Machine {
        let gate = GateSettings { ca_root: None, crl: None, state_dir: root.join("state") };
        for dir in ["home/.ssh", "home/project", "state", "config"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        Machine {
            env: BTreeMap::new(),
            home: Some(root.join("home")),
            cwd: root.to_owned(),
            config_dir: root.join("config"),
            state_dir: root.join("state"),
            temp_dir: root.to_owned(),
            supervisor: Supervisor::Bytes(b""),
            gate: Arc::new(Gate::new(gate, Arc::new(SystemClock))),
            clock: Arc::new(SystemClock),
        }
    }

    struct Folder {
        dir: tempfile::TempDir,
        machine: Machine,
    }

    impl Folder {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let machine = machine(&dir.path().canonicalize().unwrap());
            Self { dir, machine }
        }

        fn path(&self, path: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(path)
        }

        fn make(&self, paths: &[&str]) -> &Self {
            for path in paths {
                let file = self.path(path.trim_end_matches('/'));
                if path.ends_with('/') {
                    fs::create_dir_all(file).unwrap();
                } else {
                    fs::create_dir_all(file.parent().unwrap()).unwrap();
                    fs::write(file, "x").unwrap();
                }
            }
            self
        }

        fn judge(&self, source: &str, destination: Option<&str>, writable: bool) -> Result<Vec<Bound>, String> {
            let source = if source.starts_with('/') { source.into() } else { self.path(source) };
            let source = source.to_str().unwrap().to_owned();
            let bind = Bind { source, destination: destination.map(str::to_owned), writable };
            judge(&[bind], &self.machine).map_err(|error| error.to_string())
        }
    }

    #[test]
    fn what_holds_keys_or_the_machine_itself_is_not_bound() {
        let folder = Folder::new();
        folder.make(&[
            "keys/other",
            "home/.codex/auth.json",
            "home/.git-credentials",
            "home/.local/share/opencode/auth.json",
        ]);
        fs::write(folder.path("keys/mine"), "-----BEGIN EC PRIVATE KEY-----\n").unwrap();
        for (source, said) in [
            ("/", "whole machine"),
            ("home", "home folder"),
            (".", "home folder"),
            ("home/.ssh", "keys"),
            ("home/.codex", "keys"),
            ("home/.git-credentials", "keys"),
            ("home/.local", "keys"),
            ("state", "state folder"),
            ("config", "configuration folder"),
            ("/etc/ssl", "machine's own"),
            ("/proc", "machine's own"),
            ("/var", "machine's own"),
            ("keys", "private key mine"),
            ("keys/mine", "is a private key"),
            ("missing", "can't be looked at"),
        ] {
            for writable in [false, true] {
                let error = folder.judge(source, Some("/mnt/x"), writable).unwrap_err();
                assert!(error.contains(said), "{source}: {error}");
            }
        }
        let link = folder.path("link");
        std::os::unix::fs::symlink(folder.path("home"), &link).unwrap();
        assert!(folder.judge("link", Some("/mnt/x"), false).unwrap_err().contains("home folder"));
        assert_eq!(folder.judge("home/project", None, false).unwrap().len(), 1);
    }

    #[test]
    fn a_destination_covers_nothing_of_the_sandbox() {
        let folder = Folder::new();
        for bad in [
            "/",
            "/usr",
            "/usr/local",
            "/etc/openshell",
            "/proc/x",
            "/tmp",
            "/sandbox",
            "/opt",
            super::super::harness::PLACE,
            "relative",
            "/a/../b",
            "/a//b",
            "/a/",
            "/run/bastion",
            "/home",
        ] {
            assert!(folder.judge("home/project", Some(bad), false).is_err(), "{bad}");
        }
        for good in ["/work", "/sandbox/project", "/tmp/project", "/home/me/project", "/opt/tools"] {
            assert!(folder.judge("home/project", Some(good), false).is_ok(), "{good}");
        }
        let bind = |destination: &str| Bind {
            source: folder.path("home/project").to_str().unwrap().to_owned(),
            destination: Some(destination.to_owned()),
            writable: false,
        };
        assert!(judge(&[bind("/work"), bind("/work/inner")], &folder.machine).is_err());
        assert!(judge(&[bind("/work"), bind("/works")], &folder.machine).is_ok());
    }

    #[test]
    fn a_repository_can_not_be_bound_writable_and_one_inside_stays_read_only() {
        let folder = Folder::new();
        folder.make(&[
            "home/project/.git/HEAD",
            "home/project/.git/objects/",
            "home/project/.git/refs/",
            "home/project/.git/hooks/",
            "home/bare.git/HEAD",
            "home/bare.git/objects/",
            "home/bare.git/refs/",
            "home/tree/HEAD",
            "home/tree/commondir",
            "home/all/a/b/.git",
            "home/all/a/c/file",
            "home/all/mirror/HEAD",
            "home/all/mirror/objects/",
            "home/all/mirror/refs/",
        ]);
        for source in
            ["home/project/.git", "home/project/.git/hooks", "home/bare.git", "home/bare.git/objects", "home/tree"]
        {
            assert!(folder.judge(source, Some("/work"), true).unwrap_err().contains("read-only alone"), "{source}");
            assert!(folder.judge(source, Some("/work"), false).is_ok(), "{source}");
        }
        let shown = |bound: Vec<Bound>| -> Vec<(String, bool)> {
            bound.into_iter().map(|bound| (bound.destination.to_str().unwrap().to_owned(), bound.writable)).collect()
        };
        let of = |pairs: &[(&str, bool)]| pairs.iter().map(|(path, w)| ((*path).to_owned(), *w)).collect::<Vec<_>>();
        let project = shown(folder.judge("home/project", Some("/work"), true).unwrap());
        assert_eq!(project, of(&[("/work", true), ("/work/.git", false)]));
        let all = shown(folder.judge("home/all", Some("/work"), true).unwrap());
        assert_eq!(
            all,
            of(&[
                ("/work", true),
                ("/work/a", true),
                ("/work/a/b", true),
                ("/work/a/b/.git", false),
                ("/work/mirror", false)
            ])
        );
        std::os::unix::fs::symlink("elsewhere", folder.path("home/all/a/c/.git")).unwrap();
        assert!(folder.judge("home/all", Some("/work"), true).unwrap_err().contains("is a link"));
    }

    #[test]
    fn a_repository_that_a_run_made_is_found() {
        let folder = Folder::new();
        folder.make(&["home/project/.git/HEAD", "home/project/src/main.rs"]);
        let bound = folder.judge("home/project", Some("/work"), true).unwrap();
        assert_eq!(new_repositories(&bound), Vec::<PathBuf>::new());
        folder.make(&["home/project/src/.git"]);
        assert_eq!(new_repositories(&bound), [folder.path("home/project/src/.git")]);
    }
}
