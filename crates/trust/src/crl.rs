//! Did the CA take this certificate back? Certificate revocation lists (RFC 5280 §5), read beside the root.
//!
//! A list that can't be trusted (unreadable, not signed by its issuer, ended, of a kind we don't know) refuses
//! every certificate of that issuer: a list is there to be obeyed, and a broken one might have named anyone.

use jiff::Timestamp;
use x509_parser::asn1_rs::{Any, FromDer as _};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::cert;
use crate::chain::signature_holds;
use crate::error::{Fault, RefusalCode};

/// One list, as DER that parsed.
#[derive(Debug, Clone)]
pub(crate) struct RevocationList {
    der: Vec<u8>,
}

/// The lists of a PEM text; none is an error.
pub(crate) fn from_pem(bytes: &[u8]) -> Result<Vec<RevocationList>, String> {
    let blocks = pem::parse_many(bytes).map_err(|error| format!("not PEM: {error}"))?;
    let mut lists = Vec::new();
    for block in blocks.into_iter().filter(|block| block.tag() == "X509 CRL") {
        let list = RevocationList { der: block.into_contents() };
        list.parse()?;
        lists.push(list);
    }
    if lists.is_empty() { Err("has no revocation list (PEM) in it".to_owned()) } else { Ok(lists) }
}

impl RevocationList {
    pub(crate) fn parse(&self) -> Result<CertificateRevocationList<'_>, String> {
        match CertificateRevocationList::from_der(&self.der) {
            Ok(([], list)) => Ok(list),
            Ok(_) => Err("bytes follow the revocation list".to_owned()),
            Err(error) => Err(format!("not a revocation list: {error}")),
        }
    }

    /// Whether the list is by the certificate's subject.
    pub(crate) fn is_of(&self, issuer: &X509Certificate<'_>) -> bool {
        self.parse().is_ok_and(|list| list.issuer().as_raw() == issuer.subject().as_raw())
    }

    /// Passes `certificate` where the list, made by `issuer`, does not name it; answers until when the list holds.
    pub(crate) fn check(
        &self,
        certificate: &X509Certificate<'_>,
        issuer: &X509Certificate<'_>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Fault> {
        let who = cert::describe(issuer.subject());
        let unusable = |why: &str| Fault::new(RefusalCode::NotChained, format!("the revocation list of `{who}` {why}"));
        let list = self.parse().map_err(|error| unusable(&error))?;
        if list.signature_algorithm != list.tbs_cert_list.signature || !self.is_signed_by(&list, issuer) {
            return Err(unusable("is not signed by it"));
        }
        if let Ok(Some(key_usage)) = issuer.key_usage()
            && !key_usage.value.crl_sign()
        {
            return Err(unusable("was made by a key that may not make one (cRLSign)"));
        }
        if list.extensions().iter().any(|extension| extension.critical) {
            return Err(unusable("is of a kind that is not understood here (a critical extension)"));
        }
        let until = list.next_update().map(|time| cert::time(time.timestamp()));
        if until.is_some_and(|until| now.as_second() > until.as_second()) {
            return Err(unusable("has ended; fetch or make a new one"));
        }
        let entry =
            list.iter_revoked_certificates().find(|entry| entry.serial() == &certificate.tbs_certificate.serial);
        let removed = |entry: &x509_parser::revocation_list::RevokedCertificate<'_>| {
            entry
                .extensions()
                .iter()
                .any(|e| matches!(e.parsed_extension(), ParsedExtension::ReasonCode(reason) if reason.0 == 8))
        };
        match entry {
            Some(entry) if !removed(entry) => Err(Fault::new(
                RefusalCode::Revoked,
                format!(
                    "`{who}` took the certificate of `{}` back at {}",
                    cert::describe(certificate.subject()),
                    cert::time(entry.revocation_date.timestamp())
                ),
            )),
            _ => Ok(until),
        }
    }

    fn is_signed_by(&self, list: &CertificateRevocationList<'_>, issuer: &X509Certificate<'_>) -> bool {
        let Ok((_, outer)) = Any::from_der(&self.der) else { return false };
        let tbs = list.tbs_cert_list.as_ref();
        let Some(rest) = outer.data.get(tbs.len()..) else { return false };
        signature_holds(tbs, rest, &list.signature_value.data, issuer)
    }
}
