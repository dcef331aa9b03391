//! The promises of manifest.md, held against real files, real certificates and the real `openssl`.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod ca;
mod gate;
mod interop;
mod live;
mod peers;
mod props;
mod reading;
mod scoping;
mod signing;
mod support;
mod x509;
