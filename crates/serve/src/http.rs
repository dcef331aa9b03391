//! HTTP/1.1 (RFC 9110, RFC 9112) as strict as one small JSON interface can be.
//!
//! The general servers accept what the RFC lets a lenient recipient accept: `Content-Length` beside
//! `Transfer-Encoding`, the same `Content-Length` twice, bare line feeds. They repair such a request before their
//! caller can see it, so it could not be refused on top of them. Here a message has one reading or it is a
//! 400 and the connection ends. The tokenizer is `httparse`, the one that those servers use too.
//!
//! Nothing here knows what is asked for, or by whom.

mod body;
mod connection;
mod head;
mod query;

pub(crate) use body::BodyError;
pub(crate) use connection::{Connection, ReadError, Timers};
pub(crate) use head::{Head, Method};
pub(crate) use query::{QueryError, encode, pairs};

/// A request's head may be this many bytes long, and have [`MAX_HEADERS`] fields.
pub(crate) const MAX_HEAD_BYTES: usize = 16 << 10;
/// Fields in one head.
pub(crate) const MAX_HEADERS: usize = 64;
/// A body may be this many bytes long (serve.md: more is 413).
pub(crate) const MAX_BODY_BYTES: usize = 64 << 10;

/// Why a message has no single meaning. The connection cannot be used any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error("the request is not HTTP/1.1")]
    Syntax,
    #[error("the head is larger than 16 KiB or has more than 64 fields")]
    HeadTooLarge,
    #[error("a line ends without a carriage return")]
    BareLineFeed,
    #[error("there must be exactly one Host")]
    Host,
    #[error("the target must be a path")]
    Target,
    #[error("there is more than one Content-Length")]
    ContentLengthTwice,
    #[error("Content-Length is not a number")]
    ContentLength,
    #[error("Content-Length beside Transfer-Encoding")]
    ContentLengthBesideTransferEncoding,
    #[error("Transfer-Encoding is something else than chunked")]
    TransferEncoding,
    #[error("Expect is something else than 100-continue")]
    Expect,
    #[error("a chunk of the body is malformed")]
    Chunk,
}
