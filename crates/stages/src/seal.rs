//! A bundle that only the owner can open: sanitized text, windows and cards, for keeping or sending elsewhere.
//!
//! A tar with nothing in it that two runs could differ in, zstd, then `age` (<https://age-encryption.org/v1>) to the
//! owner's recipient, then a detached ECDSA signature over the file's bytes. `<digest>` in the names is the first 16
//! hex digits of the tar's SHA-256.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use bastion_host::files::{self, PRIVATE_FILE};
use bastion_store::Draft;
use bastion_trust::{Stage, detached};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::progress::Progress;
use crate::{StageError, Tally};

/// To whom bundles are sealed, and who signs them.
#[derive(Debug, Clone)]
pub struct SealSettings {
    /// An age recipient, `age1…`.
    pub recipient: String,
    /// PEM file of the P-256 key that signs; sealing without one is refused.
    pub sign_key: Option<PathBuf>,
}

/// Why a bundle was not made or not opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// There is a recipient and nobody who signs.
    #[error(
        "FREEAGENT_OWNER_RECIPIENT is set and SEAL_SIGN_KEY is not: set it to the PEM file of a P-256 key, so that a bundle can be told from a forged one"
    )]
    NoSigner,
    /// The recipient is none.
    #[error("FREEAGENT_OWNER_RECIPIENT is no age recipient (age1…): {why}")]
    Recipient {
        /// What `age` said.
        why: &'static str,
    },
    /// The key or certificate can't be used, or the signature does not verify.
    #[error(transparent)]
    Signature(#[from] detached::DetachedError),
    /// The bundle can't be opened with this identity, or is damaged.
    #[error("{path}: {source}")]
    Locked {
        /// The bundle.
        path: PathBuf,
        /// What `age` said.
        source: age::DecryptError,
    },
    /// An entry of the bundle is not what sealing writes.
    #[error("{path} holds the entry `{entry}`, which no bundle of ours has; nothing was written")]
    Foreign {
        /// The bundle.
        path: PathBuf,
        /// The entry's name.
        entry: String,
    },
    /// The folder to unpack to is there already.
    #[error("{path} is there already; name a folder that is not")]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The system refused a read or write.
    #[error("{path}: {source}")]
    Io {
        /// The file at hand.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What stands in `seal/latest.json`: which bundle there is and what it was made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
struct Latest {
    digest: String,
    manifest_digest: String,
    recipient: String,
    /// The generation that it holds.
    generation: String,
    /// Tells the signing key from another: the beginning of its file's SHA-256.
    signer: String,
}

fn io_at(path: &Path) -> impl FnOnce(io::Error) -> SealError + '_ {
    |source| SealError::Io { path: path.to_owned(), source }
}

/// Seals the draft, where it differs from what the latest bundle holds.
pub(crate) fn seal(
    settings: &SealSettings,
    manifest_digest: &str,
    draft: &Draft,
    progress: &dyn Progress,
) -> Result<Tally, StageError> {
    progress.begin(Stage::Seal, Some(1));
    let key = settings.sign_key.as_deref().ok_or(SealError::NoSigner)?;
    let recipient: age::x25519::Recipient = settings.recipient.parse().map_err(|why| SealError::Recipient { why })?;
    let dir = draft.layout().seal();
    files::create_private_dir(&dir).map_err(io_at(&dir))?;
    let key_file = files::read_capped(key, 1 << 16).map_err(io_at(key))?;
    let signer: String = Sha256::digest(&key_file)[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    let mut tally = Tally { seen: 1, ..Tally::default() };
    let current = |digest: String| Latest {
        digest,
        manifest_digest: manifest_digest.to_owned(),
        recipient: settings.recipient.clone(),
        generation: draft.generation().unwrap_or_default().to_owned(),
        signer: signer.clone(),
    };
    let latest = latest(&dir);
    if let Some(latest) = &latest
        && !draft.is_changed()
        && *latest == current(latest.digest.clone())
        && dir.join(format!("{}.age", latest.digest)).exists()
        && dir.join(format!("{}.sig", latest.digest)).exists()
    {
        tally.unchanged = 1;
        return Ok(tally);
    }
    draft.mark_dirty()?;
    let temporary = files::temporary_beside(&dir.join("bundle"));
    let made = write_bundle(&temporary, &recipient, manifest_digest, draft);
    let result = made.and_then(|digest| {
        let (bundle, signature) = (dir.join(format!("{digest}.age")), dir.join(format!("{digest}.sig")));
        let same = latest.as_ref().is_some_and(|latest| {
            latest.digest == digest && latest.recipient == settings.recipient && latest.signer == signer
        });
        if same && bundle.exists() && signature.exists() {
            tally.unchanged = 1;
            return note_latest(&dir, &current(digest));
        }
        let signed = detached::sign_file(&temporary, key).map_err(SealError::from)?;
        files::replace(&signature, &signed, PRIVATE_FILE).map_err(io_at(&signature))?;
        fs::rename(&temporary, &bundle).map_err(io_at(&bundle))?;
        tally.new = 1;
        note_latest(&dir, &current(digest))
    });
    let _ = fs::remove_file(&temporary);
    result?;
    progress.item("bundle");
    Ok(tally)
}

fn note_latest(dir: &Path, latest: &Latest) -> Result<(), StageError> {
    let path = dir.join("latest.json");
    let text = serde_json::to_vec(latest).map_err(io::Error::from).map_err(io_at(&path))?;
    Ok(files::replace(&path, &text, PRIVATE_FILE).map_err(io_at(&path))?)
}

/// Removes every bundle but the latest; after the commit, so that what left the folder is in none.
pub(crate) fn prune(dir: &Path) -> io::Result<()> {
    let keep = latest(dir).map(|latest| latest.digest);
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".age").or_else(|| name.strip_suffix(".sig")));
        let leftover = name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(".tmp"));
        let is_digest = |stem: &str| stem.len() == 16 && stem.bytes().all(|byte| byte.is_ascii_hexdigit());
        if leftover || stem.is_some_and(|stem| is_digest(stem) && Some(stem) != keep.as_deref()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes every bundle.
pub(crate) fn remove_all(dir: &Path) -> io::Result<()> {
    match fs::remove_file(dir.join("latest.json")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    prune(dir)
}

fn latest(dir: &Path) -> Option<Latest> {
    serde_json::from_slice(&fs::read(dir.join("latest.json")).ok()?).ok()
}

/// Writes the sealed bundle and gives its digest.
fn write_bundle(
    path: &Path,
    recipient: &age::x25519::Recipient,
    manifest_digest: &str,
    draft: &Draft,
) -> Result<String, StageError> {
    let io = |source| SealError::Io { path: path.to_owned(), source };
    let encryptor = age::Encryptor::with_recipients(std::iter::once(recipient as &dyn age::Recipient))
        .map_err(|_| SealError::Recipient { why: "no recipient" })?;
    files::write_new(path, b"", PRIVATE_FILE).map_err(io)?;
    let file = fs::OpenOptions::new().write(true).open(path).map_err(io)?;
    let sealed = encryptor.wrap_output(BufWriter::new(file)).map_err(io)?;
    let packed = zstd::Encoder::new(sealed, 6).map_err(io)?;
    let mut tar = tar::Builder::new(Hashed { inner: packed, hash: Sha256::new() });
    fill(&mut tar, manifest_digest, draft, path)?;
    let Hashed { inner, hash } = tar.into_inner().map_err(io)?;
    let sealed = inner.finish().map_err(io)?;
    let file =
        sealed.finish().and_then(|file| file.into_inner().map_err(io::IntoInnerError::into_error)).map_err(io)?;
    file.sync_all().map_err(io)?;
    Ok(hash.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect())
}

/// One line of `chunks.jsonl` in a bundle.
#[derive(Serialize)]
struct ChunkLine {
    doc: bastion_store::DocId,
    index: u32,
    start: u64,
    end: u64,
}

fn fill<W: Write>(
    tar: &mut tar::Builder<W>,
    manifest_digest: &str,
    draft: &Draft,
    path: &Path,
) -> Result<(), StageError> {
    let mut add = |name: &str, bytes: &[u8]| -> Result<(), StageError> {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        tar.append_data(&mut header, name, bytes).map_err(io_at(path))?;
        Ok(())
    };
    add("manifest.digest", format!("{manifest_digest}\n").as_bytes())?;
    let lines = |cards: Vec<String>| cards.iter().fold(String::new(), |all, card| all + card + "\n");
    add("catalog/files.jsonl", lines(draft.file_cards()?).as_bytes())?;
    add("catalog/dirs.jsonl", lines(draft.dir_cards()?).as_bytes())?;
    let docs = draft.docs()?;
    let mut chunks = String::new();
    for row in &docs {
        for chunk in draft.chunks(row.ord)? {
            let line = ChunkLine { doc: row.known.doc, index: chunk.index, start: chunk.start, end: chunk.end };
            chunks.push_str(&serde_json::to_string(&line).unwrap_or_default());
            chunks.push('\n');
        }
    }
    add("chunks.jsonl", chunks.as_bytes())?;
    for row in &docs {
        if let Some(piece) = &row.piece {
            add(&format!("text/{}.txt", row.known.doc), draft.read_piece(piece)?.as_bytes())?;
        }
    }
    Ok(())
}

/// Hashes what passes through.
struct Hashed<W> {
    inner: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Opens a bundle into the new folder `to`: first the signature (where `certificate` is given), then the whole content
/// is checked, then it is written. Gives the number of files.
pub fn open_bundle(bundle: &Path, identity: &Path, certificate: Option<&Path>, to: &Path) -> Result<u64, SealError> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(SealError::Exists { path: to.to_owned() });
    }
    if let Some(certificate) = certificate {
        let path = bundle.with_extension("sig");
        let signature = files::read_capped(&path, 4096).map_err(io_at(&path))?;
        detached::verify_file(bundle, &signature, certificate)?;
    }
    let identity_file = files::read_capped(identity, 1 << 20).map_err(io_at(identity))?;
    let identities = age::IdentityFile::from_buffer(io::Cursor::new(identity_file))
        .map_err(io_at(identity))?
        .into_identities()
        .map_err(|source| SealError::Locked { path: identity.to_owned(), source })?;
    let partial = files::temporary_beside(to);
    files::create_private_dir(&partial).map_err(io_at(&partial))?;
    let unpacked = unpack(bundle, &identities, &partial).and_then(|count| {
        fs::rename(&partial, to).map_err(io_at(to))?;
        Ok(count)
    });
    if unpacked.is_err() {
        let _ = fs::remove_dir_all(&partial);
    }
    unpacked
}

fn unpack(bundle: &Path, identities: &[Box<dyn age::Identity + Send + Sync>], to: &Path) -> Result<u64, SealError> {
    let io = |source| SealError::Io { path: bundle.to_owned(), source };
    let locked = |source| SealError::Locked { path: bundle.to_owned(), source };
    let decryptor = age::Decryptor::new(BufReader::new(File::open(bundle).map_err(io)?)).map_err(locked)?;
    let opened =
        decryptor.decrypt(identities.iter().map(|identity| identity.as_ref() as &dyn age::Identity)).map_err(locked)?;
    let mut archive = tar::Archive::new(zstd::Decoder::new(opened).map_err(io)?);
    let mut count = 0;
    for entry in archive.entries().map_err(io)? {
        let mut entry = entry.map_err(io)?;
        let name = entry.path().map_err(io)?.into_owned();
        let plain =
            entry.header().entry_type().is_file() && name.components().all(|part| matches!(part, Component::Normal(_)));
        if !plain {
            return Err(SealError::Foreign { path: bundle.to_owned(), entry: name.display().to_string() });
        }
        let target = to.join(&name);
        if let Some(parent) = target.parent() {
            files::create_private_dir(parent).map_err(io_at(parent))?;
        }
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(io)?;
        files::write_new(&target, &bytes, PRIVATE_FILE).map_err(io_at(&target))?;
        count += 1;
    }
    Ok(count)
}
