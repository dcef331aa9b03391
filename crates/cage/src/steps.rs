//! The three steps of caging, each consuming the one before.

use landlock::RulesetCreated;
use seccompiler::BpfProgram;

use crate::{CageError, Caged, Profile, filesystem, limits, probe, syscalls};

/// Built, nothing enforced yet.
#[derive(Debug)]
#[must_use = "nothing is enforced yet"]
pub struct Prepared {
    profile: Profile,
    rules: RulesetCreated,
    filter: BpfProgram,
}

/// Limited and without a file system, and so is every thread started from here on; system calls are still free.
#[derive(Debug)]
#[must_use = "system calls are still free"]
pub struct Restricted {
    landlock: Option<u8>,
    filter: BpfProgram,
}

/// Builds the filter and the rules for `profile`. Changes nothing yet.
pub fn prepare(profile: &Profile) -> Result<Prepared, CageError> {
    Ok(Prepared { profile: *profile, rules: filesystem::rules()?, filter: syscalls::filter()? })
}

impl Prepared {
    /// Both steps at once, for a process that starts no more threads.
    pub fn enforce(self) -> Result<Caged, CageError> {
        self.restrict()?.seal()
    }

    /// Limits the process and takes the file system and the network from the calling thread and every thread it
    /// starts afterwards. To be called before there are others.
    pub fn restrict(self) -> Result<Restricted, CageError> {
        limits::processes()?;
        let landlock = filesystem::enforce(self.rules)?;
        limits::resources(&self.profile)?;
        Ok(Restricted { landlock, filter: self.filter })
    }
}

impl Restricted {
    /// Takes every system call that is not on the list from all threads of the process, and makes sure.
    pub fn seal(self) -> Result<Caged, CageError> {
        seccompiler::apply_filter_all_threads(&self.filter)
            .map_err(|source| CageError::Seccomp { source: Box::new(source) })?;
        probe::nothing_forbidden_works()?;
        Ok(Caged { landlock: self.landlock })
    }
}
