//! From a folder to something that can be searched: walk, extract, sanitize, chunk, embed, catalog, seal.
//!
//! [`Pipeline`] runs them as one readable function under an [`Admitted`] manifest and commits once at the end. A stage
//! that fails ends the run and nothing of it is seen by a reader; a file that fails is a row with a reason.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

mod catalog;
mod chunk;
mod embed;
mod error;
mod extract;
mod index;
pub mod names;
mod open;
mod pipeline;
mod progress;
mod publish;
mod sanitize;
mod seal;
mod summarize;
mod tally;
mod walk;

pub use error::StageError;
pub use pipeline::{Embedding, Pipeline, Settings};
pub use progress::Progress;
pub use seal::{SealError, SealSettings, open_bundle};
pub use summarize::{SummarizeError, Summarizer};
pub use tally::Tally;

pub use bastion_private::{AgentKey, Revealed, Vault, VaultError, VaultPlace};
pub use bastion_trust::Admitted;
