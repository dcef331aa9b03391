//! Which keys are this machine's own? Two identities of one common name: one signs, the other does TLS.
//!
//! They lie in the state directory, never in a folder that is prepared. The endpoint opens the TLS key alone, whose
//! certificate can't sign a manifest. Renewal keeps the key and replaces the certificate in one step, so that key and
//! certificate always belong together.

use std::fs;
use std::path::{Path, PathBuf};

use bastion_host::files;
use jiff::Timestamp;
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::ca::{Ca, CaError, Purpose, needs_renewal};
use crate::cert;
use crate::error::FileError;

/// Which of the machine's two identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Signs manifests.
    Sign,
    /// Is the endpoint and the owner's client.
    Tls,
}

/// One identity of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate's file.
    pub cert: PathBuf,
    /// The key's file, 0600.
    pub key: PathBuf,
    /// The common name.
    pub host: String,
    /// When the certificate begins.
    pub not_before: Timestamp,
    /// When it ends.
    pub not_after: Timestamp,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Tls => "tls",
        }
    }

    fn purpose(self) -> Purpose {
        match self {
            Self::Sign => Purpose::Sign,
            Self::Tls => Purpose::Tls,
        }
    }
}

/// The identity in this state directory, if it is there and can be read.
pub fn find(state_dir: &Path, kind: Kind) -> Option<Identity> {
    let (cert, key) = paths(state_dir, kind);
    let info = cert::inspect(&cert).ok()?;
    let host = info.cn?.as_str().to_owned();
    key.exists().then_some(Identity { cert, key, host, not_before: info.not_before, not_after: info.not_after })
}

/// The identity, made where it is not there, for another host or of another CA, and renewed at two thirds of its
/// life. Whether anything was made is the second answer.
///
/// # Errors
/// As [`Ca::issue`]; what was there stays.
pub fn ensure(ca: &Ca, state_dir: &Path, kind: Kind, host: &str, now: Timestamp) -> Result<(Identity, bool), CaError> {
    if let Some(identity) = find(state_dir, kind)
        && identity.host == host
        && !needs_renewal(identity.not_before, identity.not_after, now)
        && is_of(ca, &identity)
    {
        return Ok((identity, false));
    }
    let (cert_path, key_path) = paths(state_dir, kind);
    let dir = state_dir.join("identities");
    files::create_private_dir(&dir).map_err(FileError::at(&dir))?;
    let key = match fs::read_to_string(&key_path) {
        Ok(pem) => KeyPair::from_pem(&pem)
            .map_err(|_| CaError::Broken { path: key_path.clone(), what: "is no private key in PEM" })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
            let pem = key.serialize_pem();
            files::replace(&key_path, pem.as_bytes(), files::PRIVATE_FILE).map_err(FileError::at(&key_path))?;
            key
        }
        Err(source) => return Err(FileError { path: key_path, source }.into()),
    };
    crate::ca::check_host(host)?;
    let issued = ca.certify(host, &key, kind.purpose(), now, None)?;
    files::replace(&cert_path, issued.cert_pem.as_bytes(), 0o644).map_err(FileError::at(&cert_path))?;
    let broken = || CaError::Broken { path: cert_path.clone(), what: "is no certificate that can be read" };
    Ok((find(state_dir, kind).ok_or_else(broken)?, true))
}

fn is_of(ca: &Ca, identity: &Identity) -> bool {
    let issuer = || {
        let pem = fs::read(&identity.cert).ok()?;
        let chain = cert::from_pem(&pem).ok()?;
        let leaf = cert::parse(chain.first()?).ok()?;
        let root = cert::parse(ca.root()).ok()?;
        Some(leaf.issuer().as_raw() == root.subject().as_raw())
    };
    issuer() == Some(true)
}

fn paths(state_dir: &Path, kind: Kind) -> (PathBuf, PathBuf) {
    let dir = state_dir.join("identities");
    (dir.join(format!("{}.pem", kind.name())), dir.join(format!("{}.key", kind.name())))
}

/// Whether two certificates (PEM) are of the same key, so that what one verifies the other does too.
pub fn same_key(one: &[u8], other: &[u8]) -> bool {
    let key = |pem: &[u8]| {
        let chain = cert::from_pem(pem).ok()?;
        Some(cert::parse(chain.first()?).ok()?.public_key().raw.to_vec())
    };
    key(one).is_some_and(|one| Some(one) == key(other))
}
