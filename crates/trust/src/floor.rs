//! What did this machine accept before? The highest serial of each manifest, and the latest time seen.
//!
//! The floor lies in the machine's state directory, outside every folder that is prepared, so that an older
//! manifest restored or synced into the folder is refused rather than served. It must be readable and writable
//! before anything is admitted. Updates are atomic and under a lock, so two processes don't lose one of two.
//!
//! Two files: `serials.json` and `clock.json`. They are apart so that a machine whose clock once ran far ahead can
//! be mended by removing the second one, without forgetting any serial.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bastion_host::files;
use bastion_host::seen::SeenFile;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::{Fault, RefusalCode};

/// The clock may be this far behind the latest time seen.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_hours(24);
/// The latest time seen is written down when it is this much later than the one on disk.
const CLOCK_STEP: SignedDuration = SignedDuration::from_hours(1);
const MAX_BYTES: u64 = 16 << 20;

/// The floor of one machine.
#[derive(Debug, Clone)]
pub(crate) struct Floor {
    dir: PathBuf,
}

/// Whose serial it is: one manifest at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FloorKey {
    host: String,
    id: String,
    manifest: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    key: FloorKey,
    serial: u64,
    digest: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Serials {
    v: u32,
    floors: Vec<Entry>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clock {
    v: u32,
    seen: Timestamp,
}

/// The floor's files as they were, to tell cheaply that nothing changed.
#[derive(Debug)]
pub(crate) struct FloorState {
    serials: SeenFile,
    clock: SeenFile,
    seen: Timestamp,
}

impl FloorKey {
    pub(crate) fn new(host: &str, id: &str, manifest: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        let manifest = match manifest.to_str() {
            Some(text) => text.to_owned(),
            None => format!("hex:{}", crate::manifest::hex(manifest.as_os_str().as_bytes())),
        };
        Self { host: host.to_owned(), id: id.to_owned(), manifest }
    }
}

impl FloorState {
    /// Whether the clock may read `now` without the floor having to be looked at again.
    pub(crate) fn allows(&self, now: Timestamp) -> bool {
        now.duration_since(self.seen) < CLOCK_STEP && self.seen.duration_since(now) <= CLOCK_TOLERANCE
    }
}

impl Floor {
    pub(crate) fn in_state_dir(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("floors") }
    }

    fn serials_path(&self) -> PathBuf {
        self.dir.join("serials.json")
    }

    fn clock_path(&self) -> PathBuf {
        self.dir.join("clock.json")
    }

    /// Holds a signed manifest's serial against the floor and the clock against the latest time seen; where both
    /// pass, raises them.
    ///
    /// # Errors
    /// `rolled_back`, `serial_reused`, `floor_unusable`, `clock`; then nothing was written.
    pub(crate) fn admit(
        &self,
        key: &FloorKey,
        serial: Option<u64>,
        digest: &str,
        now: Timestamp,
    ) -> Result<FloorState, Fault> {
        self.locked(|serials| held_against(serials, key, serial, digest), now)
    }

    /// As [`Floor::admit`], and nothing is raised or written.
    ///
    /// # Errors
    /// `rolled_back`, `serial_reused`, `floor_unusable`.
    pub(crate) fn check(&self, key: &FloorKey, serial: Option<u64>, digest: &str) -> Result<(), Fault> {
        let (mut serials, _) = self.read_serials()?;
        held_against(&mut serials, key, serial, digest).map(|_| ())
    }

    /// As [`Floor::admit`], of a manifest that is let pass unsigned: the clock alone is judged.
    pub(crate) fn admit_unsigned(&self, now: Timestamp) -> Result<FloorState, Fault> {
        self.locked(|_| Ok(false), now)
    }

    /// The highest serial accepted for `key`.
    pub(crate) fn serial(&self, key: &FloorKey) -> Result<Option<u64>, Fault> {
        let serials = self.read_serials()?.0;
        Ok(serials.floors.iter().find(|entry| entry.key == *key).map(|entry| entry.serial))
    }

    /// Whether the files are as they were and could still be written.
    pub(crate) fn is_still(&self, state: &FloorState) -> bool {
        state.serials.is_still() && state.clock.is_still() && self.writable().is_ok()
    }

    fn locked(
        &self,
        judge: impl FnOnce(&mut Serials) -> Result<bool, Fault>,
        now: Timestamp,
    ) -> Result<FloorState, Fault> {
        files::create_private_dir(&self.dir).map_err(|error| unusable(&self.dir, &error))?;
        let _lock = self.lock().map_err(|error| unusable(&self.dir, &error))?;
        let (mut serials, mut serials_file) = self.read_serials()?;
        let clock_path = self.clock_path();
        let mut clock_file = look(&clock_path)?;
        let mut seen = match clock_file.bytes() {
            None => None,
            Some(bytes) => Some(
                serde_json::from_slice::<Clock>(bytes)
                    .map_err(|error| unusable(&clock_path, &io::Error::other(error)))?
                    .seen,
            ),
        };
        let changed = judge(&mut serials)?;
        self.writable().map_err(|error| unusable(&self.dir, &error))?;
        if let Some(seen) = seen.filter(|seen| seen.duration_since(now) > CLOCK_TOLERANCE) {
            return Err(Fault::new(
                RefusalCode::Clock,
                format!(
                    "the clock says {now:.0}, and this machine has seen {seen:.0}; set the clock right, or where it once ran ahead remove {}",
                    clock_path.display()
                ),
            ));
        }
        if changed {
            serials.v = 1;
            serials_file = write(&self.serials_path(), &serials)?;
        }
        if seen.is_none_or(|seen| now.duration_since(seen) >= CLOCK_STEP) {
            clock_file = write(&clock_path, &Clock { v: 1, seen: now })?;
            seen = Some(now);
        }
        Ok(FloorState { serials: serials_file, clock: clock_file, seen: seen.unwrap_or(now) })
    }

    fn read_serials(&self) -> Result<(Serials, SeenFile), Fault> {
        let path = self.serials_path();
        let file = look(&path)?;
        let serials = match file.bytes() {
            None => Serials::default(),
            Some(bytes) => serde_json::from_slice(bytes).map_err(|error| unusable(&path, &io::Error::other(error)))?,
        };
        Ok((serials, file))
    }

    fn lock(&self) -> io::Result<File> {
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(files::PRIVATE_FILE)
            .open(self.dir.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    fn writable(&self) -> io::Result<()> {
        use rustix::fs::{Access, access};
        Ok(access(&self.dir, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK)?)
    }
}

/// Holds a serial against the floor and raises it where it passes. Says whether anything changed.
fn held_against(serials: &mut Serials, key: &FloorKey, serial: Option<u64>, digest: &str) -> Result<bool, Fault> {
    let known = serials.floors.iter().position(|entry| entry.key == *key);
    let Some(i) = known else {
        let Some(serial) = serial else { return Ok(false) };
        serials.floors.push(Entry { key: key.clone(), serial, digest: digest.to_owned() });
        return Ok(true);
    };
    let floor = &mut serials.floors[i];
    let refuse = |code, why: String| Err(Fault::new(code, why));
    match serial {
        None => refuse(
            RefusalCode::RolledBack,
            format!("this machine accepted serial {} of this manifest, and now it has none", floor.serial),
        ),
        Some(serial) if serial < floor.serial => refuse(
            RefusalCode::RolledBack,
            format!(
                "serial {serial} is older than {}, which this machine accepted; sign again to make this one the newest",
                floor.serial
            ),
        ),
        Some(serial) if serial == floor.serial && floor.digest != digest => refuse(
            RefusalCode::SerialReused,
            format!("this machine accepted another manifest with serial {serial}; sign again for a new serial"),
        ),
        Some(serial) => {
            let raised = serial > floor.serial;
            floor.serial = serial;
            digest.clone_into(&mut floor.digest);
            Ok(raised)
        }
    }
}

fn look(path: &Path) -> Result<SeenFile, Fault> {
    SeenFile::read(path, MAX_BYTES).map_err(|error| unusable(path, &error))
}

/// Writes under the lock, so that what is read back is what was written.
fn write(path: &Path, value: &impl Serialize) -> Result<SeenFile, Fault> {
    let bytes = serde_json::to_vec(value).map_err(|error| unusable(path, &error.into()))?;
    files::replace(path, &bytes, files::PRIVATE_FILE).map_err(|error| unusable(path, &error))?;
    look(path)
}

fn unusable(path: &Path, error: &io::Error) -> Fault {
    Fault::new(
        RefusalCode::FloorUnusable,
        format!("{}: {error}; what this machine accepted before must be readable and writable", path.display()),
    )
}
