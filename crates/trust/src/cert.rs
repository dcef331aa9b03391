//! What does this certificate say? PEM and DER read strictly, the one common name, the public key.
//!
//! Names are taken from the DER alone, attribute by attribute: a `CN=` inside another attribute, or inside a
//! printed form of the subject, is no common name. Everything that two readers may read differently is refused:
//! bytes behind the certificate, an extension that is there twice, two signature algorithms that differ.

use std::path::Path;

use bastion_host::files::read_capped;
use rustls_pki_types::CertificateDer;
use x509_parser::asn1_rs::{Oid, oid};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::x509::{SubjectPublicKeyInfo, X509Name};

use crate::error::{Fault, RefusalCode};
use crate::names::CommonName;

/// A certificate file may be this many bytes long (manifest.md §4).
pub const MAX_CERT_BYTES: u64 = 64 << 10;
/// A chain that a peer or a file shows may have this many certificates.
pub(crate) const MAX_CHAIN: usize = 8;

const EC_PUBLIC_KEY: Oid<'static> = oid!(1.2.840.10045.2.1);
const PRIME256V1: Oid<'static> = oid!(1.2.840.10045.3.1.7);

/// The certificates of a PEM text, in order. Other blocks (keys, parameters) are passed over.
///
/// # Errors
/// In words, where the text is no PEM or has no certificate.
pub(crate) fn from_pem(bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let blocks = pem::parse_many(bytes).map_err(|error| format!("not PEM: {error}"))?;
    let certificates: Vec<_> = blocks
        .into_iter()
        .filter(|block| matches!(block.tag(), "CERTIFICATE" | "X509 CERTIFICATE"))
        .map(|block| CertificateDer::from(block.into_contents()))
        .collect();
    if certificates.is_empty() { Err("has no certificate (PEM) in it".to_owned()) } else { Ok(certificates) }
}

/// Reads one certificate and refuses what DER readers differ on.
pub(crate) fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    let (rest, certificate) = X509Certificate::from_der(der).map_err(|error| format!("not a certificate: {error}"))?;
    if !rest.is_empty() {
        return Err("bytes follow the certificate".to_owned());
    }
    if certificate.signature_algorithm != certificate.tbs_certificate.signature {
        return Err("the certificate names two signature algorithms".to_owned());
    }
    if certificate.signature_value.unused_bits != 0 {
        return Err("the certificate's signature is no whole number of bytes".to_owned());
    }
    certificate.extensions_map().map_err(|_| "an extension is there twice".to_owned())?;
    for extension in certificate.extensions() {
        if extension.parsed_extension().error().is_some() {
            return Err(format!("the extension {} can't be read", extension.oid));
        }
    }
    Ok(certificate)
}

/// The one common name of a subject.
///
/// # Errors
/// `cn_count` where there is none or several (also inside one relative name), `cn_invalid` where it can't be seen whole.
pub(crate) fn common_name(subject: &X509Name<'_>) -> Result<CommonName, Fault> {
    let names: Vec<_> = subject.iter_common_name().collect();
    let [name] = names.as_slice() else {
        return Err(Fault::new(
            RefusalCode::CnCount,
            format!("the certificate's subject has {} common names (CN); it must have exactly one", names.len()),
        ));
    };
    name.as_str().ok().and_then(CommonName::new).ok_or_else(|| {
        let shown: String = String::from_utf8_lossy(name.as_slice()).chars().take(80).collect();
        Fault::new(
            RefusalCode::CnInvalid,
            format!("the common name {shown:?} is not printable text without control or invisible characters"),
        )
    })
}

/// The key's point, where it is a P-256 key.
pub(crate) fn p256_point<'a>(spki: &'a SubjectPublicKeyInfo<'_>) -> Option<&'a [u8]> {
    let curve = spki.algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
    let p256 = spki.algorithm.algorithm == EC_PUBLIC_KEY && curve.as_ref() == Some(&PRIME256V1);
    let whole = spki.subject_public_key.unused_bits == 0;
    (p256 && whole).then(|| spki.subject_public_key.data.as_ref())
}

/// The subject's common names for a message: what is there, made harmless.
pub(crate) fn describe(name: &X509Name<'_>) -> String {
    let names: Vec<String> = name
        .iter_common_name()
        .map(|cn| String::from_utf8_lossy(cn.as_slice()).chars().take(80).flat_map(char::escape_debug).collect())
        .collect();
    if names.is_empty() { "(no CN)".to_owned() } else { names.join("+") }
}

/// What a certificate file says of its first certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateInfo {
    /// Its one common name, where it has exactly one.
    pub cn: Option<CommonName>,
    /// Its serial number, lower-case hex.
    pub serial: String,
    /// Its first second.
    pub not_before: jiff::Timestamp,
    /// Its last second.
    pub not_after: jiff::Timestamp,
}

/// Reads a certificate file for its name and dates. Says nothing of whether it can be trusted.
///
/// # Errors
/// `cert_unreadable`.
pub fn inspect(path: &Path) -> Result<CertificateInfo, Fault> {
    let unreadable = |why: String| Fault::new(RefusalCode::CertUnreadable, format!("{}: {why}", path.display()));
    let pem = read_capped(path, MAX_CERT_BYTES).map_err(|error| unreadable(error.to_string()))?;
    let chain = from_pem(&pem).map_err(unreadable)?;
    let leaf = parse(&chain[0]).map_err(unreadable)?;
    Ok(CertificateInfo {
        cn: common_name(leaf.subject()).ok(),
        serial: crate::manifest::hex(leaf.raw_serial()),
        not_before: time(leaf.validity().not_before.timestamp()),
        not_after: time(leaf.validity().not_after.timestamp()),
    })
}

/// Seconds since 1970 as a time.
pub(crate) fn time(seconds: i64) -> jiff::Timestamp {
    jiff::Timestamp::from_second(seconds).unwrap_or(if seconds < 0 {
        jiff::Timestamp::MIN
    } else {
        jiff::Timestamp::MAX
    })
}
