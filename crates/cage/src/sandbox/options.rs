//! From a plan to bubblewrap's options: an allow-listed root, and nothing of the host beyond it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::bubblewrap::{self, ISOLATION};
use super::wire::{Staged, Staging, Word};
use super::{INIT, Mount, Plan, SandboxError};

/// Bytes of `/dev/shm`.
const SHARED_MEMORY: u64 = 64 << 20;

/// Folders of the host that are covered to stage sources for root, the first that is there and not in the way.
const STAGING: &[&str] = &["/mnt", "/media", "/srv", "/tmp"];

/// The system's roots of trust, and the other names that programs look for.
const BUNDLE: &str = "/etc/ssl/certs/ca-certificates.crt";
const BUNDLE_TOO: &[&str] = &[
    "/etc/ssl/cert.pem",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
];

/// What of the host's `/etc` comes in: no setting of the owner's, but what links in `/usr` and its libraries need.
const ETC: &[&str] = &["/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/openssl.cnf"];

/// Never a source, nor anything below.
const NO_SOURCES: &[&str] = &["/proc", "/sys", "/dev"];

/// Never a destination, nor anything below.
const NO_DESTINATIONS: &[&str] = &["/proc", "/dev", "/run/bastion"];

/// Options, what to stage, and the files in memory that the options speak of.
#[derive(Debug)]
pub(super) struct Built {
    pub(super) words: Vec<Word>,
    pub(super) staging: Option<Staging>,
    pub(super) files: Vec<Vec<u8>>,
}

/// Judges paths and texts of a plan, and puts it into words.
pub(super) fn build(plan: &Plan, bubblewrap: &Path, root: bool) -> Result<Built, SandboxError> {
    judge(plan)?;
    let folder = STAGING.iter().find(|folder| Path::new(folder).is_dir() && !bubblewrap.starts_with(folder));
    let staging = match (root, folder) {
        (false, _) => None,
        (true, Some(folder)) => Some(Staging {
            uid: plan.identity.uid,
            gid: plan.identity.gid,
            folder: (*folder).to_owned(),
            sources: Vec::new(),
        }),
        (true, None) => return Err(bad(STAGING[0], "there is no such folder, and root needs it to stage sources")),
    };
    let mut builder = Builder { built: Built { words: Vec::new(), staging, files: Vec::new() } };
    builder.words(ISOLATION);
    builder.words(&["--hostname", &plan.hostname]);
    builder.words(&bubblewrap::system().iter().map(String::as_str).collect::<Vec<_>>());
    builder.words(&["--proc", "/proc", "--dev", "/dev"]);
    builder.tmpfs("/dev/shm", SHARED_MEMORY, 0o1777);
    builder.words(&["--remount-ro", "/dev", "--remount-ro", "/proc"]);
    builder.tmpfs("/tmp", plan.limits.tmp_size, 0o1777);
    for file in ETC.iter().filter(|file| Path::new(file).exists() && !plan.has_file(file)) {
        builder.words(&["--ro-bind", file, file]);
    }
    if root && fs::metadata(&plan.program).is_ok_and(|file| file.mode() & 0o022 != 0) {
        return Err(bad(&plan.program.to_string_lossy(), "others can change it, and root would run it"));
    }
    builder.bind("--ro-bind", &plan.program, Path::new(INIT), false)?;
    for mount in &plan.mounts {
        builder.mount(mount)?;
    }
    for (path, bytes) in synthetic(plan) {
        builder.file(&path, bytes);
    }
    for (path, bytes) in &plan.files {
        builder.file(&text(path)?, bytes.clone());
    }
    for link in BUNDLE_TOO.iter().filter(|link| !plan.has_file(link)) {
        builder.words(&["--symlink", BUNDLE, link]);
    }
    builder.words(&["--remount-ro", "/", "--chdir", "/"]);
    Ok(builder.built)
}

/// The files of `/etc` that are made up, but those that the plan has itself.
fn synthetic(plan: &Plan) -> Vec<(String, Vec<u8>)> {
    let home = plan.env.iter().find(|(name, _)| name == "HOME").map_or("/sandbox", |(_, home)| home.as_str());
    // A colon or a line break in a home folder would be another entry.
    let home = if home.contains([':', '\n']) { "/sandbox" } else { home };
    let name = &plan.hostname;
    let files = [
        ("/etc/passwd", format!("sandbox:x:1000:1000::{home}:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n")),
        ("/etc/group", "sandbox:x:1000:\nnogroup:x:65534:\n".to_owned()),
        ("/etc/hosts", format!("127.0.0.1 localhost {name}\n::1 localhost\n")),
        ("/etc/hostname", format!("{name}\n")),
        ("/etc/resolv.conf", String::new()),
        ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files\n".to_owned()),
    ];
    let mut files: Vec<_> = files.into_iter().map(|(path, text)| (path.to_owned(), text.into_bytes())).collect();
    files.push((BUNDLE.to_owned(), plan.ca_bundle.clone()));
    files.retain(|(path, _)| !plan.has_file(path));
    files
}

