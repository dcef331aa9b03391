//! Where does a secret join a request? In place of its placeholder, where its profile says, at its own endpoints.
//!
//! The sandbox knows `openshell:resolve:env:NAME` and never the value. What is kept here:
//!
//! - A placeholder is swapped only at an endpoint of the credential's own profile and only where the profile's
//!   `auth_style` puts it. At another endpoint the request is refused (`credential_endpoint_mismatch`), in a URL
//!   (`placeholder_in_url`) and in another header (`placeholder_in_header`) as well, also if it is percent-encoded or
//!   inside base64.
//! - A profile's own endpoints are those that are about the request's host, port and path, whichever endpoint let it
//!   through. At a host and port of a profile with credentials, whatever the path, the header or parameter that carries
//!   one holds our placeholder and nothing else, once; so does every header that usually carries a key: a key of the agent's own is no way out. A
//!   request without the header goes on without a credential.
//! - In Basic the decoded text is `PLACEHOLDER`, `PLACEHOLDER:` or `PLACEHOLDER:x-oauth-basic`, or a placeholder as
//!   password behind a user name of a fixed list: a free user name or password could be the agent's own key. A value
//!   with a colon is the whole pair and stands alone.
//! - Bodies are not looked at. Values are wiped on drop and are in no `Debug`, error or log.

mod find;
mod vault;

use http::header::HeaderMap;
use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::policy::RefreshShape;
pub use crate::policy::Refused;
pub use vault::Vault;

/// What stands in the sandbox for a secret, before its variable's name.
pub const PLACEHOLDER: &str = "openshell:resolve:env:";

/// A credential as the launcher has it.
#[derive(Clone)]
pub struct Credential {
    /// Its variable.
    pub env: String,
    /// The profile that it is of.
    pub profile: String,
    /// Its value.
    pub value: Zeroizing<String>,
    /// What a refresh needs, by name.
    pub materials: Vec<(String, Zeroizing<String>)>,
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("env", &self.env).field("profile", &self.profile).finish_non_exhaustive()
    }
}

/// A credential that has to be refreshed, as it is now.
#[derive(Clone)]
pub struct Refreshable {
    /// Its variable.
    pub env: String,
    /// The profile that it is of.
    pub profile: String,
    /// How it is refreshed.
    pub shape: RefreshShape,
    /// What a refresh needs, by name, as last replaced.
    pub materials: Vec<(String, Zeroizing<String>)>,
    /// When it ends, once a refresh told.
    pub expires: Option<Timestamp>,
}

impl std::fmt::Debug for Refreshable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Refreshable");
        shown
            .field("env", &self.env)
            .field("profile", &self.profile)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Whether a header holds a placeholder in any spelling.
pub fn has_placeholder(headers: &HeaderMap) -> bool {
    headers.values().any(|value| find::hidden(value.as_bytes()))
}
