//! Is a run going on here, and whose? A lock file that names its holder.
//!
//! Rules it keeps:
//! - the file is made with O_EXCL, so of many that find none, one wins;
//! - it is stale only when its holder is provably gone; where that can't be checked (another machine or pid
//!   namespace, an unreadable file) after [`STALE_AFTER`] by its modification time;
//! - the path changes its file only in the hands of one who holds flock(2) on the file that is there *and* has seen,
//!   after getting it, that the path still leads to that file. So of many reclaimers one wins, the path is never
//!   without a file in between, and nobody removes a lock that is not his.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::clock::{Clock, UtcMillis, rfc3339_millis};
use crate::files::{PRIVATE_FILE, create_temporary};
use crate::process::{Fate, ProcessIdentity};

/// How long a lock counts whose holder can't be checked.
pub const STALE_AFTER: SignedDuration = SignedDuration::from_hours(12);

/// A lock file is a few hundred bytes; more is not ours.
const MAX_BYTES: u64 = 4096;
/// A lock that is being made or taken over this moment is looked at again, for about a second.
const PATIENCE: (u32, Duration) = (200, Duration::from_millis(5));

/// The content of a lock file: one JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockRecord {
    /// The process that holds the lock.
    #[serde(flatten)]
    pub process: ProcessIdentity,
    /// When it took it.
    pub taken: UtcMillis,
}

/// Who holds a lock, as far as its file tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// What the file says; `None` where it can't be read.
    pub record: Option<LockRecord>,
    /// Whether the holder runs where it can't be seen from here: another machine or container.
    pub elsewhere: bool,
    /// When the file was last changed.
    pub modified: Timestamp,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.record {
            Some(record) => {
                let place = if self.elsewhere { " on another machine or in another container" } else { "" };
                write!(f, "process {}{place} since {}", record.process.pid, rfc3339_millis(record.taken.0))
            }
            None => write!(f, "an unknown process since {}", rfc3339_millis(self.modified)),
        }
    }
}

/// Why a lock was taken from its holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReclaimedBecause {
    /// The process is provably gone.
    Gone,
    /// It can't be checked and the lock was untouched for [`STALE_AFTER`].
    Age,
}

/// A lock that was taken over, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaimed {
    /// What the lock file said; `None` where it couldn't be read.
    pub holder: Option<LockRecord>,
    /// Why it was stale.
    pub because: ReclaimedBecause,
}

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("{} is held by {holder}", path.display())]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        holder: Box<Holder>,
    },
    /// The file can't be made, read or replaced.
    #[error("cannot use the lock {}: {source}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// A lock that was got.
#[derive(Debug)]
#[must_use = "the lock is let go on drop"]
pub struct Acquired {
    /// The lock itself.
    pub lock: RunLock,
    /// Whose lock it was before, where it had to be taken over.
    pub reclaimed: Option<Reclaimed>,
}

/// A held lock. Dropping it removes the file, if it is still ours.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    /// Kept open, so that the file's inode number is given to no other file while we compare by it.
    file: File,
}

impl RunLock {
    /// Takes the lock `path` for this process. Never waits for a holder.
    pub fn acquire(path: &Path, clock: &dyn Clock) -> Result<Acquired, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let held = |holder| LockError::Held { path: path.to_owned(), holder: Box::new(holder) };
        let record = LockRecord { process: ProcessIdentity::current(), taken: UtcMillis(clock.now()) };
        let content = serde_json::to_string(&record).map_err(|error| io(error.into()))? + "\n";
        let mut looks = 0;
        loop {
            if let Some(file) = create(path, &content).map_err(io)? {
                return Ok(Acquired { lock: Self { path: path.to_owned(), file }, reclaimed: None });
            }
            looks += 1;
            match claim(path, &content, &record.process, clock.now()).map_err(io)? {
                Claim::Won(file, reclaimed) => {
                    return Ok(Acquired { lock: Self { path: path.to_owned(), file }, reclaimed: Some(reclaimed) });
                }
                Claim::Held(holder) => return Err(held(holder)),
                Claim::Unsettled(Some(holder)) if looks >= PATIENCE.0 => return Err(held(holder)),
                Claim::Unsettled(_) if looks >= PATIENCE.0 * 2 => {
                    return Err(io(io::Error::new(io::ErrorKind::WouldBlock, "it changes hands all the time")));
                }
                Claim::Unsettled(_) => std::thread::sleep(PATIENCE.1),
            }
        }
    }

    /// Who holds the lock `path` now: nobody where there is none or it is stale.
    pub fn holder(path: &Path, clock: &dyn Clock) -> io::Result<Option<Holder>> {
        let Some(seen) = Seen::open(path)? else { return Ok(None) };
        Ok(match seen.verdict(&ProcessIdentity::current(), clock.now())? {
            Verdict::Held(holder) | Verdict::Unreadable(holder) => Some(holder),
            Verdict::Stale(_) => None,
        })
    }

    /// Says that the holder is still there, to those who can judge it by age only.
    pub fn refresh(&self, clock: &dyn Clock) -> io::Result<()> {
        self.file.set_modified(SystemTime::from(clock.now()))
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // A reclaimer that judged us by age may be at work: it is out of its critical section in a moment. Where the
        // file can't be had or removed, it stays and is reclaimed once this process is gone.
        for _ in 0..PATIENCE.0 {
            if self.file.try_lock().is_ok() {
                if leads_to(&self.path, &self.file).unwrap_or(false) {
                    let _ = fs::remove_file(&self.path);
                }
                return;
            }
            std::thread::sleep(PATIENCE.1);
        }
    }
}

