//! Who is at the other end of this connection, now? Judged again on each request, by little work where nothing changed.

use std::sync::Arc;

use bastion_trust::{Admitted, Anchors, CommonName, Gate, PeerError, Usage};
use jiff::Timestamp;
use rustls_pki_types::CertificateDer;

/// One connection's peer.
#[derive(Debug)]
pub(crate) struct Session {
    chain: Vec<CertificateDer<'static>>,
    /// Who it was when it was last good; for the audit.
    cn: Option<CommonName>,
    judged: Option<Judged>,
}

/// A verdict that holds as long as the roots are the same and the time lies between the two.
#[derive(Debug)]
struct Judged {
    anchors: Arc<Anchors>,
    from: Timestamp,
    until: Timestamp,
}

impl Session {
    /// The peer that showed `chain`, leaf first, in the handshake.
    pub(crate) fn new(chain: Vec<CertificateDer<'static>>) -> Self {
        Self { chain, cn: None, judged: None }
    }

    /// The peer's one common name, as far as it was ever good.
    pub(crate) fn cn(&self) -> Option<&CommonName> {
        self.cn.as_ref()
    }

    /// Judges the chain at `now` by the roots and revocation lists as they are now, which are those that `admitted`,
    /// judged just before, holds by.
    pub(crate) fn judge(&mut self, gate: &Gate, admitted: Option<&Admitted>, now: Timestamp) -> Result<(), PeerError> {
        let anchors = match admitted {
            Some(admitted) => gate.roots_of(admitted)?,
            None => gate.roots()?,
        };
        let holds = self.judged.as_ref().is_some_and(|judged| {
            // whole seconds, as dates in certificates are
            Arc::ptr_eq(&judged.anchors, &anchors)
                && (judged.from.as_second()..=judged.until.as_second()).contains(&now.as_second())
        });
        if !holds {
            self.judged = None;
            let peer = gate.judge_peer(&self.chain, Usage::Client, now)?;
            // the roots may have changed between the two reads: then the next request judges again
            self.judged = Some(Judged { anchors, from: now, until: peer.not_after });
            self.cn = peer.cn;
        }
        Ok(())
    }
}
