//! A looser cage for a program that is not ours: it may read the system's own folders, write one folder, start
//! itself and its helpers; it has no network and sees none of the owner's files.
//!
//! The process that enforces it then becomes the program (`execve`), and so do all limits: they survive it. Unlike the
//! worker's, this cage rests on Landlock for the file system, so a kernel without it is an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Resource;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use crate::filesystem::{self, NEWEST};
use crate::{CageError, limits, syscalls};

/// What a caged program may use.
#[derive(Debug, Clone)]
pub struct ProgramProfile {
    /// Address space of each of its processes, in bytes.
    pub memory: u64,
    /// Processor seconds of each of its processes.
    pub processor_seconds: u64,
    /// The largest file it may write, in bytes.
    pub file_size: u64,
    /// Folders and files it may read, beside the system's own.
    pub readable: Vec<PathBuf>,
    /// The one folder it may write.
    pub writable: Option<PathBuf>,
}

/// Folders and files of the system that programs need to start: code, fonts, data. None holds documents of a person.
const SYSTEM: &[&str] = &[
    "/usr",
    "/lib",
    "/lib64",
    "/bin",
    "/etc/ld.so.cache",
    "/etc/fonts",
    "/etc/libreoffice",
    "/etc/alternatives",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/var/cache/fontconfig",
];

/// Calls that reach the network, other processes or the kernel's insides. The rest a program needs, in one version or
/// another: this list forbids, where the worker's allows.
const DENIED: &[libc::c_long] = &[
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_personality,
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_mq_open,
];

/// The bit that marks a call of the x32 convention.
const X32: libc::c_long = 0x4000_0000;

/// Built, nothing enforced yet.
#[derive(Debug)]
#[must_use = "nothing is enforced yet"]
pub struct PreparedProgram {
    profile: ProgramProfile,
    rules: RulesetCreated,
    filter: BpfProgram,
}

/// Proof that this process is caged and may become the program.
#[derive(Debug)]
pub struct CagedProgram(());

/// Builds the filter and the rules for `profile`. Changes nothing yet.
pub fn prepare_program(profile: &ProgramProfile) -> Result<PreparedProgram, CageError> {
    let rules = rules(profile).map_err(|source| CageError::Landlock { source: Box::new(source) })?;
    Ok(PreparedProgram { profile: profile.clone(), rules, filter: filter()? })
}

impl PreparedProgram {
    /// Cages the process. To be called while it has one thread, and followed by `exec`.
    pub fn enforce(self) -> Result<CagedProgram, CageError> {
        limits::processes()?;
        if filesystem::enforce(self.rules)?.is_none() {
            return Err(CageError::Landlock {
                source: "this kernel has none, and a program can't be caged without".into(),
            });
        }
        limits::set(Resource::Core, 0, "core dumps")?;
        limits::set(Resource::Fsize, self.profile.file_size, "file size")?;
        limits::set(Resource::Cpu, self.profile.processor_seconds, "processor time")?;
        limits::set(Resource::As, self.profile.memory, "memory")?;
        seccompiler::apply_filter_all_threads(&self.filter)
            .map_err(|source| CageError::Seccomp { source: Box::new(source) })?;
        probe()?;
        Ok(CagedProgram(()))
    }
}

fn rules(profile: &ProgramProfile) -> Result<RulesetCreated, RulesetError> {
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::Execute;
    let readable = SYSTEM.iter().map(Path::new).chain(profile.readable.iter().map(PathBuf::as_path));
    let everything = AccessFs::from_all(NEWEST);
    let files_only = read | AccessFs::WriteFile | AccessFs::Truncate;
    Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(everything)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(readable, read))?
        .add_rules(path_beneath_rules(["/dev/null"], files_only))?
        .add_rules(path_beneath_rules(profile.writable.as_slice(), everything))
}

fn filter() -> Result<BpfProgram, CageError> {
    let arch = syscalls::architecture().ok_or(CageError::Unsupported)?;
    let mut rules: BTreeMap<i64, Vec<_>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    if cfg!(target_arch = "x86_64") {
        // The same calls by the numbers of the x32 convention, which shares the architecture's mark and is compiled
        // into some kernels: `arch/x86/entry/syscalls/syscall_64.tbl`.
        let own_numbers = [521, 528, 539, 540];
        let shared = DENIED.iter().copied();
        rules.extend(shared.chain(own_numbers).map(|call| (call | X32, Vec::new())));
    }
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)
        .and_then(TryInto::try_into)
        .map_err(|source| CageError::Seccomp { source: Box::new(source) })
}

fn probe() -> Result<(), CageError> {
    if rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).is_ok() {
        return Err(CageError::Leaks { deed: "making a socket" });
    }
    if std::fs::read_dir("/").is_ok() {
        return Err(CageError::Leaks { deed: "listing the root folder" });
    }
    Ok(())
}
