//! Real TLS, real certificates made here, a real store: what serve.md promises, asked from outside.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod access;
mod answers;
mod audit;
mod client;
mod http;
mod lifecycle;
mod peer;
mod policy;
mod world;
