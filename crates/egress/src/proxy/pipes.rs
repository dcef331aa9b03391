//! Pipes that carry bytes from one socket to another without their ever coming to us.
//!
//! A pipe is lent to one direction of one tunnel while bytes flow there. It comes back empty, or not at all: what is
//! left in one must never reach another tunnel.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// What one pipe holds where the system allows it; 64 KiB where it does not.
const PIPE_BYTES: usize = 256 << 10;
/// Pipes that are kept for the next one who needs one.
const KEPT: usize = 16;

/// Pipes that are in nobody's use.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Mutex<Vec<Pipe>>);

#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// A pipe in use.
pub(crate) struct Lent<'p> {
    pipes: &'p Pipes,
    pipe: Option<Pipe>,
    holds: usize,
}

impl Pipes {
    /// An empty pipe.
    pub(crate) fn lend(&self) -> io::Result<Lent<'_>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let pipe = match kept {
            Some(pipe) => pipe,
            None => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
                let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
                Pipe { read, write }
            }
        };
        Ok(Lent { pipes: self, pipe: Some(pipe), holds: 0 })
    }
}

impl Lent<'_> {
    /// How many bytes are in it.
    pub(crate) fn holds(&self) -> usize {
        self.holds
    }

    /// Takes what `from` has, into the empty pipe: how much, 0 at its end, `None` where it has nothing now.
    pub(crate) fn fill(&mut self, from: &TcpStream) -> io::Result<Option<usize>> {
        debug_assert_eq!(self.holds, 0);
        let Some(pipe) = &self.pipe else { return Ok(Some(0)) };
        match from.try_io(Interest::READABLE, || moved(from, &pipe.write, PIPE_BYTES)) {
            Ok(length) => {
                self.holds = length;
                Ok(Some(length))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives `to` what it takes now: how much, 0 where it takes nothing.
    pub(crate) fn drain(&mut self, to: &TcpStream) -> io::Result<usize> {
        let Some(pipe) = &self.pipe else { return Ok(0) };
        match to.try_io(Interest::WRITABLE, || moved(&pipe.read, to, self.holds)) {
            Ok(length) => {
                self.holds -= length.min(self.holds);
                Ok(length)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.holds == 0
            && let Some(pipe) = self.pipe.take()
        {
            let mut kept = self.pipes.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() < KEPT {
                kept.push(pipe);
            }
        }
    }
}

fn moved(from: impl std::os::fd::AsFd, to: impl std::os::fd::AsFd, most: usize) -> io::Result<usize> {
    Ok(splice(from, None, to, None, most, SpliceFlags::NONBLOCK | SpliceFlags::MOVE)?)
}
