//! What the proxy itself says to the sandbox: a status, a code, a sentence; nothing of the world's side or of ours.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{Either, Full};
use serde::Serialize;

use super::body::{Answer, Counted};
use crate::credential::Refused;

/// Everything that is answered: one of ours, or the world's.
pub(crate) type Body = Either<Full<Bytes>, Counted<Answer>>;

/// Why a request does not go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) detail: &'static str,
}

#[derive(Serialize)]
struct Message {
    error: &'static str,
    detail: &'static str,
}

impl Denial {
    pub(crate) const LOG: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "log_unavailable",
        "the egress log can't be written, so nothing goes out",
    );
    pub(crate) const UNREACHABLE: Self =
        Self::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", "the host could not be reached");
    pub(crate) const UPSTREAM_TLS: Self =
        Self::new(StatusCode::BAD_GATEWAY, "upstream_tls", "the host's certificate could not be verified");
    pub(crate) const UPSTREAM_ANSWER: Self =
        Self::new(StatusCode::BAD_GATEWAY, "upstream_answer", "the host gave no proper answer");
    pub(crate) const UPSTREAM_STALLED: Self =
        Self::new(StatusCode::GATEWAY_TIMEOUT, "upstream_stalled", "the host did not answer in time");

    pub(crate) const fn with_code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    pub(crate) const fn new(status: StatusCode, code: &'static str, detail: &'static str) -> Self {
        Self { status, code, detail }
    }

    /// 400.
    pub(crate) const fn malformed(code: &'static str, detail: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// 403 with the policy's own code.
    pub(crate) const fn policy(detail: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "policy_denied", detail)
    }

    fn message(self) -> Vec<u8> {
        serde_json::to_vec(&Message { error: self.code, detail: self.detail }).unwrap_or_default()
    }

    pub(crate) fn response(self) -> Response<Body> {
        let mut response = Response::new(Either::Left(Full::from(self.message())));
        *response.status_mut() = self.status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status == StatusCode::UPGRADE_REQUIRED {
            response.headers_mut().insert(header::UPGRADE, HeaderValue::from_static("HTTP/1.1"));
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        }
        response
    }

    /// The whole answer as bytes, after which the connection is closed.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let message = self.message();
        let mut bytes = format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.status,
            message.len()
        )
        .into_bytes();
        bytes.extend(message);
        bytes
    }
}

impl From<Refused> for Denial {
    fn from(refused: Refused) -> Self {
        Self::new(StatusCode::FORBIDDEN, refused.code, refused.detail)
    }
}
