//! How large is a folder that an agent writes to, and how does it go away? By folder handles, never by paths.
//!
//! An agent can nest folders deeper than a path may be long, and lock them. So nothing here joins paths: each folder is
//! opened from the one above it, links are never followed, and what lies too deep is moved up before it is removed.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;

/// Folders within folders that are measured, and that are open at once while a tree is removed.
const DEEPEST: usize = 200;

/// What a folder takes up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Size {
    /// Bytes on the disk, which of a file with holes are fewer than its length.
    pub(crate) bytes: u64,
    /// Files and folders. One with several names counts as often.
    pub(crate) entries: u64,
}

/// Why a size is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unmeasured {
    /// Nested too deep.
    #[error("it has folders within folders more than {DEEPEST} deep")]
    TooDeep,
    /// A folder is locked.
    #[error("it has a folder that its owner can't read")]
    Locked,
    /// The system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What everything in `dir` takes up. What vanishes meanwhile is not counted.
///
/// # Errors
/// Where a part of it can't be looked at.
pub(crate) fn measure(dir: &Path) -> Result<Size, Unmeasured> {
    let mut size = Size::default();
    let top = openat(CWD, dir, FOLDER, Mode::empty()).map_err(io::Error::from)?;
    add(top, 0, &mut size)?;
    Ok(size)
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn add(folder: OwnedFd, depth: usize, size: &mut Size) -> Result<(), Unmeasured> {
    let mut entries = Dir::read_from(&folder).map_err(io::Error::from)?;
    while let Some(entry) = entries.read() {
        let entry = match entry {
            Err(Errno::NOENT) => return Ok(()), // the folder itself was removed
            other => other.map_err(io::Error::from)?,
        };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let stat = match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            Err(Errno::ACCESS) => return Err(Unmeasured::Locked),
            other => other.map_err(io::Error::from)?,
        };
        size.bytes = size.bytes.saturating_add(u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512));
        size.entries += 1;
        if FileType::from_raw_mode(stat.st_mode).is_dir() {
            if depth >= DEEPEST {
                return Err(Unmeasured::TooDeep);
            }
            match openat(&folder, name, FOLDER, Mode::empty()) {
                Ok(inner) => add(inner, depth + 1, size)?,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {} // gone, or another thing by now
                Err(Errno::ACCESS) => return Err(Unmeasured::Locked),
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }
    Ok(())
}

/// Removes `dir` and all in it, also what is nested deeper than a path may be long or locked by its modes. Nobody may
/// write to it meanwhile. One that is not there is removed.
///
/// # Errors
/// Where a part of it can't be removed; the rest then may be.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    let stat = match statat(CWD, dir, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    if !FileType::from_raw_mode(stat.st_mode).is_dir() {
        return Ok(unlinkat(CWD, dir, AtFlags::empty())?);
    }
    let top = open_for_removal(CWD, dir)?;
    let mut moved = 0;
    loop {
        let before = moved;
        empty(top.as_fd(), top.as_fd(), 0, &mut moved)?;
        if moved == before {
            break;
        }
    }
    drop(top);
    Ok(unlinkat(CWD, dir, AtFlags::REMOVEDIR)?)
}

/// Opens a folder that is to be emptied, whatever its mode is.
fn open_for_removal<P: rustix::path::Arg + Copy>(parent: BorrowedFd<'_>, name: P) -> io::Result<OwnedFd> {
    // it is a folder and nobody else is at work here, so this can't be led elsewhere by a link
    chmodat(parent, name, Mode::RWXU, AtFlags::empty())?;
    Ok(openat(parent, name, FOLDER, Mode::empty())?)
}

