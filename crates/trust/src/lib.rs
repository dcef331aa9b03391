//! Who may prepare and read what, and who says so: the manifest, the gate, certificates, signatures.
//!
//! Bytes go in, [`Admitted`] or [`Refused`] comes out, and everything that prepares or serves takes an [`Admitted`].
//! One [`Gate`] owns the roots, the floor and the clock. The crate refuses to trust a certificate merely because it
//! lies beside the manifest, to obey what it did not verify, and to fall back to what it obeyed before.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

pub mod ca;
pub mod detached;
pub mod fields;
pub mod gate;
pub mod identity;
pub mod init;
pub mod live;
pub mod manifest;
pub mod peer;
pub mod scope;
pub mod sign;
pub mod yaml;

/// For the fuzz targets alone.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Reads everything that a PEM file may be.
    pub fn pem(bytes: &[u8]) {
        for der in crate::cert::from_pem(bytes).unwrap_or_default() {
            if let Ok(certificate) = crate::cert::parse(&der) {
                let _ = crate::cert::common_name(certificate.subject());
            }
        }
        let _ = crate::crl::from_pem(bytes);
        let _ = crate::ecdsa::SigningKey::from_pem(bytes);
    }
}

mod anchors;
mod cert;
mod chain;
mod crl;
mod ecdsa;
mod edit;
mod error;
mod floor;
mod names;
mod read;
mod roots;

pub use anchors::Anchors;
pub use cert::{CertificateInfo, MAX_CERT_BYTES, inspect};
pub use chain::Usage;
pub use error::{Fault, FileError, MalformedError, RefusalCode, Refused};
pub use gate::{Admitted, Claim, Gate, GateSettings, SIGNATURE_ALG, Standing};
pub use live::LivePolicy;
pub use manifest::{Manifest, ParsedManifest, Stage, parse, payload};
pub use names::{AgentId, CommonName};
pub use peer::{Peer, PeerChain, PeerError};
pub use roots::ResolvedRoot;
pub use scope::{AGENT_DIR, BUILTIN_EXCLUDES, Scope};
pub use sign::{SignError, Signed, Warning};
