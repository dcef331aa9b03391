//! A request's body: taken from the bytes behind the head as its framing says, never more than 64 KiB.

use super::head::Framing;
use super::{MAX_BODY_BYTES, Violation};

/// One line of a chunked body (its size, extensions) may be this many bytes long.
const MAX_CHUNK_LINE: usize = 256;

/// Why there is no body to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the body is larger than 64 KiB")]
    TooLarge,
    #[error(transparent)]
    Malformed(#[from] Violation),
}

/// Takes a body apart as its bytes come in.
#[derive(Debug)]
pub(crate) struct BodyReader {
    body: Vec<u8>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// So many bytes are to come, and then the end, or for chunks the line end behind them.
    Data {
        left: usize,
        chunked: bool,
    },
    /// The line end behind a chunk.
    ChunkEnd,
    ChunkSize,
    /// The empty line behind the last chunk; trailers are refused.
    LastLine,
    Done,
}

impl BodyReader {
    pub(crate) fn new(framing: Framing) -> Result<Self, BodyError> {
        let state = match framing {
            Framing::Length(0) => State::Done,
            Framing::Length(length) => {
                let left = usize::try_from(length).ok().filter(|length| *length <= MAX_BODY_BYTES);
                State::Data { left: left.ok_or(BodyError::TooLarge)?, chunked: false }
            }
            Framing::Chunked => State::ChunkSize,
        };
        Ok(Self { body: Vec::new(), state })
    }

    /// Takes what it can from the front of `buffer`. Answers whether the body is whole; what follows it is left.
    pub(crate) fn take(&mut self, buffer: &mut Vec<u8>) -> Result<bool, BodyError> {
        let mut at = 0;
        while let Some(used) = self.step(&buffer[at..])? {
            at += used;
        }
        buffer.drain(..at);
        Ok(self.state == State::Done)
    }

    /// The body, once it is whole.
    pub(crate) fn into_body(self) -> Vec<u8> {
        self.body
    }

    /// One step; `None`: the body is whole, or more bytes are needed.
    fn step(&mut self, bytes: &[u8]) -> Result<Option<usize>, BodyError> {
        match self.state {
            State::Done => Ok(None),
            State::Data { .. } if bytes.is_empty() => Ok(None),
            State::Data { left, chunked } => {
                let taken = left.min(bytes.len());
                self.body.extend_from_slice(&bytes[..taken]);
                self.state = match (left - taken, chunked) {
                    (0, true) => State::ChunkEnd,
                    (0, false) => State::Done,
                    (left, chunked) => State::Data { left, chunked },
                };
                Ok(Some(taken))
            }
            State::ChunkEnd => self.line_end(bytes, State::ChunkSize),
            State::LastLine => self.line_end(bytes, State::Done),
            State::ChunkSize => self.chunk_size(bytes),
        }
    }

    fn line_end(&mut self, bytes: &[u8], next: State) -> Result<Option<usize>, BodyError> {
        match bytes {
            [b'\r', b'\n', ..] => {
                self.state = next;
                Ok(Some(2))
            }
            [] | [b'\r'] => Ok(None),
            _ => Err(Violation::Chunk.into()),
        }
    }

    fn chunk_size(&mut self, bytes: &[u8]) -> Result<Option<usize>, BodyError> {
        let Some((size, used)) = chunk_line(bytes)? else { return Ok(None) };
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > MAX_BODY_BYTES - self.body.len() {
            return Err(BodyError::TooLarge);
        }
        self.state = if size == 0 { State::LastLine } else { State::Data { left: size, chunked: true } };
        Ok(Some(used))
    }
}

/// The size on a chunk's first line, and the line's length with its end. Extensions are passed over. `httparse` has a
/// reader for this, which takes an empty line for 0.
fn chunk_line(bytes: &[u8]) -> Result<Option<(u64, usize)>, Violation> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n");
    let line = match end {
        Some(end) => &bytes[..end],
        None => bytes.strip_suffix(b"\r").unwrap_or(bytes),
    };
    if line.len() > MAX_CHUNK_LINE || line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(Violation::Chunk);
    }
    let Some(end) = end else { return Ok(None) };
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if !(1..=16).contains(&digits) || !matches!(line.get(digits), None | Some(b';')) {
        return Err(Violation::Chunk);
    }
    let size = line[..digits].iter().fold(0, |size, digit| size << 4 | u64::from(hex(*digit)));
    Ok(Some((size, end + 2)))
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `bytes` in pieces of `step` bytes.
    fn read(framing: Framing, bytes: &[u8], step: usize) -> Result<Option<(Vec<u8>, Vec<u8>)>, BodyError> {
        let mut reader = BodyReader::new(framing)?;
        let mut buffer = Vec::new();
        let mut whole = reader.take(&mut buffer)?;
        for piece in bytes.chunks(step) {
            buffer.extend_from_slice(piece);
            whole = whole || reader.take(&mut buffer)?;
        }
        Ok(whole.then(|| (reader.into_body(), buffer)))
    }

    #[test]
    fn both_framings_end_where_they_say_however_the_bytes_arrive() {
        let chunked = b"3\r\nabc\r\n0A;x=y\r\n0123456789\r\n0\r\n\r\nNEXT";
        for step in 1..=chunked.len() {
            let plain = read(Framing::Length(3), b"abcNEXT", step).unwrap().unwrap();
            assert_eq!(plain, (b"abc".to_vec(), b"NEXT".to_vec()));
            let (body, rest) = read(Framing::Chunked, chunked, step).unwrap().unwrap();
            assert_eq!((body.as_slice(), rest.as_slice()), (b"abc0123456789".as_slice(), b"NEXT".as_slice()));
        }
        assert_eq!(read(Framing::Length(4), b"abc", 1), Ok(None));
        assert_eq!(read(Framing::Length(0), b"", 1).unwrap().unwrap().0, b"");
        assert_eq!(read(Framing::Chunked, b"3\r\nabc\r\n0\r\n", 1), Ok(None));
    }

    #[test]
    fn more_than_64_kib_is_refused_before_it_is_read() {
        let most = MAX_BODY_BYTES as u64;
        assert!(BodyReader::new(Framing::Length(most)).is_ok());
        assert_eq!(BodyReader::new(Framing::Length(most + 1)).unwrap_err(), BodyError::TooLarge);
        assert_eq!(BodyReader::new(Framing::Length(u64::MAX)).unwrap_err(), BodyError::TooLarge);
        let large = format!("{most:x}\r\n{}\r\n1\r\n", "x".repeat(MAX_BODY_BYTES));
        assert_eq!(read(Framing::Chunked, large.as_bytes(), 4096), Err(BodyError::TooLarge));
        assert_eq!(read(Framing::Chunked, b"FFFFFFFFFFFFFFFF\r\n", 4096), Err(BodyError::TooLarge));
    }

    #[test]
    fn a_malformed_chunk_is_refused() {
        let long = format!("1;{}\r\n", "x".repeat(MAX_CHUNK_LINE));
        for bytes in [
            "x\r\n",
            "-1\r\n",
            "1\r\nabc",
            "0\r\nTrailer: x\r\n\r\n",
            "1\nX",
            "11111111111111111\r\n",
            "\r\n",
            "1 \r\n",
            " 1\r\n",
            "0x1\r\n",
            &long,
        ] {
            assert_eq!(
                read(Framing::Chunked, bytes.as_bytes(), 1),
                Err(BodyError::Malformed(Violation::Chunk)),
                "{bytes:?}"
            );
        }
    }
}
