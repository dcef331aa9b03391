//! The list of system calls that a caged process may make, and the conditions on their arguments.
//!
//! Everything else is answered `EPERM`, so that a library that tries (a cache, a locale file, a thread) copes; a
//! foreign calling convention kills the process. Source: seccomp(2); the numbers are the kernel's, by way of `libc`.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, TargetArch,
};

use crate::CageError;

/// Calls allowed with any arguments. None of them can name a file, a host or another process.
const ALLOWED: &[libc::c_long] = &[
    // The pipes that are open already, and whatever else was open at the time.
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    // Memory; mapping and protecting have conditions, see below.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    // Threads that are there already: locks, their end, their signal stacks.
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_restart_syscall,
    libc::SYS_exit,
    libc::SYS_exit_group,
    // Time, chance, and who one is.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getrusage,
];

/// The filter for this process: [`ALLOWED`]; mapping and protecting memory that is not executable; signals to itself
/// (`abort` is one).
pub(crate) fn filter() -> Result<BpfProgram, CageError> {
    let arch = architecture().ok_or(CageError::Unsupported)?;
    build(arch).map_err(|source| CageError::Seccomp { source: Box::new(source) })
}

fn build(arch: TargetArch) -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = ALLOWED.iter().map(|call| (*call, Vec::new())).collect();
    let exec = libc::PROT_EXEC as u64;
    let not_executable = SeccompCondition::new(2, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(exec), 0)?;
    for call in [libc::SYS_mmap, libc::SYS_mprotect] {
        rules.insert(call, vec![SeccompRule::new(vec![not_executable.clone()])?]);
    }
    let own_pid = u64::from(std::process::id());
    let itself = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, own_pid)?;
    rules.insert(libc::SYS_tgkill, vec![SeccompRule::new(vec![itself])?]);
    let denied = SeccompAction::Errno(libc::EPERM as u32);
    SeccompFilter::new(rules, denied, SeccompAction::Allow, arch)?.try_into()
}

pub(crate) fn architecture() -> Option<TargetArch> {
    if cfg!(target_arch = "x86_64") {
        Some(TargetArch::x86_64)
    } else if cfg!(target_arch = "aarch64") {
        Some(TargetArch::aarch64)
    } else {
        None
    }
}
