//! What went wrong between us and an endpoint, in words that say whose turn it is.

use std::io;

use rustls::{AlertDescription, CertificateError};

use crate::bind::{BindAddr, InvalidBind};
use crate::tls::TlsError;
use crate::wire::v1::ErrorAnswer;

/// Why there is no answer, or not the one that was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The endpoint's address can't be read.
    #[error(transparent)]
    Address {
        /// What is wrong with it.
        source: InvalidBind,
    },
    /// Our own TLS files can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Nobody answers there.
    #[error("no endpoint answers at {endpoint}: {source}; is `bastion serve` or `bastion up` running there?")]
    Unreachable {
        /// The address.
        endpoint: BindAddr,
        /// What the system said.
        source: io::Error,
    },
    /// It took too long.
    #[error("the endpoint at {endpoint} did not answer in time")]
    TimedOut {
        /// The address.
        endpoint: BindAddr,
    },
    /// The endpoint's certificate is not of our CA, or not good any more.
    #[error("the endpoint at {endpoint} is not to be trusted: {reason}")]
    Untrusted {
        /// The address.
        endpoint: BindAddr,
        /// What is wrong with its certificate.
        reason: CertificateError,
    },
    /// The endpoint is another host's.
    #[error("the endpoint at {endpoint} is not `{host}`: its certificate names another host")]
    WrongHost {
        /// The address.
        endpoint: BindAddr,
        /// Who was meant.
        host: String,
    },
    /// The endpoint does not accept our certificate.
    #[error(
        "the endpoint at {endpoint} does not accept our certificate ({alert:?}); is it of the same CA, within its dates, not revoked?"
    )]
    NotAccepted {
        /// The address.
        endpoint: BindAddr,
        /// The TLS alert it sent.
        alert: AlertDescription,
    },
    /// 403: there is no grant for this.
    #[error("{endpoint} refuses this ({code}): {detail}")]
    Forbidden {
        /// The address.
        endpoint: BindAddr,
        /// The endpoint's code.
        code: String,
        /// In its words.
        detail: String,
    },
    /// 404.
    #[error("{endpoint}: {detail} ({code})")]
    NotFound {
        /// The address.
        endpoint: BindAddr,
        /// The endpoint's code.
        code: String,
        /// In its words.
        detail: String,
    },
    /// 502: the embedding model behind the endpoint is gone.
    #[error("{endpoint}: {detail}; its owner has to start it again")]
    ModelUnreachable {
        /// The address.
        endpoint: BindAddr,
        /// In its words.
        detail: String,
    },
    /// 503: the manifest does not verify (`code` is the gate's) or the audit can't be written.
    #[error("{endpoint} serves nothing now ({code}): {detail}")]
    NotServing {
        /// The address.
        endpoint: BindAddr,
        /// The gate's code, `audit` or `busy`.
        code: String,
        /// In its words.
        detail: String,
    },
    /// Any other refusal: a malformed request (400), too many of them (429), a fault of the endpoint (500).
    #[error("{endpoint} answers {status} ({code}): {detail}")]
    Refused {
        /// The address.
        endpoint: BindAddr,
        /// The HTTP status.
        status: u16,
        /// The endpoint's code.
        code: String,
        /// In its words.
        detail: String,
    },
    /// What answers there is no endpoint of ours.
    #[error("what answers at {endpoint} is no Bastion endpoint: {source}")]
    Nonsense {
        /// The address.
        endpoint: BindAddr,
        /// What could not be read.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ClientError {
    /// An error that the endpoint answered with.
    pub(super) fn answered(endpoint: &BindAddr, status: u16, error: ErrorAnswer) -> Self {
        let endpoint = endpoint.clone();
        let ErrorAnswer { error: code, detail } = error;
        // the words are another host's: they reach a terminal without control characters
        let [code, detail] = [code, detail].map(|text| text.chars().filter(|c| !c.is_control()).take(300).collect());
        match status {
            403 => Self::Forbidden { endpoint, code, detail },
            404 => Self::NotFound { endpoint, code, detail },
            502 => Self::ModelUnreachable { endpoint, detail },
            503 => Self::NotServing { endpoint, code, detail },
            _ => Self::Refused { endpoint, status, code, detail },
        }
    }

    /// An error of the connection; TLS hides its own inside.
    pub(super) fn failed(endpoint: &BindAddr, host: &str, error: io::Error) -> Self {
        let endpoint = endpoint.clone();
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidCertificate(CertificateError::NotValidForName)) => {
                return Self::WrongHost { endpoint, host: host.to_owned() };
            }
            Some(rustls::Error::InvalidCertificate(reason)) => {
                return Self::Untrusted { endpoint, reason: reason.clone() };
            }
            Some(rustls::Error::AlertReceived(alert)) => return Self::NotAccepted { endpoint, alert: *alert },
            Some(_) => return Self::Nonsense { endpoint, source: error.into() },
            None => {}
        }
        match error.kind() {
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::TimedOut { endpoint },
            io::ErrorKind::InvalidData => Self::Nonsense { endpoint, source: error.into() },
            _ => Self::Unreachable { endpoint, source: error },
        }
    }
}
