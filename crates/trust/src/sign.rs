//! How does an owner's word get its signature? Signing in process, recording one made elsewhere, grants.
//!
//! Signing changes two things of the file, the serial and the signature block, and no other byte. What signs by
//! itself ([`grant`], [`revoke`], [`resign`]) starts from the very bytes that the gate admitted, so an edit by somebody
//! else is never signed along. One signer at a time works on a manifest; the file is replaced in one step.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bastion_host::files;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};
use x509_parser::certificate::X509Certificate;

use crate::cert;
use crate::ecdsa::SigningKey;
use crate::edit::Document;
use crate::error::{Fault, FileError, MalformedError, RefusalCode, Refused};
use crate::floor::FloorKey;
use crate::gate::{Claim, Gate, SIGNATURE_ALG, beside, read_cert, read_manifest, verify_signature};
use crate::manifest::{self, Grant, Signature};
use crate::names::host_name_fault;

/// A key file may be this many bytes long.
const MAX_KEY_BYTES: u64 = 64 << 10;
/// Signing warns where the certificate ends sooner than this.
const SOON: SignedDuration = SignedDuration::from_hours(24 * 14);
/// The largest serial that a manifest can say (the largest exact integer of JSON).
const MAX_SERIAL: u64 = (1 << 53) - 1;

/// What was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// Digest of the payload that the signature is over.
    pub digest: String,
    /// Its serial, where the manifest has one.
    pub serial: Option<u64>,
    /// What the gate may refuse, now or soon.
    pub warnings: Vec<Warning>,
}

/// The signature holds, and the gate may refuse it all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    /// The certificate's name is not the owner's.
    OtherName {
        /// The certificate's common name.
        cn: String,
        /// The manifest's owner.
        owner_host: String,
    },
    /// The certificate's name can't be used.
    NoName(Fault),
    /// The certificate ends soon, or has ended.
    Ends(Timestamp),
    /// The certificate has not begun.
    NotYetValid(Timestamp),
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherName { cn, owner_host } => {
                write!(
                    f,
                    "the certificate is `{cn}`'s, and owner.host is `{owner_host}`: the gate will refuse (cn_mismatch)"
                )
            }
            Self::NoName(fault) => write!(f, "{}: the gate will refuse ({})", fault.detail, fault.code),
            Self::Ends(at) => write!(f, "the certificate ends at {at}: renew it and sign again"),
            Self::NotYetValid(at) => {
                write!(f, "the certificate begins at {at}: until then the gate refuses (not_yet_valid)")
            }
        }
    }
}

