//! The program between launcher and bubblewrap, on the host: `bastion-supervisor stage`.
//!
//! It enters its cgroup, and, started by root, puts what is to be bound where an ordinary user can reach it and
//! becomes that user, before there is any namespace: a sandbox that root's own number is mapped into reads
//! `/etc/shadow`. It asks to die with the launcher, and becomes bubblewrap with an empty environment. Its stdin is the
//! channel; bubblewrap gets it as descriptor [`CHANNEL`], and nothing else of ours.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::{Errno, FdFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change, move_mount, open_tree,
};
use rustix::process::Signal;
use rustix::thread::UnshareFlags;

use super::wire::{self, Failure, Job, Report, Staged, Staging, Word, failed};
use super::{Layer, STAGE, kernel};

/// The number of the channel, in bubblewrap and in init.
pub(super) const CHANNEL: RawFd = 3;

/// The second argument of the helper that holds a user namespace open.
const HOLD: &str = "hold-user-namespace";

/// The second argument of the helper that watches the launcher.
const WATCH: &str = "watch";

/// The program between the launcher and bubblewrap (`bastion-supervisor stage`). Returns only where it failed.
pub fn stage() -> ExitCode {
    match std::env::args().nth(2).as_deref() {
        Some(HOLD) => return hold(),
        Some(WATCH) => return watch(),
        _ => {}
    }
    let channel = match own_channel() {
        Ok(channel) => channel,
        Err(_) => return ExitCode::FAILURE, // nobody to tell
    };
    let Err(failure) = become_bubblewrap(channel.as_fd());
    let _ = wire::tell(channel.as_fd(), &Report::Failed(failure), &[]);
    ExitCode::FAILURE
}

/// Takes the channel from stdin to its own number, with nothing else open.
fn own_channel() -> io::Result<OwnedFd> {
    kernel::close_from(CHANNEL.cast_unsigned())?;
    let channel = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), CHANNEL)?;
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    Ok(channel)
}

fn become_bubblewrap(channel: BorrowedFd<'_>) -> Result<std::convert::Infallible, Failure> {
    let step = failed(Layer::Namespaces, "the launcher's message");
    let message = wire::receive(channel, wire::MOST_DESCRIPTORS - 1, None)
        .and_then(|received| received.ok_or_else(|| io::ErrorKind::UnexpectedEof.into()))
        .map_err(step)?;
    let mut descriptors = message.descriptors.into_iter();
    let (Some(job), Some(lifeline)) = (descriptors.next(), descriptors.next()) else {
        return Err(Failure::new(Layer::Namespaces, "the launcher's message", "it has no job"));
    };
    let job: Job = wire::from_file(job).map_err(failed(Layer::Namespaces, "the job"))?;
    let setup = watched(lifeline).map_err(failed(Layer::Namespaces, "dying with the launcher"))?;
    for cgroup in &job.cgroups {
        enter(cgroup).map_err(|why| Failure::new(Layer::Limits, format!("entering {cgroup}"), why))?;
    }
    if let Some(staging) = &job.identity {
        set_up(staging)?;
        become_user(staging).map_err(failed(Layer::Identity, "becoming the sandbox's user"))?;
    }
    die_with(job.parent)?;
    rustix::io::fcntl_setfd(&setup, FdFlags::empty()).map_err(failed(Layer::Namespaces, "keeping a pipe open"))?;
    execute(&job, channel, &descriptors.collect::<Vec<_>>())
        .map_err(|why| Failure::new(Layer::Namespaces, job.bubblewrap, why))
}

#[expect(clippy::disallowed_methods, reason = "a file of the kernel, which takes one write")]
fn enter(cgroup: &str) -> io::Result<()> {
    std::fs::write(cgroup, "0")
}

/// Makes a mount namespace of our own and fills the staging folder.
fn set_up(staging: &Staging) -> Result<(), Failure> {
    kernel::unshare(UnshareFlags::NEWNS).map_err(failed(Layer::Identity, "a mount namespace"))?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(failed(Layer::Identity, "private mounts"))?;
    // All are taken before the folder is covered: some may lie below it.
    let mut maps = Vec::new();
    let trees: Vec<_> =
        staging.sources.iter().map(|source| take(source, staging, &mut maps)).collect::<Result<_, _>>()?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("tmpfs", staging.folder.as_str(), "tmpfs", flags, c"mode=0711,size=1m")
        .map_err(failed(Layer::Identity, "the staging folder"))?;
    for (number, tree) in trees.iter().enumerate() {
        let place = Path::new(&staging.folder).join(number.to_string());
        put(tree, &place).map_err(|why| Failure::new(Layer::Identity, staging.sources[number].path.clone(), why))?;
    }
    Ok(())
}