/// Makes the lock file, `None` where there is one.
fn create(path: &Path, content: &str) -> io::Result<Option<File>> {
    let mut file = match OpenOptions::new().read(true).write(true).create_new(true).mode(PRIVATE_FILE).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.write_all(content.as_bytes()).and_then(|()| file.sync_all()) {
        Ok(()) => Ok(Some(file)),
        Err(error) => {
            // Dropping it takes it away again: a full disk must not leave a lock that nobody holds.
            drop(RunLock { path: path.to_owned(), file });
            Err(error)
        }
    }
}

enum Claim {
    Won(File, Reclaimed),
    Held(Holder),
    /// The lock is changing hands or being written: look again.
    Unsettled(Option<Holder>),
}

/// Takes the lock over if it is stale.
fn claim(path: &Path, content: &str, here: &ProcessIdentity, now: Timestamp) -> io::Result<Claim> {
    let Some(seen) = Seen::open(path)? else { return Ok(Claim::Unsettled(None)) };
    match seen.verdict(here, now)? {
        Verdict::Held(holder) => return Ok(Claim::Held(holder)),
        Verdict::Unreadable(holder) => return Ok(Claim::Unsettled(Some(holder))),
        Verdict::Stale(_) => {}
    }
    match seen.file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(Claim::Unsettled(Some(seen.holder(here)?))),
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    if !leads_to(path, &seen.file)? {
        return Ok(Claim::Unsettled(None));
    }
    // Nobody else can replace or remove it now. It is judged again, as its holder may have refreshed it meanwhile.
    let Verdict::Stale(because) = seen.verdict(here, now)? else { return Ok(Claim::Unsettled(None)) };
    let file = put_in_place(path, content)?;
    Ok(Claim::Won(file, Reclaimed { holder: seen.record, because }))
}