/// The manifest was not signed; the file is as it was.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The file is no manifest.
    #[error("{}: {source}", path.display())]
    Malformed {
        /// The manifest.
        path: PathBuf,
        /// What is wrong.
        source: MalformedError,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The certificate, or what this machine accepted before, can't be used.
    #[error("{}", .0.detail)]
    Unusable(Fault),
    /// The key file can't be used.
    #[error("the key {} {what}; a signing key is P-256, as PEM (PKCS#8 or SEC1)", path.display())]
    Key {
        /// The key file.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
    /// Key and certificate don't belong together.
    #[error("the key {} is not that of the certificate {}", key.display(), cert.display())]
    KeyMismatch {
        /// The key file.
        key: PathBuf,
        /// The certificate file.
        cert: PathBuf,
    },
    /// A signature made elsewhere does not hold.
    #[error("the signature is not recorded: {}", .0.detail)]
    Value(Fault),
    /// This layout of the file can't be edited without touching other bytes.
    #[error("{}: `{key}` can't be written into this layout; write it on lines of its own, as `bastion init` does", path.display())]
    Layout {
        /// The manifest.
        path: PathBuf,
        /// The key that was to be written.
        key: &'static str,
    },
    /// The serial can't rise any more.
    #[error("the serial has reached its largest value")]
    Serial,
    /// Somebody else changed the file in between.
    #[error("{} changed while it was being signed; nothing was written, try again", .0.display())]
    Changed(PathBuf),
    /// The gate does not admit the manifest, so nothing is signed along.
    #[error("the gate refuses the manifest as it is, so it is not edited ({0}); look at it and sign it yourself")]
    Refused(Refused),
    /// The grant can't be made or is not there.
    #[error("the host `{host}` {fault}")]
    Host {
        /// The host.
        host: String,
        /// What is wrong.
        fault: &'static str,
    },
}

/// How a kind of file is read as what a signature is over.
pub type ReadClaim<'r> = &'r dyn Fn(&[u8]) -> Result<Claim, MalformedError>;

fn folder_claim(bytes: &[u8]) -> Result<Claim, MalformedError> {
    manifest::parse(bytes).map(|parsed| Claim::from(&parsed))
}

/// Signs the manifest with this certificate and key. `cert` is recorded as given and read relative to the manifest;
/// `key` is an ordinary path. Where the manifest has a serial it becomes one more than its own and this machine's floor.
///
/// # Errors
/// Where anything can't be read, does not belong together or can't be written; the file is then as it was.
pub fn sign(gate: &Gate, manifest: &Path, cert: &Path, key: &Path) -> Result<Signed, SignError> {
    sign_as(gate, manifest, cert, key, &folder_claim)
}

/// As [`sign`], of another kind of file.
///
/// # Errors
/// As [`sign`].
pub fn sign_as(
    gate: &Gate,
    manifest: &Path,
    cert: &Path,
    key: &Path,
    read: ReadClaim<'_>,
) -> Result<Signed, SignError> {
    let (path, bytes) = read_manifest(manifest).map_err(SignError::Unusable)?;
    let _lock = lock(gate, &path)?;
    // read again: the holder of the lock before us may have signed it
    let bytes = reread(&path, manifest)?.unwrap_or(bytes);
    sign_text(gate, &path, &bytes, &bytes, cert_text(cert)?, key, read)
}

/// Records a signature (base64 of DER) that was made elsewhere over this manifest's payload.
///
/// # Errors
/// Where it does not verify under that certificate, and as [`sign`].
pub fn record(gate: &Gate, manifest: &Path, cert: &Path, value: &str) -> Result<Signed, SignError> {
    record_as(gate, manifest, cert, value, &folder_claim)
}

/// As [`record`], of another kind of file.
///
/// # Errors
/// As [`record`].
pub fn record_as(
    gate: &Gate,
    manifest: &Path,
    cert: &Path,
    value: &str,
    read: ReadClaim<'_>,
) -> Result<Signed, SignError> {
    let (path, bytes) = read_manifest(manifest).map_err(SignError::Unusable)?;
    let _lock = lock(gate, &path)?;
    let bytes = reread(&path, manifest)?.unwrap_or(bytes);
    let cert = cert_text(cert)?;
    let claim = parse(&path, &bytes, read)?;
    let chain = read_chain(&path, cert)?;
    let leaf = read_leaf(&chain, &path, cert)?;
    let value: String = value.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    verify_signature(&leaf, &claim.payload, &value).map_err(SignError::Value)?;
    let signature = Signature { alg: SIGNATURE_ALG.to_owned(), cert: cert.to_owned(), value };
    let text = signed_text(&path, &bytes, &signature)?;
    let signed = Signed {
        digest: claim.digest(),
        serial: claim.serial,
        warnings: warnings(&leaf, &claim.owner_host, gate.now()),
    };
    put(&path, &bytes, &text)?;
    Ok(signed)
}

/// Signs again a manifest that the gate admits, with the certificate it records unless another is given.
///
/// # Errors
/// Where the gate refuses it, and as [`sign`].
pub fn resign(gate: &Gate, manifest: &Path, cert: Option<&Path>, key: &Path) -> Result<Signed, SignError> {
    edit_admitted(gate, manifest, cert, key, "signature", |document| Some(document.text.to_owned()))
}

/// Gives a host its grant, in place of an earlier one, in a manifest that the gate admits, and signs it.
///
/// # Errors
/// Where the gate refuses it or the host is no host name, and as [`sign`].
pub fn grant(
    gate: &Gate,
    manifest: &Path,
    grant: &Grant,
    cert: Option<&Path>,
    key: &Path,
) -> Result<Signed, SignError> {
    if let Some(fault) = host_name_fault(&grant.host) {
        return Err(SignError::Host { host: grant.host.clone(), fault });
    }
    edit_admitted(gate, manifest, cert, key, "grants", |document| document.with_grant(grant))
}

/// Takes a host's grant out of a manifest that the gate admits, and signs it.
///
/// # Errors
/// Where the gate refuses it or the host has no grant, and as [`sign`].
pub fn revoke(gate: &Gate, manifest: &Path, host: &str, cert: Option<&Path>, key: &Path) -> Result<Signed, SignError> {
    let absent = || SignError::Host { host: host.to_owned(), fault: "has no grant in this manifest" };
    let present = |document: &Document<'_>| {
        let has = document.root.field("grants").and_then(|grants| grants.elements()).is_some_and(|grants| {
            grants.iter().any(|grant| grant.field("host").and_then(|node| node.text()) == Some(host))
        });
        if has { Ok(()) } else { Err(absent()) }
    };
    let (path, bytes) = read_manifest(manifest).map_err(SignError::Unusable)?;
    let root = manifest::tree(&bytes).map_err(|source| SignError::Malformed { path: path.clone(), source })?;
    present(&Document { text: "", root: &root })?;
    edit_admitted(gate, manifest, cert, key, "grants", |document| document.without_grant(host))
}

