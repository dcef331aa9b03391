//! Does this certificate lead to a root that we trust, right now? The path rules of RFC 5280 §6, in full.
//!
//! Libraries for TLS leave out what a root says about itself, and key usage, and let the end entity's CA decide
//! the rest. Here every certificate of the path, the root's own included, must be within its dates; every issuer
//! must be a CA that may sign certificates, with room in its path length; extensions that are critical must be
//! understood; name constraints and revocation lists are obeyed. Signatures are checked by a library.
//!
//! "Within its dates" is both ends included, in whole seconds: exactly `notAfter` is valid, a second later not.

use jiff::Timestamp;
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer};
use webpki::RawPublicKeyEntity;
use x509_parser::asn1_rs::{Any, FromDer as _};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{ExtendedKeyUsage, GeneralName, ParsedExtension};

use crate::cert;
use crate::crl::RevocationList;
use crate::error::{Fault, RefusalCode};

/// What the leaf is to be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Usage {
    /// To sign a manifest.
    Sign,
    /// To connect as a TLS client.
    Client,
    /// To be a TLS endpoint.
    Server,
}

/// A path that holds: from when until when, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) not_before: Timestamp,
    pub(crate) not_after: Timestamp,
}

impl Window {
    pub(crate) fn holds_at(&self, now: Timestamp) -> bool {
        (self.not_before.as_second()..=self.not_after.as_second()).contains(&now.as_second())
    }
}

/// Certificates may issue each other in circles; this bounds the work, and no real chain comes near it.
const MAX_SIGNATURES: usize = 64;

/// The roots and revocation lists a judgement rests on.
pub(crate) struct Trust<'t> {
    pub(crate) roots: &'t [CertificateDer<'static>],
    pub(crate) lists: &'t [RevocationList],
}

/// Judges `chain` (leaf first, the rest in any order) at `now`.
///
/// # Errors
/// The fault of the path that came furthest: `not_chained` where none reaches a root by signatures and CA rights,
/// else `expired`, `not_yet_valid` or `revoked`.
pub(crate) fn judge(
    chain: &[CertificateDer<'_>],
    trust: &Trust<'_>,
    usage: Usage,
    now: Timestamp,
) -> Result<Window, Fault> {
    if chain.len() > cert::MAX_CHAIN {
        return Err(not_chained(format!("more than {} certificates", cert::MAX_CHAIN)));
    }
    let Some((leaf, others)) = chain.split_first() else {
        return Err(not_chained("there is no certificate"));
    };
    let leaf = cert::parse(leaf).map_err(not_chained)?;
    // what else the file holds matters only where the path needs it, so a part that can't be read is passed over
    let others: Vec<_> = others.iter().filter_map(|der| cert::parse(der).ok()).collect();
    let roots: Vec<_> = trust.roots.iter().filter_map(|der| cert::parse(der).ok()).collect();
    check_leaf(&leaf, usage)?;
    let mut search = Search { others: &others, roots: &roots, trust, usage, now, budget: MAX_SIGNATURES, best: None };
    search.extend(&mut vec![&leaf]).ok_or_else(|| {
        search.best.unwrap_or_else(|| {
            not_chained(format!(
                "no root that we trust issued `{}` or what stands between",
                cert::describe(leaf.issuer())
            ))
        })
    })
}

struct Search<'s, 'c> {
    others: &'s [X509Certificate<'c>],
    roots: &'s [X509Certificate<'c>],
    trust: &'s Trust<'s>,
    usage: Usage,
    now: Timestamp,
    budget: usize,
    best: Option<Fault>,
}

