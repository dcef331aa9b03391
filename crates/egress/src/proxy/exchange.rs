//! One request: judged, given its secret, sent on; its answer streamed back.
//!
//! In this order, and nothing leaves before the line that says so stands in the log: one host (CONNECT = SNI =
//! Host), a canonical target, the policy, what is for this hop stripped, the placeholder swapped, the log, the wire.

use std::sync::Arc;

use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;

use super::Shared;
use super::activity::Activity;
use super::answer::{Body, Denial};
use super::body::{Answer, Counted, Way};
use super::headers;
use super::relay::{self, Patience};
use super::upstream::Lease;
use crate::host::Authority;
use crate::log::{Decision, Entry, Line};
use crate::policy::Upgrade;
use crate::target::Target;

/// What the requests of one connection have in common.
pub(crate) struct Front {
    pub(crate) shared: Arc<Shared>,
    /// The target of the CONNECT; none for plain HTTP.
    pub(crate) to: Option<Authority>,
    pub(crate) activity: Activity,
    /// Held for as long as anything of the connection lasts.
    pub(crate) seat: Arc<OwnedSemaphorePermit>,
}

/// A request that may go out.
struct Cleared {
    to: Authority,
    request: Request<Counted<Incoming>>,
    entry: Arc<Entry>,
    websocket: bool,
    /// There is a secret in it.
    secret: bool,
}

