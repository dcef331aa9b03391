//! Who is at the other end of this TLS connection? The same chain check as the gate's, for peers.

use jiff::Timestamp;
use rustls_pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;

use crate::cert;
use crate::chain::{self, Trust, Usage};
use crate::error::Fault;
use crate::gate::Gate;
use crate::names::CommonName;

/// Why a peer is nobody: the gate's code and words.
pub type PeerError = Fault;

/// The certificates a peer showed, leaf first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerChain(pub Vec<CertificateDer<'static>>);

/// A peer whose certificate chains to a root, now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// Who it is; none where its subject has no common name, several, or one that can't be seen whole. Such a peer
    /// is anyone.
    pub cn: Option<CommonName>,
    /// The DNS names of the certificate, lower-case.
    pub dns: Vec<String>,
    /// When the first certificate of the chain ends.
    pub not_after: Timestamp,
}

impl Peer {
    /// Whether the certificate names `host`: as its one common name or as a DNS name. No wildcards.
    pub fn names(&self, host: &str) -> bool {
        self.cn.as_ref().is_some_and(|cn| cn.as_str() == host) || self.dns.iter().any(|name| name == host)
    }
}

impl Gate {
    /// Judges the chain that a peer showed: signatures, CA rights, dates of every certificate (the root's included),
    /// key usage and extended key usage, revocation; against the roots as the files have them now.
    ///
    /// # Errors
    /// `no_root`, `not_chained`, `expired`, `not_yet_valid` or `revoked`.
    pub fn judge_peer(&self, chain: &[CertificateDer<'_>], usage: Usage, now: Timestamp) -> Result<Peer, PeerError> {
        let anchors = self.anchors.load()?;
        let trust = Trust { roots: anchors.roots(), lists: &anchors.lists };
        let window = chain::judge(chain, &trust, usage, now)?;
        // judge() has read the leaf, so this can't fail
        let leaf = chain.first().and_then(|der| cert::parse(der).ok());
        let cn = leaf.as_ref().and_then(|leaf| cert::common_name(leaf.subject()).ok());
        let dns = leaf
            .as_ref()
            .and_then(|leaf| leaf.subject_alternative_name().ok().flatten())
            .map(|names| {
                let dns = names.value.general_names.iter().filter_map(|name| match name {
                    GeneralName::DNSName(dns) => Some(dns.to_lowercase()),
                    _ => None,
                });
                dns.collect()
            })
            .unwrap_or_default();
        Ok(Peer { cn, dns, not_after: window.not_after })
    }
}
