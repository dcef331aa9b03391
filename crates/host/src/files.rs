//! Durable, private files: replaced whole or not at all, and never readable by others for even a moment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Mode of every private file: the owner alone.
pub const PRIVATE_FILE: u32 = 0o600;
/// Mode of every private folder: the owner alone.
pub const PRIVATE_DIR: u32 = 0o700;

/// Makes `dir` and what is missing above it, each new one 0700. Folders that are there keep their mode.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(PRIVATE_DIR).create(dir)
}

/// Replaces `path` by `bytes` in one step: a reader sees the old content or the new, never a part, and after a
/// power loss one of the two is there. The mode of a file that is there is kept, a new one gets `mode`.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    replace_with(path, mode, |file| file.write_all(bytes))
}

/// As [`replace`], with the content written by `write`. Where `write` fails the old file stays.
pub fn replace_with(path: &Path, mode: u32, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let mode = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => meta.permissions().mode() & 0o7777,
        _ => mode,
    };
    let (temporary, mut file) = create_temporary(path, mode)?;
    let result = (|| {
        write(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_parent(path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

/// Writes a file that must not be there yet, with its final mode. Does not wait for the disk.
pub fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(bytes)
}

/// Makes a renamed or new entry of `path`'s folder durable.
pub fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

/// Whether `name` is a temporary name that [`temporary_beside`] gives for the file `of`.
pub fn is_temporary_of(name: &str, of: &str) -> bool {
    let middle =
        name.strip_prefix('.').and_then(|name| name.strip_prefix(of)).and_then(|name| name.strip_suffix(".tmp"));
    middle.is_some_and(|middle| {
        middle.starts_with('.') && middle.bytes().all(|byte| byte.is_ascii_digit() || b".-".contains(&byte))
    })
}

/// A name beside `path` that nothing else uses: `.<name>.<pid>-<n>.tmp`.
pub fn temporary_beside(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    path.with_file_name(format!(".{name}.{}-{n}.tmp", std::process::id()))
}

/// Makes a new file beside `path`. What a killed process with our pid left behind is passed over, not written to.
pub(crate) fn create_temporary(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let mut tries = 0;
    loop {
        let temporary = temporary_beside(path);
        match OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < 100 => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// Reads a regular file of at most `max` bytes, once. A FIFO, device or folder is refused without blocking on it.
pub fn read_capped(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    // O_NONBLOCK: opening a FIFO that nobody writes to must not hang us. It changes nothing for a regular file.
    let file = OpenOptions::new().read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len().min(max)).unwrap_or(0));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_has_its_mode_and_an_old_one_keeps_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        replace(&path, b"one", PRIVATE_FILE).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"two", PRIVATE_FILE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    }

    #[test]
    fn a_failed_replacement_leaves_the_old_file_and_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        replace(&path, b"old", PRIVATE_FILE).unwrap();
        let failed = replace_with(&path, PRIVATE_FILE, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_killed_process_left_behind_is_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let next = temporary_beside(&path).to_string_lossy().into_owned();
        let number: u64 = next.trim_end_matches(".tmp").rsplit('-').next().unwrap().parse().unwrap();
        let litter: Vec<_> =
            (number..number + 50).map(|n| dir.path().join(format!(".a.{}-{n}.tmp", std::process::id()))).collect();
        litter.iter().for_each(|file| fs::write(file, "litter").unwrap());
        replace(&path, b"new", PRIVATE_FILE).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert!(litter.iter().all(|file| fs::read(file).unwrap() == b"litter"));
    }

    #[test]
    fn a_capped_read_refuses_what_is_larger_or_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, b"12345").unwrap();
        assert_eq!(read_capped(&path, 5).unwrap(), b"12345");
        assert_eq!(read_capped(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert!(read_capped(dir.path(), 10).is_err());
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(read_capped(&fifo, 10).is_err());
    }
}
