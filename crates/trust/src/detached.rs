//! A signature beside a file: ECDSA P-256 with SHA-256 over the file's bytes, DER, as `openssl dgst -sha256` makes and checks it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, Digest, SHA256};
use bastion_host::files;

use crate::cert;
use crate::ecdsa::{self, SigningKey};
use crate::error::FileError;

/// Largest key file that is read, in bytes.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// Why there is no signature, or why one does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DetachedError {
    /// A file can't be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The key can't sign.
    #[error("{}: {what}", path.display())]
    Key {
        /// The key's or certificate's file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The signature is not one of this certificate's key over this file.
    #[error("{}: the signature does not verify under {}", path.display(), certificate.display())]
    Forged {
        /// The file.
        path: PathBuf,
        /// The certificate.
        certificate: PathBuf,
    },
}

/// Signs the bytes of `path` with the key in `key` (PKCS#8 or SEC1 PEM, P-256): the signature's DER.
///
/// # Errors
/// Where either can't be read or the key is of another kind.
pub fn sign_file(path: &Path, key: &Path) -> Result<Vec<u8>, DetachedError> {
    let pem = files::read_capped(key, MAX_KEY_BYTES).map_err(FileError::at(key))?;
    let unusable = |what| DetachedError::Key { path: key.to_owned(), what };
    let signer = SigningKey::from_pem(&pem).map_err(unusable)?;
    signer.sign_digest(&digest(path)?).ok_or_else(|| unusable("the key can't sign"))
}

/// Checks that `signature` (DER) is one of the key of `certificate` (PEM) over the bytes of `path`.
///
/// # Errors
/// [`DetachedError::Forged`] where it is not; else where a file can't be read.
pub fn verify_file(path: &Path, signature: &[u8], certificate: &Path) -> Result<(), DetachedError> {
    let pem = files::read_capped(certificate, cert::MAX_CERT_BYTES).map_err(FileError::at(certificate))?;
    let unusable = |what| DetachedError::Key { path: certificate.to_owned(), what };
    let chain = cert::from_pem(&pem).map_err(|_| unusable("is no certificate in PEM"))?;
    let leaf = chain.first().ok_or_else(|| unusable("holds no certificate"))?;
    let leaf = cert::parse(leaf).map_err(|_| unusable("is no certificate that can be read"))?;
    let point = cert::p256_point(leaf.public_key()).ok_or_else(|| unusable("its key is not on P-256"))?;
    if ecdsa::verifies_digest(point, &digest(path)?, signature) {
        Ok(())
    } else {
        Err(DetachedError::Forged { path: path.to_owned(), certificate: certificate.to_owned() })
    }
}

fn digest(path: &Path) -> Result<Digest, FileError> {
    let hash = || -> io::Result<Digest> {
        let mut file = File::open(path)?;
        let mut context = Context::new(&SHA256);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = file.read(&mut buffer)?;
            if read == 0 {
                return Ok(context.finish());
            }
            context.update(&buffer[..read]);
        }
    };
    hash().map_err(FileError::at(path))
}