fn empty(top: BorrowedFd<'_>, folder: BorrowedFd<'_>, depth: usize, moved: &mut u64) -> io::Result<()> {
    let mut names: Vec<CString> = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            names.push(name);
        }
    }
    for name in names {
        let stat = statat(folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        if !FileType::from_raw_mode(stat.st_mode).is_dir() {
            unlinkat(folder, &name, AtFlags::empty())?;
            continue;
        }
        let inner = open_for_removal(folder, &name)?;
        if depth < DEEPEST {
            empty(top, inner.as_fd(), depth + 1, moved)?;
            drop(inner);
            unlinkat(folder, &name, AtFlags::REMOVEDIR)?;
        } else {
            // up to the top, where the next round finds it: no more than so many folders are ever open
            *moved += 1;
            let place = unused(top, *moved)?;
            renameat(folder, &name, top, &place)?;
        }
    }
    Ok(())
}

/// A new empty folder at the top, for another to take the place of.
fn unused(top: BorrowedFd<'_>, n: u64) -> io::Result<CString> {
    let mut try_ = 0_u64;
    loop {
        let name = CString::new(format!(".bastion-moved-{n}-{try_}")).map_err(io::Error::other)?;
        match mkdirat(top, &name, Mode::RWXU) {
            Ok(()) => return Ok(name),
            Err(Errno::EXIST) => try_ += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// `deep` folders in each other, longer than any path, with a file in the last.
    fn deep(inside: &Path, deep: usize) {
        let mut here = openat(CWD, inside, FOLDER, Mode::empty()).unwrap();
        for _ in 0..deep {
            mkdirat(&here, "folder-with-a-long-name", Mode::RWXU).unwrap();
            here = openat(&here, "folder-with-a-long-name", FOLDER, Mode::empty()).unwrap();
        }
        openat(&here, "last", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
    }

    #[test]
    fn a_size_is_what_the_disk_holds() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        fs::write(dir.path().join("a/b/c"), vec![1; 100_000]).unwrap();
        fs::File::create(dir.path().join("hole")).unwrap().set_len(1 << 40).unwrap();
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).unwrap();
        let size = measure(dir.path()).unwrap();
        assert_eq!(size.entries, 5);
        assert!((100_000..1_000_000).contains(&size.bytes), "{size:?}");
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let dir = tempfile::tempdir().unwrap();
        deep(dir.path(), DEEPEST);
        assert!(measure(dir.path()).is_ok());
        deep(&dir.path().join("folder-with-a-long-name"), 0); // still fine
        let other = tempfile::tempdir().unwrap();
        deep(other.path(), DEEPEST + 1);
        assert!(matches!(measure(other.path()), Err(Unmeasured::TooDeep)));
        if rustix::process::geteuid().is_root() {
            println!("SKIPPED: root reads locked folders");
            return;
        }
        let locked = tempfile::tempdir().unwrap();
        fs::create_dir(locked.path().join("a")).unwrap();
        fs::set_permissions(locked.path().join("a"), fs::Permissions::from_mode(0o300)).unwrap();
        assert!(matches!(measure(locked.path()), Err(Unmeasured::Locked)));
    }

    #[test]
    fn whatever_was_nested_or_locked_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        fs::create_dir(&tree).unwrap();
        deep(&tree, 1_000);
        fs::create_dir_all(tree.join("locked/inner")).unwrap();
        fs::write(tree.join("locked/inner/file"), "x").unwrap();
        fs::set_permissions(tree.join("locked/inner"), fs::Permissions::from_mode(0o0)).unwrap();
        fs::set_permissions(tree.join("locked"), fs::Permissions::from_mode(0o500)).unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, tree.join("link")).unwrap();
        remove(&tree).unwrap();
        assert!(!tree.exists() && outside.join("kept").exists());
        remove(&tree).unwrap();
    }

    #[test]
    fn a_link_in_the_place_of_the_tree_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("real")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        remove(&dir.path().join("link")).unwrap();
        assert!(dir.path().join("real").exists() && dir.path().join("link").symlink_metadata().is_err());
        std::os::unix::fs::symlink("/usr", dir.path().join("link")).unwrap();
        assert!(measure(&dir.path().join("link")).is_err());
    }
}
