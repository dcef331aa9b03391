//! Bytes from here to there and back, in both directions at once, until both are done or nothing moves any more.
//!
//! Between two sockets the bytes stay in the kernel (`splice`), and a direction holds a pipe only while bytes flow in
//! it: an idle tunnel costs two sockets and a task.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::activity::Activity;
use super::pipes::Pipes;
use crate::limits::Limits;
use crate::log::Entry;

/// Of a WebSocket, whose messages are small; these are held as long as it lasts.
const SMALL_BUFFER_BYTES: usize = 8 << 10;

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
    pipes: &Pipes,
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
        pump(near_read, far_write, pipes, &entry.up, &activity).await
    };
    let down = pump(far_read, near_write, pipes, &entry.down, &activity);
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
    pipes: &Pipes,
    count: &AtomicU64,
    activity: &Activity,
) -> io::Result<()> {
    loop {
        from.readable().await?;
        let mut lent = pipes.lend()?;
        while let Some(length) = lent.fill(from.as_ref())? {
            if length == 0 {
                return to.shutdown().await;
            }
            while lent.holds() > 0 {
                to.writable().await?;
                let moved = lent.drain(to.as_ref())?;
                count.fetch_add(moved as u64, Ordering::Relaxed);
                activity.touch();
                // a fast pair of sockets would never let anybody else have a turn
                tokio::task::coop::consume_budget().await;
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
