//! The credentials of a run: swapped into requests, replaced by refreshes. Values leave only into a request.

use std::fmt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use base64::Engine;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use zeroize::Zeroizing;

use super::{Credential, PLACEHOLDER, Refreshable, find};
use crate::host::Authority;
use crate::policy::{Endpoint, Policy, PolicyError, Protocol, Refused, Shape, Style};
use crate::target::Target;

/// Headers and parameters that usually carry a key. At an endpoint with credentials they are ours or absent.
const KEY_HEADERS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "private-token",
    "x-auth-token",
    "x-access-token",
    "job-token",
    "proxy-authorization",
];
const KEY_PARAMETERS: &[&str] = &["access_token", "api_key", "apikey", "api-key", "private_token"]; // RFC 6750 §2.3, and usual
/// User names that stand beside a token in Basic and are no key themselves.
const USERS: &[&str] =
    &["", "git", "oauth2", "token", "__token__", "_token", "user", "x-access-token", "x-token-auth", "gitlab-ci-token"];

const MISMATCH: Refused = Refused {
    code: "credential_endpoint_mismatch",
    detail: "a credential's placeholder goes to the endpoints of its own profile only",
};
const IN_URL: Refused =
    Refused { code: "placeholder_in_url", detail: "a credential's placeholder must not stand in a URL" };
const IN_HEADER: Refused = Refused {
    code: "placeholder_in_header",
    detail: "a credential's placeholder stands in a header that its profile does not name",
};
const NOT_OURS: Refused = Refused {
    code: "credential_not_placeholder",
    detail: "at this endpoint the header or parameter of a credential holds its placeholder, once, and nothing else",
};
const MISSING: Refused = Refused { code: "credential_missing", detail: "no value was given for this credential" };
const BAD_VALUE: Refused = Refused { code: "credential_unusable", detail: "the value can't stand in a header" };

/// All credentials of a run with their shapes.
pub struct Vault(Vec<Entry>);

/// A credential of a profile that has an endpoint at the host and port of a request.
struct Own<'p> {
    profile: &'p str,
    env: &'p str,
    style: &'p Style,
    /// One of the profile's endpoints there is about the request's path too: a placeholder is swapped. Else only a key of
    /// the agent's own is looked for.
    swaps: bool,
}

fn own<'p>(policy: &'p Policy, to: &Authority, target: &Target) -> Vec<Own<'p>> {
    let mut profiles: Vec<(&str, bool)> = Vec::new();
    for endpoint in
        policy.endpoints().iter().filter(|endpoint| endpoint.protocol != Protocol::Tunnel && endpoint.covers(to))
    {
        let Some(id) = endpoint.profile() else { continue };
        let here = endpoint.concerns(target);
        match profiles.iter_mut().find(|(known, _)| *known == id) {
            Some((_, swaps)) => *swaps |= here,
            None => profiles.push((id, here)),
        }
    }
    let shapes = |(profile, swaps): (&'p str, bool)| {
        policy
            .shapes_of(profile)
            .filter_map(move |(env, shape)| shape.style.as_ref().map(|style| Own { profile, env, style, swaps }))
    };
    profiles.into_iter().flat_map(shapes).collect()
}

struct Entry {
    env: String,
    profile: String,
    shape: Shape,
    held: RwLock<Held>,
}

struct Held {
    value: Zeroizing<String>,
    materials: Vec<(String, Zeroizing<String>)>,
    expires: Option<Timestamp>,
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|entry| &entry.env)).finish()
    }
}

impl Vault {
    /// Takes the credentials of a run. Refused: a variable that its profile has not, one that is given twice, a value
    /// that can't be a header's.
    pub fn new(policy: &Policy, credentials: Vec<Credential>) -> Result<Self, PolicyError> {
        let mut entries: Vec<Entry> = Vec::new();
        for Credential { env, profile, value, materials } in credentials {
            let refused = |what| PolicyError::Credential { env: env.clone(), profile: profile.clone(), what };
            let shape = policy.carried(&profile, &env).ok_or_else(|| refused("the profile has no such variable"))?;
            if entries.iter().any(|entry| entry.env == env) {
                return Err(refused("the variable is given twice; a placeholder would have two meanings"));
            }
            if shape.style.is_some() && !usable(&value) {
                return Err(refused("the value is empty, or has a line break or another character that no header has"));
            }
            let held = RwLock::new(Held { value, materials, expires: None });
            entries.push(Entry { shape: shape.clone(), env, profile, held });
        }
        Ok(Self(entries))
    }

