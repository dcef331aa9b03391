//! The calls that no safe library makes for us. The only `unsafe` of the workspace, each with its conditions.
#![allow(unsafe_code)]

use std::io;
use std::mem::{ManuallyDrop, size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::{Errno, FdFlags};
use rustix::thread::UnshareFlags;

/// Closes every descriptor from `first` on. For a process of one thread, before it owns any of them.
pub(super) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: close_range(2) touches no memory. What it closes must not be owned by a Rust value that lives on: `stage`
    // and `init` call this as single threads, `stage` as its first act and `init` when the one descriptor that it owns
    // stands below `first`.
    let answer = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The descriptor that the parent passed by its number, from now on closed when another program is started.
pub(super) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: the number is not -1. `init` calls this once, as its first act, so no other value owns that descriptor;
    // where the parent passed none the next call answers EBADF and the value is given up without being closed.
    let descriptor = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    rustix::io::fcntl_setfd(&*descriptor, FdFlags::CLOEXEC)?;
    Ok(ManuallyDrop::into_inner(descriptor))
}

/// Leaves the mount namespace, or the user namespace, of the parent. Nothing else may be in `flags`.
pub(super) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    debug_assert!(flags == UnshareFlags::NEWNS || flags == UnshareFlags::NEWUSER);
    // SAFETY: the one condition of unshare(2) is for `UnshareFlags::FILES`, which no caller passes.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Gives the detached mount `tree`, and all below it, the owners that the user namespace `map` says.
pub(super) fn set_id_map(tree: BorrowedFd<'_>, map: &OwnedFd) -> io::Result<()> {
    let attr = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_IDMAP,
        attr_clr: 0,
        propagation: 0,
        userns_fd: u64::try_from(map.as_raw_fd()).map_err(io::Error::other)?,
    };
    // SAFETY: mount_setattr(2) reads a NUL-terminated path, which the C string literal is, and `size` bytes at `attr`,
    // which is a plain struct that lives until the call returns; both descriptors are borrowed and so are open.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | libc::AT_RECURSIVE,
            &raw const attr,
            size_of_val(&attr),
        )
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// `SO_NETNS_COOKIE`, from `include/uapi/asm-generic/socket.h`; x86-64 and ARM64 use the generic numbers.
const SO_NETNS_COOKIE: libc::c_int = 71;

/// Which network namespace a socket belongs to; `ENOPROTOOPT` before Linux 5.14.
pub(super) fn network_of(socket: BorrowedFd<'_>) -> io::Result<u64> {
    let mut cookie = 0u64;
    let mut length = libc::socklen_t::try_from(size_of::<u64>()).map_err(io::Error::other)?;
    // SAFETY: getsockopt(2) writes at most `length` bytes to `cookie`, which is that long, and the new length to
    // `length`; both live until the call returns; the descriptor is borrowed and so is open.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut length,
        )
    };
    if answer == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
}

/// `LANDLOCK_CREATE_RULESET_VERSION`, from `include/uapi/linux/landlock.h`.
const LANDLOCK_VERSION: libc::c_uint = 1;

/// The kernel's version of Landlock, `None` where it has none or it is switched off.
pub(super) fn landlock() -> Option<u8> {
    // SAFETY: with this flag landlock_create_ruleset(2) takes a null pointer and no size, and reads no memory.
    let answer = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, LANDLOCK_VERSION)
    };
    u8::try_from(answer).ok().filter(|version| *version > 0)
}
