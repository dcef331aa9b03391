//! How are files read and written beside an agent that owns the same folders?
//!
//! Reading never follows a link, blocks on a FIFO or takes more than a cap. Replacing is atomic: a reader sees the
//! old file or the new one. Nothing is synced to the disk; what survives a power loss is whichever of the two.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Flags that keep an open from following a last link or waiting for a FIFO's other end.
fn careful() -> i32 {
    i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC).bits()).unwrap_or(0)
}

/// Opens a regular file to read and append, made 0600 where it is missing.
pub fn open_append(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).append(true).create(true).mode(0o600).custom_flags(careful()).open(path)?;
    regular(file)
}

/// The last `max` bytes of a regular file, and how many it has in all.
pub fn read_end(path: &Path, max: u64) -> io::Result<(Vec<u8>, u64)> {
    let file = regular(OpenOptions::new().read(true).custom_flags(careful()).open(path)?)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(max);
    let mut bytes = vec![0; usize::try_from(length - from).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    bytes.truncate(filled);
    Ok((bytes, length))
}

/// A whole regular file of at most `max` bytes.
pub fn read_whole(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = regular(OpenOptions::new().read(true).custom_flags(careful()).open(path)?)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len().min(max)).unwrap_or(0));
    file.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than {max} bytes")));
    }
    Ok(bytes)
}

/// Replaces `path` in one step by a file of mode 0600.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    // What an earlier process with our pid left behind (as PID 1 that is every restart) is in the way of create_new.
    let _ = fs::remove_file(&temporary);
    let written =
        create_new(&temporary).and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Makes a file that must not be there yet, 0600.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Makes `dir` and what is missing above it, each new one 0700.
pub fn create_private_dir(dir: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

/// A folder of our own for short-lived files, gone when dropped.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// A new folder in the first of `places` that takes one.
    pub fn new(places: &[&Path]) -> io::Result<Self> {
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        for place in places {
            for n in 0..100 {
                let dir = place.join(format!(".openshell-agent-{}-{:x}-{n}", std::process::id(), nanos()));
                match DirBuilder::new().mode(0o700).create(&dir) {
                    Ok(()) => return Ok(Self { dir }),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => {
                        failure = error;
                        break;
                    }
                }
            }
        }
        Err(failure)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Makes names hard to guess for others in a shared folder; that they are new is what `create` checks.
fn nanos() -> u128 {
    crate::clock::since_boot().as_nanos()
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_or_a_link_is_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let (fifo, link, file) = (dir.path().join("fifo"), dir.path().join("link"), dir.path().join("file"));
        fs::write(&file, "x").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [&fifo, &link] {
            assert!(read_whole(path, 10).is_err() && read_end(path, 10).is_err() && open_append(path).is_err());
        }
        assert_eq!(read_whole(&file, 1).unwrap(), b"x");
        assert_eq!(read_whole(&file, 0).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_replacement_that_fails_leaves_no_litter() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(replace(&taken, b"x").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