impl Front {
    /// The answer to one request. It never fails: a connection is ended by hyper where a body breaks off.
    pub(crate) async fn answer(
        &self,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, std::convert::Infallible> {
        let client = hyper::upgrade::on(&mut request);
        let cleared = match self.clear(request) {
            Ok(cleared) => cleared,
            Err(denial) => return Ok(denial.response()),
        };
        let entry = Arc::clone(&cleared.entry);
        let answered = tokio::select! {
            answered = self.send(cleared, client) => answered,
            () = self.activity.ceased(self.shared.limits.idle) => Err(Denial::UPSTREAM_STALLED),
        };
        Ok(answered.unwrap_or_else(|denial| {
            entry.answered(denial.status.as_u16());
            entry.failed(denial.code);
            denial.response()
        }))
    }

    /// Everything that comes before the wire.
    fn clear(&self, request: Request<Incoming>) -> Result<Cleared, Denial> {
        let (mut parts, body) = request.into_parts();
        let raw_path = parts.uri.path().to_owned();
        let method = parts.method.clone();
        let refuse = |to: Option<&Authority>, rule: Option<&str>, denial: Denial| {
            let line = Line {
                host: to.map(|to| to.host.as_str()),
                port: to.map(|to| to.port),
                method: Some(method.as_str()),
                path: Some(&raw_path),
                decision: Decision::Deny,
                rule,
                reason: denial.code,
            };
            let written = self.shared.log.refused(line, denial.status.as_u16());
            if written.is_ok() { denial } else { Denial::LOG }
        };

        let to = self.addressee(&parts).map_err(|denial| refuse(self.to.as_ref(), None, denial))?;
        let mut target = target(&parts.uri).map_err(|denial| refuse(Some(&to), None, denial))?;
        if headers::overrides_method(&parts.headers) {
            let denial = Denial::policy("a field would make it another request than the one that is judged");
            return Err(refuse(Some(&to), None, denial));
        }
        let websocket = headers::asks_for_websocket(&parts.headers);
        let verdict = if self.to.is_some() {
            self.shared.policy.request(&to, method.as_str(), &target, websocket)
        } else {
            self.shared.policy.plain_request(&to, method.as_str(), &target, websocket)
        };
        if matches!(verdict.upgrade, Upgrade::Refuse426) {
            let denial = Denial::new(StatusCode::UPGRADE_REQUIRED, "websocket_not_allowed", verdict.reason);
            return Err(refuse(Some(&to), Some(&verdict.rule), denial));
        }
        let Some(endpoint) = verdict.endpoint.filter(|_| verdict.allowed) else {
            return Err(refuse(Some(&to), Some(&verdict.rule), Denial::policy(verdict.reason)));
        };
        let upgraded = matches!(verdict.upgrade, Upgrade::Relay);
        headers::strip(&mut parts.headers);
        let before = parts.headers.clone();
        let wire_before = target.wire().to_owned();
        self.shared
            .vault
            .swap(&self.shared.policy, endpoint, &to, &mut target, &mut parts.headers)
            .map_err(|refused| refuse(Some(&to), Some(&verdict.rule), refused.into()))?;
        let secret = before != parts.headers || wire_before != target.wire();

        let line = Line {
            host: Some(to.host.as_str()),
            port: Some(to.port),
            method: Some(method.as_str()),
            path: Some(target.path()),
            decision: if verdict.audited { Decision::Audit } else { Decision::Allow },
            rule: Some(&verdict.rule),
            reason: verdict.reason,
        };
        address(&mut parts, &to, &target, upgraded, self.to.is_some())
            .map_err(|denial| refuse(Some(&to), Some(&verdict.rule), denial))?;
        let entry = self.shared.log.begin(line).map_err(|_| Denial::LOG)?;
        let request = Request::from_parts(parts, Counted::new(body, Way::Up, Arc::clone(&entry)));
        Ok(Cleared { to, request, entry, websocket: upgraded, secret })
    }

    /// Whom the request is for: one host, however often it is named.
    fn addressee(&self, parts: &Parts) -> Result<Authority, Denial> {
        const HOST: Denial = Denial::malformed("bad_host", "there must be exactly one Host, and it must be a host");
        if matches!(parts.method, Method::CONNECT | Method::TRACE) {
            return Err(Denial::policy("this method is never allowed"));
        }
        let mut named = parts.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else { return Err(HOST) };
        let host = host.to_str().map_err(|_| HOST)?;
        let (to, default_port) = match &self.to {
            Some(to) if parts.uri.scheme().is_none() && parts.uri.authority().is_none() => (to.clone(), 443),
            Some(_) => return Err(Denial::malformed("bad_target", "in a tunnel the target must be a path")),
            None => {
                let authority = parts.uri.authority().filter(|_| parts.uri.scheme() == Some(&uri::Scheme::HTTP));
                let authority = authority.ok_or(Denial::malformed(
                    "not_for_a_proxy",
                    "only CONNECT, first, and requests to http:// in absolute-form",
                ))?;
                (Authority::header(authority.as_str(), 80).map_err(|_| HOST)?, 80)
            }
        };
        if Authority::header(host, default_port).map_err(|_| HOST)? != to {
            return Err(Denial::policy("Host names another host than the connection").with_code("host_mismatch"));
        }
        Ok(to)
    }

    async fn send(&self, cleared: Cleared, client: hyper::upgrade::OnUpgrade) -> Result<Response<Body>, Denial> {
        let Cleared { to, mut request, entry, websocket, secret } = cleared;
        let tls = self.to.is_some();
        let admits = |ip| self.shared.policy.admits_address(&to, ip);
        let mut fresh = false;
        let (mut response, lease) = loop {
            let mut lease = self.shared.upstream.lease(&to, tls, fresh, &admits).await?;
            if secret && !tls && !lease.loopback {
                return Err(Denial::policy("a credential never goes out over plain HTTP")
                    .with_code("credential_over_plain_http"));
            }
            match lease.sender.try_send_request(request).await {
                Ok(response) => break (response, lease),
                Err(mut error) => match error.take_message() {
                    // it closed while it was kept; nothing of the request was sent
                    Some(unsent) if lease.reused => {
                        request = unsent;
                        fresh = true;
                    }
                    _ => return Err(upstream_fault(error.error())),
                },
            }
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if !websocket || !headers::asks_for_websocket(response.headers()) {
                return Err(Denial::UPSTREAM_ANSWER);
            }
            return Ok(self.switch(response, client, entry, lease));
        }
        entry.answered(response.status().as_u16());
        headers::strip(response.headers_mut());
        Ok(response.map(|incoming| Either::Right(Counted::new(Answer::new(incoming, lease), Way::Down, entry))))
    }

    /// The WebSocket is agreed on: its bytes are relayed, and not looked at.
    fn switch(
        &self,
        mut response: Response<Incoming>,
        client: hyper::upgrade::OnUpgrade,
        entry: Arc<Entry>,
        lease: Lease,
    ) -> Response<Body> {
        entry.answered(101);
        let upstream = hyper::upgrade::on(&mut response);
        let (seat, stopped) = (Arc::clone(&self.seat), self.shared.stopped.clone());
        let patience = Patience::of(&self.shared.limits);
        let total = self.shared.limits.total;
        tokio::spawn(async move {
            let relaying = async {
                match tokio::try_join!(client, upstream) {
                    Ok((near, far)) => relay::streams(TokioIo::new(near), TokioIo::new(far), patience, &entry).await,
                    Err(_) => entry.failed("cut_off"),
                }
            };
            tokio::select! {
                _ = tokio::time::timeout(total, relaying) => {}
                () = super::stop_of(stopped) => {}
            }
            drop((seat, lease));
        });
        headers::strip(response.headers_mut());
        headers::ask_for_websocket(response.headers_mut());
        response.map(|_| Either::Left(http_body_util::Full::default()))
    }
}

fn upstream_fault(error: &hyper::Error) -> Denial {
    if error.is_parse() {
        Denial::UPSTREAM_ANSWER
    } else {
        Denial::new(StatusCode::BAD_GATEWAY, "upstream_cut_off", "the host closed the connection")
    }
}

fn target(uri: &Uri) -> Result<Target, Denial> {
    let text = uri.path_and_query().map_or("/", uri::PathAndQuery::as_str);
    Target::parse(text).map_err(|_| Denial::malformed("bad_target", "the target has no single meaning"))
}

/// Makes the head that goes out: the target that was judged, the host that was judged.
fn address(parts: &mut Parts, to: &Authority, target: &Target, websocket: bool, tls: bool) -> Result<(), Denial> {
    const FAULT: Denial = Denial::malformed("bad_target", "the target can't be sent on");
    parts.uri = target.wire().parse().map_err(|_| FAULT)?;
    let default_port = if tls { 443 } else { 80 };
    let name = match to.host.ip() {
        Some(std::net::IpAddr::V6(ip)) => format!("[{ip}]"),
        _ => to.host.as_str().to_owned(),
    };
    let host = if to.port == default_port { name } else { format!("{name}:{}", to.port) };
    parts.headers.insert(header::HOST, HeaderValue::try_from(host).map_err(|_| FAULT)?);
    parts.version = http::Version::HTTP_11;
    if websocket {
        headers::ask_for_websocket(&mut parts.headers);
    }
    Ok(())
}
