//! The only way out of a sandbox: what may be reached, and how a secret joins a request there.

pub mod address;
pub mod credential;
pub mod glob;
pub mod host;
pub mod policy;
pub mod target;
