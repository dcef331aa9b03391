//! A model server: OpenAI's API, Hugging Face's text-embeddings-inference, or Ollama.
//!
//! Text goes to the one host that the owner named ([`RemoteEmbedder::host`]), in the clear to none but this machine.
//! Redirects are not followed: they would name another. Each batch is asked for again where the server is busy or
//! silent; an answer that is not one vector for each text is an error.

mod api;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bastion_host::clock::Clock;
use ureq::http::{StatusCode, Uri};
use ureq::{Agent, Body, Error};

pub use api::{EmbedApi, UnknownApi};

use super::{EmbedError, Embedder, Role};
use crate::key::ModelTag;

/// Texts in one request, and their characters: servers refuse more.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 256 << 10;
/// The largest answer we read, in bytes: 32 vectors of 16,384 numbers in text.
const MAX_ANSWER: u64 = 16 << 20;
/// Times a request is made.
const TRIES: u32 = 4;

/// What names a server.
#[derive(Clone)]
pub struct RemoteSettings {
    /// The server's address (`EMBED_URL`), with or without the API's path: `https://host/v1`, `http://127.0.0.1:11434`.
    pub url: String,
    /// Its API (`EMBED_API`).
    pub api: EmbedApi,
    /// The model to ask for (`EMBED_MODEL`); text-embeddings-inference has but one.
    pub model: String,
    /// The key to show (`EMBED_API_KEY`), as a bearer token.
    pub key: Option<String>,
    /// How long one request may take.
    pub timeout: Duration,
}

impl RemoteSettings {
    /// How long one request may take where nothing else is said.
    pub const TIMEOUT: Duration = Duration::from_secs(60);
}

impl std::fmt::Debug for RemoteSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteSettings")
            .field("url", &self.url)
            .field("api", &self.api)
            .field("model", &self.model)
            .field("key", &self.key.as_ref().map(|_| "…"))
            .finish_non_exhaustive()
    }
}

/// A model on a server.
pub struct RemoteEmbedder {
    settings: RemoteSettings,
    endpoint: Uri,
    host: String,
    tag: ModelTag,
    agent: Agent,
    clock: Box<dyn Clock>,
}

impl std::fmt::Debug for RemoteEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RemoteEmbedder")
            .field("settings", &self.settings)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

impl RemoteEmbedder {
    /// Asks the server for one vector, to learn their size.
    ///
    /// # Errors
    /// [`EmbedError::Url`] for an address that is none, has a name and password in it, or is not `https` and not this
    /// machine's; else as [`Embedder::embed`].
    pub fn connect(settings: RemoteSettings, clock: Box<dyn Clock>) -> Result<Self, EmbedError> {
        let mut embedder = Self::with_dims(settings, 0, clock)?;
        let first = embedder.ask(&["size"])?;
        embedder.tag.dims = first.first().map_or(0, Vec::len);
        Ok(embedder)
    }

    /// Asks nothing yet: for a model whose vectors' size is known, as that of an index is.
    ///
    /// # Errors
    /// [`EmbedError::Url`] as for [`RemoteEmbedder::connect`].
    pub fn with_dims(settings: RemoteSettings, dims: usize, clock: Box<dyn Clock>) -> Result<Self, EmbedError> {
        let (endpoint, host) = endpoint(&settings)?;
        let mut config = Agent::config_builder()
            .timeout_global(Some(settings.timeout))
            .timeout_connect(Some(settings.timeout.min(Duration::from_secs(10))))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false);
        if endpoint.scheme_str() == Some("http") {
            // What is meant for this machine must not go through a proxy that the environment names.
            config = config.proxy(None);
        }
        let tag = ModelTag { name: settings.model.clone(), dims };
        Ok(Self { settings, endpoint, host, tag, agent: config.build().into(), clock })
    }

    /// The host that texts go to, with its port where the address has one.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// One request, made again where that may help.
    fn ask(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let body = self.settings.api.request(&self.settings.model, texts);
        let mut tries = 0;
        loop {
            tries += 1;
            let failure = match self.post(&body) {
                Ok((status, answer)) if status.is_success() => return self.read(&answer, texts.len()),
                Ok((status, answer)) => {
                    EmbedError::Refused { host: self.host.clone(), status: status.as_u16(), detail: excerpt(&answer) }
                }
                Err(source) => EmbedError::Unreachable { host: self.host.clone(), source: Box::new(source) },
            };
            if tries >= TRIES || !may_pass(&failure) {
                return Err(failure);
            }
            self.clock.nap(backoff(tries));
        }
    }

    fn post(&self, body: &[u8]) -> Result<(StatusCode, Vec<u8>), Error> {
        let mut request = self
            .agent
            .post(&self.endpoint)
            .header("content-type", "application/json")
            .header("accept", "application/json");
        if let Some(key) = &self.settings.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let (head, answer) = request.send(body)?.into_parts();
        let answer: Body = answer;
        Ok((head.status, answer.into_with_config().limit(MAX_ANSWER).read_to_vec()?))
    }

    fn read(&self, answer: &[u8], count: usize) -> Result<Vec<Vec<f32>>, EmbedError> {
        let nonsense = |what| EmbedError::Nonsense { host: self.host.clone(), what };
        let vectors = self.settings.api.answer(answer).map_err(nonsense)?;
        if vectors.len() != count {
            return Err(nonsense("not one vector for each text"));
        }
        let expected = if self.tag.dims == 0 { vectors.first().map_or(0, Vec::len) } else { self.tag.dims };
        for vector in &vectors {
            if vector.is_empty() {
                return Err(nonsense("an empty vector"));
            }
            if vector.len() != expected {
                return Err(EmbedError::Dims {
                    host: self.host.clone(),
                    model: self.tag.name.clone(),
                    expected,
                    found: vector.len(),
                });
            }
            if !vector.iter().all(|value| value.is_finite()) {
                return Err(nonsense("a number that is not finite"));
            }
        }
        Ok(vectors)
    }
}

