//! Bytes from here to there and back, in both directions at once, until both are done or nothing moves any more.
//!
//! A direction holds a buffer only while bytes flow in it: an idle tunnel costs two sockets and a task.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::activity::Activity;
use crate::limits::Limits;
use crate::log::Entry;

const BUFFER_BYTES: usize = 64 << 10;
/// Buffers that are kept for the next one who needs one.
const KEPT_BUFFERS: usize = 16;
/// Of a WebSocket, whose messages are small; these are held as long as it lasts.
const SMALL_BUFFER_BYTES: usize = 8 << 10;

/// Buffers that are in nobody's use.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<Vec<Box<[u8]>>>);

struct Lent<'b> {
    buffers: &'b Buffers,
    buffer: Box<[u8]>,
}

impl Buffers {
    fn lend(&self) -> Lent<'_> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Lent { buffers: self, buffer: kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice()) }
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let mut kept = self.buffers.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_BUFFERS {
            kept.push(std::mem::take(&mut self.buffer));
        }
    }
}

/// How long nothing may move.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    idle: Duration,
    half_closed: Duration,
}

impl Patience {
    pub(crate) fn of(limits: &Limits) -> Self {
        Self { idle: limits.idle, half_closed: limits.between.min(limits.idle) }
    }
}

/// Relays between two sockets. `early` was read from `near` before and goes first.
pub(crate) async fn sockets(
    near: TcpStream,
    far: TcpStream,
    early: Vec<u8>,
    buffers: &Buffers,
    patience: Patience,
    entry: &Entry,
) {
    let activity = Activity::new();
    let (near_read, near_write) = near.into_split();
    let (far_read, mut far_write) = far.into_split();
    let up = async {
        far_write.write_all(&early).await?;
        entry.up.fetch_add(early.len() as u64, Ordering::Relaxed);
        drop(early);
        pump(near_read, far_write, buffers, &entry.up, &activity).await
    };
    let down = pump(far_read, near_write, buffers, &entry.down, &activity);
    both(up, down, &activity, patience, entry).await;
}

/// Relays between any two streams.
pub(crate) async fn streams<N, F>(near: N, far: F, patience: Patience, entry: &Entry)
where
    N: AsyncRead + AsyncWrite,
    F: AsyncRead + AsyncWrite,
{
    let activity = Activity::new();
    let (near_read, near_write) = tokio::io::split(near);
    let (far_read, far_write) = tokio::io::split(far);
    let up = copy(near_read, far_write, &entry.up, &activity);
    let down = copy(far_read, near_write, &entry.down, &activity);
    both(up, down, &activity, patience, entry).await;
}

/// Both directions to their ends. Once one has ended, the other has less time to stand still: a client that is gone
/// can't be told from one that has said all.
async fn both(
    up: impl Future<Output = io::Result<()>>,
    down: impl Future<Output = io::Result<()>>,
    activity: &Activity,
    patience: Patience,
    entry: &Entry,
) {
    tokio::pin!(up, down);
    let (first, up_is_done) = tokio::select! {
        result = &mut up => (result, true),
        result = &mut down => (result, false),
        () = activity.ceased(patience.idle) => return entry.failed("idle"),
    };
    if first.is_err() {
        return entry.failed("cut_off");
    }
    activity.touch();
    let second = async { if up_is_done { down.await } else { up.await } };
    tokio::select! {
        result = second => if result.is_err() { entry.failed("cut_off") },
        () = activity.ceased(patience.half_closed) => entry.failed("idle"),
    }
}

async fn pump(
    from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    buffers: &Buffers,
    count: &AtomicU64,
    activity: &Activity,
) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut lent = buffers.lend();
        loop {
            match from.try_read(&mut lent.buffer) {
                Ok(0) => return to.shutdown().await,
                Ok(length) => {
                    to.write_all(&lent.buffer[..length]).await?;
                    count.fetch_add(length as u64, Ordering::Relaxed);
                    activity.touch();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
    }
}

async fn copy(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    count: &AtomicU64,
    activity: &Activity,
) -> io::Result<()> {
    let mut buffer = vec![0; SMALL_BUFFER_BYTES];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
        to.flush().await?;
        count.fetch_add(length as u64, Ordering::Relaxed);
        activity.touch();
    }
}