/// A copy of the mount at a source, owners changed where that is asked for.
fn take(source: &Staged, staging: &Staging, maps: &mut Vec<((u32, u32), OwnedFd)>) -> Result<OwnedFd, Failure> {
    let copy = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_EMPTY_PATH;
    // The path was resolved before it was judged: a link that is in it now was put there since.
    let place =
        openat2(CWD, source.path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let tree = place
        .and_then(|place| open_tree(place, "", copy))
        .map_err(|errno| Failure::new(Layer::Identity, source.path.clone(), errno))?;
    if let Some(owner) = source.owner {
        if !maps.iter().any(|(known, _)| *known == owner) {
            let map = id_map(owner, staging).map_err(failed(Layer::Identity, "a map of owners"))?;
            maps.push((owner, map));
        }
        for (_, map) in maps.iter().filter(|(known, _)| *known == owner) {
            kernel::set_id_map(tree.as_fd(), map).map_err(|why| {
                let step = format!("changing how the owner of {} looks to the sandbox", source.path);
                Failure::new(Layer::Identity, step, why)
            })?;
        }
    }
    Ok(tree)
}

fn put(tree: &OwnedFd, place: &Path) -> io::Result<()> {
    let stat = rustix::fs::fstat(tree)?;
    if rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir() {
        std::fs::create_dir(place)?;
    } else {
        std::fs::File::create(place)?;
    }
    Ok(move_mount(tree, "", rustix::fs::CWD, place, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

/// A user namespace that says: what belongs to `owner` on the disk looks as if it were the sandbox's user's, and what
/// that user makes belongs to `owner`. A helper lives in it while it is written and opened.
#[expect(clippy::disallowed_methods, reason = "the cage starts its own program; files of the kernel take one write")]
fn id_map(owner: (u32, u32), staging: &Staging) -> io::Result<OwnedFd> {
    let mut helper = Command::new("/proc/self/exe")
        .args([STAGE, HOLD])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let answer = (|| {
        let mut ready = [0];
        helper.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_exact(&mut ready)?;
        let process = format!("/proc/{}", helper.id());
        std::fs::write(format!("{process}/uid_map"), format!("{} {} 1", owner.0, staging.uid))?;
        std::fs::write(format!("{process}/gid_map"), format!("{} {} 1", owner.1, staging.gid))?;
        std::fs::File::open(format!("{process}/ns/user"))
    })();
    drop(helper.stdin.take());
    let _ = helper.wait();
    answer.map(OwnedFd::from)
}

fn hold() -> ExitCode {
    let held = kernel::unshare(UnshareFlags::NEWUSER).is_ok() && io::stdout().write_all(b"\n").is_ok();
    if held && io::stdout().flush().is_ok() {
        let _ = io::stdin().read(&mut [0]);
    }
    ExitCode::SUCCESS
}

/// Irrevocably: the kernel forgets every capability with the last of these.
fn become_user(staging: &Staging) -> Result<(), rustix::io::Errno> {
    let (uid, gid) = (rustix::process::Uid::from_raw(staging.uid), rustix::process::Gid::from_raw(staging.gid));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)
}

/// Starts a second process of ours that kills our process group when the launcher's end of `lifeline` closes. It ends
/// with the setup, which is when nobody holds the pipe any more that this returns: init closes it.
///
/// There is a time in which the kernel's signal for a parent's death does not reach everyone: bubblewrap's child waits
/// for its parent to set it up, has not asked for the signal yet, and would wait for ever. Nor does any signal that the
/// kernel could send by itself reach it, the first process of its namespace.
#[expect(clippy::disallowed_methods, reason = "the cage starts its own program")]
fn watched(lifeline: OwnedFd) -> io::Result<OwnedFd> {
    let (ended, setup) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let mut watcher = Command::new("/proc/self/exe");
    watcher.args([STAGE, WATCH]).env_clear().stdin(lifeline).stdout(ended).stderr(Stdio::null());
    watcher.spawn()?; // bubblewrap, which we become, buries it
    Ok(setup)
}

/// The watcher: the launcher's pipe is its stdin, the setup's its stdout.
fn watch() -> ExitCode {
    let closed = |pipe: &PollFd<'_>| pipe.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    loop {
        let (launcher, setup) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        let mut pipes = [launcher, setup].map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::empty()));
        let polled = poll(&mut pipes, None);
        if closed(&pipes[0]) || polled.is_err_and(|errno| errno != Errno::INTR) {
            let _ = rustix::process::kill_current_process_group(Signal::KILL); // and us
        }
        if closed(&pipes[1]) {
            return ExitCode::SUCCESS;
        }
    }
}

/// After the change of user, which clears it. The launcher may have died already: then nobody would tell us.
fn die_with(parent: i32) -> Result<(), Failure> {
    let step = failed(Layer::Namespaces, "dying with the launcher");
    rustix::thread::set_no_new_privs(true)
        .and_then(|()| rustix::process::set_parent_process_death_signal(Some(Signal::KILL)))
        .map_err(step)?;
    match rustix::process::getppid() {
        Some(now) if now.as_raw_nonzero().get() == parent => Ok(()),
        _ => Err(Failure::new(Layer::Namespaces, "dying with the launcher", "it has ended already")),
    }
}

/// Hands on the descriptors that the options name, and the channel.
#[expect(clippy::disallowed_methods, reason = "the cage starts bubblewrap")]
fn execute(job: &Job, channel: BorrowedFd<'_>, descriptors: &[OwnedFd]) -> io::Result<std::convert::Infallible> {
    let mut options = Vec::new();
    for word in &job.options {
        match word {
            Word::Text(text) => options.extend_from_slice(text.as_bytes()),
            Word::Descriptor(place) => {
                let descriptor = descriptors.get(*place).ok_or(io::ErrorKind::InvalidData)?;
                rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
                options.extend_from_slice(descriptor.as_raw_fd().to_string().as_bytes());
            }
        }
        options.push(0);
    }
    let options = wire::in_memory("options", &options)?;
    rustix::io::fcntl_setfd(&options, FdFlags::empty())?;
    rustix::io::fcntl_setfd(channel, FdFlags::empty())?;
    let number = options.as_raw_fd().to_string();
    Err(Command::new(&job.bubblewrap)
        .args(["--args", &number, "--", super::INIT, super::INIT_ARGUMENT])
        .current_dir("/")
        .env_clear()
        .exec())
}
