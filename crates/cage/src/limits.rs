//! Process controls (`prctl(2)`) and resource limits (`setrlimit(2)`).

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};

use crate::{CageError, Profile};

/// No new privileges; no core dumps and no tracing by other processes of the user; death with the parent.
///
/// The death signal is sent when the *thread* that started this process ends (`PR_SET_PDEATHSIG` in prctl(2)), so a
/// parent starts its workers from a thread that lives as long as they do.
pub(crate) fn processes() -> Result<(), CageError> {
    let failed = |control| move |errno: rustix::io::Errno| CageError::Process { control, source: errno.into() };
    rustix::thread::set_no_new_privs(true).map_err(failed("no new privileges"))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(failed("no dumps"))?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed("death with the parent"))
}

/// Address space and descriptors as the profile says; no core file, no file growth, no queues, no locked memory.
/// Hard limits, so that they can't be raised again without privileges (and the filter denies `prlimit64` anyway).
pub(crate) fn resources(profile: &Profile) -> Result<(), CageError> {
    set(Resource::Core, 0, "core dumps")?;
    set(Resource::Fsize, 0, "file size")?;
    set(Resource::Memlock, 0, "locked memory")?;
    set(Resource::Msgqueue, 0, "message queues")?;
    set(Resource::Nofile, profile.open_files, "open files")?;
    set(Resource::As, profile.memory, "memory")
}

pub(crate) fn set(resource: Resource, value: u64, limit: &'static str) -> Result<(), CageError> {
    // An outer limit that is lower already is kept: a limit is never raised here.
    let outer = rustix::process::getrlimit(resource).maximum;
    let value = outer.map_or(value, |outer| outer.min(value));
    rustix::process::setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })
        .map_err(|errno| CageError::Limit { limit, source: io::Error::from(errno) })
}
