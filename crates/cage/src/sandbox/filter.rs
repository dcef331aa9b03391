//! The system calls that nothing in a sandbox may make, whatever else fails: a list that forbids, since an agent's
//! tools are compilers, interpreters and package managers.
//!
//! Forbidden calls are answered `EPERM`. Two kinds are answered `ENOSYS`, so that libraries take the older call that
//! can be judged: those whose arguments stand behind a pointer (`clone3`, `openat2`), and those newer than
//! [`NEWEST`]. The x32 and i386 conventions kill the process. Source: seccomp(2); the numbers are the kernel's.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

use crate::{CageError, syscalls};

/// The newest system call that was judged: `file_setattr` of Linux 6.17. Later ones have the same number everywhere.
const NEWEST: u32 = 469;

/// `open_tree_attr` of Linux 6.15, which libraries do not name yet.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// `fchmodat2` of Linux 6.6, which `libc` does not name everywhere.
const FCHMODAT2: libc::c_long = 452;

/// Forbidden with any arguments.
const DENIED: &[libc::c_long] = &[
    // Other processes' memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_process_madvise,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Large parts of the kernel that an agent does not need, and that many exploits did.
    libc::SYS_bpf,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
    libc::SYS_nfsservctl,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_modify_ldt,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_uselib,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_sysfs,
    #[cfg(target_arch = "x86_64")]
    libc::SYS__sysctl,
];

/// Answered as if the kernel had never heard of them.
const UNKNOWN: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat2];

/// The set-user-ID and set-group-ID bits of a mode. As root's sandbox writes files of root's on the host's disk, a
/// file with such a bit is a way out of it.
const SET_ID: [libc::mode_t; 2] = [libc::S_ISUID, libc::S_ISGID];

/// Calls that set a file's mode, with the place of the mode.
const MODES: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    (libc::SYS_mkdirat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, 1),
];

/// Calls that may make a file, with the place of the flags; the mode comes next and counts where a flag says so.
const OPENS: &[(libc::c_long, u8)] = &[
    (libc::SYS_openat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// `__O_TMPFILE`: the bit of `O_TMPFILE` that is not `O_DIRECTORY`.
const TMPFILE: libc::c_int = libc::O_TMPFILE & !libc::O_DIRECTORY;

const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Families of sockets that may be made. A network namespace stops none of the others but by chance: vsock reaches a
/// virtual machine's host.
const FAMILIES: &[libc::c_int] = &[libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Protocols of the internet families; others are modules that load when they are first asked for.
const PROTOCOLS: &[libc::c_int] = &[0, libc::IPPROTO_ICMP, libc::IPPROTO_TCP, libc::IPPROTO_UDP, libc::IPPROTO_ICMPV6];

/// Terminal requests that type on the owner's behalf. `TIOCSTI`, `TIOCLINUX`: ioctl_tty(2).
const TERMINAL: [u64; 2] = [0x5412, 0x541C];

/// The filters, each to be installed.
pub(super) fn filters() -> Result<[BpfProgram; 3], CageError> {
    let arch = syscalls::architecture().ok_or(CageError::Unsupported)?;
    build(arch).map_err(|source| CageError::Seccomp { source: Box::new(source) })
}

fn build(arch: TargetArch) -> Result<[BpfProgram; 3], BackendError> {
    let unknown = UNKNOWN.iter().map(|call| (*call, Vec::new())).collect();
    Ok([forbidding(denied()?, libc::EPERM, arch)?, forbidding(unknown, libc::ENOSYS, arch)?, range(arch)])
}

fn forbidding(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    errno: libc::c_int,
    arch: TargetArch,
) -> Result<BpfProgram, BackendError> {
    let action = SeccompAction::Errno(errno.cast_unsigned());
    SeccompFilter::new(rules, SeccompAction::Allow, action, arch)?.try_into()
}

fn denied() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = DENIED.iter().map(|call| (*call, Vec::new())).collect();
    let mut deny = |call: libc::c_long, conditions: Vec<SeccompCondition>| -> Result<(), BackendError> {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok(())
    };
    for flag in NAMESPACES {
        deny(libc::SYS_clone, vec![has(0, wide(*flag))?])?;
    }
    for bit in SET_ID.map(u64::from) {
        for (call, place) in MODES {
            deny(*call, vec![has(*place, bit)?])?;
        }
        for (call, place) in OPENS {
            for flag in [libc::O_CREAT, TMPFILE] {
                deny(*call, vec![has(*place, wide(flag))?, has(place + 1, bit)?])?;
            }
        }
    }
    deny(libc::SYS_socket, none_of(0, FAMILIES)?)?;
    deny(libc::SYS_socket, vec![is(0, wide(libc::AF_NETLINK))?, is_not(2, wide(libc::NETLINK_ROUTE))?])?;
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut conditions = none_of(2, PROTOCOLS)?;
        conditions.push(is(0, wide(family))?);
        deny(libc::SYS_socket, conditions)?;
    }
    deny(libc::SYS_socketpair, vec![is_not(0, wide(libc::AF_UNIX))?])?;
    for request in TERMINAL {
        deny(libc::SYS_ioctl, vec![is(1, request)?])?;
    }
    // Asking (0xffff_ffff) and the ordinary one are all that programs of today need.
    deny(libc::SYS_personality, vec![is_not(0, 0)?, is_not(0, 0xffff_ffff)?])?;
    Ok(rules)
}

/// The lower half of an argument alone is compared: it is all that the kernel reads of these, and what stands in the
/// upper half must change nothing.
fn condition(place: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(place, SeccompCmpArgLen::Dword, operator, value)
}

fn has(place: u8, bit: u64) -> Result<SeccompCondition, BackendError> {
    condition(place, SeccompCmpOp::MaskedEq(bit), bit)
}

fn is(place: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    condition(place, SeccompCmpOp::Eq, value)
}

fn is_not(place: u8, value: u64) -> Result<SeccompCondition, BackendError> {
    condition(place, SeccompCmpOp::Ne, value)
}

fn none_of(place: u8, values: &[libc::c_int]) -> Result<Vec<SeccompCondition>, BackendError> {
    values.iter().map(|value| is_not(place, wide(*value))).collect()
}

fn wide(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

/// What no list can say: numbers that nobody has judged, and those of the x32 convention, which shares the mark of
/// x86-64 and has bit 30 set.
///
/// Written as instructions, since `seccompiler` compares the number of a call for equality alone. The architecture is
/// checked by the other two filters.
fn range(arch: TargetArch) -> BpfProgram {
    let statement = |code: libc::c_uint, k| instruction(code, 0, 0, k);
    let error = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let foreign = if matches!(arch, TargetArch::x86_64) { libc::SECCOMP_RET_KILL_PROCESS } else { error };
    vec![
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0), // the number of the call
        instruction(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 0, 4, NEWEST),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 2, 0, u32::MAX), // -1: programs try it
        instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, 0x4000_0000),
        statement(libc::BPF_RET | libc::BPF_K, foreign),
        statement(libc::BPF_RET | libc::BPF_K, error),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ]
}

fn instruction(code: libc::c_uint, jt: u8, jf: u8, k: u32) -> sock_filter {
    // Every code is below 0x100.
    sock_filter { code: u16::try_from(code).unwrap_or(u16::MAX), jt, jf, k }
}
