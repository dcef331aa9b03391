//! A connection from which something was read already, and that notes that it moves.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::activity::Activity;

/// The sandbox's side of a connection. What was read before comes first.
pub(crate) struct Stream {
    tcp: TcpStream,
    early: Vec<u8>,
    taken: usize,
    activity: Activity,
}

impl Stream {
    pub(crate) fn new(tcp: TcpStream, early: Vec<u8>, activity: Activity) -> Self {
        Self { tcp, early, taken: 0, activity }
    }

    fn moved(&self, result: &Poll<io::Result<usize>>) {
        if matches!(result, Poll::Ready(Ok(_))) {
            self.activity.touch();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.taken < self.early.len() {
            let early = &self.early[self.taken..];
            let length = early.len().min(buf.remaining());
            buf.put_slice(&early[..length]);
            self.taken += length;
            if self.taken == self.early.len() {
                self.early = Vec::new();
                self.taken = 0;
            }
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let result = Pin::new(&mut self.tcp).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.activity.touch();
        }
        result
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.moved(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.moved(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}
