//! What may a sandbox send out, and with whose secret? The egress proxy of the local sandbox.
//!
//! It is the only way out of a sandbox. Everything that goes out was allowed by name before that name was looked up,
//! is TLS to the host that it says, and stands as a line in the run's `egress.jsonl` before it leaves. The secrets
//! that a profile carries are put in here, at that profile's own endpoints; inside there are only placeholders.
//!
//! It refuses what it can't judge: HTTP/2, anything that is not TLS in a tunnel, a name that is hidden or another
//! one, a target with two readings, an address of this machine or its network that is not listed. docs/egress.md has
//! the formats, the limits, and what is not judged.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

pub mod address;
pub mod credential;
pub mod glob;
pub mod host;
pub mod policy;
pub mod target;

mod ca;
mod error;

mod limits;
mod log;
mod proxy;
mod refresh;
mod resolve;
mod tls;

pub use ca::Ca;
pub use credential::{Credential, PLACEHOLDER};
pub use error::ProxyError;
pub use limits::Limits;
pub use policy::{Policy, PolicyError, Source};
pub use proxy::{Options, Proxy};
pub use refresh::Rotated;
pub use resolve::{Resolve, SystemResolver};
pub use tls::UpstreamRoots;

/// For the fuzz targets alone.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Reads the first bytes of a tunnel.
    pub fn hello(bytes: &[u8]) {
        let _ = crate::tls::Hello::parse(bytes);
    }
}
