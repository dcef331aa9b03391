//! One connection's bytes: requests in, answers out, and a timer on every wait.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::{Instant, timeout, timeout_at};

use super::body::{BodyError, BodyReader};
use super::head::{Framing, Head};
use super::{MAX_HEAD_BYTES, Violation};

/// How long a peer may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timers {
    /// For nothing at all, between requests.
    pub(crate) idle: Duration,
    /// For a head, from its first byte.
    pub(crate) head: Duration,
    /// For a body, from the end of its head.
    pub(crate) body: Duration,
    /// To take an answer.
    pub(crate) write: Duration,
}

/// Bytes and seconds that a peer is granted to go on sending after the last answer, so that it gets to read it.
const LINGER_BYTES: usize = 256 << 10;
const LINGER: Duration = Duration::from_secs(2);

/// Why there is no (whole) request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It is answered, and then the connection ends.
    #[error(transparent)]
    Refused(#[from] BodyError),
    /// The peer is gone or too slow: there is nobody to answer.
    #[error("the peer is gone")]
    Gone,
}

impl From<Violation> for ReadError {
    fn from(violation: Violation) -> Self {
        Self::Refused(violation.into())
    }
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// A stream and what was read from it too early.
#[derive(Debug)]
pub(crate) struct Connection<S> {
    stream: S,
    buffer: Vec<u8>,
    timers: Timers,
    stop: watch::Receiver<bool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// `stop` becomes true when no further request is to be read.
    pub(crate) fn new(stream: S, timers: Timers, stop: watch::Receiver<bool>) -> Self {
        Self { stream, buffer: Vec::new(), timers, stop }
    }

    /// Whether the endpoint is stopping.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.borrow()
    }

    /// The next request's head. An idle, closed or stopped connection is [`ReadError::Gone`].
    pub(crate) async fn head(&mut self) -> Result<Head, ReadError> {
        if self.buffer.is_empty() {
            self.first_bytes().await?;
        }
        let deadline = Instant::now() + self.timers.head;
        let mut seen = 0;
        loop {
            // only a new line can finish a head, or make another of its errors visible
            if (self.buffer[seen..].contains(&b'\n') || self.buffer.len() >= MAX_HEAD_BYTES)
                && let Some((head, length)) = Head::parse(&self.buffer)?
            {
                self.buffer.drain(..length);
                return Ok(head);
            }
            seen = self.buffer.len();
            self.more(deadline).await?;
        }
    }

