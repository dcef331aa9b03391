//! One endpoint of a policy: which host, port and path it is about, and what it lets through.

use std::net::IpAddr;

use crate::address::{Cidr, Special, special};
use crate::glob::Glob;
use crate::host::{Authority, Host};
use crate::target::Target;

/// Where an endpoint was written. Credentials of a profile go to endpoints of that profile only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An attached profile's id.
    Profile(String),
    /// A rule of the policy file.
    Rule(String),
}

/// How far the proxy looks into a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Not at all: a tunnel of TLS.
    Tunnel,
    /// Each request is judged; a WebSocket is not opened.
    Rest,
    /// Each request is judged; a WebSocket is relayed, its messages unseen.
    WebSocket,
}

/// An endpoint.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where it was written.
    pub origin: Origin,
    /// How far the proxy looks in.
    pub protocol: Protocol,
    /// Its host and ports as they were written, for messages.
    pub shown: String,
    pub(super) host: Pattern,
    pub(super) ports: Vec<u16>,
    pub(super) path: Option<Glob>,
    pub(super) skip_tls: bool,
    pub(super) audit: bool,
    pub(super) allow: Allow,
    pub(super) deny: Vec<Rule>,
    pub(super) allowed_ips: Vec<Cidr>,
}

/// A host, or one label more than a name.
#[derive(Debug, Clone)]
pub(super) enum Pattern {
    Exact(Host),
    /// What follows the `*`, with its dot.
    Below(String),
}

/// What an endpoint lets through.
#[derive(Debug, Clone)]
pub(super) enum Allow {
    Access { name: &'static str, methods: &'static [&'static str] },
    Full,
    Rules(Vec<Rule>),
}

/// Method, path and query of an allow or deny rule.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub method: Option<String>, // None: any
    pub path: Option<Glob>,
    pub query: Vec<(String, Vec<Glob>)>,
    /// `GET /user`
    pub shown: String,
}

impl Pattern {
    fn matches(&self, host: &Host) -> bool {
        match self {
            Self::Exact(own) => own == host,
            Self::Below(rest) => {
                let label = host.as_str().strip_suffix(rest.as_str());
                host.ip().is_none() && label.is_some_and(|label| !label.is_empty() && !label.contains('.'))
            }
        }
    }
}

impl Endpoint {
    /// The profile that it is of.
    pub fn profile(&self) -> Option<&str> {
        match &self.origin {
            Origin::Profile(id) => Some(id),
            Origin::Rule(_) => None,
        }
    }

    /// Whether it is about this host and port.
    pub fn covers(&self, to: &Authority) -> bool {
        self.ports.contains(&to.port) && self.host.matches(&to.host)
    }

    /// Whether requests without TLS may go to it.
    pub(super) fn is_plain(&self) -> bool {
        self.protocol != Protocol::Tunnel && (self.skip_tls || self.ports.contains(&80))
    }

    pub(super) fn is_plain_at(&self, port: u16) -> bool {
        self.protocol != Protocol::Tunnel && (self.skip_tls || port == 80)
    }

    /// Whether it lists this machine itself: `localhost` or a loopback address.
    pub fn is_loopback(&self) -> bool {
        match &self.host {
            Pattern::Exact(host) => host.as_str() == "localhost" || host.ip().is_some_and(|ip| ip.is_loopback()),
            Pattern::Below(_) => false,
        }
    }

    /// Whether it is about this path.
    pub(crate) fn concerns(&self, target: &Target) -> bool {
        self.path.as_ref().is_none_or(|path| path.matches(target.path()))
    }

    /// Whether a server might take this path for one that it is about: in any case, with or without a slash at the end.
    pub(super) fn may_concern(&self, target: &Target) -> bool {
        let (path, trimmed) = loosely(target);
        self.path.as_ref().is_none_or(|own| own.matches_any_case(path) || own.matches_any_case(trimmed))
    }

    /// Whether it lists `ip`, an address that its host resolved to or is.
    pub(super) fn admits(&self, ip: IpAddr) -> Result<(), &'static str> {
        let special = special(ip);
        if let Some(Special::Never(what)) = special {
            return Err(what);
        }
        if let Pattern::Exact(host) = &self.host
            && (host.ip() == Some(ip) || (host.as_str() == "localhost" && ip.is_loopback()))
        {
            return Ok(());
        }
        let listed = |single: bool| self.allowed_ips.iter().any(|c| c.contains(ip) && (c.is_single() || !single));
        match special {
            Some(Special::Local(what)) => {
                if listed(true) {
                    Ok(())
                } else {
                    Err(what)
                }
            }
            Some(Special::Private(what)) => {
                if listed(false) {
                    Ok(())
                } else {
                    Err(what)
                }
            }
            _ if self.allowed_ips.is_empty() || listed(false) => Ok(()),
            _ => Err("the address is not in `allowed_ips`"),
        }
    }

    /// The deny rule that a request meets.
    pub(super) fn denies(&self, method: &str, target: &Target) -> Option<&Rule> {
        self.deny.iter().find(|rule| rule.denies(method, target))
    }

    /// What lets a request through: `read-only`, or a rule.
    pub(super) fn allows(&self, method: &str, target: &Target) -> Option<&str> {
        match &self.allow {
            Allow::Full => Some("full"),
            Allow::Access { name, methods } => methods.contains(&method).then_some(*name),
            Allow::Rules(rules) => {
                rules.iter().find(|rule| rule.allows(method, target)).map(|rule| rule.shown.as_str())
            }
        }
    }
}

/// A path, and without the slash at its end.
fn loosely(target: &Target) -> (&str, &str) {
    let path = target.path();
    (path, path.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(path))
}

impl Rule {
    fn allows(&self, method: &str, target: &Target) -> bool {
        self.method.as_ref().is_none_or(|own| own == method)
            && self.path.as_ref().is_none_or(|path| path.matches(target.path()))
            && self.query.iter().all(|(name, globs)| {
                let mut values = target.query().iter().filter(|(n, _)| n == name).map(|(_, value)| value).peekable();
                values.peek().is_some() && values.all(|value| globs.iter().any(|glob| glob.matches(value)))
            })
    }

    fn denies(&self, method: &str, target: &Target) -> bool {
        let (path, trimmed) = loosely(target);
        self.method.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(method))
            && self.path.as_ref().is_none_or(|own| own.matches_any_case(path) || own.matches_any_case(trimmed))
            && self.query.iter().all(|(name, globs)| {
                let mut values = target.query().iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
                values.any(|(_, value)| globs.iter().any(|glob| glob.matches_any_case(value)))
            })
    }
}
