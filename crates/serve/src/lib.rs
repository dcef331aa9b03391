//! How another host reads what was prepared without the data moving: the mutual-TLS query endpoint, its audit, its client.
//!
//! What goes out is sanitized windows, ranges of sanitized text and catalog cards; nothing else has a route, and this
//! crate can't reach anything else: it depends on neither the plaintext store nor the stages.
//!
//! Who asks is the common name of the client's certificate, and there is no other credential. What that name may do
//! is the signed manifest of this moment, read again on each request ([`bastion_trust::LivePolicy`]). An answer goes
//! out only once its line stands in the audit.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

pub mod audit;
pub mod bind;
pub mod client;
pub mod wire;

/// For the fuzz targets alone.
#[cfg(fuzzing)]
pub mod fuzzing {
    /// Reads a request's head and its query.
    pub fn request(bytes: &[u8]) {
        if let Ok(Some((head, length))) = crate::http::Head::parse(bytes) {
            assert!(length <= bytes.len());
            let _ = crate::http::pairs(&head.query);
        }
    }
}

mod answer;
mod corpus;
mod endpoint;
mod http;
mod notice;
mod operation;
mod rate;
mod route;
mod seats;
mod service;
mod session;
mod tls;

pub use bind::{BindAddr, InvalidBind};
pub use client::{Client, ClientError};
pub use endpoint::{Endpoint, Running, ServeConfig, ServeError, StopHandle};
pub use notice::NoticeSink;
pub use tls::{TlsError, TlsFiles};
