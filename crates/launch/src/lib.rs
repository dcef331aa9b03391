//! A manifest and prompts become a sandboxed agent run.
//!
//! [`prepare()`] judges everything that can be judged without doing anything and gives a plan; [`Prepared::clear`] asks
//! where the agent comes from elsewhere; [`Cleared::launch`] hands it to a [`Driver`]. The crate refuses to run what
//! it did not hash, to put a secret on a command line or into a message, and to leave anything in the temporary folder.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::disallowed_methods))]

pub mod agent;
pub mod driver;
pub mod local;
pub mod parse;
pub mod plan;
pub mod runs;
pub mod sign;
pub mod text;

mod assemble;
mod consent;
mod contents;
mod copy;
mod credentials;
mod error;
mod image;
mod locate;
mod name;
mod openshell;
mod options;
mod passing;
mod paths;
mod payload;
mod prepare;
mod profiles;
mod prompt;
mod secret;
mod settings;
mod temp;
mod variables;

pub use consent::{Answer, Question};
pub use credentials::ProviderSecrets;
pub use driver::{Driver, Launch, Launched, Notice, Session, Word};
pub use error::LaunchError;
pub use locate::MANIFEST;
pub use openshell::{Limits, OpenShell};
pub use options::{LaunchOptions, Machine, Supervisor};
pub use payload::{ENTRYPOINT, MOUNT, Payload, PlannedFile, SUPERVISOR};
pub use plan::LaunchPlan;
pub use prepare::{Cleared, Prepared, prepare};
pub use profiles::Profile;
pub use runs::Run;
pub use secret::{Masker, Secret};
pub use settings::{ImageSource, Target};
