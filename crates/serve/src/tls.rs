//! The three files that make a peer somebody: a certificate, its key, and the roots. For both ends.
//!
//! A session is never resumed and no early data is taken: each connection shows its certificates, and they are
//! judged by the same full check as the manifest's signer (bastion-trust), on every request again.

mod server;
mod verify;

pub(crate) use server::ServerTls;
pub(crate) use verify::EndpointVerifier;

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bastion_host::files::read_capped;
use rustls::crypto::CryptoProvider;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate or key file may be this many bytes long.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Where this side's TLS files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM: this side's certificate, then its intermediates.
    pub cert: PathBuf,
    /// PEM: its key (PKCS#8, SEC1 or PKCS#1).
    pub key: PathBuf,
    /// PEM: the roots that the other side must chain to.
    pub ca: PathBuf,
}

/// The TLS files can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// One of the three is not set.
    #[error("{variable} is not set (or {flag}): mutual TLS needs a certificate, its key and the CA's roots")]
    Missing {
        /// The environment variable.
        variable: &'static str,
        /// The flag.
        flag: &'static str,
    },
    /// A file can't be read.
    #[error("{variable}: {}: {source}", path.display())]
    Unreadable {
        /// The environment variable that names it.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds no PEM block of the right kind.
    #[error("{variable}: {} holds no {expected} in PEM", path.display())]
    Empty {
        /// The environment variable that names it.
        variable: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
    },
    /// The certificate and the key don't belong together, or are of a kind that TLS has no use for.
    #[error("{} and {} can't be used together: {source}", cert.display(), key.display())]
    Pair {
        /// The certificate file.
        cert: PathBuf,
        /// The key file.
        key: PathBuf,
        /// What the TLS library said.
        source: rustls::Error,
    },
}

const CERT: &str = "FREEAGENT_TLS_CERT";
const KEY: &str = "FREEAGENT_TLS_KEY";
const CA: &str = "FREEAGENT_CA_ROOT";

impl TlsFiles {
    /// The three files, each required.
    ///
    /// # Errors
    /// [`TlsError::Missing`] names the first that is not set.
    pub fn from_settings(cert: Option<PathBuf>, key: Option<PathBuf>, ca: Option<PathBuf>) -> Result<Self, TlsError> {
        let given = |path: Option<PathBuf>, variable, flag| {
            path.filter(|path| !path.as_os_str().is_empty()).ok_or(TlsError::Missing { variable, flag })
        };
        Ok(Self { cert: given(cert, CERT, "--cert")?, key: given(key, KEY, "--key")?, ca: given(ca, CA, "--ca")? })
    }

    /// The certificate chain, leaf first.
    pub(crate) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        certificates(&self.cert, CERT)
    }

    /// The roots.
    pub(crate) fn roots(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        certificates(&self.ca, CA)
    }

    /// The key.
    pub(crate) fn private_key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        let bytes = read(&self.key, KEY)?;
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| TlsError::Empty {
            variable: KEY,
            path: self.key.clone(),
            expected: "private key without a password",
        })
    }

    /// Whether others than its owner may read or write the key file.
    pub(crate) fn key_is_open(&self) -> bool {
        std::fs::metadata(&self.key).is_ok_and(|meta| meta.permissions().mode() & 0o077 != 0)
    }
}

fn certificates(path: &Path, variable: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let empty = || TlsError::Empty { variable, path: path.to_owned(), expected: "certificate" };
    let bytes = read(path, variable)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes).collect::<Result<_, _>>().map_err(|_| empty())?;
    if chain.is_empty() { Err(empty()) } else { Ok(chain) }
}

fn read(path: &Path, variable: &'static str) -> Result<Vec<u8>, TlsError> {
    let most = if variable == CA { 4 << 20 } else { MAX_FILE_BYTES };
    read_capped(path, most).map_err(|source| TlsError::Unreadable { variable, path: path.to_owned(), source })
}

/// The cryptography of both ends: aws-lc-rs, hybrid post-quantum key exchange preferred.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_one_is_named() {
        let path = || Some(PathBuf::from("x"));
        let missing = |cert, key, ca| TlsFiles::from_settings(cert, key, ca).unwrap_err().to_string();
        assert!(missing(None, path(), path()).contains("FREEAGENT_TLS_CERT"));
        assert!(missing(path(), None, path()).contains("FREEAGENT_TLS_KEY"));
        assert!(missing(path(), path(), None).contains("FREEAGENT_CA_ROOT"));
        assert!(missing(path(), path(), Some(PathBuf::new())).contains("FREEAGENT_CA_ROOT"));
        assert!(TlsFiles::from_settings(path(), path(), path()).is_ok());
    }
}