impl Plan {
    fn has_file(&self, path: &str) -> bool {
        self.files.iter().any(|(own, _)| own == Path::new(path))
    }
}

struct Builder {
    built: Built,
}

impl Builder {
    fn words(&mut self, words: &[&str]) {
        self.built.words.extend(words.iter().map(|word| Word::Text((*word).to_owned())));
    }

    fn tmpfs(&mut self, destination: &str, size: u64, mode: u32) {
        // bubblewrap refuses a size of nothing.
        self.words(&["--size", &size.max(4096).to_string(), "--perms", &format!("{mode:04o}"), "--tmpfs", destination]);
    }

    fn mount(&mut self, mount: &Mount) -> Result<(), SandboxError> {
        match mount {
            Mount::ReadOnly { source, destination } => self.bind("--ro-bind", source, destination, false),
            Mount::Writable { source, destination } => self.bind("--bind", source, destination, true),
            Mount::Tmpfs { destination, size, mode } => {
                self.tmpfs(&text(destination)?, *size, *mode);
                Ok(())
            }
        }
    }

    fn bind(&mut self, option: &str, source: &Path, destination: &Path, write: bool) -> Result<(), SandboxError> {
        let resolved = resolve(source)?;
        let path = text(&resolved)?;
        let from = match &mut self.built.staging {
            None => path,
            Some(staging) => {
                let owner = other_owner(&resolved, staging.uid, write)?;
                staging.sources.push(Staged { path, owner });
                format!("{}/{}", staging.folder, staging.sources.len() - 1)
            }
        };
        self.words(&[option, &from, &text(destination)?]);
        Ok(())
    }

    fn file(&mut self, path: &str, bytes: Vec<u8>) {
        self.words(&["--perms", "0444", "--ro-bind-data"]);
        self.built.words.push(Word::Descriptor(self.built.files.len()));
        self.words(&[path]);
        self.built.files.push(bytes);
    }
}

/// The owner of a source that the sandbox's user could not use otherwise.
fn other_owner(source: &Path, uid: u32, write: bool) -> Result<Option<(u32, u32)>, SandboxError> {
    let file = fs::metadata(source).map_err(|_| bad(&source.to_string_lossy(), "it can't be looked at"))?;
    let open_to_all = if file.is_dir() { 0o005 } else { 0o004 };
    let usable = file.uid() == uid || (!write && file.mode() & open_to_all == open_to_all);
    Ok((!usable).then_some((file.uid(), file.gid())))
}

fn resolve(source: &Path) -> Result<PathBuf, SandboxError> {
    let shown = source.to_string_lossy();
    if !source.is_absolute() {
        return Err(bad(&shown, "the path of a mount's source is absolute"));
    }
    let resolved = fs::canonicalize(source).map_err(|_| bad(&shown, "it is not there, or can't be reached"))?;
    if resolved == Path::new("/") || NO_SOURCES.iter().any(|no| resolved.starts_with(no)) {
        return Err(bad(&shown, "this is never bound into a sandbox"));
    }
    Ok(resolved)
}

/// Everything of a plan that can be judged by looking at it.
fn judge(plan: &Plan) -> Result<(), SandboxError> {
    for mount in &plan.mounts {
        let (Mount::ReadOnly { destination, .. }
        | Mount::Writable { destination, .. }
        | Mount::Tmpfs { destination, .. }) = mount;
        judge_destination(destination)?;
    }
    for (path, _) in &plan.files {
        judge_destination(path)?;
    }
    if plan.files.len() > 200 {
        return Err(bad("files", "there are more than 200"));
    }
    if !plan.cwd.is_absolute() {
        return Err(bad(&plan.cwd.to_string_lossy(), "the command's folder is an absolute path"));
    }
    let name = &plan.hostname;
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
        return Err(bad(name, "a host name is 1 to 64 letters, digits, '-' and '.'"));
    }
    if plan.command.first().is_none_or(String::is_empty) || plan.command.iter().any(|word| word.contains('\0')) {
        return Err(bad("command", "there is none, or it holds a NUL"));
    }
    let wrong =
        |(name, value): &&(String, String)| name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
    match plan.env.iter().find(wrong) {
        Some((name, _)) => Err(bad(name, "no name of a variable, or its value holds a NUL")),
        None => Ok(()),
    }
}

fn judge_destination(path: &Path) -> Result<(), SandboxError> {
    let shown = path.to_string_lossy();
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !plain || path == Path::new("/") {
        return Err(bad(&shown, "a place inside is an absolute path below / without '..'"));
    }
    if NO_DESTINATIONS.iter().any(|no| path.starts_with(no)) {
        return Err(bad(&shown, "this place belongs to the sandbox itself"));
    }
    Ok(())
}

/// A path as text; bubblewrap's options and our messages are text.
pub(super) fn text(path: &Path) -> Result<String, SandboxError> {
    match path.to_str() {
        Some(text) if !text.contains('\0') => Ok(text.to_owned()),
        _ => Err(bad(&path.to_string_lossy(), "the path is not UTF-8")),
    }
}

fn bad(subject: &str, why: &'static str) -> SandboxError {
    SandboxError::Plan { subject: subject.to_owned(), why }
}
