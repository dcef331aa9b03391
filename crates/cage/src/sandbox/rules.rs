//! Landlock for a sandbox: a second opinion on what the mounts say about files.
//!
//! The network is left to its namespace, which has nothing but loopback. Source:
//! `Documentation/userspace-api/landlock.rst` of the Linux kernel.

use std::path::Path;

use landlock::{
    Access, AccessFs, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, Scope, path_beneath_rules,
};

use crate::filesystem::NEWEST;

/// Can be read and run in every sandbox.
const READABLE: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/proc", "/run/bastion"];

/// Can be changed in every sandbox.
const WRITABLE: &[&str] = &["/tmp", "/dev/shm"];

/// Devices that can be read, written and asked things.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts"];

/// Rules for a sandbox that has these folders and files of its own. A path that is not there gets no rule.
pub(super) fn rules(readable: &[String], writable: &[String]) -> Result<RulesetCreated, RulesetError> {
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let write = AccessFs::from_all(NEWEST) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir | AccessFs::IoctlDev;
    let all = |fixed: &'static [&str]| fixed.iter().map(Path::new);
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        // Names can be listed everywhere: there is nothing but what was put there.
        .add_rules(path_beneath_rules(["/"], AccessFs::ReadDir))?
        .add_rules(path_beneath_rules(all(READABLE).chain(readable.iter().map(Path::new)), read))?
        .add_rules(path_beneath_rules(all(WRITABLE).chain(writable.iter().map(Path::new)), write))?
        .add_rules(path_beneath_rules(all(DEVICES), device))
}