    /// The body that belongs to `head`. The second value: whether it had to be waited for.
    pub(crate) async fn body(&mut self, head: &Head) -> Result<(Vec<u8>, bool), ReadError> {
        let mut reader = BodyReader::new(head.framing)?;
        if reader.take(&mut self.buffer)? {
            return Ok((reader.into_body(), false));
        }
        if head.expects_continue {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        let deadline = Instant::now() + self.timers.body;
        loop {
            self.more(deadline).await?;
            if reader.take(&mut self.buffer)? {
                return Ok((reader.into_body(), true));
            }
        }
    }

    /// Passes over a body that nobody wants to read. False: not all of it is here, so the connection must end.
    pub(crate) fn discard_body(&mut self, head: &Head) -> bool {
        match head.framing {
            Framing::Length(length) => match usize::try_from(length) {
                Ok(length) if length <= self.buffer.len() => {
                    self.buffer.drain(..length);
                    true
                }
                _ => false,
            },
            Framing::Chunked => false,
        }
    }

    /// Sends an answer.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        timeout(self.timers.write, sent).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Ends the connection so that the peer can read the last answer: what it still sends is taken for a while,
    /// because a socket that is closed with bytes unread takes back what it sent (RFC 9112 §9.6).
    pub(crate) async fn end(mut self) {
        let _ = timeout(LINGER, async {
            self.stream.shutdown().await?;
            let mut taken = 0;
            while taken < LINGER_BYTES {
                self.buffer.clear();
                self.buffer.reserve(4096);
                match self.stream.read_buf(&mut self.buffer).await? {
                    0 => break,
                    read => taken += read,
                }
            }
            io::Result::Ok(())
        })
        .await;
    }

    /// Ends a connection on which nothing is under way.
    pub(crate) async fn close(mut self) {
        let _ = timeout(LINGER, self.stream.shutdown()).await;
    }

    async fn first_bytes(&mut self) -> Result<(), ReadError> {
        self.buffer.reserve(4096);
        let stream = &mut self.stream;
        let buffer = &mut self.buffer;
        let stop = &mut self.stop;
        let read = async {
            tokio::select! {
                biased;
                read = stream.read_buf(buffer) => read,
                _ = stop.wait_for(|stop| *stop) => Ok(0),
            }
        };
        match timeout(self.timers.idle, read).await {
            Ok(Ok(read)) if read > 0 => Ok(()),
            _ => Err(ReadError::Gone),
        }
    }

    async fn more(&mut self, deadline: Instant) -> Result<(), ReadError> {
        self.buffer.reserve(4096);
        match timeout_at(deadline, self.stream.read_buf(&mut self.buffer)).await {
            Ok(Ok(read)) if read > 0 => Ok(()),
            _ => Err(ReadError::Gone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::DuplexStream;

    fn pair() -> (Connection<DuplexStream>, DuplexStream, watch::Sender<bool>) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (sender, receiver) = watch::channel(false);
        let second = Duration::from_secs(1);
        let timers = Timers { idle: 60 * second, head: 10 * second, body: 10 * second, write: 30 * second };
        (Connection::new(ours, timers, receiver), theirs, sender)
    }

    fn run(test: impl Future<Output = ()>) {
        // time is the runtime's own here: it jumps to the next timer when nothing else can happen
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(test);
    }

    #[test]
    fn requests_that_arrive_together_are_read_apart() {
        run(async {
            let (mut connection, mut peer, _stop) = pair();
            let one = b"POST /search HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET /health HTTP/1.1\r\nHost: a\r\n\r\n";
            peer.write_all(one).await.unwrap();
            let head = connection.head().await.unwrap();
            assert_eq!(connection.body(&head).await.unwrap(), (b"abc".to_vec(), false));
            assert_eq!(connection.head().await.unwrap().path, "/health");
        });
    }

    #[test]
    fn a_slow_head_a_slow_body_and_an_idle_peer_end_in_time() {
        run(async {
            let (mut connection, mut peer, _stop) = pair();
            let start = Instant::now();
            let trickle = tokio::spawn(async move {
                for byte in b"POST /search HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n".iter().cycle() {
                    if peer.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_secs(3)).await;
                }
            });
            assert!(matches!(connection.head().await, Err(ReadError::Gone)));
            assert_eq!(start.elapsed().as_secs(), 10);
            trickle.abort();

            let (mut connection, mut peer, _stop) = pair();
            peer.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc").await.unwrap();
            let head = connection.head().await.unwrap();
            let start = Instant::now();
            assert!(matches!(connection.body(&head).await, Err(ReadError::Gone)));
            assert_eq!(start.elapsed().as_secs(), 10);

            let (mut connection, _peer, _stop) = pair();
            let start = Instant::now();
            assert!(matches!(connection.head().await, Err(ReadError::Gone)));
            assert_eq!(start.elapsed().as_secs(), 60);
        });
    }

    #[test]
    fn stopping_ends_an_idle_connection_and_no_other() {
        run(async {
            let (mut connection, mut peer, stop) = pair();
            peer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            stop.send(true).unwrap();
            assert_eq!(connection.head().await.unwrap().path, "/");
            let start = Instant::now();
            assert!(matches!(connection.head().await, Err(ReadError::Gone)));
            assert_eq!(start.elapsed().as_secs(), 0);
        });
    }

    #[test]
    fn a_client_that_asks_first_is_told_to_go_on() {
        run(async {
            let (mut connection, mut peer, _stop) = pair();
            peer.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
                .await
                .unwrap();
            let client = tokio::spawn(async move {
                let mut line = [0; 25];
                peer.read_exact(&mut line).await.unwrap();
                assert_eq!(&line, b"HTTP/1.1 100 Continue\r\n\r\n");
                peer.write_all(b"{}").await.unwrap();
                peer
            });
            let head = connection.head().await.unwrap();
            assert_eq!(connection.body(&head).await.unwrap(), (b"{}".to_vec(), true));
            client.await.unwrap();
        });
    }

    #[test]
    fn a_peer_that_does_not_read_is_given_up() {
        run(async {
            let (mut connection, _peer, _stop) = pair();
            let start = Instant::now();
            assert!(connection.write(&vec![0; 2 << 20]).await.is_err());
            assert_eq!(start.elapsed().as_secs(), 30);
        });
    }
}
