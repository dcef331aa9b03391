//! Archives: the names of their entries, and, where the owner allows a depth, the entries' own text.
//!
//! Sources: APPNOTE.TXT (ZIP), POSIX ustar and pax (tar), RFC 1952 (gzip), the 7z format notes. Nothing is unpacked
//! beyond a bound that all archives in one file share, whatever their headers promise.

use std::io::{Cursor, Read as _};

use flate2::read::MultiGzDecoder;

use crate::detect;
use crate::readers::{Budget, Found, Read, Refusal, inner};
use crate::{Kind, tidy};

/// Names of entries listed; the rest are counted only.
const MAX_NAMES: usize = 100_000;
/// The largest entry that is unpacked, in bytes.
const MAX_ENTRY: u64 = 128 << 20;

/// An archive's list, then, if its depth is allowed, its files.
pub(super) fn read(kind: Kind, name: &str, bytes: Vec<u8>, budget: &Budget, depth: u32) -> Read {
    let Some(_level) = budget.enter_archive() else {
        // Inside archives that are deep enough already.
        return Err(Refusal::Unsupported);
    };
    let mut listing = Listing { names: String::new(), count: 0, files: Vec::new(), open: budget.opens_archives() };
    match kind {
        Kind::Zip => zip_entries(&bytes, budget, &mut listing)?,
        Kind::Tar => tar_entries(bytes.as_slice(), budget, &mut listing)?,
        Kind::Gzip => gzip_entry(name, &bytes, budget, &mut listing)?,
        Kind::SevenZip => seven_entries(&bytes, &mut listing)?,
        _ => return Err(Refusal::Unsupported),
    }
    drop(bytes);
    let mut text = listing.names;
    for (name, bytes) in listing.files {
        inner(&mut text, &name, bytes, budget, depth);
    }
    Ok(Found { text, reader: "archive", pages: None, title: None })
}

struct Listing {
    names: String,
    count: usize,
    /// Unpacked files.
    files: Vec<(String, Vec<u8>)>,
    open: bool,
}

impl Listing {
    fn add(&mut self, name: &str) {
        self.count += 1;
        if self.count <= MAX_NAMES {
            self.names.extend(name.chars().map(|c| if tidy::allowed(c) && c != '\n' { c } else { ' ' }));
            self.names.push('\n');
        }
    }

    fn unpack(&mut self, name: &str, entry: impl std::io::Read, budget: &Budget) {
        if !self.open {
            return;
        }
        let room = budget.unpacked.get().min(MAX_ENTRY);
        let mut bytes = Vec::new();
        // A torn entry is a gap; one over the bound is named only.
        if entry.take(room + 1).read_to_end(&mut bytes).is_ok() && bytes.len() as u64 <= room {
            budget.unpacked.set(budget.unpacked.get().saturating_sub(bytes.len() as u64));
            self.files.push((name.to_owned(), bytes));
        }
    }
}

fn zip_entries(bytes: &[u8], budget: &Budget, listing: &mut Listing) -> Result<(), Refusal> {
    let mut archive =
        zip::ZipArchive::new(Cursor::new(bytes)).map_err(|_| Refusal::Damaged("no directory of a ZIP archive"))?;
    let mut encrypted = 0;
    for index in 0..archive.len() {
        let Ok(raw) = archive.by_index_raw(index) else { continue };
        let (name, folder, locked) = (raw.name().to_owned(), raw.is_dir(), raw.encrypted());
        drop(raw);
        listing.add(&name);
        encrypted += usize::from(locked);
        if listing.open
            && !folder
            && !locked
            && let Ok(entry) = archive.by_index(index)
        {
            listing.unpack(&name, entry, budget);
        }
    }
    let all = listing.open && encrypted > 0 && encrypted == archive.len();
    if all { Err(Refusal::Encrypted) } else { Ok(()) }
}

fn tar_entries(from: impl std::io::Read, budget: &Budget, listing: &mut Listing) -> Result<(), Refusal> {
    let mut archive = tar::Archive::new(from);
    let entries = archive.entries().map_err(|_| Refusal::Damaged("no header of a tar archive"))?;
    for entry in entries {
        let Ok(entry) = entry else {
            return if listing.count > 0 { Ok(()) } else { Err(Refusal::Damaged("no header of a tar archive")) };
        };
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        listing.add(&name);
        if entry.header().entry_type().is_file() {
            listing.unpack(&name, entry, budget);
        }
    }
    Ok(())
}

/// A compressed tar is listed as one; anything else is one entry.
fn gzip_entry(name: &str, bytes: &[u8], budget: &Budget, listing: &mut Listing) -> Result<(), Refusal> {
    let mut head = [0; 512];
    let mut filled = 0;
    let mut decoder = MultiGzDecoder::new(bytes);
    while let Ok(read @ 1..) = decoder.read(&mut head[filled..]) {
        filled += read;
    }
    if filled == 0 {
        return Err(Refusal::Damaged("nothing could be unpacked"));
    }
    if head.get(257..262) == Some(b"ustar") {
        return tar_entries(MultiGzDecoder::new(bytes).take(budget.unpacked.get()), budget, listing);
    }
    let inside = MultiGzDecoder::new(bytes)
        .header()
        .and_then(|header| header.filename())
        .map(|name| String::from_utf8_lossy(name).into_owned());
    let stem = if detect::ending(name) == "gz" { name[..name.len() - 3].to_owned() } else { name.to_owned() };
    let inside = inside.unwrap_or(stem);
    listing.add(&inside);
    listing.unpack(&inside, MultiGzDecoder::new(bytes), budget);
    Ok(())
}

/// 7z archives are listed only: unpacking one needs its whole dictionary in memory.
fn seven_entries(bytes: &[u8], listing: &mut Listing) -> Result<(), Refusal> {
    let password = sevenz_rust2::Password::empty();
    let archive = sevenz_rust2::Archive::read(&mut Cursor::new(bytes), &password).map_err(|error| match error {
        sevenz_rust2::Error::PasswordRequired | sevenz_rust2::Error::MaybeBadPassword(_) => Refusal::Encrypted,
        _ => Refusal::Damaged("no directory of a 7z archive"),
    })?;
    for entry in &archive.files {
        listing.add(entry.name());
    }
    Ok(())
}
