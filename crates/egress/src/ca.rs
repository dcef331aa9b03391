//! Who vouches to the harness for the hosts that it speaks to? A CA that lives as long as the run, in memory alone.
//!
//! Its certificate goes into the sandbox's bundle and nowhere else; its key is on no disk. All leaves have one key:
//! they differ in name and serial number only, so that a new host costs one signature.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use bastion_host::clock::Clock;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SerialNumber,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::OffsetDateTime;

use crate::error::ProxyError;
use crate::host::Host;

/// Longer than a run lasts, and shorter than what some clients refuse in a leaf (398 days).
const LIFE: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Certificates begin this much before they are made: a sandbox may have another idea of the time.
const BACKDATE: SignedDuration = SignedDuration::from_hours(24);

/// The CA of one run.
pub struct Ca {
    issuer: Issuer<'static, KeyPair>,
    leaf_key: KeyPair,
    pem: String,
    made: Timestamp,
    serial: AtomicU64,
}

impl Ca {
    /// A new CA with a new key. It is valid for a year.
    ///
    /// # Errors
    /// [`ProxyError::Ca`] where the system gives no randomness.
    pub fn new(clock: &dyn Clock) -> Result<Self, ProxyError> {
        let failed = |source| ProxyError::Ca { source };
        let made = clock.now();
        let mut params = dated(made);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        // told apart from other runs' in a store that keeps several
        params.distinguished_name = named(&format!("Bastion sandbox {}", made.as_microsecond()));
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        let pem = params.self_signed(&key).map_err(failed)?.pem();
        let leaf_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
        Ok(Self { issuer: Issuer::new(params, key), leaf_key, pem, made, serial: AtomicU64::new(1) })
    }

    /// Its certificate, in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate and key for `host`, a name or an address.
    pub(crate) fn leaf(&self, host: &Host) -> Result<(CertificateDer<'static>, PrivateKeyDer<'static>), rcgen::Error> {
        let mut params = dated(self.made);
        params.distinguished_name = named("Bastion sandbox proxy");
        params.subject_alt_names = vec![subject(host)?];
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        params.serial_number = Some(SerialNumber::from(self.serial.fetch_add(1, Ordering::Relaxed)));
        let certificate = params.signed_by(&self.leaf_key, &self.issuer)?;
        let key = PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der());
        Ok((certificate.der().clone(), key.into()))
    }
}

impl std::fmt::Debug for Ca {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ca").field("made", &self.made).finish_non_exhaustive()
    }
}

fn subject(host: &Host) -> Result<SanType, rcgen::Error> {
    Ok(match host.ip() {
        Some(IpAddr::V4(ip)) => SanType::IpAddress(ip.into()),
        Some(IpAddr::V6(ip)) => SanType::IpAddress(ip.into()),
        None => SanType::DnsName(host.as_str().try_into()?),
    })
}

fn dated(made: Timestamp) -> CertificateParams {
    let at =
        |time: Timestamp| OffsetDateTime::from_unix_timestamp(time.as_second()).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let mut params = CertificateParams::default();
    params.not_before = at(made.saturating_sub(BACKDATE).unwrap_or(made));
    params.not_after = at(made.saturating_add(LIFE).unwrap_or(made));
    params
}

fn named(common: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    name
}