fn edit_admitted(
    gate: &Gate,
    manifest: &Path,
    cert: Option<&Path>,
    key: &Path,
    what: &'static str,
    edit: impl FnOnce(&Document<'_>) -> Option<String>,
) -> Result<Signed, SignError> {
    let (path, _) = read_manifest(manifest).map_err(SignError::Unusable)?;
    let _lock = lock(gate, &path)?;
    let admitted = gate.judge(manifest, false).map_err(SignError::Refused)?;
    let bytes = &admitted.evidence.manifest;
    let root = manifest::tree(bytes).map_err(|source| SignError::Malformed { path: path.clone(), source })?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let edited =
        edit(&Document { text, root: &root }).ok_or_else(|| SignError::Layout { path: path.clone(), key: what })?;
    let recorded = admitted.manifest().signature.as_ref().map_or("", |signature| signature.cert.as_str());
    let cert = cert.map_or(Ok(recorded), cert_text)?;
    sign_text(gate, admitted.path(), bytes, edited.as_bytes(), cert, key, &folder_claim)
}

/// Signs `new`, which takes the place of `old` on disk.
fn sign_text(
    gate: &Gate,
    path: &Path,
    old: &[u8],
    new: &[u8],
    cert: &str,
    key_path: &Path,
    read: ReadClaim<'_>,
) -> Result<Signed, SignError> {
    let cert_path = beside(path, cert);
    let chain = read_chain(path, cert)?;
    let leaf = read_leaf(&chain, path, cert)?;
    let key = read_key(key_path)?;
    let point = cert::p256_point(leaf.public_key());
    if point.is_none() {
        return Err(SignError::Unusable(Fault::new(
            RefusalCode::WrongKey,
            format!("the key of the certificate {} is not an EC key on P-256", cert_path.display()),
        )));
    }
    if point != Some(key.point()) {
        return Err(SignError::KeyMismatch { key: key_path.to_owned(), cert: cert_path });
    }
    let raised = with_next_serial(gate, path, new, read)?;
    let claim = parse(path, &raised, read)?;
    let der = key.sign(&claim.payload).ok_or(SignError::Key { path: key_path.to_owned(), what: "can't sign" })?;
    let signature = Signature { alg: SIGNATURE_ALG.to_owned(), cert: cert.to_owned(), value: BASE64.encode(der) };
    let text = signed_text(path, &raised, &signature)?;
    // what will be read is what was signed
    let after = parse(path, text.as_bytes(), read)?;
    verify_signature(&leaf, &after.payload, &signature.value).map_err(SignError::Value)?;
    put(path, old, &text)?;
    Ok(Signed {
        digest: after.digest(),
        serial: after.serial,
        warnings: warnings(&leaf, &after.owner_host, gate.now()),
    })
}

/// The text with its serial raised above itself and the floor; unchanged where it has none.
fn with_next_serial(gate: &Gate, path: &Path, bytes: &[u8], read: ReadClaim<'_>) -> Result<Vec<u8>, SignError> {
    let claim = parse(path, bytes, read)?;
    let Some(own) = claim.serial else { return Ok(bytes.to_vec()) };
    let key = FloorKey::new(&claim.owner_host, &claim.id, path);
    let floor = gate.floor.serial(&key).map_err(SignError::Unusable)?.unwrap_or(0);
    let next = own.max(floor) + 1;
    if next > MAX_SERIAL {
        return Err(SignError::Serial);
    }
    let root = manifest::tree(bytes).map_err(|source| SignError::Malformed { path: path.to_owned(), source })?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let raised = Document { text, root: &root }.with_serial(next);
    Ok(raised.ok_or_else(|| SignError::Layout { path: path.to_owned(), key: "serial" })?.into_bytes())
}

fn signed_text(path: &Path, bytes: &[u8], signature: &Signature) -> Result<String, SignError> {
    let root = manifest::tree(bytes).map_err(|source| SignError::Malformed { path: path.to_owned(), source })?;
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    Document { text, root: &root }
        .with_signature(signature)
        .ok_or_else(|| SignError::Layout { path: path.to_owned(), key: "signature" })
}

/// Replaces the file, if it still is what was read.
fn put(path: &Path, old: &[u8], text: &str) -> Result<(), SignError> {
    let now = files::read_capped(path, manifest::MAX_MANIFEST_BYTES as u64).map_err(FileError::at(path))?;
    if now != old {
        return Err(SignError::Changed(path.to_owned()));
    }
    if text.len() > manifest::MAX_MANIFEST_BYTES {
        return Err(SignError::Layout { path: path.to_owned(), key: "signature" });
    }
    Ok(files::replace(path, text.as_bytes(), files::PRIVATE_FILE).map_err(FileError::at(path))?)
}

fn parse(path: &Path, bytes: &[u8], read: ReadClaim<'_>) -> Result<Claim, SignError> {
    read(bytes).map_err(|source| SignError::Malformed { path: path.to_owned(), source })
}

fn reread(path: &Path, given: &Path) -> Result<Option<Vec<u8>>, SignError> {
    let (now, bytes) = read_manifest(given).map_err(SignError::Unusable)?;
    if now == path { Ok(Some(bytes)) } else { Err(SignError::Changed(path.to_owned())) }
}

/// The certificates of the file that the manifest will name.
fn read_chain(manifest: &Path, cert: &str) -> Result<Vec<rustls_pki_types::CertificateDer<'static>>, SignError> {
    let read = read_cert(&beside(manifest, cert)).map(|(_, chain)| chain);
    read.map_err(|mut fault| {
        if !Path::new(cert).is_absolute() {
            fault.detail.push_str("; a relative path is read from the manifest's folder");
        }
        SignError::Unusable(fault)
    })
}

