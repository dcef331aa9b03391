//! Finding the files of a model in a folder or an archive, also in an archive within it, and copying those that are the
//! ones we know.
//!
//! Only the names and sizes that an archive's directory gives are trusted to look closer; no more than a file's known size is
//! ever unpacked, and nothing keeps the path that it has in the archive.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use super::known::{Known, KnownFile};
use super::{ModelError, Step};

/// Folders within folders that are looked into.
const MAX_DEPTH: u32 = 8;
/// An archive within an archive is unpacked to be looked into, up to this size in bytes.
const MAX_INNER: u64 = 1 << 30;

/// Copies every file of `known` from `source` to the folder `to`.
pub(super) fn unpack(
    source: &Path,
    known: &'static Known,
    to: &Path,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<(), ModelError> {
    let mut hunt =
        Hunt { source: source.to_owned(), known, to, found: vec![false; known.files.len()], wrong: None, progress };
    if source.is_dir() {
        hunt.folder(source, MAX_DEPTH)?;
    } else {
        let io_error = |error| ModelError::Io { path: source.to_owned(), source: error };
        if !fs::metadata(source).map_err(io_error)?.is_file() {
            return Err(ModelError::NoArchive { path: source.to_owned() });
        }
        hunt.archive(File::open(source).map_err(io_error)?, source, true)?;
    }
    hunt.result()
}

struct Hunt<'a> {
    source: PathBuf,
    known: &'static Known,
    to: &'a Path,
    found: Vec<bool>,
    /// A file with the right name and another content, to be named where the right one is not found.
    wrong: Option<(&'static KnownFile, String)>,
    progress: &'a mut dyn FnMut(Step<'_>),
}

impl Hunt<'_> {
    fn folder(&mut self, dir: &Path, depth: u32) -> Result<(), ModelError> {
        let io = |source| ModelError::Io { path: dir.to_owned(), source };
        let mut entries = fs::read_dir(dir).map_err(io)?.collect::<Result<Vec<_>, _>>().map_err(io)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, kind) = (entry.path(), entry.file_type().map_err(io)?);
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() && depth > 0 {
                self.folder(&path, depth - 1)?;
            } else if kind.is_file() {
                let file = |source| ModelError::Io { path: path.clone(), source };
                if is_archive(&name) {
                    self.archive(File::open(&path).map_err(file)?, &path, true)?;
                } else if let Some(place) = self.candidate(&name) {
                    self.take(place, File::open(&path).map_err(file)?)?;
                }
            }
        }
        Ok(())
    }

    fn archive(&mut self, file: File, path: &Path, outermost: bool) -> Result<(), ModelError> {
        let damaged = |source| ModelError::Archive { path: path.to_owned(), source };
        let mut archive = match ZipArchive::new(BufReader::new(file)) {
            Ok(archive) => archive,
            Err(zip::result::ZipError::InvalidArchive(_)) if outermost && path == self.source => {
                return Err(ModelError::NoArchive { path: path.to_owned() });
            }
            Err(error) => return Err(damaged(error)),
        };
        for at in 0..archive.len() {
            let entry = archive.by_index(at).map_err(damaged)?;
            let name = entry.name().rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            if !entry.is_file() {
                continue;
            }
            if let Some(place) = self.candidate(&name) {
                self.take(place, entry)?;
            } else if outermost && is_archive(&name) && entry.size() <= MAX_INNER {
                let io = |source| ModelError::Io { path: path.to_owned(), source };
                let mut inner = tempfile::tempfile_in(self.to).map_err(io)?;
                io::copy(&mut entry.take(MAX_INNER), &mut inner).map_err(io)?;
                self.archive(inner, &path.join(&name), false)?;
            }
        }
        Ok(())
    }

    /// Which of the files we know this may be, by its name, where that one was not found yet.
    fn candidate(&self, name: &str) -> Option<usize> {
        self.known.files.iter().position(|file| file.name == name).filter(|place| !self.found[*place])
    }

    /// Copies a file and keeps the copy where it is the one we know.
    fn take(&mut self, place: usize, content: impl Read) -> Result<(), ModelError> {
        let file = &self.known.files[place];
        (self.progress)(Step::Checking { file: file.name, bytes: file.bytes });
        let path = self.to.join(file.name);
        let io = |source| ModelError::Io { path: path.clone(), source };
        let mut out = fs::OpenOptions::new().write(true).create(true).truncate(true).open(&path).map_err(io)?;
        let mut hash = Sha256::new();
        let mut content = content.take(file.bytes + 1);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = content.read(&mut buffer).map_err(io)?;
            if count == 0 {
                break;
            }
            hash.update(&buffer[..count]);
            out.write_all(&buffer[..count]).map_err(io)?;
        }
        let found = hex(&hash.finalize());
        if found == file.sha256 {
            self.found[place] = true;
        } else {
            fs::remove_file(&path).map_err(io)?;
            self.wrong = Some((file, found));
        }
        Ok(())
    }

    fn result(self) -> Result<(), ModelError> {
        let missing: Vec<_> =
            self.known.files.iter().zip(&self.found).filter(|(_, found)| !**found).map(|(file, _)| file.name).collect();
        match self.wrong {
            _ if missing.is_empty() => Ok(()),
            Some((file, found)) if missing.contains(&file.name) => Err(ModelError::Checksum {
                path: self.source,
                model: self.known.model,
                file: file.name,
                expected: file.sha256,
                found,
            }),
            _ => Err(ModelError::Missing {
                path: self.source,
                model: self.known.model,
                files: missing.join(" and "),
                packages: self.known.packages.join(", "),
            }),
        }
    }
}

fn is_archive(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("whl") || extension.eq_ignore_ascii_case("zip"))
}

/// Lower-case hex.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
