//! What an index promises, on real folders.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod eval;
mod generations;
mod models;
mod queries;
mod remote;
mod server;
mod support;
mod vectors;