impl Embedder for RemoteEmbedder {
    fn tag(&self) -> &ModelTag {
        &self.tag
    }

    fn embed(&self, texts: &[&str], _role: Role) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        let mut rest = texts;
        while !rest.is_empty() {
            let mut bytes = 0;
            let fits = |text: &&&str| {
                bytes += text.len();
                bytes <= BATCH_BYTES
            };
            let count = rest.iter().take(BATCH).take_while(fits).count().max(1);
            let (batch, later) = rest.split_at(count);
            vectors.extend(self.ask(batch)?);
            rest = later;
        }
        Ok(vectors)
    }
}

/// Whether the same request may go through a little later.
fn may_pass(failure: &EmbedError) -> bool {
    match failure {
        EmbedError::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
        EmbedError::Unreachable { source, .. } => {
            !matches!(**source, Error::BodyExceedsLimit(_) | Error::Tls(_) | Error::BadUri(_))
        }
        _ => false,
    }
}

/// How long to wait after so many failures: half a second, doubled each time.
fn backoff(failures: u32) -> Duration {
    Duration::from_millis(500) * 2_u32.saturating_pow(failures.saturating_sub(1).min(6))
}

/// The address to post to, and its host.
fn endpoint(settings: &RemoteSettings) -> Result<(Uri, String), EmbedError> {
    let refused = |why| EmbedError::Url { url: without_secrets(&settings.url), why };
    let given: Uri = settings.url.trim().parse().map_err(|_| refused("is no address"))?;
    let authority = given.authority().ok_or_else(|| refused("has no host"))?;
    if authority.as_str().contains('@') {
        return Err(refused("has a name or password in it; use EMBED_API_KEY"));
    }
    match given.scheme_str() {
        Some("https") => {}
        Some("http") if is_loopback(authority.host()) => {}
        Some("http") => return Err(refused("would send text in the clear; only https is allowed for another host")),
        _ => return Err(refused("must begin with https:// (or http:// for this machine)")),
    }
    let path = settings.api.path(given.path());
    let uri = Uri::builder()
        .scheme(given.scheme_str().unwrap_or("https"))
        .authority(authority.clone())
        .path_and_query(path)
        .build();
    Ok((uri.map_err(|_| refused("is no address"))?, authority.as_str().to_owned()))
}

/// Names that resolve to this machine by standard (RFC 6761), and its addresses.
fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback())
        || host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_loopback())
}

/// The address for an error message: what stands before an `@` or after a `?` may be a secret.
fn without_secrets(url: &str) -> String {
    let (start, rest) = url.split_once("://").unwrap_or(("", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    if start.is_empty() { rest.to_owned() } else { format!("{start}://{rest}") }
}

/// The beginning of what a server says about an error, on one line.
fn excerpt(answer: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(answer)
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(200)
        .collect();
    let text = text.trim();
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, api: EmbedApi) -> RemoteSettings {
        RemoteSettings { url: url.to_owned(), api, model: "m".to_owned(), key: None, timeout: RemoteSettings::TIMEOUT }
    }

    #[test]
    fn text_goes_in_the_clear_to_this_machine_alone() {
        for good in [
            "https://models.example",
            "http://127.0.0.1:8080",
            "http://localhost",
            "http://[::1]:9/v1",
            "http://127.8.9.1",
        ] {
            assert!(endpoint(&settings(good, EmbedApi::OpenAi)).is_ok(), "{good}");
        }
        for bad in [
            "http://models.example",
            "http://127.0.0.1.example",
            "http://localhost.example",
            "http://10.0.0.1",
            "ftp://localhost",
            "localhost:80",
            "",
            "http://",
            "https://u:secret@models.example",
            "http://0.0.0.0",
        ] {
            let error = endpoint(&settings(bad, EmbedApi::OpenAi)).unwrap_err();
            assert!(matches!(error, EmbedError::Url { .. }), "{bad}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn the_path_is_added_where_it_is_missing() {
        let path = |url, api| endpoint(&settings(url, api)).unwrap().0.path().to_owned();
        assert_eq!(path("https://h", EmbedApi::OpenAi), "/v1/embeddings");
        assert_eq!(path("https://h/v1", EmbedApi::OpenAi), "/v1/embeddings");
        assert_eq!(path("https://h/v1/", EmbedApi::OpenAi), "/v1/embeddings");
        assert_eq!(path("https://h/v1/embeddings", EmbedApi::OpenAi), "/v1/embeddings");
        assert_eq!(path("https://h/openai/v1", EmbedApi::OpenAi), "/openai/v1/embeddings");
        assert_eq!(path("https://h", EmbedApi::Tei), "/embed");
        assert_eq!(path("https://h/x/", EmbedApi::Tei), "/x/embed");
        assert_eq!(path("http://localhost:11434", EmbedApi::Ollama), "/api/embed");
        assert_eq!(path("http://localhost:11434/api/embed", EmbedApi::Ollama), "/api/embed");
    }

    #[test]
    fn waits_grow_and_end() {
        assert_eq!([1, 2, 3].map(backoff), [500, 1_000, 2_000].map(Duration::from_millis));
        assert!(backoff(u32::MAX) <= Duration::from_secs(60));
    }

    #[test]
    fn a_key_is_not_shown() {
        let shown =
            format!("{:?}", RemoteSettings { key: Some("secret".to_owned()), ..settings("https://h", EmbedApi::Tei) });
        assert!(!shown.contains("secret"));
    }
}
