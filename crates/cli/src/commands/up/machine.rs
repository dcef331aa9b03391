//! This machine's own CA and identities, in the state directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bastion_host::clock::Clock;
use bastion_host::files::{self, PRIVATE_FILE};
use bastion_serve::TlsFiles;
use bastion_trust::ca::{self, Ca};
use bastion_trust::identity::{self, Identity, Kind};

use crate::settings;

/// The CA and both identities, all there.
#[derive(Debug)]
pub(crate) struct Machine {
    state: PathBuf,
    host: String,
    sign: Identity,
}

impl Machine {
    /// Makes the CA and the identities that are missing, and renews what is about to end. The machine keeps the name
    /// that it had when they were made, whatever its host name is now.
    pub(crate) fn ensure(clock: &dyn Clock) -> Result<Self> {
        let state = settings::state_dir()?;
        files::create_private_dir(&state).with_context(|| format!("{}", state.display()))?;
        let now = clock.now();
        let ca = if ca::root_path(&state).exists() { Ca::open(&state, now)? } else { Ca::init(&state, now)? };
        let host = identity::find(&state, Kind::Sign).map_or_else(settings::host_name, |known| known.host);
        let (sign, _) = identity::ensure(&ca, &state, Kind::Sign, &host, now)?;
        identity::ensure(&ca, &state, Kind::Tls, &host, now)?;
        Ok(Self { state, host, sign })
    }

    /// The TLS files of this machine, where it has them.
    pub(crate) fn files() -> Result<Option<TlsFiles>> {
        let state = settings::state_dir()?;
        let ca = ca::root_path(&state);
        Ok(identity::find(&state, Kind::Tls).map(|tls| TlsFiles { cert: tls.cert, key: tls.key, ca }))
    }

    /// This machine's name in certificates.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// What the endpoint and the client use.
    pub(crate) fn tls(&self) -> Result<TlsFiles> {
        Self::files()?.with_context(|| format!("{}: the TLS identity is gone", self.state.display()))
    }

    /// The key that signs manifests.
    pub(crate) fn signer_key(&self) -> &Path {
        &self.sign.key
    }

    /// Puts the signer's certificate beside a manifest.
    pub(crate) fn write_certificate(&self, beside: &Path) -> Result<()> {
        let pem = std::fs::read(&self.sign.cert).with_context(|| format!("{}", self.sign.cert.display()))?;
        files::replace(beside, &pem, PRIVATE_FILE).with_context(|| format!("{}", beside.display()))
    }

    /// Replaces a copy of the signer's certificate that is older: the key is the same, so every signature holds.
    pub(crate) fn refresh_certificate(&self, beside: &Path) -> Result<()> {
        let (Ok(old), Ok(new)) = (files::read_capped(beside, 1 << 16), std::fs::read(&self.sign.cert)) else {
            return Ok(());
        };
        if old != new && identity::same_key(&old, &new) { self.write_certificate(beside) } else { Ok(()) }
    }
}
