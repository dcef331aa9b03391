//! Where is what of a local run? One private folder in the state folder, beside the run's record.
//!
//! Only `sandbox/` is in the agent's reach. What the launcher writes down (what went out, what was printed, how it ended)
//! lies beside it, so that an agent can neither blank nor forge it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use bastion_host::files::{self, read_capped};
use bastion_host::lock::Exclusive;
use bastion_host::process::{Fate, ProcessIdentity};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use serde::{Deserialize, Serialize};

use super::tree;
use crate::error::LaunchError;

const MAX_NOTE: u64 = 64 << 20;
const MAX_LINE: u64 = 64 << 10;
/// Where the supervisor keeps its state inside `/sandbox`, unless it is told otherwise.
const STATE: &str = ".openshell-agent";
const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Where `/sandbox` is inside.
pub(crate) const SANDBOX: &str = "/sandbox";

/// The folder of a run.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    root: PathBuf,
}

/// How a run ended, as its launcher wrote it down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// The run's exit status.
    pub(crate) exit: u8,
    /// Why it was ended, where it did not end by itself.
    pub(crate) why: Option<String>,
    /// The supervisor's last report.
    pub(crate) report: serde_json::Value,
}

/// Whether a run's launcher is there.
pub(crate) enum Launcher {
    /// It is.
    Alive(ProcessIdentity),
    /// It has not come up yet, or never will.
    Starting,
    /// Nobody holds the run.
    Gone,
}

impl Layout {
    /// That of the run of this name.
    pub(crate) fn of(state_dir: &Path, name: &str) -> Self {
        Self { root: state_dir.join("runs").join(name) }
    }

    /// That at `root`.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The agent's own folder.
    pub(crate) fn sandbox(&self) -> PathBuf {
        self.root.join("sandbox")
    }

    pub(crate) fn payload(&self) -> PathBuf {
        self.root.join("payload")
    }

    /// What went out, one line a decision.
    pub(crate) fn egress(&self) -> PathBuf {
        self.root.join("egress.jsonl")
    }

    /// What was printed.
    pub(crate) fn output(&self) -> PathBuf {
        self.root.join("output.log")
    }

    fn ending_file(&self) -> PathBuf {
        self.root.join("ended.json")
    }

    fn launcher_file(&self) -> PathBuf {
        self.root.join("launcher.json")
    }

    /// Makes the folder, which must not be there. `owner` gets the agent's folder.
    pub(crate) fn make(&self, owner: (u32, u32)) -> Result<(), LaunchError> {
        let parent = self.root.parent().unwrap_or(&self.root);
        files::create_private_dir(parent).map_err(LaunchError::file(parent))?;
        let dir = |path: &Path| {
            use std::os::unix::fs::DirBuilderExt as _;
            std::fs::DirBuilder::new().mode(files::PRIVATE_DIR).create(path).map_err(LaunchError::file(path))
        };
        dir(&self.root)?;
        let home = self.sandbox().join("home");
        for path in [self.sandbox(), home] {
            dir(&path)?;
            // by root it is the sandbox's spare user that owns it; for others this changes nothing
            std::os::unix::fs::chown(&path, Some(owner.0), Some(owner.1)).map_err(LaunchError::file(&path))?;
        }
        Ok(())
    }

    /// Takes the run for this process, until what is given back is dropped.
    pub(crate) fn hold(&self) -> Result<Exclusive, LaunchError> {
        let lock = self.root.join("launcher.lock");
        let held = Exclusive::try_acquire(&lock).map_err(LaunchError::file(&lock))?;
        let held = held.ok_or_else(|| LaunchError::refused("this run", "has a launcher already"))?;
        let file = self.launcher_file();
        let bytes =
            serde_json::to_vec(&ProcessIdentity::current()).map_err(|error| LaunchError::file(&file)(error.into()))?;
        files::replace(&file, &bytes, files::PRIVATE_FILE).map_err(LaunchError::file(&file))?;
        Ok(held)
    }

