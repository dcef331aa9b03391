//! Asking an endpoint: blocking, typed, with a limit on every wait.
//!
//! It speaks only to an endpoint whose certificate chains to our roots and names the owner's host that is meant; at
//! which address that was reached proves nothing. The connection is kept and used again.

mod connection;
mod error;

pub use error::ClientError;

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bastion_trust::Gate;
use rustls::ClientConfig;
use rustls::client::Resumption;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bind::BindAddr;
use crate::http::encode;
use crate::tls::{EndpointVerifier, TlsError, TlsFiles, provider};
use crate::wire::v1::{
    self, CatalogAnswer, ErrorAnswer, HealthAnswer, ReadRangeAnswer, ReadRangeRequest, SearchAnswer, SearchRequest,
    StatusAnswer,
};
use connection::{Failure, Wire};

/// How long one answer may take, from the request on. A search may wait for an embedding model.
const ANSWER: Duration = Duration::from_secs(60);

/// A client of one endpoint.
pub struct Client {
    endpoint: BindAddr,
    owner_host: String,
    tls: Arc<ClientConfig>,
    wire: Mutex<Option<Wire>>,
}

impl Client {
    /// A client of the endpoint at `endpoint` (`host:port` or `[v6]:port`), which must be `owner_host`'s. `gate` judges
    /// its certificate. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ClientError::Address`], [`ClientError::Tls`].
    pub fn new(endpoint: &str, files: &TlsFiles, gate: Arc<Gate>, owner_host: &str) -> Result<Self, ClientError> {
        let endpoint = endpoint.parse().map_err(|source| ClientError::Address { source })?;
        let pair = |source| TlsError::Pair { cert: files.cert.clone(), key: files.key.clone(), source };
        let provider = provider();
        let verifier = EndpointVerifier::new(gate, Arc::clone(&provider), owner_host);
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(pair)?
            .dangerous() // the name of a method: the verifier in its place checks more, not less
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_client_auth_cert(files.chain()?, files.private_key()?)
            .map_err(pair)?;
        tls.resumption = Resumption::disabled();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { endpoint, owner_host: owner_host.to_owned(), tls: Arc::new(tls), wire: Mutex::new(None) })
    }

    /// The windows that fit `query` best; `k` of them, or as many as the endpoint thinks fit.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::ModelUnreachable`] where the endpoint's embedding model is.
    pub fn search(&self, query: &str, k: Option<u32>) -> Result<SearchAnswer, ClientError> {
        self.post(v1::SEARCH, &SearchRequest { query: query.to_owned(), k: k.map(Into::into) })
    }

    /// Sanitized text of a document, from character `start` up to `end`; at most 65,536 characters.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::NotFound`] for an id that this peer is shown nothing of.
    pub fn read_range(&self, doc: &str, start: u64, end: u64) -> Result<ReadRangeAnswer, ClientError> {
        self.post(v1::READ_RANGE, &ReadRangeRequest { doc: doc.to_owned(), start, end })
    }

    /// A page of file cards.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::NotFound`] before the first sweep.
    pub fn cards(&self, prefix: &str, offset: u64, limit: Option<u64>) -> Result<CatalogAnswer<Value>, ClientError> {
        self.get(&page(v1::CATALOG, prefix, offset, limit))
    }

    /// A page of folder cards.
    ///
    /// # Errors
    /// As [`Client::cards`].
    pub fn dirs(&self, prefix: &str, offset: u64, limit: Option<u64>) -> Result<CatalogAnswer<Value>, ClientError> {
        self.get(&page(v1::CATALOG_DIRS, prefix, offset, limit))
    }

    /// The state of the last sweep; null before the first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn status(&self) -> Result<StatusAnswer<Value>, ClientError> {
        self.get(v1::STATUS)
    }

    /// Whether the endpoint serves.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn health(&self) -> Result<HealthAnswer, ClientError> {
        self.get(v1::HEALTH)
    }

    fn get<T: DeserializeOwned>(&self, target: &str) -> Result<T, ClientError> {
        self.ask("GET", target, &[])
    }

    fn post<T: DeserializeOwned>(&self, target: &str, body: &impl Serialize) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).map_err(|source| self.nonsense_json(source))?;
        self.ask("POST", target, &body)
    }

    fn ask<T: DeserializeOwned>(&self, method: &str, target: &str, body: &[u8]) -> Result<T, ClientError> {
        let mut message = format!("{method} {target} HTTP/1.1\r\nhost: {}\r\n", self.owner_host).into_bytes();
        if method == "POST" {
            let fields = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
            message.extend_from_slice(fields.as_bytes());
        }
        message.extend_from_slice(b"\r\n");
        message.extend_from_slice(body);

        let (status, body) = self.exchange(&message)?;
        if status == 200 {
            return serde_json::from_slice(&body).map_err(|source| self.nonsense_json(source));
        }
        let error: ErrorAnswer = serde_json::from_slice(&body).map_err(|source| self.nonsense_json(source))?;
        Err(ClientError::answered(&self.endpoint, status, error))
    }

    /// Sends a request and reads its answer. All requests only read, so one whose kept connection turns out to be
    /// closed is sent once more on a new one.
    fn exchange(&self, message: &[u8]) -> Result<(u16, Vec<u8>), ClientError> {
        let mut kept = self.wire.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut wire) = kept.take() {
            match wire.exchange(message, ANSWER) {
                Ok(answer) => return Ok(keep(&mut kept, wire, answer)),
                Err(Failure::Stale) => {}
                Err(Failure::Io(error)) => return Err(self.failed(error)),
            }
        }
        let mut wire =
            Wire::connect(&self.endpoint, &self.owner_host, &self.tls).map_err(|error| self.failed(error))?;
        match wire.exchange(message, ANSWER) {
            Ok(answer) => Ok(keep(&mut kept, wire, answer)),
            Err(Failure::Stale) => Err(self.failed(io::ErrorKind::UnexpectedEof.into())),
            Err(Failure::Io(error)) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> ClientError {
        ClientError::failed(&self.endpoint, &self.owner_host, error)
    }

    fn nonsense_json(&self, source: serde_json::Error) -> ClientError {
        ClientError::Nonsense { endpoint: self.endpoint.clone(), source: source.into() }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .field("owner_host", &self.owner_host)
            .finish_non_exhaustive()
    }
}

fn keep(kept: &mut Option<Wire>, wire: Wire, answer: connection::Reply) -> (u16, Vec<u8>) {
    if answer.keep_alive {
        *kept = Some(wire);
    }
    (answer.status, answer.body)
}

fn page(route: &str, prefix: &str, offset: u64, limit: Option<u64>) -> String {
    let limit = limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
    format!("{route}?prefix={}&offset={offset}{limit}", encode(prefix))
}
