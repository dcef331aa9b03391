//! Real sockets, real TLS, on loopback alone: what docs/egress.md promises, asked from inside a sandbox's place.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod bodies;
mod bounds;
mod connect;
mod credentials;
mod faults;
mod logged;
mod names;
mod plain;
mod policy;
mod policy_credentials;
mod refresh;
mod requests;
mod tunnel;
mod websocket;
mod world;
