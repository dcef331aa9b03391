//! At which addresses is a host? Asked only about names that the policy allowed.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

/// Looks names up.
pub trait Resolve: Send + Sync + 'static {
    /// The addresses of `host`, best first. May block; it runs on a thread that may.
    ///
    /// # Errors
    /// What the system says; none of it reaches the sandbox.
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The host's own resolver, with its `/etc/hosts`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        // a trailing dot would be safer against search domains, but not every /etc/hosts entry is found with one
        let mut found = Vec::new();
        for address in (host, 0).to_socket_addrs()? {
            if !found.contains(&address.ip()) {
                found.push(address.ip());
            }
        }
        Ok(found)
    }
}
