//! Bodies on their way through: frame by frame as they come, counted, never held.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use super::upstream::Lease;
use crate::log::Entry;

/// Which way a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
}

/// A body whose bytes are counted in the log's line.
pub(crate) struct Counted<B> {
    inner: B,
    way: Way,
    entry: Arc<Entry>,
}

impl<B> Counted<B> {
    pub(crate) fn new(inner: B, way: Way, entry: Arc<Entry>) -> Self {
        Self { inner, way, entry }
    }
}

impl<B: Body<Data = Bytes, Error = hyper::Error> + Unpin> Body for Counted<B> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                let count = if self.way == Way::Up { &self.entry.up } else { &self.entry.down };
                count.fetch_add(length, Ordering::Relaxed);
            }
            Poll::Ready(Some(Err(_))) => {
                self.entry.failed(if self.way == Way::Up { "client_cut_off" } else { "upstream_cut_off" });
            }
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// An answer's body. Read to its end it gives its connection back.
pub(crate) struct Answer {
    incoming: Incoming,
    lease: Option<Lease>,
}

impl Answer {
    pub(crate) fn new(incoming: Incoming, lease: Lease) -> Self {
        Self { incoming, lease: Some(lease) }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.lease.take().into_iter().for_each(Lease::give_back),
            Poll::Ready(Some(Err(_))) => self.lease = None,
            _ => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        // a length that was used up, or no body at all: nobody asks for the end then
        if self.incoming.is_end_stream() {
            self.lease.take().into_iter().for_each(Lease::give_back);
        }
    }
}
