//! Attempts at things that a sandbox must not allow, each a process of its own: exit 0 where it worked, 3 where it did
//! not. What stopped it stands on stdout.
#![allow(unsafe_code, reason = "raw system calls, which libraries don't make with senseless arguments")]

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

/// A system call with arguments that do no harm: outside it answers `outside` or works, inside it is `inside`.
pub(crate) struct Call {
    pub(crate) name: &'static str,
    number: libc::c_long,
    args: [u64; 4],
    /// What the filter answers.
    pub(crate) inside: i32,
    /// Only root gets so far outside that another answer comes.
    pub(crate) root: bool,
}

const fn call(name: &'static str, number: libc::c_long, args: [u64; 4]) -> Call {
    Call { name, number, args, inside: libc::EPERM, root: false }
}

const fn root(name: &'static str, number: libc::c_long, args: [u64; 4]) -> Call {
    Call { name, number, args, inside: libc::EPERM, root: true }
}

const fn unknown(name: &'static str, number: libc::c_long, args: [u64; 4]) -> Call {
    Call { name, number, args, inside: libc::ENOSYS, root: false }
}

const BAD: u64 = u64::MAX;

/// `CLONE_FS` beside it makes the kernel refuse the flag, so that nothing is made outside either.
const NEW_USER: u64 = (libc::CLONE_NEWUSER | libc::CLONE_FS) as u64;

pub(crate) const CALLS: &[Call] = &[
    call("ptrace", libc::SYS_ptrace, [libc::PTRACE_CONT as u64, 0x7fff_ffff, 0, 0]),
    call("process_vm_readv", libc::SYS_process_vm_readv, [0x7fff_ffff, 0, 0, 0]),
    call("pidfd_getfd", libc::SYS_pidfd_getfd, [BAD, 0, 0, 0]),
    root("bpf", libc::SYS_bpf, [BAD, 0, 0, 0]),
    root("mount", libc::SYS_mount, [0, 0, 0, 0]),
    root("umount2", libc::SYS_umount2, [0, 0, 0, 0]),
    root("pivot_root", libc::SYS_pivot_root, [0, 0, 0, 0]),
    root("open_tree", libc::SYS_open_tree, [BAD, 0, 1, 0]),
    root("fsopen", libc::SYS_fsopen, [0, 0, 0, 0]),
    call("fsconfig", libc::SYS_fsconfig, [BAD, 0, 0, 0]),
    root("mount_setattr", libc::SYS_mount_setattr, [BAD, 0, 0, 0]),
    call("unshare", libc::SYS_unshare, [0, 0, 0, 0]),
    call("setns", libc::SYS_setns, [BAD, 0, 0, 0]),
    call("clone_newuser", libc::SYS_clone, [NEW_USER, 0, 0, 0]),
    call("keyctl", libc::SYS_keyctl, [0, BAD - 2, 0, 0]),
    call("io_uring", libc::SYS_io_uring_setup, [0, 0, 0, 0]),
    call("userfaultfd", libc::SYS_userfaultfd, [BAD, 0, 0, 0]),
    call("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, 0]),
    root("chroot", libc::SYS_chroot, [0, 0, 0, 0]),
    call("name_to_handle_at", libc::SYS_name_to_handle_at, [BAD, 0, 0, 0]),
    call("personality", libc::SYS_personality, [libc::ADDR_NO_RANDOMIZE as u64, 0, 0, 0]),
    call("tiocsti", libc::SYS_ioctl, [BAD, 0x5412, 0, 0]),
    call("tiocsti_with_high_bits", libc::SYS_ioctl, [BAD, 0xdead_beef_0000_5412, 0, 0]),
    call("tioclinux", libc::SYS_ioctl, [BAD, 0x1_0000_541c, 0, 0]),
    call("vsock", libc::SYS_socket, [libc::AF_VSOCK as u64, libc::SOCK_STREAM as u64, 0, 0]),
    root("packet", libc::SYS_socket, [libc::AF_PACKET as u64, libc::SOCK_RAW as u64, 0, 0]),
    call("alg", libc::SYS_socket, [libc::AF_ALG as u64, libc::SOCK_SEQPACKET as u64, 0, 0]),
    root("xdp", libc::SYS_socket, [libc::AF_XDP as u64, libc::SOCK_RAW as u64, 0, 0]),
    call("netlink_uevent", libc::SYS_socket, [libc::AF_NETLINK as u64, libc::SOCK_RAW as u64, 15, 0]),
    call("sctp", libc::SYS_socket, [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 132, 0]),
    call("socketpair_tipc", libc::SYS_socketpair, [libc::AF_TIPC as u64, libc::SOCK_STREAM as u64, 0, 0]),
    unknown("clone3", libc::SYS_clone3, [0, 0, 0, 0]),
    unknown("openat2", libc::SYS_openat2, [BAD, 0, 0, 0]),
];

pub(crate) fn main(name: &str, args: &[&str]) -> ExitCode {
    match attempt(name, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::from(3)
        }
    }
}

