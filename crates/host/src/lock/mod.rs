//! Who may touch this now? Two locks with two lives.
//!
//! [`Exclusive`] guards a short critical section: the kernel keeps it and lets go when its holder ends, however it
//! ends. [`RunLock`] is held for the length of a run, is seen by people, by other machines and by other containers
//! as a file that names its holder, and is taken over only from a holder that is provably gone.

mod run;

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub use run::{Acquired, Holder, LockError, LockRecord, Reclaimed, ReclaimedBecause, RunLock, STALE_AFTER};

use crate::files::PRIVATE_FILE;

/// An advisory lock on a file of its own (flock(2)) for a short critical section, let go on drop.
///
/// It excludes other threads as well as other processes. The file stays, so that its inode can't change under those
/// who wait.
#[derive(Debug)]
pub struct Exclusive {
    file: File,
}

impl Exclusive {
    /// Waits for the lock on `path`, which is made (0600) where it is missing. A link is not followed.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        loop {
            match file.lock() {
                Ok(()) => return Ok(Self { file }),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes the lock if nobody holds it.
    pub fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

impl Drop for Exclusive {
    fn drop(&mut self) {
        // Closing alone would not do where another thread is just starting a child that still shares the file.
        let _ = self.file.unlock();
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(PRIVATE_FILE)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_taker_is_refused_until_the_first_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guard");
        let first = Exclusive::acquire(&path).unwrap();
        assert!(Exclusive::try_acquire(&path).unwrap().is_none());
        drop(first);
        assert!(Exclusive::try_acquire(&path).unwrap().is_some());
        Exclusive::acquire(&path).unwrap();
    }

    #[test]
    fn a_section_is_entered_by_one_thread_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("guard");
        let (path, counter) = (&path, &dir.path().join("n"));
        std::fs::write(counter, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || {
                    let _held = Exclusive::acquire(path).unwrap();
                    let n: u32 = std::fs::read_to_string(counter).unwrap().parse().unwrap();
                    std::thread::yield_now();
                    std::fs::write(counter, (n + 1).to_string()).unwrap();
                });
            }
        });
        assert_eq!(std::fs::read_to_string(counter).unwrap(), "8");
    }
}
