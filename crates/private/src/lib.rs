//! What must never be served: plaintext, the agent's key, and the vault of hidden values.
//!
//! No crate that answers a request may depend on this one; a test of the crate graph holds that. Every file here is
//! made with mode 0600 and every folder with 0700.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

mod extracts;
mod key;
mod place;
mod vault;

pub use extracts::{ExtractRow, ExtractStore};
pub use key::AgentKey;
pub use place::VaultPlace;
pub use vault::{Hidden, Revealed, Vault, VaultEdit, VaultError};
