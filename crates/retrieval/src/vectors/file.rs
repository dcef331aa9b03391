//! The form of `vectors.i8`, all numbers little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | `BSTVEC01` |
//! | 8..12 | CRC-32 of everything from byte 12 on |
//! | 12..16 | numbers in a vector (`dims`) |
//! | 16..24 | vectors (`count`) |
//! | 24..28 | bytes of the model's name |
//! | 28..64 | zeros |
//! | 64.. | the model's name, zeros up to a multiple of 64 |
//! | then | `count` keys of 8 bytes, ascending; zeros up to a multiple of 64 |
//! | then | `count` factors of 4 bytes; zeros up to a multiple of 64 |
//! | then | `count` rows of `dims` bytes |
//!
//! Rows lie together and begin at a multiple of 64, a cache line, so that a scan reads nothing else.

use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;

use crate::key::ModelTag;

pub(super) const MAGIC: &[u8; 8] = b"BSTVEC01";
const ALIGN: usize = 64;
/// Where the checksum stands, and what it covers.
const CHECKSUM: Range<usize> = 8..12;
const HEADER: usize = 64;
/// Larger models do not exist; a larger number is damage.
pub(crate) const MAX_DIMS: usize = 65_536;

/// Where everything lies in a file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layout {
    pub(super) model: ModelTag,
    pub(super) keys: Range<usize>,
    pub(super) scales: Range<usize>,
    pub(super) rows: Range<usize>,
}

impl Layout {
    /// None where the sizes do not fit in memory.
    fn new(model: ModelTag, count: usize) -> Option<Self> {
        let next = |from: usize, len: usize| Some(from..from.checked_add(len)?);
        let name = next(HEADER, model.name.len())?;
        let keys = next(name.end.checked_next_multiple_of(ALIGN)?, count.checked_mul(8)?)?;
        let scales = next(keys.end.checked_next_multiple_of(ALIGN)?, count.checked_mul(4)?)?;
        let rows = next(scales.end.checked_next_multiple_of(ALIGN)?, count.checked_mul(model.dims)?)?;
        Some(Self { model, keys, scales, rows })
    }

    /// Reads the header of a file and checks all of it.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        let header = bytes.get(..HEADER).ok_or("it is cut short")?;
        if !header.starts_with(MAGIC) {
            return Err("it is no file of vectors");
        }
        let four = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let dims = four(12) as usize;
        let count = u64::from(four(16)) | u64::from(four(20)) << 32;
        let name = bytes.get(HEADER..HEADER.saturating_add(four(24) as usize)).ok_or("it is cut short")?;
        let name = std::str::from_utf8(name).map_err(|_| "its model has no name")?.to_owned();
        if dims == 0 || dims > MAX_DIMS {
            return Err("its vectors have no sensible size");
        }
        let layout = usize::try_from(count)
            .ok()
            .and_then(|count| Self::new(ModelTag { name, dims }, count))
            .ok_or("its size is senseless")?;
        match bytes.len().cmp(&layout.rows.end) {
            std::cmp::Ordering::Less => Err("it is cut short"),
            std::cmp::Ordering::Greater => Err("it has something added"),
            std::cmp::Ordering::Equal if crc32fast::hash(&bytes[CHECKSUM.end..]) != four(CHECKSUM.start) => {
                Err("its checksum is another")
            }
            std::cmp::Ordering::Equal => Ok(layout),
        }
    }
}

/// Writes a file of `rows`, which give key, factor and numbers in order of their keys. The iterator is asked three times.
pub(super) fn write<'a, I>(
    out: &mut (impl Write + Seek),
    model: &ModelTag,
    count: usize,
    rows: impl Fn() -> I,
) -> io::Result<()>
where
    I: Iterator<Item = (u64, f32, &'a [u8])>,
{
    let too_large = || io::Error::new(io::ErrorKind::InvalidInput, "too many vectors");
    let layout = Layout::new(model.clone(), count).ok_or_else(too_large)?;
    let mut file =
        Checked { out: io::BufWriter::with_capacity(1 << 20, out), hash: crc32fast::Hasher::new(), at: CHECKSUM.end };
    file.out.write_all(MAGIC)?;
    file.out.write_all(&[0; 4])?;
    file.put(&u32::try_from(model.dims).map_err(|_| too_large())?.to_le_bytes())?;
    file.put(&(count as u64).to_le_bytes())?;
    file.put(&u32::try_from(model.name.len()).map_err(|_| too_large())?.to_le_bytes())?;
    file.pad(HEADER)?;
    file.put(model.name.as_bytes())?;
    file.pad(layout.keys.start)?;
    for (key, _, _) in rows() {
        file.put(&key.to_le_bytes())?;
    }
    file.pad(layout.scales.start)?;
    for (_, scale, _) in rows() {
        file.put(&scale.to_le_bytes())?;
    }
    file.pad(layout.rows.start)?;
    for (_, _, row) in rows() {
        file.put(row)?;
    }
    let Checked { out: buffered, hash, .. } = file;
    let hash = hash.finalize();
    let out = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    out.seek(SeekFrom::Start(CHECKSUM.start as u64))?;
    out.write_all(&hash.to_le_bytes())
}

struct Checked<W: Write> {
    out: W,
    hash: crc32fast::Hasher,
    at: usize,
}

impl<W: Write> Checked<W> {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.at += bytes.len();
        self.out.write_all(bytes)
    }

    fn pad(&mut self, to: usize) -> io::Result<()> {
        let zeros = [0; ALIGN];
        self.put(&zeros[..to - self.at])
    }
}

/// Reads `bytes` as a file whose checksum is right; what is read lies in it.
#[cfg(fuzzing)]
pub(super) fn fuzz(bytes: &[u8]) {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= HEADER {
        let hash = crc32fast::hash(&bytes[CHECKSUM.end..]);
        bytes[CHECKSUM].copy_from_slice(&hash.to_le_bytes());
    }
    if let Ok(layout) = Layout::read(&bytes) {
        assert!(layout.rows.end <= bytes.len() && layout.keys.end <= layout.scales.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let mut out = io::Cursor::new(Vec::new());
        let rows = [(1_u64, 0.5_f32, [1_u8, 2, 3]), (7, 0.25, [4, 5, 6])];
        let model = ModelTag { name: "tiny".to_owned(), dims: 3 };
        write(&mut out, &model, 2, || rows.iter().map(|(key, scale, row)| (*key, *scale, row.as_slice()))).unwrap();
        out.into_inner()
    }

    #[test]
    fn what_is_written_is_read() {
        let bytes = example();
        let layout = Layout::read(&bytes).unwrap();
        assert_eq!(layout.model, ModelTag { name: "tiny".to_owned(), dims: 3 });
        assert_eq!(&bytes[layout.keys], [1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(&bytes[layout.rows.clone()], [1, 2, 3, 4, 5, 6]);
        assert_eq!(layout.rows.start % ALIGN, 0);
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_seen() {
        let bytes = example();
        for len in 0..bytes.len() {
            assert!(Layout::read(&bytes[..len]).is_err(), "cut at {len}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(Layout::read(&damaged).is_err(), "bit {bit}");
        }
        assert!(Layout::read(&[bytes, vec![0]].concat()).is_err());
    }
}
