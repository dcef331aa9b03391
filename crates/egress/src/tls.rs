//! Both sides of TLS: leaves of the run's CA towards the sandbox, verified TLS towards the world.
//!
//! HTTP/1.1 is the only protocol that is offered on either side: what can't be judged is not spoken. No session is
//! resumed and no early data is taken towards the sandbox.

mod hello;

pub(crate) use hello::{Hello, MAX_HELLO_BYTES};

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::CertificateDer;

use crate::ca::Ca;
use crate::error::ProxyError;
use crate::host::Host;

/// Leaves that are kept: a `*.` endpoint has as many hosts as the agent can think of.
const KEPT_LEAVES: usize = 256;
const HTTP_1_1: &[u8] = b"http/1.1";

/// Which certificates of the world are believed.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum UpstreamRoots {
    /// The web's roots, as Mozilla lists them.
    #[default]
    WebPki,
    /// Those, and these: a company's CA, or a test's.
    WebPkiAnd(Vec<CertificateDer<'static>>),
}

/// The TLS of the side that faces the world.
pub(crate) fn upstream(roots: &UpstreamRoots) -> Result<Arc<ClientConfig>, ProxyError> {
    let failed = |source| ProxyError::Tls { source };
    let mut store = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let UpstreamRoots::WebPkiAnd(more) = roots {
        for root in more {
            store.add(root.clone()).map_err(failed)?;
        }
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(failed)?
        .with_root_certificates(store)
        .with_no_client_auth();
    config.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(Arc::new(config))
}

/// The TLS of the side that faces the sandbox: one configuration a host, the last few kept.
#[derive(Debug)]
pub(crate) struct Leaves {
    ca: Ca,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_host: HashMap<Host, Arc<ServerConfig>>,
    order: VecDeque<Host>,
}

/// A leaf could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeafError {
    #[error(transparent)]
    Certificate(#[from] rcgen::Error),
    #[error(transparent)]
    Tls(#[from] rustls::Error),
}

impl Leaves {
    pub(crate) fn new(ca: Ca) -> Self {
        Self { ca, kept: Mutex::default() }
    }

    /// What to answer a client of `host` with.
    pub(crate) fn of(&self, host: &Host) -> Result<Arc<ServerConfig>, LeafError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = kept.by_host.get(host) {
            return Ok(Arc::clone(config));
        }
        let config = Arc::new(self.make(host)?);
        if kept.order.len() >= KEPT_LEAVES
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.by_host.remove(&oldest);
        }
        kept.order.push_back(host.clone());
        kept.by_host.insert(host.clone(), Arc::clone(&config));
        Ok(config)
    }

    fn make(&self, host: &Host) -> Result<ServerConfig, LeafError> {
        let (certificate, key) = self.ca.leaf(host)?;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

#[cfg(test)]
mod tests {
    use bastion_host::clock::SystemClock;

    use super::*;

    #[test]
    fn leaves_are_kept_up_to_a_bound() {
        let leaves = Leaves::new(Ca::new(&SystemClock).unwrap());
        let host = |n: usize| Host::parse(&format!("h{n}.example")).unwrap();
        let first = leaves.of(&host(0)).unwrap();
        assert!(Arc::ptr_eq(&first, &leaves.of(&host(0)).unwrap()));
        for n in 1..=KEPT_LEAVES {
            leaves.of(&host(n)).unwrap();
        }
        let kept = leaves.kept.lock().unwrap();
        assert_eq!((kept.by_host.len(), kept.order.len()), (KEPT_LEAVES, KEPT_LEAVES));
        assert!(!kept.by_host.contains_key(&host(0)));
    }
}
