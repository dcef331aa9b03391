//! Who the sandbox is on the host: an ordinary user itself, or, for root, somebody who owns nothing.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{FlockOperation, flock};

use super::{Layer, SandboxError};

/// Numbers that systemd's documentation sets aside for users that exist only while something runs
/// (<https://systemd.io/UIDS-GIDS>); no distribution gives them to people.
const SPARE: std::ops::RangeInclusive<u32> = 61184..=65519;

/// Where root's runs claim their numbers from each other.
const CLAIMS: &str = "/run/bastion-sandbox";

/// Claims of this process, held until it ends.
static CLAIMED: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// A user and a group of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

impl Identity {
    /// An ordinary user is itself. For root, a number that is in neither `/etc/passwd` nor `/etc/group`, that no
    /// process has, and that no other run of root's has claimed; the claim lasts until this process ends.
    pub fn choose() -> Result<Self, SandboxError> {
        let own = Self::own();
        if own.uid != 0 {
            return Ok(own);
        }
        let step = |step: &str, error: io::Error| SandboxError::Step {
            layer: Layer::Identity,
            step: step.to_owned(),
            why: error.to_string(),
        };
        let taken = taken().map_err(|error| step("looking for a spare user", error))?;
        prepare_claims().map_err(|error| step(CLAIMS, error))?;
        // Two runs that start together begin their search at different places.
        let first = std::process::id() % u32::try_from(SPARE.count()).unwrap_or(1);
        let order = SPARE.skip(first as usize).chain(SPARE.take(first as usize));
        for uid in order.filter(|uid| !taken.contains(uid)) {
            if claim(uid).map_err(|error| step("claiming a spare user", error))? {
                return Ok(Self { uid, gid: uid });
            }
        }
        Err(step("looking for a spare user", io::Error::other("all are in use")))
    }

    pub(super) fn own() -> Self {
        Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
    }

    /// Refuses one that a sandbox can't or must not have.
    pub(super) fn judge(self) -> Result<(), SandboxError> {
        let bad = |why| Err(SandboxError::Plan { subject: format!("uid {} gid {}", self.uid, self.gid), why });
        match Self::own() {
            own if own.uid != 0 && own != self => bad("an ordinary user's sandbox is that user"),
            own if own.uid == 0 && (self.uid == 0 || self.gid == 0) => bad("root's sandbox is never root"),
            _ => Ok(()),
        }
    }
}

/// Numbers of users, groups and processes.
fn taken() -> io::Result<HashSet<u32>> {
    let mut taken = HashSet::new();
    for file in ["/etc/passwd", "/etc/group"] {
        let text = fs::read(file)?;
        let text = String::from_utf8_lossy(&text);
        taken.extend(text.lines().filter_map(|line| line.split(':').nth(2)?.parse::<u32>().ok()));
    }
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()) {
            // One that has ended meanwhile has no user.
            let status = fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let lines = status.lines().filter_map(|line| line.strip_prefix("Uid:").or(line.strip_prefix("Gid:")));
            taken.extend(lines.flat_map(str::split_whitespace).filter_map(|number| number.parse::<u32>().ok()));
        }
    }
    Ok(taken)
}

fn prepare_claims() -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(CLAIMS) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Whether the number is ours now.
fn claim(uid: u32) -> io::Result<bool> {
    let path = Path::new(CLAIMS).join(uid.to_string());
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            CLAIMED.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(file);
            Ok(true)
        }
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