    /// Swaps placeholders of a request that `endpoint` allowed, or refuses it. After a refusal the request is not to be
    /// sent: a part of it may have been swapped.
    pub fn swap(
        &self,
        policy: &Policy,
        endpoint: &Endpoint,
        to: &Authority,
        target: &mut Target,
        headers: &mut HeaderMap,
    ) -> Result<(), Refused> {
        if !endpoint.covers(to) {
            return Err(MISMATCH);
        }
        let own = own(policy, to, target);
        self.swap_query(&own, target)?;
        self.swap_headers(&own, headers)
    }

    fn swap_query(&self, own: &[Own<'_>], target: &mut Target) -> Result<(), Refused> {
        if find::hidden(target.path().as_bytes()) {
            return Err(IN_URL);
        }
        let mut swaps: Vec<(String, &Entry)> = Vec::new();
        for (name, value) in target.query() {
            let carries = |style: &Style| matches!(style, Style::Query { parameter } if parameter == name);
            if own.iter().any(|one| carries(one.style)) {
                let entry = self.meant(own, value, carries)?;
                if swaps.iter().any(|(done, _)| done == name) {
                    return Err(NOT_OURS);
                }
                swaps.push((name.clone(), entry));
            } else if find::hidden(name.as_bytes()) || find::hidden(value.as_bytes()) {
                return Err(IN_URL);
            } else if !own.is_empty() && KEY_PARAMETERS.iter().any(|key| name.eq_ignore_ascii_case(key)) {
                return Err(NOT_OURS);
            }
        }
        swaps.iter().for_each(|(name, entry)| target.put(name, &entry.read().value));
        Ok(())
    }

    fn swap_headers(&self, own: &[Own<'_>], headers: &mut HeaderMap) -> Result<(), Refused> {
        let mut swaps: Vec<(HeaderName, HeaderValue)> = Vec::new();
        for name in headers.keys() {
            let here: Vec<&HeaderValue> = headers.get_all(name).iter().collect();
            if own.iter().any(|one| one.style.header() == Some(name.as_str())) {
                let [value] = here.as_slice() else { return Err(NOT_OURS) };
                swaps.push((name.clone(), self.swapped(own, name.as_str(), value)?));
            } else if find::hidden(name.as_str().as_bytes()) || here.iter().any(|value| find::hidden(value.as_bytes()))
            {
                return Err(if own.is_empty() || self.foreign(own, &here) { MISMATCH } else { IN_HEADER });
            } else if !own.is_empty() && KEY_HEADERS.contains(&name.as_str().replace('_', "-").as_str()) {
                return Err(NOT_OURS);
            }
        }
        for (name, value) in swaps {
            headers.insert(name, value);
        }
        Ok(())
    }

    /// The value of a header that carries a credential, with the secret in it.
    fn swapped(&self, own: &[Own<'_>], name: &str, value: &HeaderValue) -> Result<HeaderValue, Refused> {
        let text = value.to_str().map_err(|_| NOT_OURS)?;
        let (scheme, rest) = text.split_once(' ').unwrap_or(("", text));
        let is = |wanted: fn(&Style) -> bool| move |style: &Style| wanted(style) && style.header() == Some(name);
        let bearer = is(|style| matches!(style, Style::Bearer { .. }));
        let basic = is(|style| matches!(style, Style::Basic { .. }));
        let plain = is(|style| matches!(style, Style::Header { .. }));
        let mut secret = Zeroizing::new(String::new());
        if scheme.eq_ignore_ascii_case("bearer") && own.iter().any(|one| bearer(one.style)) {
            secret.push_str("Bearer ");
            secret.push_str(&self.meant(own, rest, bearer)?.read().value);
        } else if scheme.eq_ignore_ascii_case("basic") && own.iter().any(|one| basic(one.style)) {
            let pair = find::basic(rest).ok_or(NOT_OURS)?;
            let (user, placeholder, password) = parts(&pair).ok_or(NOT_OURS)?;
            let held = self.meant(own, placeholder, basic)?.read();
            let whole = if !held.value.contains(':') {
                Zeroizing::new(format!("{user}{}{password}", *held.value))
            } else if user.is_empty() && matches!(password, "" | ":") {
                held.value.clone()
            } else {
                return Err(NOT_OURS);
            };
            secret.push_str("Basic ");
            secret.push_str(&Zeroizing::new(base64::engine::general_purpose::STANDARD.encode(whole.as_bytes())));
        } else {
            secret.push_str(&self.meant(own, text, plain)?.read().value);
        }
        let mut value = HeaderValue::from_str(&secret).map_err(|_| BAD_VALUE)?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// The credential whose placeholder is the whole of `text`, and that enters this way at this endpoint.
    fn meant(&self, own: &[Own<'_>], text: &str, here: impl Fn(&Style) -> bool) -> Result<&Entry, Refused> {
        let env = text.strip_prefix(PLACEHOLDER).ok_or(NOT_OURS)?;
        let entry = self.0.iter().find(|entry| entry.env == env);
        let Some(one) = own.iter().find(|one| one.env == env && here(one.style)) else {
            let foreign = entry.is_some_and(|entry| own.iter().all(|one| one.profile != entry.profile));
            return Err(if foreign { MISMATCH } else { NOT_OURS });
        };
        if !one.swaps {
            return Err(MISMATCH);
        }
        let entry = entry.ok_or(MISSING)?;
        // One name in two profiles: the value is of the one that gave it.
        let given =
            own.iter().any(|one| one.swaps && one.env == env && one.profile == entry.profile && here(one.style));
        if given { Ok(entry) } else { Err(MISMATCH) }
    }

    /// Whether a plain placeholder in these values is of a profile that has no endpoint here.
    fn foreign(&self, own: &[Own<'_>], values: &[&HeaderValue]) -> bool {
        let texts = || values.iter().filter_map(|value| value.to_str().ok());
        let named = |env: &str| texts().any(|text| text.contains(&format!("{PLACEHOLDER}{env}")));
        self.0.iter().any(|entry| own.iter().all(|one| one.profile != entry.profile) && named(&entry.env))
    }

    /// The credentials that are to be refreshed, as they are now.
    pub fn refreshable(&self) -> Vec<Refreshable> {
        let one = |entry: &Entry| {
            let held = entry.read();
            Some(Refreshable {
                env: entry.env.clone(),
                profile: entry.profile.clone(),
                shape: entry.shape.refresh.clone()?,
                materials: held.materials.clone(),
                expires: held.expires,
            })
        };
        self.0.iter().filter_map(one).collect()
    }

    /// Puts a fresh value in. Refused, with the old one kept, where it can't be a header's or no such credential is here.
    pub fn replace(&self, env: &str, value: Zeroizing<String>, expires: Option<Timestamp>) -> Result<(), Refused> {
        let entry = self.0.iter().find(|entry| entry.env == env).ok_or(MISSING)?;
        if !usable(&value) {
            return Err(BAD_VALUE);
        }
        let mut held = entry.write();
        held.value = value;
        held.expires = expires;
        Ok(())
    }

    /// Puts a fresh material in, such as a rotated refresh token; one that was not there is added.
    pub fn replace_material(&self, env: &str, name: &str, value: Zeroizing<String>) -> Result<(), Refused> {
        let entry = self.0.iter().find(|entry| entry.env == env).ok_or(MISSING)?;
        let mut held = entry.write();
        match held.materials.iter_mut().find(|(own, _)| own == name) {
            Some((_, old)) => *old = value,
            None => held.materials.push((name.to_owned(), value)),
        }
        Ok(())
    }
}

impl Entry {
    // A writer only moves values in, so what a poisoned lock holds is whole.
    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// User with its colon, placeholder, password with its colon.
fn parts(pair: &str) -> Option<(&str, &str, &str)> {
    let start = pair.find(PLACEHOLDER)?;
    let (user, rest) = pair.split_at(start);
    let env = rest.strip_prefix(PLACEHOLDER)?;
    let end = PLACEHOLDER.len() + env.find(':').unwrap_or(env.len());
    let (placeholder, password) = rest.split_at(end);
    let alone = user.is_empty() && matches!(password, "" | ":" | ":x-oauth-basic");
    let behind = user.strip_suffix(':').is_some_and(|user| USERS.contains(&user)) && password.is_empty();
    (alone || behind).then_some((user, placeholder, password))
}

/// Whether a value can be all of a header's: visible ASCII and single spaces inside, so that no server reads it in two ways.
fn usable(value: &str) -> bool {
    !value.is_empty() && value.trim() == value && value.bytes().all(|b| b == b' ' || b.is_ascii_graphic())
}
