//! The way out of a sandbox: which policy, which credentials, which roots its proxy gets.

use std::net::TcpListener;
use std::path::Path;

use bastion_egress::policy::{Policy, Source};
use bastion_egress::{Ca, Options, Proxy, UpstreamRoots};
use bastion_host::clock::Clock;
use bastion_host::files::read_capped;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::job::Job;
use super::layout::Layout;
use super::run::Rotated;
use crate::error::LaunchError;

/// Where distributions keep the roots that this machine trusts.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
const MAX_BUNDLE: u64 = 8 << 20;
/// A file of more roots that the proxy trusts, such as those of a company.
pub(crate) const MORE_ROOTS: &str = "BASTION_EGRESS_CA";

/// The CA of a run.
pub(crate) fn ca(clock: &dyn Clock) -> Result<Ca, LaunchError> {
    Ca::new(clock).map_err(failed)
}

/// What a run may reach.
///
/// # Errors
/// What of the profiles or the policy file can't be judged, with its place.
pub(crate) fn read_policy(
    profiles: &[(String, Vec<u8>)],
    policy: Option<&(String, Vec<u8>)>,
) -> Result<Policy, LaunchError> {
    let profiles: Vec<Source<'_>> =
        profiles.iter().map(|(shown, bytes)| Source { shown: shown.clone(), bytes }).collect();
    let policy = policy.map(|(shown, bytes)| Source { shown: shown.clone(), bytes });
    Policy::read(&profiles, policy.as_ref())
        .map_err(|error| LaunchError::refused("what the agent may reach", format!("can't be enforced here: {error}")))
}

/// As [`read_policy`], of a job.
pub(crate) fn policy(job: &Job) -> Result<Policy, LaunchError> {
    read_policy(&job.profiles, job.policy.as_ref())
}

/// Whether it lists this machine itself.
pub(crate) fn lists_loopback(policy: &Policy) -> bool {
    policy.endpoints().iter().any(bastion_egress::policy::Endpoint::is_loopback)
}

/// Starts the proxy on the sandbox's listener.
pub(crate) fn proxy(
    job: &Job,
    layout: &Layout,
    listener: TcpListener,
    ca: Ca,
    policy: Policy,
    rotated: Rotated,
) -> Result<Proxy, LaunchError> {
    let credentials = job.credentials.iter().map(|credential| bastion_egress::credential::Credential {
        env: credential.env.clone(),
        profile: credential.profile.clone(),
        value: credential.value.0.clone(),
        materials: credential.materials.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect(),
    });
    let upstream_roots = match &job.more_roots {
        None => UpstreamRoots::WebPki,
        Some(pem) => UpstreamRoots::WebPkiAnd(roots(pem).map_err(|why| LaunchError::usage(MORE_ROOTS, why))?),
    };
    let mut options = Options::new(policy, ca, layout.egress());
    options.credentials = credentials.collect();
    options.upstream_roots = upstream_roots;
    options.rotated = Some(rotated);
    Proxy::start(listener, options).map_err(failed)
}

/// The certificates of a PEM file.
pub(crate) fn roots(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match roots {
        Ok(roots) if !roots.is_empty() => Ok(roots),
        Ok(_) => Err("names a file without certificates".to_owned()),
        Err(error) => Err(format!("names a file that is no PEM: {error}")),
    }
}

/// The roots that programs in the sandbox trust: this machine's, those that were added, and the CA of the run.
pub(crate) fn bundle(ca: &Ca, more_roots: Option<&[u8]>) -> Vec<u8> {
    let host = BUNDLES.iter().find_map(|path| read_capped(Path::new(path), MAX_BUNDLE).ok()).unwrap_or_default();
    let mut bundle = host;
    for more in [more_roots.unwrap_or_default(), ca.pem().as_bytes()] {
        if !bundle.is_empty() && !bundle.ends_with(b"\n") {
            bundle.push(b'\n');
        }
        bundle.extend_from_slice(more);
    }
    bundle
}

fn failed(error: bastion_egress::ProxyError) -> LaunchError {
    LaunchError::refused("the way out of the sandbox", format!("can't be opened: {error}"))
}
