//! The frames between pool and worker: a fixed preamble, a small JSON head, and a body of bytes.
//!
//! ```text
//! "BXT1"  head length u32 LE  body length u64 LE  head (JSON)  body
//! ```
//!
//! Both sides are the same program, so the version in the magic only catches a binary replaced under a running
//! sweep. The pool treats what it reads as hostile: lengths are bounded before anything is reserved for them.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{FailReason, SkipReason};

/// First bytes of every frame; the digit is the version of the protocol.
const MAGIC: [u8; 4] = *b"BXT1";
/// Bytes before the head.
pub(crate) const PREAMBLE: usize = 16;
/// No head is larger than this, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// What the pool says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub(crate) enum Ask {
    /// The first frame: cage yourself, unless the owner chose not to.
    Start {
        /// The owner gave `--uncaged`.
        uncaged: bool,
    },
    /// The first frame, instead of `Start`: cage yourself and become this program. What follows is its input.
    Become {
        /// The owner gave `--uncaged`.
        uncaged: bool,
        /// The program.
        program: PathBuf,
        /// Its arguments.
        arguments: Vec<String>,
        /// The folder it may write.
        folder: Option<PathBuf>,
        /// Its processor seconds.
        seconds: u64,
    },
    /// Read the file in the body.
    Read {
        /// Its name.
        name: String,
        /// As in [`crate::Limits`].
        max_doc_chars: u64,
        /// As in [`crate::Limits`].
        archive_depth: u32,
    },
}

/// What the worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Caged, waiting for files.
    Ready,
    /// Not caged; the worker ends.
    Uncaged {
        /// The layer that is missing.
        layer: String,
        /// Why.
        cause: String,
        /// What the owner can do.
        mend: String,
    },
    /// The text is in the body.
    Text {
        /// As in [`crate::Document`].
        mime: String,
        /// As in [`crate::Document`].
        reader: String,
        /// As in [`crate::Document`].
        pages: Option<u32>,
        /// As in [`crate::Document`].
        title: Option<String>,
        /// As in [`crate::Document`].
        lang: Option<String>,
    },
    /// No text in it.
    Empty {
        /// Media type.
        mime: String,
        /// Reader.
        reader: String,
    },
    /// Not read.
    Skipped {
        /// Media type.
        mime: Option<String>,
        /// Why.
        reason: SkipReason,
    },
    /// Not readable.
    Failed {
        /// Media type.
        mime: Option<String>,
        /// Why.
        reason: FailReason,
        /// A few words of ours.
        detail: String,
    },
}

/// The preamble and head of a frame whose body has `body` bytes.
pub(crate) fn head<T: Serialize>(message: &T, body: usize) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(message)?;
    let length = u32::try_from(json.len()).map_err(|_| malformed("head too long"))?;
    let mut frame = Vec::with_capacity(PREAMBLE + json.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&(body as u64).to_le_bytes());
    frame.extend_from_slice(&json);
    Ok(frame)
}

/// Lengths of head and body, in bytes, out of a preamble.
pub(crate) fn lengths(preamble: &[u8; PREAMBLE], max_body: u64) -> io::Result<(usize, usize)> {
    let [m0, m1, m2, m3, h0, h1, h2, h3, body @ ..] = *preamble;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(malformed("not a frame of this version"));
    }
    let head = u32::from_le_bytes([h0, h1, h2, h3]) as usize;
    let body = u64::from_le_bytes(body);
    if head > MAX_HEAD || body > max_body {
        return Err(malformed("frame too long"));
    }
    Ok((head, usize::try_from(body).map_err(|_| malformed("frame too long"))?))
}

/// The message in a head.
pub(crate) fn message<T: DeserializeOwned>(head: &[u8]) -> io::Result<T> {
    serde_json::from_slice(head).map_err(|_| malformed("unknown message"))
}

/// Reads a whole frame; `None` where the other side has closed the pipe between two frames. For the worker, which
/// trusts the pool.
pub(crate) fn read<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<Option<(T, Vec<u8>)>> {
    let mut preamble = [0; PREAMBLE];
    if from.read(&mut preamble[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut preamble[1..])?;
    let (head, body) = lengths(&preamble, u64::MAX)?;
    let mut bytes = vec![0; head];
    from.read_exact(&mut bytes)?;
    let message = message(&bytes)?;
    let mut bytes = vec![0; body];
    from.read_exact(&mut bytes)?;
    Ok(Some((message, bytes)))
}

/// Writes a whole frame.
pub(crate) fn write<T: Serialize>(to: &mut impl Write, message: &T, body: &[u8]) -> io::Result<()> {
    to.write_all(&head(message, body.len())?)?;
    to.write_all(body)?;
    to.flush()
}

pub(crate) fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_went() {
        let mut pipe = Vec::new();
        write(&mut pipe, &Ask::Start { uncaged: true }, b"body").unwrap();
        let mut from = pipe.as_slice();
        let (ask, body) = read::<Ask>(&mut from).unwrap().unwrap();
        assert!(matches!(ask, Ask::Start { uncaged: true }));
        assert_eq!(body, b"body");
        assert!(read::<Ask>(&mut from).unwrap().is_none());
    }

    #[test]
    fn lengths_are_bounded_before_anything_is_reserved() {
        let mut preamble = [0; PREAMBLE];
        preamble[..4].copy_from_slice(&MAGIC);
        preamble[8..].copy_from_slice(&1001u64.to_le_bytes());
        assert!(lengths(&preamble, 1000).is_err());
        assert!(lengths(&preamble, 1001).is_ok());
        preamble[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(lengths(&preamble, 1001).is_err());
        assert!(lengths(&[0; PREAMBLE], 1001).is_err());
    }
}