impl<'s, 'c> Search<'s, 'c> {
    /// Looks for a way from the path's last certificate to a root, depth first.
    fn extend(&mut self, path: &mut Vec<&'s X509Certificate<'c>>) -> Option<Window>
    where
        'c: 's,
    {
        let last = *path.last()?;
        // a trusted certificate itself, without anything above it: only where it is a root of ours to the byte
        for (candidates, anchor) in [(self.roots, true), (self.others, false)] {
            for issuer in candidates {
                if issuer.subject().as_raw() != last.issuer().as_raw()
                    || path.iter().any(|c| c.as_raw() == issuer.as_raw())
                {
                    continue;
                }
                self.budget = self.budget.checked_sub(1)?;
                if !signed_by(last, issuer) {
                    continue;
                }
                path.push(issuer);
                let found = if anchor { self.settle(path) } else { self.extend(path) };
                path.pop();
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }

    /// The path reaches a root by signatures; whether everything else is kept.
    fn settle(&mut self, path: &[&X509Certificate<'_>]) -> Option<Window> {
        match check_path(path, self.trust.lists, self.usage, self.now) {
            Ok(window) => Some(window),
            Err(fault) => {
                // a path that only its dates spoil tells more than one without rights
                if self.best.as_ref().is_none_or(|best| best.code == RefusalCode::NotChained) {
                    self.best = Some(fault);
                }
                None
            }
        }
    }
}

fn not_chained(why: impl Into<String>) -> Fault {
    Fault::new(RefusalCode::NotChained, format!("the certificate does not chain to a root: {}", why.into()))
}

/// What the end entity itself must be, whoever issued it.
fn check_leaf(leaf: &X509Certificate<'_>, usage: Usage) -> Result<(), Fault> {
    if let Ok(Some(key_usage)) = leaf.key_usage()
        && !key_usage.value.digital_signature()
    {
        return Err(not_chained("its key usage does not allow signatures (digitalSignature)"));
    }
    if let Ok(Some(purposes)) = leaf.extended_key_usage() {
        let tls_only = purposes.value.other.iter().any(|oid| oid.to_id_string() == crate::ca::TLS_ONLY_OID);
        let (allowed, name) = match usage {
            Usage::Sign => (!tls_only, "signing a manifest (it is marked as one for TLS alone)"),
            _ => allows(purposes.value, usage),
        };
        if !allowed {
            return Err(not_chained(format!("its extended key usage does not allow {name}")));
        }
    }
    Ok(())
}

fn allows(purposes: &ExtendedKeyUsage<'_>, usage: Usage) -> (bool, &'static str) {
    match usage {
        Usage::Sign => (true, "signing"),
        Usage::Client => (purposes.any || purposes.client_auth, "TLS clients (clientAuth)"),
        Usage::Server => (purposes.any || purposes.server_auth, "TLS servers (serverAuth)"),
    }
}

/// Everything about a path (leaf first, root last) whose signatures hold.
fn check_path(
    path: &[&X509Certificate<'_>],
    lists: &[RevocationList],
    usage: Usage,
    now: Timestamp,
) -> Result<Window, Fault> {
    for certificate in path {
        check_critical(certificate)?;
    }
    let mut intermediates = 0;
    for issuer in &path[1..] {
        check_issuer(issuer, intermediates, usage)?;
        // RFC 5280 §4.2.1.9: self-issued certificates don't count
        intermediates += usize::from(issuer.subject().as_raw() != issuer.issuer().as_raw());
    }
    check_names(path)?;
    let mut window = Window { not_before: Timestamp::MIN, not_after: Timestamp::MAX };
    for certificate in path {
        let validity = certificate.validity();
        let (from, until) = (cert::time(validity.not_before.timestamp()), cert::time(validity.not_after.timestamp()));
        let who = cert::describe(certificate.subject());
        if now.as_second() > until.as_second() {
            return Err(Fault::new(
                RefusalCode::Expired,
                format!("the certificate of `{who}` ended at {until}; it is {now:.0}; renew it"),
            ));
        }
        if now.as_second() < from.as_second() {
            return Err(Fault::new(
                RefusalCode::NotYetValid,
                format!("the certificate of `{who}` begins at {from}; it is {now:.0}; is the clock right?"),
            ));
        }
        window = Window { not_before: window.not_before.max(from), not_after: window.not_after.min(until) };
    }
    for pair in path.windows(2) {
        for list in lists.iter().filter(|list| list.is_of(pair[1])) {
            if let Some(until) = list.check(pair[0], pair[1], now)? {
                window.not_after = window.not_after.min(until);
            }
        }
    }
    Ok(window)
}

/// A critical extension that we don't obey makes the certificate unusable (RFC 5280 §4.2).
fn check_critical(certificate: &X509Certificate<'_>) -> Result<(), Fault> {
    for extension in certificate.extensions() {
        let understood = matches!(
            extension.parsed_extension(),
            ParsedExtension::BasicConstraints(_)
                | ParsedExtension::KeyUsage(_)
                | ParsedExtension::ExtendedKeyUsage(_)
                | ParsedExtension::SubjectAlternativeName(_)
                | ParsedExtension::NameConstraints(_)
                | ParsedExtension::CertificatePolicies(_)
                | ParsedExtension::AuthorityKeyIdentifier(_)
                | ParsedExtension::SubjectKeyIdentifier(_)
        );
        if extension.critical && !understood {
            let who = cert::describe(certificate.subject());
            return Err(not_chained(format!("`{who}` has a critical extension we don't know ({})", extension.oid)));
        }
    }
    Ok(())
}

/// Whether `issuer` may issue, with `below` intermediates between it and the leaf.
fn check_issuer(issuer: &X509Certificate<'_>, below: usize, usage: Usage) -> Result<(), Fault> {
    let who = cert::describe(issuer.subject());
    let constraints = issuer.basic_constraints().ok().flatten().map(|extension| extension.value);
    let Some(constraints) = constraints.filter(|constraints| constraints.ca) else {
        return Err(not_chained(format!("`{who}` issued a certificate and is no CA (basicConstraints)")));
    };
    if constraints.path_len_constraint.is_some_and(|most| (most as usize) < below) {
        return Err(not_chained(format!("`{who}` allows fewer CAs below it than there are (pathLen)")));
    }
    if let Ok(Some(key_usage)) = issuer.key_usage()
        && !key_usage.value.key_cert_sign()
    {
        return Err(not_chained(format!("`{who}` may not sign certificates (keyCertSign)")));
    }
    if let Ok(Some(purposes)) = issuer.extended_key_usage() {
        let (allowed, name) = allows(purposes.value, usage);
        if !allowed {
            return Err(not_chained(format!("`{who}` is a CA whose extended key usage does not allow {name}")));
        }
    }
    Ok(())
}

/// Name constraints (RFC 5280 §4.2.1.10) of the issuers, held against the leaf's common name and DNS names, which
/// are host names here. Constraints on other kinds of name are not understood, so they refuse.
fn check_names(path: &[&X509Certificate<'_>]) -> Result<(), Fault> {
    let leaf = path[0];
    let mut names: Vec<String> =
        leaf.subject().iter_common_name().map(|cn| String::from_utf8_lossy(cn.as_slice()).to_lowercase()).collect();
    if let Ok(Some(alternatives)) = leaf.subject_alternative_name() {
        names.extend(alternatives.value.general_names.iter().filter_map(|name| match name {
            GeneralName::DNSName(dns) => Some(dns.to_lowercase()),
            _ => None,
        }));
    }
    for issuer in &path[1..] {
        let Ok(Some(constraints)) = issuer.name_constraints() else { continue };
        let who = cert::describe(issuer.subject());
        let refuse = |why: &str| Err(not_chained(format!("`{who}` limits the names it may issue: {why}")));
        let mut permitted = Vec::new();
        for subtree in constraints.value.permitted_subtrees.iter().flatten() {
            match &subtree.base {
                GeneralName::DNSName(dns) => permitted.push(dns.to_lowercase()),
                _ => return refuse("to a kind of name that is not understood here"),
            }
        }
        for subtree in constraints.value.excluded_subtrees.iter().flatten() {
            let GeneralName::DNSName(dns) = &subtree.base else {
                return refuse("not to a kind of name that is not understood here");
            };
            let excluded = dns.to_lowercase();
            if names.iter().any(|name| is_below(name, &excluded)) {
                return refuse("this one is excluded");
            }
        }
        if !permitted.is_empty() && !names.iter().all(|name| permitted.iter().any(|base| is_below(name, base))) {
            return refuse("this one is not among them");
        }
    }
    Ok(())
}

/// Whether `name` is `base` or a name below it.
fn is_below(name: &str, base: &str) -> bool {
    let base = base.strip_prefix('.').unwrap_or(base);
    base.is_empty() || name.strip_suffix(base).is_some_and(|front| front.is_empty() || front.ends_with('.'))
}

/// Whether the issuer's key made the certificate's signature.
fn signed_by(certificate: &X509Certificate<'_>, issuer: &X509Certificate<'_>) -> bool {
    let der = certificate.as_raw();
    let Ok((_, outer)) = Any::from_der(der) else { return false };
    let tbs = certificate.tbs_certificate.as_ref();
    let Some(rest) = outer.data.get(tbs.len()..) else { return false };
    signature_holds(tbs, rest, &certificate.signature_value.data, issuer)
}

/// Whether `signature` is one of `message` by the issuer's key; `algorithm` begins with the DER of the algorithm's
/// identifier.
pub(crate) fn signature_holds(
    message: &[u8],
    algorithm: &[u8],
    signature: &[u8],
    issuer: &X509Certificate<'_>,
) -> bool {
    let Ok((_, algorithm)) = Any::from_der(algorithm) else { return false };
    let spki = SubjectPublicKeyInfoDer::from(issuer.public_key().raw);
    let Ok(key) = RawPublicKeyEntity::try_from(&spki) else { return false };
    webpki::ALL_VERIFICATION_ALGS
        .iter()
        .filter(|known: &&&dyn SignatureVerificationAlgorithm| known.signature_alg_id().as_ref() == algorithm.data)
        .any(|known| key.verify_signature(*known, message, signature).is_ok())
}