/// Replaces the lock file by a new one of ours in one step.
fn put_in_place(path: &Path, content: &str) -> io::Result<File> {
    let (temporary, mut file) = create_temporary(path, PRIVATE_FILE)?;
    let result = (|| {
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result.map(|()| file)
}

/// Whether `path` is this very file.
fn leads_to(path: &Path, file: &File) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

enum Verdict {
    Held(Holder),
    /// Held, by whom can't be read: perhaps it is being written this moment.
    Unreadable(Holder),
    Stale(ReclaimedBecause),
}

/// A lock file that was opened and read. Its content never changes, only its modification time does.
struct Seen {
    file: File,
    record: Option<LockRecord>,
}

impl Seen {
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let mut bytes = Vec::new();
        (&file).take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(Some(Self { record: serde_json::from_slice(&bytes).ok(), file }))
    }

    fn holder(&self, here: &ProcessIdentity) -> io::Result<Holder> {
        let elsewhere = self.record.as_ref().is_some_and(|record| record.process.fate(here) == Fate::Unknown);
        Ok(Holder { record: self.record.clone(), elsewhere, modified: self.modified()? })
    }

    fn modified(&self) -> io::Result<Timestamp> {
        Timestamp::try_from(self.file.metadata()?.modified()?).map_err(io::Error::other)
    }

    fn verdict(&self, here: &ProcessIdentity, now: Timestamp) -> io::Result<Verdict> {
        match self.record.as_ref().map(|record| record.process.fate(here)) {
            Some(Fate::Gone) => return Ok(Verdict::Stale(ReclaimedBecause::Gone)),
            Some(Fate::Alive) => return Ok(Verdict::Held(self.holder(here)?)),
            Some(Fate::Unknown) | None => {}
        }
        // A time of change that lies ahead (a clock was set) counts as young: nothing is proven.
        if now.duration_since(self.modified()?) >= STALE_AFTER {
            return Ok(Verdict::Stale(ReclaimedBecause::Age));
        }
        let holder = self.holder(here)?;
        Ok(if holder.record.is_some() { Verdict::Held(holder) } else { Verdict::Unreadable(holder) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{ManualClock, SystemClock};

    fn provable() -> bool {
        let me = ProcessIdentity::current();
        let can = me.fate(&me) == Fate::Alive;
        if !can {
            println!("SKIPPED: this system does not name its processes");
        }
        can
    }

    fn write_lock(path: &Path, change: impl FnOnce(&mut ProcessIdentity)) {
        let mut process = ProcessIdentity::current();
        change(&mut process);
        let record = LockRecord { process, taken: UtcMillis("2026-01-02T03:04:05.678Z".parse().unwrap()) };
        fs::write(path, serde_json::to_string(&record).unwrap()).unwrap();
    }

    fn dead(process: &mut ProcessIdentity) {
        process.start_ticks = process.start_ticks.map(|ticks| ticks + 1);
    }

    fn set_age(path: &Path, clock: &dyn Clock, age: SignedDuration) {
        let modified = clock.now().checked_sub(age).unwrap();
        OpenOptions::new().write(true).open(path).unwrap().set_modified(SystemTime::from(modified)).unwrap();
    }

    #[test]
    fn a_second_holder_is_refused_and_the_first_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        let clock = ManualClock::at("2026-01-02T03:04:05.678Z".parse().unwrap());
        let first = RunLock::acquire(&path, &clock).unwrap();
        assert_eq!(first.reclaimed, None);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let refused = RunLock::acquire(&path, &clock).unwrap_err();
        let words = refused.to_string();
        assert!(words.contains(&format!("process {}", std::process::id())), "{words}");
        assert!(words.contains("since 2026-01-02T03:04:05.678Z"), "{words}");
        drop(first);
        assert!(!path.exists());
        drop(RunLock::acquire(&path, &clock).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "no litter");
    }

    #[test]
    fn a_live_holder_keeps_its_lock_however_old() {
        if !provable() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        let _held = RunLock::acquire(&path, &SystemClock).unwrap();
        set_age(&path, &SystemClock, SignedDuration::from_hours(24 * 365));
        assert!(matches!(RunLock::acquire(&path, &SystemClock), Err(LockError::Held { .. })));
    }

    #[test]
    fn a_dead_or_rebooted_or_reused_holder_is_reclaimed_at_once() {
        if !provable() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        let changes: [fn(&mut ProcessIdentity); 3] =
            [dead, |process| process.pid = i32::MAX as u32, |process| process.boot_id = Some("an earlier boot".into())];
        for change in changes {
            write_lock(&path, change);
            let got = RunLock::acquire(&path, &SystemClock).unwrap();
            let reclaimed = got.reclaimed.unwrap();
            assert_eq!(reclaimed.because, ReclaimedBecause::Gone);
            assert_eq!(rfc3339_millis(reclaimed.holder.unwrap().taken.0), "2026-01-02T03:04:05.678Z");
            assert!(fs::read_to_string(&path).unwrap().contains(&format!("\"pid\":{}", std::process::id())));
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_checked_is_judged_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        let changes: [fn(&mut ProcessIdentity); 3] = [
            |process| process.machine_id = Some("another".into()),
            |process| process.pid_namespace = Some("pid:[1]".into()),
            |process| process.start_ticks = None,
        ];
        for change in changes {
            write_lock(&path, change);
            set_age(&path, &SystemClock, STALE_AFTER - SignedDuration::from_mins(1));
            let Err(LockError::Held { holder, .. }) = RunLock::acquire(&path, &SystemClock) else {
                panic!("taken before its time")
            };
            assert!(holder.elsewhere && holder.to_string().contains("another machine"));
            set_age(&path, &SystemClock, STALE_AFTER);
            assert_eq!(
                RunLock::acquire(&path, &SystemClock).unwrap().reclaimed.unwrap().because,
                ReclaimedBecause::Age
            );
        }
    }

    #[test]
    fn an_unreadable_lock_is_judged_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        for content in ["", "{\"pid\":1", "4711\n"] {
            fs::write(&path, content).unwrap();
            assert!(matches!(RunLock::acquire(&path, &SystemClock), Err(LockError::Held { holder, .. })
                if holder.record.is_none() && holder.to_string().starts_with("an unknown process since ")));
            set_age(&path, &SystemClock, STALE_AFTER);
            let reclaimed = RunLock::acquire(&path, &SystemClock).unwrap().reclaimed.unwrap();
            assert_eq!(reclaimed, Reclaimed { holder: None, because: ReclaimedBecause::Age });
        }
    }

    #[test]
    fn a_time_of_change_that_lies_ahead_proves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        write_lock(&path, |process| process.machine_id = Some("another".into()));
        set_age(&path, &SystemClock, SignedDuration::from_hours(-1000));
        assert!(matches!(RunLock::acquire(&path, &SystemClock), Err(LockError::Held { .. })));
    }

    #[test]
    fn a_refreshed_lock_is_young_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        let held = RunLock::acquire(&path, &SystemClock).unwrap();
        set_age(&path, &SystemClock, SignedDuration::from_hours(100));
        held.lock.refresh(&SystemClock).unwrap();
        let age = SystemTime::now().duration_since(fs::metadata(&path).unwrap().modified().unwrap());
        assert!(age.unwrap_or_default() < Duration::from_secs(3600));
    }

    #[test]
    fn nobody_removes_a_lock_that_is_not_his() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        let first = RunLock::acquire(&path, &SystemClock).unwrap();
        fs::remove_file(&path).unwrap();
        write_lock(&path, |process| process.machine_id = Some("another".into()));
        drop(first);
        assert!(path.exists());
    }

    #[test]
    fn a_panic_lets_go() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        let run = std::panic::catch_unwind(|| {
            let _held = RunLock::acquire(&path, &SystemClock).unwrap();
            std::panic::resume_unwind(Box::new("a stage broke"));
        });
        assert!(run.is_err() && !path.exists());
    }

    #[test]
    fn a_link_or_a_folder_in_its_place_is_an_error_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (path, target) = (dir.path().join("sweep.lock"), dir.path().join("precious"));
        fs::write(&target, "precious").unwrap();
        std::os::unix::fs::symlink(&target, &path).unwrap();
        assert!(matches!(RunLock::acquire(&path, &SystemClock), Err(LockError::Io { .. })));
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(RunLock::acquire(&path, &SystemClock), Err(LockError::Io { .. })));
    }

    #[test]
    fn the_holder_is_shown_to_those_who_ask() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.lock");
        assert_eq!(RunLock::holder(&path, &SystemClock).unwrap(), None);
        let held = RunLock::acquire(&path, &SystemClock).unwrap();
        let holder = RunLock::holder(&path, &SystemClock).unwrap().unwrap();
        assert_eq!(holder.record.unwrap().process.pid, std::process::id());
        drop(held);
        if provable() {
            write_lock(&path, dead);
            assert_eq!(RunLock::holder(&path, &SystemClock).unwrap(), None);
            assert!(path.exists(), "looking changes nothing");
        }
    }

    #[test]
    fn of_twenty_reclaiming_threads_one_wins() {
        if !provable() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("sweep.lock");
        for _ in 0..20 {
            write_lock(path, dead);
            let barrier = &std::sync::Barrier::new(20);
            let results: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..20)
                    .map(|_| {
                        scope.spawn(move || {
                            barrier.wait();
                            let got = RunLock::acquire(path, &SystemClock);
                            barrier.wait(); // the winner keeps it until all have tried
                            got
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let won: Vec<_> = results.iter().flatten().collect();
            assert_eq!(won.len(), 1);
            assert_eq!(won[0].reclaimed.as_ref().unwrap().because, ReclaimedBecause::Gone);
            for lost in results.iter().filter_map(|result| result.as_ref().err()) {
                let LockError::Held { holder, .. } = lost else { panic!("{lost}") };
                assert_eq!(holder.record.as_ref().unwrap().process.pid, std::process::id());
            }
            drop(results);
            assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }
}
