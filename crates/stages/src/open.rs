//! Opening a file beneath its root, whatever happens to the folders meanwhile.
//!
//! The kernel resolves the path in one go and refuses symbolic links, `..` and magic links on the way
//! (`openat2(2)`, `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS`), so that a folder exchanged for
//! a link between the walk and the read leads nowhere.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// A root folder held open.
#[derive(Debug)]
pub(crate) struct RootDir(rustix::fd::OwnedFd);

/// A file's bytes, and the marks by which the next walk knows it again.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stat: Stat,
}

/// What tells that a file changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) bytes: u64,
    pub(crate) mtime_ns: i64,
    pub(crate) ctime_ns: i64,
    pub(crate) inode: u64,
}

impl Stat {
    pub(crate) fn of(meta: &std::fs::Metadata) -> Self {
        let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            bytes: meta.len(),
            mtime_ns: nanoseconds(meta.mtime(), meta.mtime_nsec()),
            ctime_ns: nanoseconds(meta.ctime(), meta.ctime_nsec()),
            inode: meta.ino(),
        }
    }
}

/// Why a file was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The owner's account may not read it.
    Permission,
    /// It is gone, or no regular file any more, or a link now stands on the way.
    Gone,
    /// It is larger than the manifest allows.
    TooLarge,
    /// It changed each time it was read.
    Unstable,
    /// The disk failed.
    Io,
}

impl Unread {
    /// Whether a file that was skipped for this reason may be readable now without looking different.
    pub(crate) fn is_worth_a_try(reason: &str) -> bool {
        matches!(reason, "permission" | "gone" | "too_large" | "changing" | "io")
    }

    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Gone => "gone",
            Self::TooLarge => "too_large",
            Self::Unstable => "changing",
            Self::Io => "io",
        }
    }
}

impl RootDir {
    pub(crate) fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(root, flags, Mode::empty())?))
    }

    /// Reads the regular file at `path` below the root, whole, as it is at one moment. At most `max` bytes.
    pub(crate) fn read(&self, path: &Path, max: u64) -> Result<Content, Unread> {
        for _ in 0..3 {
            let mut file = self.open_file(path)?;
            let before = regular(&file)?;
            if before.bytes > max {
                return Err(Unread::TooLarge);
            }
            let mut bytes = Vec::with_capacity(usize::try_from(before.bytes).unwrap_or(0));
            (&mut file).take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|_| Unread::Io)?;
            if bytes.len() as u64 == before.bytes && regular(&file)? == before {
                return Ok(Content { bytes, stat: before });
            }
        }
        Err(Unread::Unstable)
    }

    fn open_file(&self, path: &Path) -> Result<File, Unread> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // NONBLOCK: a FIFO that took the file's place must not hang us. NOATIME: reading leaves no trace, where the
        // file is ours.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let open = |flags| rustix::fs::openat2(&self.0, path, flags, Mode::empty(), resolve);
        let opened = match open(flags | OFlags::NOATIME) {
            Err(Errno::PERM) => open(flags),
            other => other,
        };
        match opened {
            Ok(fd) => Ok(File::from(fd)),
            Err(Errno::ACCESS | Errno::PERM) => Err(Unread::Permission),
            Err(Errno::NOENT | Errno::LOOP | Errno::XDEV | Errno::NOTDIR | Errno::NXIO) => Err(Unread::Gone),
            Err(_) => Err(Unread::Io),
        }
    }
}

fn regular(file: &File) -> Result<Stat, Unread> {
    let meta = file.metadata().map_err(|_| Unread::Io)?;
    if meta.is_file() { Ok(Stat::of(&meta)) } else { Err(Unread::Gone) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_regular_file_beneath_the_root_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a"), "inside").unwrap();
        fs::write(dir.path().join("secret"), "outside").unwrap();
        symlink(dir.path().join("secret"), root.join("link")).unwrap();
        symlink("..", root.join("up")).unwrap();
        let fifo = root.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let opened = RootDir::open(&root).unwrap();
        assert_eq!(opened.read(Path::new("sub/a"), 100).unwrap().bytes, b"inside");
        for gone in ["link", "up/secret", "../secret", "fifo", "sub", "missing"] {
            assert!(matches!(opened.read(Path::new(gone), 100), Err(Unread::Gone)), "{gone}");
        }
        assert!(matches!(opened.read(Path::new("sub/a"), 5), Err(Unread::TooLarge)));
    }
}
