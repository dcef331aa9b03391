//! What launcher, stage and init say to each other, over one socket pair that keeps messages apart.
//!
//! Large values travel as files in memory beside a message, so that nothing depends on how long a message may be. Each
//! side takes only as many descriptors as the message is known to have; more make the message an error.

use std::io::{self, IoSlice, IoSliceMut, Read, Seek, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, UCred, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Layer;

/// The most descriptors that one message carries (`SCM_MAX_FD` of the kernel).
pub(super) const MOST_DESCRIPTORS: usize = 253;

/// What the stage is to do, on the host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) bubblewrap: String,
    /// bubblewrap's options.
    pub(super) options: Vec<Word>,
    /// The launcher's process.
    pub(super) parent: i32,
    /// Files that take a process into a cgroup.
    pub(super) cgroups: Vec<String>,
    /// For root alone.
    pub(super) identity: Option<Staging>,
}

/// What root does before it becomes somebody else.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Staging {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// A folder of the host that is covered, in a mount namespace of the stage's own.
    pub(super) folder: String,
    /// What stands below it, named by its place in this list.
    pub(super) sources: Vec<Staged>,
}

/// A folder or file to be had below the staging folder.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Staged {
    pub(super) path: String,
    /// Its owner and group on the disk, where they are to look like the sandbox's user.
    pub(super) owner: Option<(u32, u32)>,
}

/// An option of bubblewrap.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Word {
    Text(String),
    /// The number of a descriptor, by its place in the message.
    Descriptor(usize),
}

/// What init is to do, inside.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Orders {
    pub(super) command: Vec<String>,
    pub(super) cwd: String,
    pub(super) env: Vec<(String, String)>,
    pub(super) open_files: u64,
    /// Processes and threads; none where the kernel would count those outside too.
    pub(super) pids: Option<u64>,
    /// Private memory of each process, in bytes.
    pub(super) data: Option<u64>,
    /// May be read and run.
    pub(super) readable: Vec<String>,
    /// May be changed.
    pub(super) writable: Vec<String>,
    pub(super) landlock_required: bool,
}

/// What comes back to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// With the listening socket.
    Listening,
    /// Everything is in force; the command is next.
    Enforced {
        landlock: Option<u8>,
    },
    Failed(Failure),
}

/// A step that failed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) layer: Layer,
    pub(super) step: String,
    pub(super) why: String,
}

impl Failure {
    pub(super) fn new(layer: Layer, step: impl Into<String>, why: impl ToString) -> Self {
        Self { layer, step: step.into(), why: why.to_string() }
    }
}

/// For `map_err`.
pub(super) fn failed<E: ToString>(layer: Layer, step: &str) -> impl FnOnce(E) -> Failure {
    move |why| Failure::new(layer, step, why)
}

/// What one receive brought.
#[derive(Debug, Default)]
pub(super) struct Received {
    pub(super) bytes: Vec<u8>,
    pub(super) descriptors: Vec<OwnedFd>,
    pub(super) sender: Option<UCred>,
}

/// Sends one message. No signal where nobody listens.
pub(super) fn send(socket: BorrowedFd<'_>, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::TOOMANYREFS);
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}

/// Sends a value as one message.
pub(super) fn tell<T: Serialize>(socket: BorrowedFd<'_>, value: &T, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    Ok(send(socket, &serde_json::to_vec(value)?, descriptors)?)
}

/// Waits for one message with at most `most` descriptors; `None` where the other side has gone. An error of kind
/// `TimedOut` after the deadline.
pub(super) fn receive(socket: BorrowedFd<'_>, most: usize, deadline: Option<Instant>) -> io::Result<Option<Received>> {
    if let Some(deadline) = deadline {
        wait_readable(socket, deadline)?;
    }
    let mut bytes = vec![0; 16 << 10];
    let length = rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS), ScmCredentials(1));
    let mut space = vec![MaybeUninit::uninit(); length];
    // Room for as many as are expected and one more, by which too many are seen; the kernel drops the rest.
    let room = rustix::cmsg_space!(ScmRights(most.min(MOST_DESCRIPTORS - 1) + 1), ScmCredentials(1)).min(length);
    let mut ancillary = RecvAncillaryBuffer::new(&mut space[..room]);
    let answer = loop {
        match recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            Err(Errno::CONNRESET) => return Ok(None),
            other => break other?,
        }
    };
    let mut received = Received::default();
    for message in ancillary.drain() {
        match message {
            RecvAncillaryMessage::ScmRights(descriptors) => received.descriptors.extend(descriptors),
            RecvAncillaryMessage::ScmCredentials(sender) => received.sender = Some(sender),
            _ => {}
        }
    }
    if answer.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) || received.descriptors.len() > most {
        return Err(io::ErrorKind::InvalidData.into());
    }
    if answer.bytes == 0 {
        return Ok(None);
    }
    bytes.truncate(answer.bytes);
    received.bytes = bytes;
    Ok(Some(received))
}

/// An error of kind `TimedOut` after the deadline.
pub(super) fn wait_readable(socket: BorrowedFd<'_>, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], Some(&left)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A file in memory that holds `bytes`, read from its start.
pub(super) fn in_memory(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = std::fs::File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// A value in such a file.
pub(super) fn as_file<T: Serialize>(name: &str, value: &T) -> io::Result<OwnedFd> {
    in_memory(name, &serde_json::to_vec(value)?)
}

/// Reads a value from such a file.
pub(super) fn from_file<T: DeserializeOwned>(file: OwnedFd) -> io::Result<T> {
    let mut bytes = Vec::new();
    std::fs::File::from(file).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// The same descriptors, lent.
pub(super) fn lent(descriptors: &[OwnedFd]) -> Vec<BorrowedFd<'_>> {
    descriptors.iter().map(AsFd::as_fd).collect()
}
