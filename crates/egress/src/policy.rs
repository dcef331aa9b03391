//! What may leave a sandbox? The endpoints of the attached profiles and of an OpenShell policy file, judged in one place.
//!
//! The schema is OpenShell's, the part of it that can be judged here; the rest is refused at reading with file, line,
//! column and mend, never passed over. What is decided here:
//!
//! - `host`: a name, an address, or `*.example.com`, which is exactly one label more. Never `*`, `*.com`, `**`.
//! - An endpoint without `protocol` is a plain tunnel of TLS: nothing in it is seen. Where an endpoint with a protocol
//!   lists the same host and port, the connection is inspected and the tunnel admits nothing.
//! - A request is judged by every inspected endpoint of its host and port whose `path` matches. Deny rules of any of
//!   them win, then any allow will do. Only where all of them are `enforcement: audit` does a denied request go on.
//! - An allow rule is met letter by letter. A deny rule also where case differs or a slash is added at the end, since
//!   many servers take these for the same. `query` judges the names that it lists: an allow rule needs each of them
//!   there, with every value matching; a deny rule is met when each has one value that matches. Other names are free.
//! - Plain HTTP is for `rest` and `websocket` endpoints on port 80, or with `tls: skip`; for no other.
//! - `allowed_ips` lists all addresses that the endpoint may resolve to. A range admits private ones; loopback,
//!   link-local and metadata addresses must be listed one by one, or be the endpoint's own literal `host`.
//!   `localhost` lists loopback.
//! - Methods TRACE and CONNECT are never allowed, in any case of letters.

mod endpoint;
mod fields;
mod judge;
mod read;
mod shape;

use std::collections::BTreeMap;

pub use endpoint::{Endpoint, Origin, Protocol};
pub use judge::{Connect, Upgrade, Verdict};
pub use shape::{RefreshShape, Shape, Style};

use bastion_trust::MalformedError;

/// A file as it was read once.
#[derive(Debug, Clone)]
pub struct Source<'s> {
    /// The file, for messages.
    pub shown: String,
    /// Its bytes.
    pub bytes: &'s [u8],
}

/// Why a policy can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// A file is not what it must be: where, what, and the mend.
    #[error("{file}: {source}")]
    Malformed {
        /// The file, as [`Source::shown`] has it.
        file: String,
        /// Line, column and what is wrong.
        source: MalformedError,
    },
    /// Two profiles have one id.
    #[error("the profile `{id}` is attached twice")]
    Twice {
        /// The id.
        id: String,
    },
    /// A credential does not fit the profiles. Its value is never told.
    #[error("the credential `{env}` of the profile `{profile}`: {what}")]
    Credential {
        /// Its variable.
        env: String,
        /// Its profile.
        profile: String,
        /// What is wrong and what would be right.
        what: &'static str,
    },
}

/// Why a request or an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// For the answer's `error` field.
    pub code: &'static str,
    /// For its `detail` field: nothing of the request's own text.
    pub detail: &'static str,
}

/// Everything that a run may reach.
#[derive(Debug, Default)]
pub struct Policy {
    endpoints: Vec<Endpoint>,
    shapes: BTreeMap<(String, String), Shape>,
    warnings: Vec<String>,
}

impl Policy {
    /// Reads the attached profiles, then the agent's policy file. Fails on the first thing that can't be judged.
    pub fn read(profiles: &[Source<'_>], file: Option<&Source<'_>>) -> Result<Self, PolicyError> {
        let mut policy = Self::default();
        let mut seen = Vec::new();
        for source in profiles {
            let id = read::profile(source, &mut policy)?;
            if seen.contains(&id) {
                return Err(PolicyError::Twice { id });
            }
            seen.push(id);
        }
        if let Some(source) = file {
            read::policy_file(source, &mut policy)?;
        }
        policy.warn_of_plain_credentials();
        Ok(policy)
    }

    /// What the user should know: settings that have no effect here, keys that go out in the clear.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// All endpoints, in the order read.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// How the credential `env` of `profile` enters a request. `None`: the profile has no such credential.
    pub fn carried(&self, profile: &str, env: &str) -> Option<&Shape> {
        self.shapes.get(&(profile.to_owned(), env.to_owned()))
    }

    /// All shapes of a profile.
    pub(crate) fn shapes_of<'p>(&'p self, profile: &'p str) -> impl Iterator<Item = (&'p str, &'p Shape)> {
        self.shapes
            .iter()
            .filter(move |((owner, _), _)| owner == profile)
            .map(|((_, env), shape)| (env.as_str(), shape))
    }

    fn warn_of_plain_credentials(&mut self) {
        let mut warnings = Vec::new();
        for endpoint in self.endpoints.iter().filter(|endpoint| endpoint.is_plain() && !endpoint.is_loopback()) {
            let Origin::Profile(id) = &endpoint.origin else { continue };
            if self.shapes_of(id).any(|(_, shape)| shape.style.is_some()) {
                warnings.push(format!("the profile `{id}`: its credentials go to {} unencrypted", endpoint.shown));
            }
        }
        self.warnings.append(&mut warnings);
    }
}
