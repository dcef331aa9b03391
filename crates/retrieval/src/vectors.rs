//! Which windows mean what a question means? All vectors of a generation in one flat file, scanned in full.
//!
//! A vector is kept as its direction: numbers of eight bits and one factor (its length is no part of its meaning). A
//! scan of all of them is exact up to that rounding and needs no structure that a change would make stale. Where there are
//! very many, their signs say first which may be near at all; that structure is made from the rows when it is first asked.

mod file;
mod quantize;
mod reader;
mod scan;
mod signs;
mod writer;

pub(crate) use reader::Vectors;
pub(crate) use writer::VectorsWriter;

/// The file's name in a generation's folder. It is there only where there are vectors.
pub(crate) const FILE: &str = "vectors.i8";

/// Reads the header of a file, with its checksum set right.
#[cfg(fuzzing)]
pub(crate) fn fuzz(bytes: &[u8]) {
    file::fuzz(bytes);
}