fn attempt(name: &str, args: &[&str]) -> io::Result<()> {
    match (name, args) {
        ("call", [name, expected]) => system_call(name, expected.parse().unwrap()),
        ("read", [path]) => File::open(path)?.read(&mut [0]).map(drop),
        ("open", [path]) => File::open(path).map(drop),
        ("list", [path]) => fs::read_dir(path).map(drop),
        ("create", [folder]) => File::create(format!("{folder}/probe-{}", std::process::id())).map(drop),
        ("open_to_write", [path]) => File::options().write(true).open(path).map(drop),
        ("connect", [address]) => {
            TcpStream::connect_timeout(&address.parse::<SocketAddr>().unwrap(), Duration::from_millis(500)).map(drop)
        }
        ("unix", [path]) => UnixStream::connect(path).map(drop),
        ("abstract", [name]) => {
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            UnixStream::connect_addr(&address).map(drop)
        }
        ("set_id", [how, mode, folder]) => set_id(how, u32::from_str_radix(mode, 8).unwrap(), folder),
        ("finds_in_proc", [mark]) => finds_in_proc(mark),
        ("has_descriptors", []) => has_descriptors(),
        ("fork", [count]) => fork(count.parse().unwrap()),
        ("memory", [mebibytes]) => memory(mebibytes.parse().unwrap()),
        ("beat", [path]) => beat(path),
        ("foreign", [convention]) => foreign(convention),
        ("is_limited", []) => is_limited(),
        ("netlink_route", []) => rustix_socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE),
        ("exit", [code]) => std::process::exit(code.parse().unwrap()),
        ("sleep", []) => {
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        }
        _ => panic!("no probe {name} {args:?}"),
    }
}

/// Works where the answer is another than the filter's.
fn system_call(name: &str, filtered: i32) -> io::Result<()> {
    let call = CALLS.iter().find(|call| call.name == name).unwrap();
    let [a, b, c, d] = call.args;
    // SAFETY: the arguments are chosen so that the kernel neither reads nor writes memory of ours nor makes anything.
    let answer = unsafe { libc::syscall(call.number, a, b, c, d) };
    let error = io::Error::last_os_error();
    if answer == -1 && error.raw_os_error() == Some(filtered) { Err(error) } else { Ok(()) }
}

