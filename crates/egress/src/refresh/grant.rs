//! One request for a new token, and its answer. It goes out as a line in the log, like everything else.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, Uri, header, uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::credential::Refreshable;
use crate::host::Authority;
use crate::log::{Decision, Line};
use crate::proxy::Shared;

pub(super) const REFRESH_TOKEN: &str = "refresh_token";
/// What goes into the form where there is such a material, besides the refresh token.
const OPTIONAL: [&str; 3] = ["client_id", "client_secret", "scope"];
/// From the first byte to the last.
const LIMIT: Duration = Duration::from_secs(30);
const MOST_BYTES: usize = 64 << 10;

/// What the token endpoint gave.
pub(super) struct Granted {
    pub(super) access_token: Zeroizing<String>,
    /// In place of the one that was used.
    pub(super) refresh_token: Option<Zeroizing<String>>,
    /// Seconds.
    pub(super) expires_in: Option<u64>,
}

/// There is no new token; the old ones stay. The code stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotGranted(&'static str);

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    refresh_token: Option<String>,
    expires_in: Option<Seconds>,
}

/// A number, or one in quotes, as some send it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seconds {
    Whole(u64),
    Broken(f64),
    Quoted(String),
}

/// Asks for a new token.
pub(super) async fn ask(shared: &Shared, credential: &Refreshable) -> Result<Granted, NotGranted> {
    let url: Uri = credential.shape.token_url.parse().map_err(|_| NotGranted("refresh_url"))?;
    let tls = url.scheme() != Some(&uri::Scheme::HTTP);
    let authority = url.authority().ok_or(NotGranted("refresh_url"))?;
    let to =
        Authority::header(authority.as_str(), if tls { 443 } else { 80 }).map_err(|_| NotGranted("refresh_url"))?;
    let rule = format!("refresh of {}", credential.env);
    let line = Line {
        host: Some(to.host.as_str()),
        port: Some(to.port),
        method: Some("POST"),
        path: Some(url.path()),
        decision: Decision::Allow,
        rule: Some(&rule),
        reason: "refresh",
    };
    let entry = shared.log.begin(line).map_err(|_| NotGranted("log_unavailable"))?;
    let asked = timeout(LIMIT, exchange(shared, &to, tls, &url, credential)).await;
    let granted = match asked.unwrap_or(Err(NotGranted("refresh_timeout"))) {
        Ok((status, body)) => {
            entry.answered(status.as_u16());
            read(status, &body)
        }
        Err(why) => Err(why),
    };
    if let Err(NotGranted(code)) = granted {
        entry.failed(code);
    }
    granted
}

async fn exchange(
    shared: &Shared,
    to: &Authority,
    tls: bool,
    url: &Uri,
    credential: &Refreshable,
) -> Result<(StatusCode, Bytes), NotGranted> {
    const UNREACHABLE: NotGranted = NotGranted("refresh_unreachable");
    // where tokens come from is the host's business, not the sandbox's
    let (tcp, loopback) = shared.upstream.dial(to, &|_| Ok(())).await.map_err(|_| UNREACHABLE)?;
    if tls {
        let stream = shared.upstream.secure(to, tcp).await.map_err(|_| NotGranted("refresh_tls"))?;
        post(stream, url, form(credential)).await
    } else if loopback {
        post(tcp, url, form(credential)).await
    } else {
        Err(NotGranted("refresh_url"))
    }
}

async fn post<S>(stream: S, url: &Uri, form: Zeroizing<String>) -> Result<(StatusCode, Bytes), NotGranted>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    const CUT_OFF: NotGranted = NotGranted("refresh_cut_off");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| CUT_OFF)?;
    let asking = async {
        let target = url.path_and_query().map_or("/", uri::PathAndQuery::as_str);
        let request = Request::post(target)
            .header(header::HOST, url.authority().map_or("", uri::Authority::as_str))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header(header::ACCEPT, "application/json")
            .body(Full::new(Bytes::copy_from_slice(form.as_bytes())))
            .map_err(|_| NotGranted("refresh_url"))?;
        let response = sender.send_request(request).await.map_err(|_| CUT_OFF)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MOST_BYTES).collect().await;
        Ok((status, body.map_err(|_| NotGranted("refresh_answer"))?.to_bytes()))
    };
    tokio::pin!(asking);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        answered = &mut asking => answered,
        // the connection may end right after the answer that it brought
        _ = &mut connection => asking.await,
    }
}

fn form(credential: &Refreshable) -> Zeroizing<String> {
    let mut form = Zeroizing::new("grant_type=refresh_token".to_owned());
    for name in [REFRESH_TOKEN].iter().chain(&OPTIONAL) {
        if let Some((_, value)) = credential.materials.iter().find(|(own, _)| own == name) {
            form.push('&');
            form.push_str(name);
            form.push('=');
            encode(value, &mut form);
        }
    }
    form
}

fn encode(text: &str, to: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            to.push(char::from(byte));
        } else {
            to.push('%');
            to.push(char::from(DIGITS[usize::from(byte >> 4)]));
            to.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

fn read(status: StatusCode, body: &[u8]) -> Result<Granted, NotGranted> {
    if status != StatusCode::OK {
        return Err(NotGranted(if status.is_client_error() { "refresh_refused" } else { "refresh_answer" }));
    }
    let answer: Answer = serde_json::from_slice(body).map_err(|_| NotGranted("refresh_answer"))?;
    let access_token = Zeroizing::new(answer.access_token);
    if access_token.is_empty() {
        return Err(NotGranted("refresh_answer"));
    }
    let expires_in = answer.expires_in.and_then(|seconds| match seconds {
        Seconds::Whole(seconds) => Some(seconds),
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates here")]
        Seconds::Broken(seconds) => Some(seconds as u64),
        Seconds::Quoted(text) => text.trim().parse().ok(),
    });
    let refresh_token = answer.refresh_token.filter(|token| !token.is_empty()).map(Zeroizing::new);
    Ok(Granted { access_token, refresh_token, expires_in })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(status: u16, body: &str) -> &'static str {
        read(StatusCode::from_u16(status).unwrap(), body.as_bytes()).err().unwrap().0
    }

    #[test]
    fn only_an_answer_with_a_token_is_one() {
        let granted = read(StatusCode::OK, br#"{"access_token":"a","expires_in":"60","refresh_token":"","x":1}"#);
        let granted = granted.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((granted.access_token.as_str(), granted.expires_in), ("a", Some(60)));
        assert!(granted.refresh_token.is_none());
        assert_eq!(code(200, "{}"), "refresh_answer");
        assert_eq!(code(200, r#"{"access_token":""}"#), "refresh_answer");
        assert_eq!(code(200, "<html>"), "refresh_answer");
        assert_eq!(code(302, r#"{"access_token":"a"}"#), "refresh_answer");
        assert_eq!(code(400, r#"{"error":"invalid_grant"}"#), "refresh_refused");
        assert_eq!(code(500, r#"{"access_token":"a"}"#), "refresh_answer");
    }

    #[test]
    fn a_form_has_no_second_reading() {
        let mut form = String::new();
        encode("a b&c=d+e/%\u{e4}~", &mut form);
        assert_eq!(form, "a%20b%26c%3Dd%2Be%2F%25%C3%A4~");
    }
}
