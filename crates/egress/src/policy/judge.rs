//! Is this connection, this request, this address allowed? Deny by default; the answer names the rule for the log.

use std::net::IpAddr;

use super::{Endpoint, Origin, Policy, Protocol, Refused};
use crate::host::Authority;
use crate::target::Target;

/// What becomes of a CONNECT.
#[derive(Debug)]
pub enum Connect<'p> {
    /// 403.
    Denied {
        /// For the log and the answer.
        reason: &'static str,
    },
    /// TLS passes through unseen.
    Tunnel(&'p Endpoint),
    /// TLS ends at the proxy and each request is judged.
    Inspect,
}

/// What becomes of a wish to open a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upgrade {
    /// There is no such wish.
    None,
    /// It is allowed: relay.
    Relay,
    /// The endpoint is `rest`: answer 426 instead of 403.
    Refuse426,
}

/// The judgement of one request.
#[derive(Debug)]
pub struct Verdict<'p> {
    /// Whether it goes on. With [`Upgrade::Refuse426`] it is false, and the answer is 426.
    pub allowed: bool,
    /// Why, in a few words.
    pub reason: &'static str,
    /// For the log: `profile openai: read-write`.
    pub rule: String,
    /// The endpoint that decided; there is one whenever it is allowed.
    pub endpoint: Option<&'p Endpoint>,
    /// It would have been denied, and goes on by `enforcement: audit`.
    pub audited: bool,
    /// What becomes of a WebSocket.
    pub upgrade: Upgrade,
}

impl Policy {
    /// Judges a CONNECT, before any name is looked up.
    pub fn connect(&self, to: &Authority) -> Connect<'_> {
        let mut covering = self.endpoints.iter().filter(|endpoint| endpoint.covers(to)).peekable();
        if covering.peek().is_none() {
            return Connect::Denied { reason: "no endpoint lists this host and port" };
        }
        if let Some(Err(refused)) = to.host.ip().map(|ip| self.admits_address(to, ip)) {
            return Connect::Denied { reason: refused.detail };
        }
        let mut tunnel = None;
        for endpoint in covering {
            match endpoint.protocol {
                Protocol::Tunnel => tunnel = tunnel.or(Some(endpoint)),
                Protocol::Rest | Protocol::WebSocket => return Connect::Inspect,
            }
        }
        tunnel.map_or(Connect::Inspect, Connect::Tunnel)
    }

    /// Judges a request inside TLS. CONNECT target, SNI and Host are `to`; `upgrade` asks for a WebSocket.
    pub fn request(&self, to: &Authority, method: &str, target: &Target, upgrade: bool) -> Verdict<'_> {
        let covering = self.endpoints.iter().filter(|e| e.protocol != Protocol::Tunnel && e.covers(to));
        judge(&covering.collect::<Vec<_>>(), method, target, upgrade)
    }

    /// Judges a request without TLS (absolute-form): the same rules, but only endpoints that are plain at this port.
    pub fn plain_request(&self, to: &Authority, method: &str, target: &Target, upgrade: bool) -> Verdict<'_> {
        let covering: Vec<&Endpoint> =
            self.endpoints.iter().filter(|e| e.protocol != Protocol::Tunnel && e.covers(to)).collect();
        // An endpoint that wants TLS here may have a deny rule: then nothing goes without TLS.
        if covering.is_empty() || !covering.iter().all(|e| e.is_plain_at(to.port)) {
            return Verdict::denied("no endpoint is for plain HTTP at this host and port", String::new(), None);
        }
        judge(&covering, method, target, upgrade)
    }

    /// Judges an address that `to` resolved to or is. The address that was judged is the one to dial.
    pub fn admits_address(&self, to: &Authority, ip: IpAddr) -> Result<(), Refused> {
        let mut why = "no endpoint lists this host and port";
        for endpoint in self.endpoints.iter().filter(|endpoint| endpoint.covers(to)) {
            match endpoint.admits(ip) {
                Ok(()) => return Ok(()),
                Err(detail) => why = detail,
            }
        }
        Err(Refused { code: "policy_denied", detail: why })
    }
}

impl<'p> Verdict<'p> {
    fn denied(reason: &'static str, rule: String, endpoint: Option<&'p Endpoint>) -> Self {
        Self { allowed: false, reason, rule, endpoint, audited: false, upgrade: Upgrade::None }
    }
}

fn judge<'p>(covering: &[&'p Endpoint], method: &str, target: &Target, upgrade: bool) -> Verdict<'p> {
    let judged: Vec<&'p Endpoint> = covering.iter().filter(|e| e.concerns(target)).copied().collect();
    if ["TRACE", "CONNECT"].iter().any(|never| method.eq_ignore_ascii_case(never)) {
        return Verdict::denied("TRACE and CONNECT are never allowed", String::new(), None);
    }
    let Some(first) = judged.first().copied() else {
        return Verdict::denied("no endpoint lists this host, port and path", String::new(), None);
    };
    // a server may take another case for the same path: deny rules are asked wherever their endpoint could be meant
    let mut denying = covering.iter().filter(|e| e.may_concern(target));
    let met = denying.find_map(|e| e.denies(method, target).map(|rule| (*e, rule)));
    let denied = match met {
        Some((endpoint, rule)) => {
            Verdict::denied("a deny rule", named(endpoint, &format!("deny {}", rule.shown)), Some(endpoint))
        }
        None => match allowing(&judged, method, target, upgrade) {
            Some((endpoint, rule)) => return allowed(endpoint, named(endpoint, rule), upgrade),
            None => Verdict::denied("no rule allows this method, path and query", named(first, "no rule"), Some(first)),
        },
    };
    let relay = upgrade && judged.iter().any(|e| e.protocol == Protocol::WebSocket);
    if upgrade && !relay {
        return refuse_upgrade(denied);
    }
    if judged.iter().copied().chain(met.map(|(endpoint, _)| endpoint)).all(|endpoint| endpoint.audit) {
        let upgrade = if relay { Upgrade::Relay } else { Upgrade::None };
        return Verdict { allowed: true, audited: true, upgrade, ..denied };
    }
    denied
}

/// The first endpoint that allows; for a WebSocket one of that protocol, if there is one.
fn allowing<'p>(
    judged: &[&'p Endpoint],
    method: &str,
    target: &Target,
    upgrade: bool,
) -> Option<(&'p Endpoint, &'p str)> {
    let find = |sockets: bool| {
        let wanted = judged.iter().filter(|e| !sockets || e.protocol == Protocol::WebSocket);
        wanted.filter_map(|e| e.allows(method, target).map(|rule| (*e, rule))).next()
    };
    upgrade.then(|| find(true)).flatten().or_else(|| find(false))
}

fn allowed(endpoint: &Endpoint, rule: String, upgrade: bool) -> Verdict<'_> {
    let verdict = Verdict {
        allowed: true,
        reason: "allowed",
        rule,
        endpoint: Some(endpoint),
        audited: false,
        upgrade: if upgrade { Upgrade::Relay } else { Upgrade::None },
    };
    if upgrade && endpoint.protocol != Protocol::WebSocket { refuse_upgrade(verdict) } else { verdict }
}

fn refuse_upgrade(verdict: Verdict<'_>) -> Verdict<'_> {
    Verdict { allowed: false, reason: "a WebSocket at a `rest` endpoint", upgrade: Upgrade::Refuse426, ..verdict }
}

fn named(endpoint: &Endpoint, rule: &str) -> String {
    match &endpoint.origin {
        Origin::Profile(id) => format!("profile {id}: {rule}"),
        Origin::Rule(name) => format!("policy {name}: {rule}"),
    }
}
