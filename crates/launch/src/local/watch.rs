//! Does a run take more of the disk than it may? Looked at while it runs.
//!
//! `/sandbox` lies on a disk of this machine, and an ordinary user can set no quota there. So its size is measured again
//! and again, the oftener the quicker that goes; and because an agent can hide what it writes (a removed file that is
//! still open), the disk's free space is looked at each second too, which nothing escapes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::tree::{self, Unmeasured};

/// Bytes that `/sandbox` may hold.
pub(crate) const MOST_BYTES: u64 = 8 << 30;
/// Files and folders that it may hold.
pub(crate) const MOST_ENTRIES: u64 = 1_000_000;
/// Bytes that stay free on the disk, or half of what was free at the beginning.
const FREE_BYTES: u64 = 1 << 30;
/// Files that the disk can still take, or half.
const FREE_ENTRIES: u64 = 100_000;
/// Measuring takes no more than this share of the time.
const SHARE: u32 = 20;

/// The watch over one run's folder.
pub(crate) struct Watch {
    dir: PathBuf,
    floor: Free,
    due: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Free {
    bytes: u64,
    /// None where the file system has no such bound.
    entries: Option<u64>,
}

impl Watch {
    /// Begins to watch. Gives none where the disk can't be asked, which is no reason to run unwatched.
    pub(crate) fn new(dir: &Path) -> std::io::Result<Self> {
        let now = free(dir)?;
        let floor = Free {
            bytes: FREE_BYTES.min(now.bytes / 2),
            entries: now.entries.map(|entries| FREE_ENTRIES.min(entries / 2)),
        };
        Ok(Self { dir: dir.to_owned(), floor, due: Instant::now() })
    }

    /// Why the run has to end, if it has to. To be asked each second.
    pub(crate) fn fault(&mut self) -> Option<String> {
        match free(&self.dir) {
            Err(error) => return Some(format!("the free space of its disk can't be looked at: {error}")),
            Ok(now) => {
                let few = now.entries.zip(self.floor.entries).is_some_and(|(now, floor)| now < floor);
                if now.bytes < self.floor.bytes || few {
                    return Some("the disk that holds /sandbox is almost full".to_owned());
                }
            }
        }
        if Instant::now() < self.due {
            return None;
        }
        let started = Instant::now();
        let fault = judge(tree::measure(&self.dir));
        self.due = Instant::now() + (started.elapsed() * SHARE).max(Duration::from_secs(2));
        fault
    }
}

fn judge(size: Result<tree::Size, Unmeasured>) -> Option<String> {
    match size {
        Ok(size) if size.bytes > MOST_BYTES => Some(format!("/sandbox holds more than {} GiB", MOST_BYTES >> 30)),
        Ok(size) if size.entries > MOST_ENTRIES => Some(format!("/sandbox holds more than {MOST_ENTRIES} files")),
        Ok(_) => None,
        Err(error) => Some(format!("the size of /sandbox can't be measured: {error}")),
    }
}

fn free(dir: &Path) -> std::io::Result<Free> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(Free {
        bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        entries: (disk.f_files > 0).then_some(disk.f_favail),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_outgrows_its_bound_or_cannot_be_measured_ends_the_run() {
        let size = |bytes, entries| judge(Ok(tree::Size { bytes, entries }));
        assert_eq!(size(MOST_BYTES, MOST_ENTRIES), None);
        assert!(size(MOST_BYTES + 1, 0).unwrap().contains("8 GiB"));
        assert!(size(0, MOST_ENTRIES + 1).unwrap().contains("files"));
        for error in [Unmeasured::TooDeep, Unmeasured::Locked] {
            assert!(judge(Err(error)).unwrap().contains("can't be measured"));
        }
    }

    #[test]
    fn a_full_disk_ends_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = Watch::new(dir.path()).unwrap();
        assert_eq!(watch.fault(), None);
        watch.floor.bytes = u64::MAX;
        assert!(watch.fault().unwrap().contains("almost full"));
        watch.floor = Free { bytes: 0, entries: None };
        std::fs::remove_dir(dir.path()).unwrap();
        assert!(watch.fault().is_some());
    }
}
