//! Appending lines, and noticing that the file is no longer ours.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bastion_host::files::{PRIVATE_FILE, sync_parent};
use bastion_host::jsonl::ends_torn;
use jiff::Timestamp;

/// A file that would grow over this many bytes is set aside first.
const ROTATE_AT: u64 = 64 << 20;

/// Why an answer must not go out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AuditError {
    /// The file was deleted, replaced or cut since the last line. By now it is made anew.
    #[error("{} was deleted, replaced or cut; it was made anew, and one answer was refused", path.display())]
    Lost { path: PathBuf },
    /// The line could not be written: the disk is full, or something else stands in the file's place.
    #[error("{} can't be written, so nothing is answered: {source}", path.display())]
    Unwritable { path: PathBuf, source: io::Error },
}

/// The audit file of one endpoint.
#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
    rotate_at: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Open),
    /// The last attempt failed; the next one opens again.
    Closed,
}

#[derive(Debug)]
struct Open {
    file: Arc<File>,
    device: u64,
    inode: u64,
    /// The file's length as far as we know; another writer can only make it longer.
    length: u64,
    torn: bool,
    unsynced: bool,
}

impl AuditLog {
    /// Opens the file, or makes it with its final mode.
    pub(crate) fn open(path: PathBuf) -> Result<Self, AuditError> {
        Self::rotating_at(path, ROTATE_AT)
    }

    fn rotating_at(path: PathBuf, rotate_at: u64) -> Result<Self, AuditError> {
        let open = Open::at(&path).map_err(unwritable(&path))?;
        Ok(Self { path, rotate_at, state: Mutex::new(State::Open(open)) })
    }

    /// Appends `line`, JSON without its newline, in one write. When this returns `Ok` the line is in the file;
    /// [`AuditLog::sync`] makes it survive a power loss.
    pub(crate) fn append(&self, line: &str, now: Timestamp) -> Result<(), AuditError> {
        let mut state = self.lock();
        let result = self.try_append(&mut state, line, now);
        if let Err(AuditError::Unwritable { .. }) = &result {
            *state = State::Closed;
        }
        result
    }

    fn try_append(&self, state: &mut State, line: &str, now: Timestamp) -> Result<(), AuditError> {
        let open = match state {
            State::Open(open) => {
                if !open.is_at(&self.path) {
                    *open = Open::at(&self.path).map_err(unwritable(&self.path))?;
                    return Err(AuditError::Lost { path: self.path.clone() });
                }
                open
            }
            State::Closed => {
                *state = State::Open(Open::at(&self.path).map_err(unwritable(&self.path))?);
                return self.try_append(state, line, now);
            }
        };
        if open.length > 0 && open.length + line.len() as u64 + 2 > self.rotate_at {
            // where the file can't be set aside it goes on growing: no line is lost by that
            if let Ok(fresh) = open.rotate(&self.path, now) {
                *open = fresh;
            }
        }
        open.write(line).map_err(unwritable(&self.path))
    }

