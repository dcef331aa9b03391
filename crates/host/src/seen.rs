//! Is this file still what it was when it was read? Answered by one `stat` where its marks can be trusted, else by reading.
//!
//! A file that is written twice within one tick of the file system's clock keeps its marks. So marks count only where the
//! file had not been changed for `SETTLED` when it was read; Git keeps its index by the same rule ("racily clean").

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::files::read_capped;

/// No file system in use has a clock that is coarser: FAT counts in two seconds.
const SETTLED: Duration = Duration::from_secs(2);

/// A small file's bytes as they were read, or that it was not there.
#[derive(Debug)]
pub struct SeenFile {
    path: PathBuf,
    /// The most bytes that it may have.
    max: u64,
    bytes: Option<Vec<u8>>,
    /// The marks of the file with these bytes, where they can be trusted.
    marks: Mutex<Option<Marks>>,
}

/// What of a file changes when its content does, or when another takes its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marks {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Marks {
    fn of(meta: &Metadata) -> Self {
        Self {
            device: meta.dev(),
            inode: meta.ino(),
            length: meta.len(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The marks of the file at `path`, if it was last changed long enough before `now`. A link's are its target's.
    fn settled(path: &Path, now: SystemTime) -> Option<Self> {
        let marks = Self::of(&fs::metadata(path).ok()?);
        let (seconds, nanoseconds) = marks.changed;
        let changed = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
        let age = now.duration_since(UNIX_EPOCH).ok()?.checked_sub(changed)?; // none: it is changed in the future
        (age >= SETTLED).then_some(marks)
    }
}

impl SeenFile {
    /// Reads a regular file of at most `max` bytes. That it is not there is no error.
    pub fn read(path: &Path, max: u64) -> io::Result<Self> {
        let marks = Marks::settled(path, SystemTime::now()); // before the bytes: then they are these bytes' or older
        Ok(Self { bytes: read(path, max)?, path: path.to_owned(), max, marks: Mutex::new(marks) })
    }

    /// The bytes; none where the file was not there.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// Whether the file has these bytes now; not, where it can't be read.
    pub fn is_still(&self) -> bool {
        let Some(bytes) = &self.bytes else {
            return matches!(fs::metadata(&self.path), Err(error) if error.kind() == io::ErrorKind::NotFound);
        };
        // The lock is never held while the file system is asked: those who ask at once don't wait for each other.
        let known = *self.marks();
        if known.is_some() && fs::metadata(&self.path).ok().map(|meta| Marks::of(&meta)) == known {
            return true;
        }
        let marks = Marks::settled(&self.path, SystemTime::now());
        let same = read(&self.path, self.max).is_ok_and(|now| now.as_ref() == Some(bytes));
        *self.marks() = marks.filter(|_| same);
        same
    }

    fn marks(&self) -> MutexGuard<'_, Option<Marks>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    match read_capped(path, max) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_times(path: &Path, time: SystemTime) {
        let times = fs::FileTimes::new().set_modified(time);
        fs::File::options().write(true).open(path).unwrap().set_times(times).unwrap();
    }

    #[test]
    fn a_change_within_one_tick_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        for _ in 0..200 {
            fs::write(&path, "one").unwrap();
            let seen = SeenFile::read(&path, 100).unwrap();
            assert!(seen.is_still() && seen.is_still());
            fs::write(&path, "two").unwrap(); // the same length and, most times, the same tick
            assert!(!seen.is_still());
        }
    }

    #[test]
    fn a_settled_file_is_not_read_again_until_its_marks_change() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "one").unwrap();
        std::thread::sleep(SETTLED + Duration::from_millis(100));
        let seen = SeenFile::read(&path, 100).unwrap();
        assert!(seen.marks.lock().unwrap().is_some());
        // the time of its content put back: only the other time tells
        let before = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "two").unwrap();
        set_times(&path, before);
        assert!(!seen.is_still());
        fs::write(&path, "one").unwrap();
        assert!(seen.is_still(), "the bytes are what counts");
        assert!(seen.marks.lock().unwrap().is_none(), "just written: its marks can't be trusted");
    }

    #[test]
    fn a_file_that_comes_goes_or_is_replaced_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let absent = SeenFile::read(&path, 100).unwrap();
        assert!(absent.bytes().is_none() && absent.is_still());
        fs::write(&path, "one").unwrap();
        assert!(!absent.is_still());
        let seen = SeenFile::read(&path, 100).unwrap();
        fs::write(dir.path().join("b"), "two").unwrap();
        fs::rename(dir.path().join("b"), &path).unwrap();
        assert!(!seen.is_still());
        fs::remove_file(&path).unwrap();
        assert!(!seen.is_still());
        assert!(SeenFile::read(dir.path(), 100).is_err(), "a folder is no file");
    }
}
