//! The first program inside: `bastion-supervisor init`.
//!
//! In this order: it waits until the sandbox is sure to die with its launcher; binds the proxy's address in the
//! sandbox's network namespace and hands that socket over; waits until the launcher has judged it; closes every
//! descriptor above 2; takes limits, Landlock and seccomp on itself; makes sure; says that everything is in force;
//! becomes the command. The channel is the one descriptor that it keeps until then, and it closes with the change of
//! program, by which the launcher knows.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketType};
use rustix::process::Resource;

use super::stage::CHANNEL;
use super::wire::{self, Failure, Orders, Report, failed};
use super::{Layer, PROXY, filter, kernel, rules};
use crate::limits;

/// How long the launcher may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// The largest file that can be written, in bytes: one that a run-away program fills ends it, not the disk.
const LARGEST_FILE: u64 = 16 << 30;

/// Memory that can be locked, in bytes: what kernels give by default.
const LOCKED_MEMORY: u64 = 8 << 20;

/// The first program inside (`bastion-supervisor init`). Returns only where it failed.
pub fn init() -> ExitCode {
    let channel = match kernel::inherited(CHANNEL) {
        Ok(channel) => channel,
        Err(_) => return ExitCode::FAILURE, // nobody to tell
    };
    let Err(failure) = become_command(channel.as_fd());
    let _ = wire::tell(channel.as_fd(), &Report::Failed(failure), &[]);
    ExitCode::FAILURE
}

fn become_command(channel: BorrowedFd<'_>) -> Result<std::convert::Infallible, Failure> {
    let orders = orders(channel).map_err(failed(Layer::Namespaces, "the launcher's orders"))?;
    await_first_process().map_err(failed(Layer::Namespaces, "waiting for bubblewrap"))?;
    hand_over(channel).map_err(failed(Layer::Namespaces, "handing over the listener"))?;
    kernel::close_from(CHANNEL.cast_unsigned() + 1).map_err(failed(Layer::Namespaces, "closing descriptors"))?;
    std::env::set_current_dir(&orders.cwd).map_err(|why| Failure::new(Layer::Plan, orders.cwd.clone(), why))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let landlock = close_cage(&orders)?;
    wire::tell(channel, &Report::Enforced { landlock }, &[]).map_err(failed(Layer::Namespaces, "the last report"))?;
    let (program, arguments) =
        orders.command.split_first().ok_or_else(|| Failure::new(Layer::Plan, "the command", "there is none"))?;
    Err(Failure::new(Layer::Plan, program.clone(), execute(program, arguments, &orders.env)))
}

fn orders(channel: BorrowedFd<'_>) -> io::Result<Orders> {
    let deadline = Some(Instant::now() + PATIENCE);
    let mut message = wire::receive(channel, 1, deadline)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    wire::from_file(message.descriptors.pop().ok_or(io::ErrorKind::InvalidData)?)
}

/// Waits until process 1 of the sandbox, bubblewrap, has asked to die with its parent. It does so after it has made us,
/// and a launcher that ended before would leave it, and so everything here, alive.
///
/// It sleeps for the first time when that is done, in waiting for us; until then it is running, or waits for a disk.
fn await_first_process() -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        let stat = std::fs::read_to_string("/proc/1/stat")?;
        if stat.rsplit_once(") ").is_some_and(|(_, fields)| fields.starts_with('S')) {
            return Ok(());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// Our copy of the listener closes at the end of this, the launcher's is the only one left.
fn hand_over(channel: BorrowedFd<'_>) -> io::Result<()> {
    let listener = OwnedFd::from(TcpListener::bind(PROXY)?);
    wire::tell(channel, &Report::Listening, &[listener.as_fd()])?;
    // Whatever the answer holds means: go on. A launcher that refuses or has died closes the channel.
    match wire::receive(channel, 0, Some(Instant::now() + PATIENCE))? {
        Some(_) => Ok(()),
        None => Err(io::ErrorKind::ConnectionAborted.into()),
    }
}

/// Limits, Landlock, seccomp, and a look whether they hold.
fn close_cage(orders: &Orders) -> Result<Option<u8>, Failure> {
    without_capabilities()?;
    let filters = filter::filters().map_err(failed(Layer::Seccomp, "the filter"))?;
    let rules = rules::rules(&orders.readable, &orders.writable).map_err(failed(Layer::Landlock, "the rules"))?;
    limits(orders).map_err(failed(Layer::Limits, "rlimits"))?;
    limits::processes().map_err(failed(Layer::Limits, "process controls"))?;
    let landlock = crate::filesystem::enforce(rules).map_err(failed(Layer::Landlock, "the rules"))?;
    if landlock.is_none() && orders.landlock_required {
        return Err(Failure::new(Layer::Landlock, "the rules", "this kernel has no Landlock"));
    }
    for filter in filters {
        seccompiler::apply_filter_all_threads(&filter).map_err(failed(Layer::Seccomp, "the filter"))?;
    }
    match rustix::net::socket(AddressFamily::VSOCK, SocketType::STREAM, None) {
        Err(rustix::io::Errno::PERM) => Ok(landlock),
        _ => Err(Failure::new(Layer::Seccomp, "the filter", "it is installed and does not hold")),
    }
}

/// bubblewrap has dropped them all; whoever starts init otherwise is told.
fn without_capabilities() -> Result<(), Failure> {
    let step = "capabilities";
    let sets = rustix::thread::capabilities(None).map_err(failed(Layer::Identity, step))?;
    let none = sets.effective.is_empty() && sets.permitted.is_empty() && sets.inheritable.is_empty();
    if none { Ok(()) } else { Err(Failure::new(Layer::Identity, step, "some are left")) }
}

fn limits(orders: &Orders) -> Result<(), crate::CageError> {
    limits::set(Resource::Core, 0, "core dumps")?;
    limits::set(Resource::Fsize, LARGEST_FILE, "file size")?;
    limits::set(Resource::Memlock, LOCKED_MEMORY, "locked memory")?;
    limits::set(Resource::Msgqueue, 0, "message queues")?;
    limits::set(Resource::Rtprio, 0, "real-time priority")?;
    limits::set(Resource::Nofile, orders.open_files, "open files")?;
    if let Some(pids) = orders.pids {
        limits::set(Resource::Nproc, pids, "processes")?;
    }
    match orders.data {
        Some(data) => limits::set(Resource::Data, data, "memory"),
        None => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "init becomes the command")]
fn execute(program: &str, arguments: &[String], env: &[(String, String)]) -> io::Error {
    let env = env.iter().map(|(name, value)| (name, value));
    Command::new(program).args(arguments).env_clear().envs(env).exec()
}
