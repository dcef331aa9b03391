//! Who vouches for hosts, where the owner has no CA of their own? A small one in the state directory.
//!
//! P-256 throughout. The root signs leaves directly (path length 0) and a revocation list beside itself. A leaf has
//! one common name, the same name as its DNS name, 90 days, and only the purposes it needs: a grantee's can't pose
//! as an endpoint, and the endpoint's own can't sign a manifest. Everything is standard PEM, so that any other tool
//! can take over. Everything issued is on record (`issued.jsonl`), the record before the certificate is handed out.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bastion_host::{files, jsonl};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
    PublicKeyData, RevocationReason, RevokedCertParams, SanType, SerialNumber, SubjectPublicKeyInfo,
};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use crate::cert;
use crate::error::FileError;
use crate::names::host_name_fault;

/// Names a purpose that restricts: a certificate with it is for TLS alone and never signs a manifest.
pub(crate) const TLS_ONLY_OID: &str = "2.25.7040211865274421077";
const TLS_ONLY: [u64; 3] = [2, 25, 7_040_211_865_274_421_077];
/// Document signing, RFC 9336.
const DOCUMENT_SIGNING: [u64; 9] = [1, 3, 6, 1, 5, 5, 7, 3, 36];

pub(crate) const CRL_NAME: &str = "crl.pem";
const PUBLIC_FILE: u32 = 0o644;
const ROOT_LIFE: SignedDuration = SignedDuration::from_hours(24 * 3650);
const LEAF_LIFE: SignedDuration = SignedDuration::from_hours(24 * 90);
/// Certificates begin this much before they are made: other machines' clocks differ.
const BACKDATE: SignedDuration = SignedDuration::from_hours(1);

/// The root certificate of the CA in this state directory.
pub fn root_path(state_dir: &Path) -> PathBuf {
    state_dir.join("ca").join("root.pem")
}

/// The revocation list of the CA in this state directory.
pub fn crl_path(state_dir: &Path) -> PathBuf {
    state_dir.join("ca").join(CRL_NAME)
}

/// What a leaf is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// A host that was granted reading: TLS client.
    Client,
    /// An owner with one certificate for everything: TLS client and endpoint, and signing.
    Owner,
    /// This machine's endpoint: TLS client and endpoint, never signing.
    Tls,
    /// This machine's signer: never TLS.
    Sign,
}

impl Purpose {
    fn extended(self) -> Vec<ExtendedKeyUsagePurpose> {
        use ExtendedKeyUsagePurpose::{ClientAuth, Other, ServerAuth};
        match self {
            Self::Client => vec![ClientAuth],
            Self::Owner => vec![ServerAuth, ClientAuth, Other(DOCUMENT_SIGNING.to_vec())],
            Self::Tls => vec![ServerAuth, ClientAuth, Other(TLS_ONLY.to_vec())],
            Self::Sign => vec![Other(DOCUMENT_SIGNING.to_vec())],
        }
    }
}

/// A certificate that was made.
#[derive(Debug, Clone)]
pub struct Issued {
    /// The certificate's PEM.
    pub cert_pem: String,
    /// The private key's PEM (PKCS#8), where the key was made here too.
    pub key_pem: Option<String>,
    /// What the CA has on record of it.
    pub record: Record,
}

/// One certificate on the CA's record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The certificate's serial number, lower-case hex.
    pub serial: String,
    /// Its common name.
    pub host: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Its first second.
    pub not_before: Timestamp,
    /// Its last second.
    pub not_after: Timestamp,
    /// When it was taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<Timestamp>,
    /// Its PEM.
    pub cert: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event {
    Issued(Record),
    Revoked { serial: String, at: Timestamp },
}

/// A key and the request for its certificate, for a host that keeps its own key.
#[derive(Debug, Clone)]
pub struct Request {
    /// The private key's PEM (PKCS#8). It stays where it is made.
    pub key_pem: String,
    /// The signing request's PEM, for the CA.
    pub csr_pem: String,
}