    /// Makes every line so far durable. To be called at least once a second.
    pub(crate) fn sync(&self) -> Result<(), AuditError> {
        let file = match &mut *self.lock() {
            State::Open(open) if open.unsynced => {
                open.unsynced = false;
                Arc::clone(&open.file)
            }
            _ => return Ok(()),
        };
        // not under the lock: requests go on while the disk works
        file.sync_data().map_err(|error| {
            *self.lock() = State::Closed;
            unwritable(&self.path)(error)
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Opens what is at `path`, which must be a regular file or nothing, and no symbolic link.
    fn at(path: &Path) -> io::Result<Self> {
        // O_NONBLOCK: a FIFO in the file's place must not hang us
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        #[allow(clippy::cast_possible_wrap)] // flags are bits
        let flags = flags.bits() as i32;
        let mut options = OpenOptions::new();
        options.read(true).append(true).mode(PRIVATE_FILE).custom_flags(flags);
        let mut file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = options.create_new(true).open(path)?;
                sync_parent(path)?;
                file
            }
            other => other?,
        };
        let meta = file.metadata()?;
        if !meta.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let torn = ends_torn(&mut file)?;
        let (device, inode) = identity(&meta);
        Ok(Self { file: Arc::new(file), device, inode, length: meta.len(), torn, unsynced: true })
    }

    /// Whether `path` still names this file, with everything in it that we wrote.
    fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path)
            .is_ok_and(|meta| identity(&meta) == (self.device, self.inode) && meta.len() >= self.length)
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 2);
        if self.torn {
            bytes.push(b'\n'); // what is torn stands alone, and swallows nothing
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let written = (&*self.file).write(&bytes)?;
        self.unsynced = true;
        if written < bytes.len() {
            // the disk is full: half a line is taken back
            self.torn = self.file.set_len(self.length).is_err();
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.torn = false;
        self.length += written as u64;
        Ok(())
    }

    /// Sets the file at `path` aside under a name of its own and begins a new one.
    fn rotate(&self, path: &Path, now: Timestamp) -> io::Result<Self> {
        self.file.sync_data()?;
        let time = now.strftime("%Y%m%dT%H%M%S%3fZ");
        // a link fails where the name is taken, which a rename would overwrite
        let linked = (0..100).find_map(|n| {
            let name =
                if n == 0 { format!("serve.audit.{time}.jsonl") } else { format!("serve.audit.{time}-{n}.jsonl") };
            match fs::hard_link(path, path.with_file_name(name)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
                other => Some(other),
            }
        });
        linked.unwrap_or_else(|| Err(io::ErrorKind::AlreadyExists.into()))?;
        fs::remove_file(path)?;
        Self::at(path)
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

fn unwritable(path: &Path) -> impl Fn(io::Error) -> AuditError + '_ {
    |source| AuditError::Unwritable { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn time() -> Timestamp {
        "2026-03-01T12:00:00.5Z".parse().unwrap()
    }

    fn lines(path: &Path) -> Vec<String> {
        fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_whole_and_private_and_a_torn_one_stands_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serve.audit.jsonl");
        fs::write(&path, "{\"torn").unwrap();
        let log = AuditLog::open(path.clone()).unwrap();
        log.append("{\"n\":1}", time()).unwrap();
        log.append("{\"n\":2}", time()).unwrap();
        log.sync().unwrap();
        assert_eq!(lines(&path), ["{\"torn", "{\"n\":1}", "{\"n\":2}"]);
        fs::remove_file(&path).unwrap();
        let log = AuditLog::open(path.clone()).unwrap();
        log.append("{}", time()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_is_no_longer_ours_costs_one_answer_and_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serve.audit.jsonl");
        let other = dir.path().join("other");
        let spoils: [&dyn Fn(); 3] = [
            &|| fs::remove_file(&path).unwrap(),
            &|| {
                fs::write(&other, "{\"forged\":true}\n").unwrap();
                fs::rename(&other, &path).unwrap();
            },
            &|| OpenOptions::new().write(true).open(&path).unwrap().set_len(3).unwrap(),
        ];
        let log = AuditLog::open(path.clone()).unwrap();
        for spoil in spoils {
            log.append("{\"before\":1}", time()).unwrap();
            spoil();
            assert!(matches!(log.append("{\"lost\":1}", time()), Err(AuditError::Lost { .. })));
            log.append("{\"after\":1}", time()).unwrap();
            let lines = lines(&path);
            assert_eq!(lines.last().unwrap(), "{\"after\":1}");
            assert!(!lines.iter().any(|line| line.contains("lost")));
        }
    }

    #[test]
    fn what_can_not_be_written_is_refused_until_it_can() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serve.audit.jsonl");
        let log = AuditLog::open(path.clone()).unwrap();
        let target = dir.path().join("target");
        fs::write(&target, "").unwrap();
        for stand_in in ["folder", "link", "fifo"] {
            let _ = fs::remove_file(&path);
            match stand_in {
                "folder" => fs::create_dir(&path).unwrap(),
                "link" => std::os::unix::fs::symlink(&target, &path).unwrap(),
                _ => rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &path,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::from_raw_mode(0o600),
                    0,
                )
                .unwrap(),
            }
            for _ in 0..2 {
                assert!(matches!(log.append("{}", time()), Err(AuditError::Unwritable { .. })), "{stand_in}");
            }
            if stand_in == "folder" {
                fs::remove_dir(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
            log.append("{\"again\":1}", time()).unwrap();
        }
        assert_eq!(fs::read(&target).unwrap(), b"");
    }

    #[test]
    fn a_full_file_is_set_aside_and_none_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serve.audit.jsonl");
        let log = AuditLog::rotating_at(path, 30).unwrap();
        for n in 0..7 {
            log.append(&format!("{{\"number\":{n}}}"), time()).unwrap();
        }
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(
            names,
            [
                "serve.audit.20260301T120000500Z-1.jsonl",
                "serve.audit.20260301T120000500Z-2.jsonl",
                "serve.audit.20260301T120000500Z.jsonl",
                "serve.audit.jsonl"
            ]
        );
        let all: usize = names.iter().map(|name| lines(&dir.path().join(name)).len()).sum();
        assert_eq!(all, 7);
    }
}