fn read_leaf<'c>(
    chain: &'c [rustls_pki_types::CertificateDer<'static>],
    manifest: &Path,
    cert: &str,
) -> Result<X509Certificate<'c>, SignError> {
    let unreadable = |why: String| {
        let path = beside(manifest, cert);
        SignError::Unusable(Fault::new(RefusalCode::CertUnreadable, format!("{}: {why}", path.display())))
    };
    let first = chain.first().ok_or_else(|| unreadable("has no certificate in it".to_owned()))?;
    cert::parse(first).map_err(unreadable)
}

fn read_key(path: &Path) -> Result<SigningKey, SignError> {
    let text = files::read_capped(path, MAX_KEY_BYTES).map_err(FileError::at(path))?;
    SigningKey::from_pem(&text).map_err(|what| SignError::Key { path: path.to_owned(), what })
}

/// The certificate's path as it will stand in the manifest, which is UTF-8.
fn cert_text(cert: &Path) -> Result<&str, SignError> {
    cert.to_str().filter(|text| !text.is_empty() && !text.chars().any(char::is_control)).ok_or_else(|| {
        SignError::File(FileError {
            path: cert.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidInput, "the path can't be written into a manifest"),
        })
    })
}

fn warnings(leaf: &X509Certificate<'_>, owner_host: &str, now: Timestamp) -> Vec<Warning> {
    let mut warnings = Vec::new();
    match cert::common_name(leaf.subject()) {
        Ok(cn) if cn.as_str() == owner_host => {}
        Ok(cn) => warnings.push(Warning::OtherName { cn: cn.to_string(), owner_host: owner_host.to_owned() }),
        Err(fault) => warnings.push(Warning::NoName(fault)),
    }
    let not_before = cert::time(leaf.validity().not_before.timestamp());
    let not_after = cert::time(leaf.validity().not_after.timestamp());
    if not_before.as_second() > now.as_second() {
        warnings.push(Warning::NotYetValid(not_before));
    }
    if not_after.duration_since(now) < SOON {
        warnings.push(Warning::Ends(not_after));
    }
    warnings
}

/// One signer at a time for one manifest on this machine. The lock lies in the state directory: the folder is the
/// owner's.
fn lock(gate: &Gate, manifest: &Path) -> Result<File, SignError> {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = gate.state_dir.join("locks");
    files::create_private_dir(&dir).map_err(FileError::at(&dir))?;
    let name = manifest::hex(&Sha256::digest(manifest.as_os_str().as_bytes())[..8]);
    let path = dir.join(format!("{name}.lock"));
    let open = || -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(files::PRIVATE_FILE).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    Ok(open().map_err(FileError::at(&path))?)
}