/// The CA could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CaError {
    /// There is a CA already.
    #[error("{} is there already; a new CA would make every certificate of the old one worthless", .0.display())]
    AlreadyThere(PathBuf),
    /// There is no CA.
    #[error("there is no CA at {}; `bastion ca init` makes one", .0.display())]
    NotThere(PathBuf),
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file of the CA is not what it should be.
    #[error("{} {what}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What it should be.
        what: &'static str,
    },
    /// The name can't be a host's.
    #[error("the host name `{host}` {fault}")]
    Host {
        /// The name.
        host: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// The signing request can't be used.
    #[error("the signing request {0}")]
    Request(&'static str),
    /// Nothing issued has this name or serial number.
    #[error("no certificate of `{0}` is on record that could be renewed or revoked; `bastion ca list` shows all")]
    NotIssued(String),
    /// The certificate could not be encoded or signed.
    #[error("the certificate could not be made: {0}")]
    Mint(#[from] rcgen::Error),
}

/// A CA in a state directory.
pub struct Ca {
    dir: PathBuf,
    root: rustls_pki_types::CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
    not_after: Timestamp,
}

impl Ca {
    /// Makes a root, its key and an empty revocation list.
    ///
    /// # Errors
    /// Where there is one already, or the directory can't be written.
    pub fn init(state_dir: &Path, now: Timestamp) -> Result<Self, CaError> {
        let dir = state_dir.join("ca");
        files::create_private_dir(&dir).map_err(FileError::at(&dir))?;
        let lock = lock(&dir)?;
        let root_path = root_path(state_dir);
        if root_path.exists() {
            return Err(CaError::AlreadyThere(root_path));
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let serial = new_serial()?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name(&format!("Bastion CA {}", crate::manifest::hex(&serial[..4])));
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.not_before = offset(now - BACKDATE);
        params.not_after = offset(now + ROOT_LIFE);
        let root = params.self_signed(&key)?;
        // the key first: a root without its key would be there and useless
        write(&dir.join("root.key"), &key.serialize_pem(), files::PRIVATE_FILE)?;
        write(&root_path, &root.pem(), PUBLIC_FILE)?;
        drop(lock);
        let ca = Self::read(&dir)?;
        ca.write_crl(&[], now)?;
        Ok(ca)
    }

    /// The CA in this state directory. Writes its revocation list anew where that is not there.
    ///
    /// # Errors
    /// Where there is none, or its files don't belong together.
    pub fn open(state_dir: &Path, now: Timestamp) -> Result<Self, CaError> {
        let dir = state_dir.join("ca");
        if !root_path(state_dir).exists() {
            return Err(CaError::NotThere(root_path(state_dir)));
        }
        let ca = Self::read(&dir)?;
        let revoked: Vec<_> = ca.list()?.into_iter().filter(|record| record.revoked.is_some()).collect();
        if ca.crl_serials() != Some(revoked.len()) {
            let _lock = lock(&dir)?;
            ca.write_crl(&ca.list()?, now)?;
        }
        Ok(ca)
    }

    fn read(dir: &Path) -> Result<Self, CaError> {
        let (root_path, key_path) = (dir.join("root.pem"), dir.join("root.key"));
        let broken = |path: &Path, what| CaError::Broken { path: path.to_owned(), what };
        let root_pem = fs::read(&root_path).map_err(FileError::at(&root_path))?;
        let key_pem = fs::read_to_string(&key_path).map_err(FileError::at(&key_path))?;
        let root = cert::from_pem(&root_pem)
            .ok()
            .and_then(|certificates| certificates.into_iter().next())
            .ok_or_else(|| broken(&root_path, "is no certificate in PEM"))?;
        let key = KeyPair::from_pem(&key_pem).map_err(|_| broken(&key_path, "is no private key in PEM"))?;
        let parsed = cert::parse(&root).map_err(|_| broken(&root_path, "is no certificate that can be read"))?;
        if parsed.public_key().raw != key.subject_public_key_info() {
            return Err(broken(&key_path, "is not the root certificate's key"));
        }
        let not_after = cert::time(parsed.validity().not_after.timestamp());
        drop(parsed);
        let issuer = Issuer::from_ca_cert_der(&root, key)?;
        Ok(Self { dir: dir.to_owned(), root, issuer, not_after })
    }

    /// The root certificate.
    pub fn root(&self) -> &rustls_pki_types::CertificateDer<'static> {
        &self.root
    }

    /// The root certificate's file.
    pub fn root_path(&self) -> PathBuf {
        self.dir.join("root.pem")
    }

    /// When the root ends.
    pub fn not_after(&self) -> Timestamp {
        self.not_after
    }

    /// Makes a certificate for `host`: with a new key, or for the key of a signing request (PEM or DER), of which
    /// nothing but the key is taken over.
    ///
    /// # Errors
    /// Where the name is no host name, or the request is not signed by its own key, not P-256 or for another name.
    pub fn issue(&self, host: &str, csr: Option<&[u8]>, purpose: Purpose, now: Timestamp) -> Result<Issued, CaError> {
        check_host(host)?;
        match csr {
            Some(csr) => self.certify(host, &requested_key(csr, host)?, purpose, now, None),
            None => {
                let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
                self.certify(host, &key, purpose, now, Some(key.serialize_pem()))
            }
        }
    }

    /// Makes a certificate for a key that is there.
    pub(crate) fn certify(
        &self,
        host: &str,
        key: &impl PublicKeyData,
        purpose: Purpose,
        now: Timestamp,
        key_pem: Option<String>,
    ) -> Result<Issued, CaError> {
        let serial = new_serial()?;
        let (not_before, not_after) = (whole(now - BACKDATE), whole((now + LEAF_LIFE).min(self.not_after)));
        let mut params = CertificateParams::default();
        params.distinguished_name = name(host);
        params.subject_alt_names = vec![SanType::DnsName(host.try_into()?)];
        params.serial_number = Some(SerialNumber::from_slice(&serial));
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = purpose.extended();
        params.use_authority_key_identifier_extension = true;
        params.not_before = offset(not_before);
        params.not_after = offset(not_after);
        let cert_pem = params.signed_by(key, &self.issuer)?.pem();
        let record = Record {
            serial: crate::manifest::hex(&serial),
            host: host.to_owned(),
            purpose,
            not_before,
            not_after,
            revoked: None,
            cert: cert_pem.clone(),
        };
        let _lock = lock(&self.dir)?;
        self.append(&Event::Issued(record.clone()))?;
        Ok(Issued { cert_pem, key_pem, record })
    }

    /// Everything that was issued, the oldest first.
    ///
    /// # Errors
    /// Where the record can't be read.
    pub fn list(&self) -> Result<Vec<Record>, CaError> {
        let path = self.record_path();
        let mut records: Vec<Record> = Vec::new();
        for event in jsonl::read(&path).map_err(FileError::at(&path))? {
            match event {
                Event::Issued(record) => records.push(record),
                Event::Revoked { serial, at } => {
                    for record in records.iter_mut().filter(|record| record.serial == serial) {
                        record.revoked.get_or_insert(at);
                    }
                }
            }
        }
        Ok(records)
    }

    /// Makes a new certificate for the key, name and purpose of the latest one of `which` (a host name or a serial
    /// number) that was not taken back.
    ///
    /// # Errors
    /// Where there is none.
    pub fn renew(&self, which: &str, now: Timestamp) -> Result<Issued, CaError> {
        let records = self.list()?;
        let latest = records
            .iter()
            .rev()
            .find(|record| record.revoked.is_none() && (record.host == which || record.serial == which))
            .ok_or_else(|| CaError::NotIssued(which.to_owned()))?;
        let broken = || CaError::Broken { path: self.record_path(), what: "has a certificate that can't be read" };
        let chain = cert::from_pem(latest.cert.as_bytes()).map_err(|_| broken())?;
        let old = cert::parse(&chain[0]).map_err(|_| broken())?;
        let key = SubjectPublicKeyInfo::from_der(old.public_key().raw)?;
        self.certify(&latest.host, &key, latest.purpose, now, None)
    }

    /// Takes back every certificate of `which` (a host name or a serial number) that has not ended, and writes the
    /// revocation list. Answers those taken back now.
    ///
    /// # Errors
    /// Where there is none.
    pub fn revoke(&self, which: &str, now: Timestamp) -> Result<Vec<Record>, CaError> {
        let _lock = lock(&self.dir)?;
        let meant = |record: &Record| {
            record.revoked.is_none() && record.not_after >= now && (record.host == which || record.serial == which)
        };
        let revoked: Vec<Record> = self.list()?.into_iter().filter(meant).collect();
        if revoked.is_empty() {
            return Err(CaError::NotIssued(which.to_owned()));
        }
        for record in &revoked {
            self.append(&Event::Revoked { serial: record.serial.clone(), at: now })?;
        }
        self.write_crl(&self.list()?, now)?;
        Ok(revoked)
    }

    /// How many certificates the list on disk takes back, where it can be read.
    fn crl_serials(&self) -> Option<usize> {
        let bytes = fs::read(self.dir.join(CRL_NAME)).ok()?;
        let lists = crate::crl::from_pem(&bytes).ok()?;
        lists.first()?.parse().ok().map(|list| list.iter_revoked_certificates().count())
    }

    fn write_crl(&self, records: &[Record], now: Timestamp) -> Result<(), CaError> {
        let revoked_certs: Vec<RevokedCertParams> = records
            .iter()
            .filter_map(|record| {
                Some(RevokedCertParams {
                    serial_number: SerialNumber::from_slice(&unhex(&record.serial)?),
                    revocation_time: offset(record.revoked?),
                    reason_code: Some(RevocationReason::Unspecified),
                    invalidity_date: None,
                })
            })
            .collect();
        let params = CertificateRevocationListParams {
            this_update: offset(now - BACKDATE),
            // no one is there to make a new list in time, so it holds as long as its root
            next_update: offset(self.not_after),
            crl_number: SerialNumber::from(revoked_certs.len() as u64 + 1),
            issuing_distribution_point: None,
            revoked_certs,
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let crl = params.signed_by(&self.issuer)?.pem()?;
        write(&self.dir.join(CRL_NAME), &crl, PUBLIC_FILE)
    }

    fn record_path(&self) -> PathBuf {
        self.dir.join("issued.jsonl")
    }

    fn append(&self, event: &Event) -> Result<(), CaError> {
        let path = self.record_path();
        let line =
            serde_json::to_string(event).map_err(|error| FileError { path: path.clone(), source: error.into() })?;
        Ok(jsonl::append(&path, &line).map_err(FileError::at(&path))?)
    }
}

/// Makes a key and a signing request for `host`.
///
/// # Errors
/// Where the name is no host name.
pub fn request(host: &str) -> Result<Request, CaError> {
    check_host(host)?;
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = name(host);
    params.subject_alt_names = vec![SanType::DnsName(host.try_into()?)];
    let csr_pem = params.serialize_request(&key)?.pem()?;
    Ok(Request { key_pem: key.serialize_pem(), csr_pem })
}

/// Whether a certificate has lived two thirds of its life.
pub fn needs_renewal(not_before: Timestamp, not_after: Timestamp, now: Timestamp) -> bool {
    let life = not_after.as_second().saturating_sub(not_before.as_second());
    now.as_second() >= not_before.as_second().saturating_add(life / 3 * 2)
}

/// The key of a signing request that is signed by that key.
fn requested_key(csr: &[u8], host: &str) -> Result<SubjectPublicKeyInfo, CaError> {
    let der = match pem::parse(csr) {
        Ok(block) if matches!(block.tag(), "CERTIFICATE REQUEST" | "NEW CERTIFICATE REQUEST") => block.into_contents(),
        Ok(_) => return Err(CaError::Request("is PEM of something else")),
        Err(_) => csr.to_vec(),
    };
    let request = match X509CertificationRequest::from_der(&der) {
        Ok(([], request)) => request,
        _ => return Err(CaError::Request("can't be read (PKCS#10, PEM or DER)")),
    };
    request.verify_signature().map_err(|_| CaError::Request("is not signed by its own key"))?;
    let info = &request.certification_request_info;
    if cert::p256_point(&info.subject_pki).is_none() {
        return Err(CaError::Request("is for a key that is not P-256"));
    }
    let mut names = info.subject.iter_common_name();
    if names.next().is_some_and(|cn| cn.as_slice() != host.as_bytes()) || names.next().is_some() {
        return Err(CaError::Request("is for another name"));
    }
    Ok(SubjectPublicKeyInfo::from_der(info.subject_pki.raw)?)
}

pub(crate) fn check_host(host: &str) -> Result<(), CaError> {
    host_name_fault(host).map_or(Ok(()), |fault| Err(CaError::Host { host: host.to_owned(), fault }))
}

fn name(cn: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, cn);
    name
}

/// A random serial number: 16 bytes, positive, never zero (RFC 5280 §4.1.2.2).
fn new_serial() -> Result<[u8; 16], CaError> {
    let mut serial = [0; 16];
    aws_lc_rs::rand::fill(&mut serial).map_err(|_| rcgen::Error::RingUnspecified)?;
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(serial)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pair = |i: usize| u8::from_str_radix(text.get(i..i + 2)?, 16).ok();
    text.len().is_multiple_of(2).then(|| (0..text.len()).step_by(2).map(pair).collect())?
}

/// The time without its fraction of a second, as certificates have it.
fn whole(time: Timestamp) -> Timestamp {
    cert::time(time.as_second())
}

/// The time as the certificate library has it, held to the years 1970 to 9999 that a certificate can say.
fn offset(time: Timestamp) -> OffsetDateTime {
    let seconds = time.as_second().clamp(0, 253_402_300_799);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn lock(dir: &Path) -> Result<File, CaError> {
    let path = dir.join("lock");
    let open = || -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(files::PRIVATE_FILE).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    Ok(open().map_err(FileError::at(&path))?)
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), CaError> {
    Ok(files::replace(path, text.as_bytes(), mode).map_err(FileError::at(path))?)
}