    /// Who holds the run.
    pub(crate) fn launcher(&self) -> Result<Launcher, LaunchError> {
        let lock = self.root.join("launcher.lock");
        let file = self.launcher_file();
        if file.symlink_metadata().is_err() {
            return Ok(Launcher::Starting);
        }
        if Exclusive::try_acquire(&lock).map_err(LaunchError::file(&lock))?.is_some() {
            return Ok(Launcher::Gone);
        }
        let bytes = read_capped(&file, MAX_NOTE).map_err(LaunchError::file(&file))?;
        let identity: ProcessIdentity =
            serde_json::from_slice(&bytes).map_err(|error| LaunchError::file(&file)(error.into()))?;
        Ok(match identity.fate(&ProcessIdentity::current()) {
            Fate::Gone => Launcher::Gone, // a child of its that has not yet closed the lock
            Fate::Alive | Fate::Unknown => Launcher::Alive(identity),
        })
    }

    /// Whether its launcher is alive.
    pub(crate) fn is_held(&self) -> Result<bool, LaunchError> {
        Ok(matches!(self.launcher()?, Launcher::Alive(_)))
    }

    /// The report on the run as it is now.
    pub(crate) fn report(&self, state_dir: Option<&str>, log: bool) -> serde_json::Value {
        let inside = state_dir.unwrap_or(STATE);
        // what is not below /sandbox does not outlive the sandbox and can't be seen from here
        let place = Path::new(inside).strip_prefix(SANDBOX).unwrap_or(Path::new(inside));
        let mut report = match self.below(place) {
            // by its handle: whatever the agent puts into its place, this folder is read
            Ok(folder) => {
                let dir = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
                serde_json::from_slice(&crate::runs::read_folder(&dir, false)).unwrap_or_default()
            }
            Err(_) => serde_json::json!({ "status": null, "history": [] }),
        };
        report["output"] = self.printed(log).into();
        report
    }

    /// The end of what it printed.
    fn printed(&self, all: bool) -> String {
        super::output::kept(&self.output(), all)
    }

    /// A folder of the agent's own folder, reached without a link and without leaving it.
    fn below(&self, place: &Path) -> io::Result<OwnedFd> {
        let top = openat2(CWD, self.sandbox(), DIRECTORY, Mode::empty(), ResolveFlags::empty())?;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(&top, place, DIRECTORY, Mode::empty(), within)?)
    }

    /// Hands on what went out, a line at a time. Says whether there is such a log.
    pub(crate) fn decisions(&self, each: &mut dyn FnMut(serde_json::Value)) -> Result<bool, LaunchError> {
        let file = self.egress();
        for path in [file.with_extension("jsonl.1"), file.clone()] {
            let log = match File::open(&path) {
                Ok(log) => log,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(LaunchError::file(&path)(error)),
            };
            let mut log = BufReader::new(log);
            let mut line = Vec::new();
            while log.by_ref().take(MAX_LINE).read_until(b'\n', &mut line).map_err(LaunchError::file(&path))? > 0 {
                if let Some(decision) = serde_json::from_slice(&line).ok().filter(serde_json::Value::is_object) {
                    each(decision);
                }
                line.clear();
            }
        }
        Ok(file.symlink_metadata().is_ok())
    }

    /// How it ended, where its launcher lived to write that down; `log`: with all that it printed.
    pub(crate) fn ending(&self, log: bool) -> Option<Ending> {
        let bytes = read_capped(&self.ending_file(), MAX_NOTE).ok()?;
        let mut ending: Ending = serde_json::from_slice(&bytes).ok()?;
        ending.report["output"] = self.printed(log).into();
        Some(ending)
    }

    /// Writes down how it ended. What it printed stands in its own file.
    pub(crate) fn end(&self, ending: &Ending) -> Result<(), LaunchError> {
        let file = self.ending_file();
        let mut ending = ending.clone();
        if let Some(report) = ending.report.as_object_mut() {
            report.remove("output");
        }
        let bytes = serde_json::to_vec(&ending).map_err(|error| LaunchError::file(&file)(error.into()))?;
        files::replace(&file, &bytes, files::PRIVATE_FILE).map_err(LaunchError::file(&file))
    }

    /// Whether the agent's folder is there.
    pub(crate) fn has_sandbox(&self) -> bool {
        self.sandbox().symlink_metadata().is_ok()
    }

    /// Removes the sandbox and the payload; what was written down stays.
    pub(crate) fn clear(&self) -> Result<(), LaunchError> {
        for path in [self.sandbox(), self.payload()] {
            tree::remove(&path).map_err(LaunchError::file(&path))?;
        }
        Ok(())
    }

    /// Removes all of it.
    pub(crate) fn remove(&self) -> Result<(), LaunchError> {
        match tree::remove(&self.root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LaunchError::file(&self.root)(error)),
            _ => Ok(()),
        }
    }
}
