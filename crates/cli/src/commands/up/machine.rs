//! This machine's own CA and identities, in the state directory.
//!
//! Two identities of one name: one signs manifests, the other does TLS. The endpoint never opens the signing key.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bastion_host::clock::Clock;
use bastion_host::files::{self, PRIVATE_FILE};
use bastion_serve::TlsFiles;
use bastion_trust::ca::{self, Ca, Issued, Purpose};

use crate::settings;

/// The identities, all there.
#[derive(Debug)]
pub(crate) struct Machine {
    state: PathBuf,
    host: String,
}

const TLS: &str = "tls";
const SIGN: &str = "sign";

impl Machine {
    /// Makes the CA and the identities that are missing, and renews what is about to end.
    pub(crate) fn ensure(clock: &dyn Clock) -> Result<Self> {
        let state = settings::state_dir()?;
        files::create_private_dir(&state).with_context(|| format!("{}", state.display()))?;
        let now = clock.now();
        let root = ca::root_path(&state);
        let ca = if root.exists() { Ca::open(&state, now)? } else { Ca::init(&state, now)? };
        let host = match std::fs::read_to_string(state.join("identity/host")) {
            Ok(host) => host.trim().to_owned(),
            Err(_) => settings::host_name(),
        };
        let machine = Self { state, host };
        for (name, purpose) in [(TLS, Purpose::Tls), (SIGN, Purpose::Sign)] {
            if !machine.cert(name).exists() || !machine.key(name).exists() {
                let issued = ca.issue(&machine.host, None, purpose, now)?;
                machine.keep(name, &issued)?;
            }
        }
        let path = machine.state.join("identity/host");
        files::replace(&path, machine.host.as_bytes(), PRIVATE_FILE).with_context(|| format!("{}", path.display()))?;
        machine.renew(clock, &[])?;
        Ok(machine)
    }

    /// Where the TLS files are, or would be.
    pub(crate) fn files() -> Result<TlsFiles> {
        let state = settings::state_dir()?;
        let machine = Self { host: String::new(), state };
        Ok(machine.tls())
    }

    /// This machine's name in certificates.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// What the endpoint and the client use.
    pub(crate) fn tls(&self) -> TlsFiles {
        TlsFiles { cert: self.cert(TLS), key: self.key(TLS), ca: ca::root_path(&self.state) }
    }

    /// The key that signs manifests.
    pub(crate) fn signer_key(&self) -> PathBuf {
        self.key(SIGN)
    }

    /// The certificate of that key, PEM.
    pub(crate) fn signer_certificate(&self) -> Result<Vec<u8>> {
        let path = self.cert(SIGN);
        std::fs::read(&path).with_context(|| format!("{}", path.display()))
    }

    /// Puts the signer's present certificate in the place of an older one of the same key, as `up` wrote it.
    pub(crate) fn refresh_certificate(&self, beside: &Path) -> Result<()> {
        let Ok(old) = files::read_capped(beside, 1 << 16) else { return Ok(()) };
        let new = self.signer_certificate()?;
        if old != new && ca::same_key(&old, &new) {
            files::replace(beside, &new, PRIVATE_FILE).with_context(|| format!("{}", beside.display()))?;
        }
        Ok(())
    }

    /// Renews both identities at two thirds of their life. The keys stay, so every signature holds under the new
    /// certificate, which is put beside the manifests.
    pub(crate) fn renew(&self, clock: &dyn Clock, beside: &[PathBuf]) -> Result<()> {
        let now = clock.now();
        let ca = Ca::open(&self.state, now)?;
        for name in [TLS, SIGN] {
            let path = self.cert(name);
            let pem = std::fs::read(&path).with_context(|| format!("{}", path.display()))?;
            let record = ca.list()?.into_iter().find(|record| record.cert.as_bytes() == pem);
            if let Some(record) = record
                && ca::needs_renewal(record.not_before, record.not_after, now)
            {
                let renewed = ca.renew(&record.serial, now)?;
                self.keep(name, &renewed)?;
            }
        }
        beside.iter().try_for_each(|path| self.refresh_certificate(path))
    }

    fn keep(&self, name: &str, issued: &Issued) -> Result<()> {
        let dir = self.state.join("identity");
        files::create_private_dir(&dir).with_context(|| format!("{}", dir.display()))?;
        if let Some(key) = &issued.key_pem {
            let path = self.key(name);
            files::replace(&path, key.as_bytes(), PRIVATE_FILE).with_context(|| format!("{}", path.display()))?;
        }
        let path = self.cert(name);
        files::replace(&path, issued.cert_pem.as_bytes(), PRIVATE_FILE).with_context(|| format!("{}", path.display()))
    }

    fn cert(&self, name: &str) -> PathBuf {
        self.state.join("identity").join(format!("{name}.pem"))
    }

    fn key(&self, name: &str) -> PathBuf {
        self.state.join("identity").join(format!("{name}.key"))
    }
}
