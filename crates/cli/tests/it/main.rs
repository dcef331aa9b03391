//! The program as its users run it: real processes, real files, real TLS, in a machine of its own each.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod crash;
mod determinism;
mod endpoint;
mod formats;
mod gate;
mod graph;
mod harnesses;
mod launch;
mod local;
#[path = "../../../supervisor/tests/it/server.rs"]
mod model_server;
mod planted;
mod records;
mod removal;
mod seal;
mod support;
mod transcript;
mod walk;