fn rustix_socket(family: i32, kind: i32, protocol: i32) -> io::Result<()> {
    // SAFETY: socket(2) touches no memory; the descriptor lives as long as the process.
    if unsafe { libc::socket(family, kind, protocol) } == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn set_id(how: &str, mode: u32, folder: &str) -> io::Result<()> {
    let path = format!("{folder}/set-id-{}", std::process::id());
    // A group's bit is dropped for whoever is not in the group, so it has to be asked for.
    match how {
        "chmod" => {
            File::create(&path)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
        }
        "open" => {
            File::options().write(true).create_new(true).mode(mode).open(&path)?;
        }
        _ => panic!("{how}"),
    }
    if fs::metadata(&path)?.mode() & mode & 0o6000 == 0 { Err(io::Error::other("the bit is gone")) } else { Ok(()) }
}

/// Whether the environment or arguments of any process hold the mark.
fn finds_in_proc(mark: &str) -> io::Result<()> {
    let own = std::process::id().to_string();
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue; // `self` among them, by another name
        }
        for file in ["environ", "cmdline"] {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            // Our own arguments hold it, since it was given to us.
            let text = String::from_utf8_lossy(&bytes);
            if text.contains(mark) && !(name == own && file == "cmdline") {
                return Ok(());
            }
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Whether we, or the first process, hold anything beside the standard three (and the folder that is read).
fn has_descriptors() -> io::Result<()> {
    let open: Vec<String> = fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter_map(|entry| Some(fs::read_link(entry.path()).ok()?.to_string_lossy().into_owned()))
        .collect();
    let more = open.iter().filter(|target| !target.starts_with("/proc/")).count() > 3;
    println!("{open:?}");
    if more { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Makes so many processes that wait; ends them all.
fn fork(count: usize) -> io::Result<()> {
    let mut children = Vec::new();
    let mut failed = None;
    for _ in 0..count {
        // SAFETY: this process has one thread; the child makes only calls that are safe after fork(2).
        match unsafe { libc::fork() } {
            -1 => {
                failed = Some(io::Error::last_os_error());
                break;
            }
            0 => loop {
                // SAFETY: pause(2) has no conditions.
                unsafe { libc::pause() };
            },
            child => children.push(child),
        }
    }
    for child in children {
        // SAFETY: kill(2) has no conditions; the child is ours and not waited for yet.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
    failed.map_or(Ok(()), Err)
}

fn memory(mebibytes: usize) -> io::Result<()> {
    let mut memory: Vec<u8> = Vec::new();
    memory.try_reserve_exact(mebibytes << 20).map_err(io::Error::other)?;
    memory.resize(mebibytes << 20, 1);
    if std::hint::black_box(&memory).iter().step_by(4096).all(|byte| *byte == 1) {
        Ok(())
    } else {
        Err(io::Error::other("memory that forgets"))
    }
}

/// A grandchild in a session of its own that writes for as long as it lives; we end at once.
fn beat(path: &str) -> io::Result<()> {
    // SAFETY: this process has one thread, so the child may go on as if nothing had happened.
    if unsafe { libc::fork() } != 0 {
        return Ok(());
    }
    // SAFETY: setsid(2) has no conditions.
    unsafe { libc::setsid() };
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    let mut file = File::options().create(true).append(true).open(path)?;
    loop {
        file.write_all(b".")?;
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// `getpid` by another calling convention of the processor.
#[cfg(target_arch = "x86_64")]
fn foreign(convention: &str) -> io::Result<()> {
    if convention == "x32" {
        // SAFETY: getpid(2) has no arguments.
        unsafe { libc::syscall(0x4000_0000 + libc::SYS_getpid) };
        return Ok(());
    }
    // SAFETY: getpid of the 32-bit table, which has no arguments; only the registers that are named change.
    unsafe { std::arch::asm!("int 0x80", inout("eax") 20 => _, out("r8") _, out("r9") _, out("r10") _, out("r11") _) };
    Ok(())
}

#[cfg(not(target_arch = "x86_64"))]
fn foreign(_: &str) -> io::Result<()> {
    Ok(())
}

/// Whether every promise that the kernel reports about a process is kept: no capabilities, no new privileges, a filter.
fn is_limited() -> io::Result<()> {
    let status = fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim_matches([':', '\t']).to_owned()
    };
    let none = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].iter().all(|set| field(set) == "0000000000000000");
    let (uid, core) = (field("Uid"), fs::read_to_string("/proc/self/limits")?);
    let no_core = core.lines().any(|line| line.starts_with("Max core file size        0 "));
    println!("uid {uid}");
    if none && no_core && uid.starts_with("1000\t") && field("NoNewPrivs") == "1" && field("Seccomp") == "2" {
        Ok(())
    } else {
        Err(io::Error::other(status))
    }
}
