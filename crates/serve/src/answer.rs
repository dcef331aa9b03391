//! From what went wrong to status, code and words. The one place where an error becomes visible to a peer, and it
//! says no more than the peer may know: not whether an id exists, not why the owner's manifest fails.

use serde::Serialize;

use crate::http::{BodyError, Violation};
use crate::wire::v1::ErrorAnswer;
use bastion_trust::RefusalCode;

/// Why a request is not answered with what it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// The bytes are no request.
    Malformed(Violation),
    /// The body is not what the operation takes. The words name the field, never a value of ours.
    BadRequest(&'static str),
    /// The certificate was good at the handshake and is not any more.
    Certificate(RefusalCode),
    /// This peer may not do this.
    Forbidden,
    /// There is no such route.
    NoRoute,
    /// There is no such document for this peer, whether or not there is one at all.
    NoDocument,
    /// No sweep has written a catalog yet.
    NoCatalog,
    /// The route has this method only.
    Method(&'static str),
    BodyTooLarge,
    MediaType,
    TooManyRequests,
    /// The endpoint's own fault; its owner was told.
    Internal,
    /// The embedding model can't be reached or answers nonsense.
    Model,
    /// The manifest is refused.
    Policy(RefusalCode),
    /// The audit can't be written.
    Audit,
    /// Too many are served at once.
    Busy,
}

impl Denial {
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::Malformed(_) | Self::BadRequest(_) => 400,
            Self::Certificate(_) | Self::Forbidden => 403,
            Self::NoRoute | Self::NoDocument | Self::NoCatalog => 404,
            Self::Method(_) => 405,
            Self::BodyTooLarge => 413,
            Self::MediaType => 415,
            Self::TooManyRequests => 429,
            Self::Internal => 500,
            Self::Model => 502,
            Self::Policy(_) | Self::Audit | Self::Busy => 503,
        }
    }

    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed_request",
            Self::BadRequest(_) => "bad_request",
            Self::Certificate(_) => "certificate",
            Self::Forbidden => "forbidden",
            Self::NoRoute => "no_route",
            Self::NoDocument => "not_found",
            Self::NoCatalog => "no_catalog",
            Self::Method(_) => "method_not_allowed",
            Self::BodyTooLarge => "too_large",
            Self::MediaType => "unsupported_media_type",
            Self::TooManyRequests => "too_many_requests",
            Self::Internal => "internal",
            Self::Model => "model_unreachable",
            Self::Policy(code) => code.as_str(),
            Self::Audit => "audit",
            Self::Busy => "busy",
        }
    }

    fn detail(self) -> String {
        match self {
            Self::Malformed(violation) => violation.to_string(),
            Self::BadRequest(what) => what.to_owned(),
            Self::Certificate(code) => format!("this certificate is not accepted any more ({code})"),
            Self::Forbidden => "this certificate may not do that here".to_owned(),
            Self::NoRoute => "there is no such route".to_owned(),
            Self::NoDocument => "there is no such document".to_owned(),
            Self::NoCatalog => "no sweep has written a catalog yet".to_owned(),
            Self::Method(method) => format!("this route takes {method}"),
            Self::BodyTooLarge => BodyError::TooLarge.to_string(),
            Self::MediaType => "the body must be application/json, not compressed".to_owned(),
            Self::TooManyRequests => "more than 50 requests a second; wait a second".to_owned(),
            Self::Internal => "the endpoint could not read its store; its owner sees why".to_owned(),
            Self::Model => "the embedding model can't be reached".to_owned(),
            Self::Policy(_) => "the manifest does not verify; `bastion verify` tells its owner why".to_owned(),
            Self::Audit => "the audit can't be written; its owner sees why".to_owned(),
            Self::Busy => "too much is asked at once; try again".to_owned(),
        }
    }
}

impl From<BodyError> for Denial {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge => Self::BodyTooLarge,
            BodyError::Malformed(violation) => Self::Malformed(violation),
        }
    }
}

/// A status and a body of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// The method of a 405.
    allow: Option<&'static str>,
}

impl Answer {
    /// 200 with `value` as its body.
    pub(crate) fn ok(value: &impl Serialize) -> Result<Self, Denial> {
        let body = serde_json::to_vec(value).map_err(|_| Denial::Internal)?;
        Ok(Self { status: 200, body, allow: None })
    }

    /// The whole message, ready to be sent. `date` as HTTP writes it; empty where the time is not known.
    pub(crate) fn message(&self, date: &str, keep_alive: bool) -> Vec<u8> {
        use std::io::Write as _;
        let mut message = Vec::with_capacity(self.body.len() + 256);
        // writing to a Vec can't fail
        let _ = write!(
            message,
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n",
            self.status,
            reason(self.status),
            self.body.len()
        );
        if !date.is_empty() {
            let _ = write!(message, "date: {date}\r\n");
        }
        if let Some(allow) = self.allow {
            let _ = write!(message, "allow: {allow}\r\n");
        }
        if matches!(self.status, 429 | 503) {
            message.extend_from_slice(b"retry-after: 1\r\n");
        }
        message.extend_from_slice(if keep_alive {
            b"connection: keep-alive\r\n\r\n"
        } else {
            b"connection: close\r\n\r\n"
        });
        message.extend_from_slice(&self.body);
        message
    }
}

impl From<Denial> for Answer {
    fn from(denial: Denial) -> Self {
        let error = ErrorAnswer { error: denial.code().to_owned(), detail: denial.detail() };
        let allow = if let Denial::Method(method) = denial { Some(method) } else { None };
        Self { status: denial.status(), body: serde_json::to_vec(&error).unwrap_or_default(), allow }
    }
}

/// The reason phrase (RFC 9110 §15); nothing reads it but people.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Internal Server Error",
    }
}
