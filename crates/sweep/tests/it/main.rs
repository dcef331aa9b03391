//! The sweep as a whole: real gate, real files, real signals; stages and time are played.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disk_full;
mod doc;
mod loop_;
mod places;
mod runs;
mod service;
mod signals;
mod signed;
mod status;
mod world;
