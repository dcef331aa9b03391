//! From a profile or a policy file to endpoints. What can't be judged is refused with its place and the mend.

use bastion_trust::MalformedError;
use bastion_trust::manifest::tree;
use bastion_trust::yaml::{Node, Value};

use super::endpoint::{Allow, Endpoint, Origin, Pattern, Protocol, Rule};
use super::fields::{self, Fields};
use super::{Policy, PolicyError, Source, shape};
use crate::address::Cidr;
use crate::glob::Glob;
use crate::host::Host;

const ENDPOINT: &[&str] = &[
    "host",
    "port",
    "ports",
    "path",
    "protocol",
    "tls",
    "enforcement",
    "access",
    "rules",
    "deny_rules",
    "allowed_ips",
];
/// Keys of OpenShell's schema that would change what is allowed, and that the proxy can't keep.
const ENDPOINT_NOT_YET: &[&str] = &[
    "allow_encoded_slash",
    "websocket_credential_rewrite",
    "request_body_credential_rewrite",
    "allow_uninspected_credentials",
    "persisted_queries",
    "graphql_persisted_queries",
    "graphql_max_body_bytes",
    "credential_signing",
    "signing_service",
    "signing_region",
    "json_rpc",
    "mcp",
    "credential_binding",
];
const RULE: &[&str] = &["method", "path", "query"];
const RULE_NOT_YET: &[&str] = &["command", "operation_type", "operation_name", "fields", "tool", "params"];
const READ: &[&str] = &["GET", "HEAD", "OPTIONS"];
const READ_WRITE: &[&str] = &["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"];

/// Reads a profile into `policy` and answers with its id.
pub(super) fn profile(source: &Source<'_>, policy: &mut Policy) -> Result<String, PolicyError> {
    let malformed = |error| PolicyError::Malformed { file: source.shown.clone(), source: error };
    profile_of(&tree(source.bytes).map_err(malformed)?, &source.shown, policy).map_err(malformed)
}

fn profile_of(root: &Node, shown: &str, policy: &mut Policy) -> Result<String, MalformedError> {
    let fields = Fields::of(root, "a provider profile")?;
    let id = fields.text("id")?.ok_or_else(|| root.error("a provider profile has an `id`"))?.to_owned();
    for node in fields.list("credentials")? {
        let mut warnings = Vec::new();
        let (envs, shape) = shape::read(node, &mut warnings)?;
        policy.warnings.extend(warnings.into_iter().map(|warning| format!("{shown}: {warning}")));
        for env in envs {
            if policy.shapes.insert((id.clone(), env.clone()), shape.clone()).is_some() {
                return Err(node.error(format!("the variable `{env}` is of two credentials")));
            }
        }
    }
    for node in fields.list("endpoints")? {
        policy.endpoints.push(endpoint(node, Origin::Profile(id.clone()))?);
    }
    warn_of_binaries(&fields, shown, policy);
    Ok(id)
}

/// Reads an OpenShell policy file into `policy`.
pub(super) fn policy_file(source: &Source<'_>, policy: &mut Policy) -> Result<(), PolicyError> {
    let malformed = |error| PolicyError::Malformed { file: source.shown.clone(), source: error };
    policy_of(&tree(source.bytes).map_err(malformed)?, &source.shown, policy).map_err(malformed)
}

fn policy_of(root: &Node, shown: &str, policy: &mut Policy) -> Result<(), MalformedError> {
    const OTHERS: &[&str] = &["filesystem_policy", "landlock", "process"];
    let fields = Fields::of(root, "a policy")?;
    let known = ["version", "network_policies", OTHERS[0], OTHERS[1], OTHERS[2]];
    fields.only("a policy", &known, &["network_middlewares"])?;
    if let Some(version) = fields.node("version").filter(|node| node.value != Value::Int(1)) {
        return Err(version.error("`version` must be 1"));
    }
    for section in OTHERS.iter().filter(|key| fields.node(key).is_some()) {
        policy.warnings.push(format!("{shown}: `{section}` has no effect here: the local sandbox has its own layers"));
    }
    let Some(rules) = fields.node("network_policies") else { return Ok(()) };
    let Value::Map(rules) = &rules.value else {
        return Err(rules.error("`network_policies` must be a mapping of names to rules"));
    };
    for (name, node) in rules {
        let fields = Fields::of(node, "a network policy")?;
        fields.only("a network policy", &["name", "endpoints", "binaries"], &[])?;
        for node in fields.list("endpoints")? {
            policy.endpoints.push(endpoint(node, Origin::Rule(name.name.clone()))?);
        }
        warn_of_binaries(&fields, shown, policy);
    }
    Ok(())
}

fn warn_of_binaries(fields: &Fields<'_>, shown: &str, policy: &mut Policy) {
    let warning = format!("{shown}: `binaries` is advisory here: any program of the sandbox may use the endpoints");
    if fields.node("binaries").is_some() && !policy.warnings.contains(&warning) {
        policy.warnings.push(warning);
    }
}

fn endpoint(node: &Node, origin: Origin) -> Result<Endpoint, MalformedError> {
    let fields = Fields::of(node, "an endpoint")?;
    let host = fields.text("host")?.ok_or_else(|| node.error("an endpoint needs a `host`"))?;
    let shown = format!("{host}{}", fields.text("path")?.unwrap_or_default());
    let protocol = match fields.text("protocol")? {
        None => Protocol::Tunnel,
        Some("rest") => Protocol::Rest,
        Some("websocket") => Protocol::WebSocket,
        Some(other) => {
            let what = match other {
                "graphql" | "sql" | "json-rpc" | "mcp" | "tcp" => format!(
                    "the endpoint {shown}: `protocol: {other}` can't be judged by the local sandbox yet; take the endpoint out, or use a gateway"
                ),
                _ => "`protocol` is `rest` or `websocket`; absent is a plain tunnel of TLS".to_owned(),
            };
            return Err(fields.at("protocol").error(what));
        }
    };
    fields.only("an endpoint", ENDPOINT, ENDPOINT_NOT_YET)?;
    let path = match fields.node("path") {
        Some(path) if !matches!(path.text(), Some("")) => Some(path_glob(path)?),
        _ => None,
    };
    let deny =
        fields.list("deny_rules")?.iter().map(|node| rule(node, "a deny rule")).collect::<Result<Vec<_>, _>>()?;
    let allow = allow(node, &fields, protocol)?;
    if protocol == Protocol::Tunnel && (!deny.is_empty() || path.is_some()) {
        return Err(
            node.error("`path` and `deny_rules` need a `protocol`: without one nothing inside the tunnel is seen")
        );
    }
    let ports = ports(node, &fields)?;
    let shown_ports: Vec<String> = ports.iter().map(u16::to_string).collect();
    Ok(Endpoint {
        origin,
        protocol,
        shown: format!("{host}:{}", shown_ports.join(",")),
        host: pattern(fields.at("host"), host)?,
        ports,
        path,
        skip_tls: one_of(&fields, "tls", &["auto", "terminate", "skip"])? == Some("skip"),
        audit: one_of(&fields, "enforcement", &["enforce", "audit"])? == Some("audit"),
        allow,
        deny,
        allowed_ips: fields.list("allowed_ips")?.iter().map(cidr).collect::<Result<_, _>>()?,
    })
}

fn pattern(node: &Node, host: &str) -> Result<Pattern, MalformedError> {
    if let Some(rest) = host.strip_prefix("*.") {
        let rest = Host::parse(rest).map_err(|error| node.error(format!("`host`: {error}")))?;
        if rest.ip().is_some() || !rest.as_str().contains('.') {
            return Err(node.error("`*.` stands before a name of at least two labels, as in `*.example.com`"));
        }
        return Ok(Pattern::Below(format!(".{rest}")));
    }
    if host.contains('*') {
        return Err(node.error("`*` in `host` is the whole first label and stands for one: `*.example.com`"));
    }
    Host::parse(host).map(Pattern::Exact).map_err(|error| node.error(format!("`host`: {error}")))
}

fn ports(node: &Node, fields: &Fields<'_>) -> Result<Vec<u16>, MalformedError> {
    let one = |node: &Node| -> Result<u16, MalformedError> {
        let port =
            fields::whole(Some(node), "port")?.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
        port.ok_or_else(|| node.error("a port is a number from 1 to 65535"))
    };
    let many = fields.list("ports")?;
    match fields.node("port") {
        Some(_) if !many.is_empty() => Err(node.error("`port` or `ports`, not both")),
        Some(port) => Ok(vec![one(port)?]),
        None if many.is_empty() => Err(node.error("an endpoint needs a `port` or `ports`")),
        None => many.iter().map(one).collect(),
    }
}

fn allow(node: &Node, fields: &Fields<'_>, protocol: Protocol) -> Result<Allow, MalformedError> {
    let rules = fields.list("rules")?;
    let access = one_of(fields, "access", &["read-only", "read-write", "full"])?;
    let allow = match (access, rules.is_empty()) {
        (Some(_), false) => return Err(node.error("`access` or `rules`, not both")),
        (Some("read-only"), true) => Allow::Access { name: "read-only", methods: READ },
        (Some("read-write"), true) => Allow::Access { name: "read-write", methods: READ_WRITE },
        (Some(_), true) => Allow::Full,
        (None, false) => Allow::Rules(rules.iter().map(allow_rule).collect::<Result<_, _>>()?),
        (None, true) if protocol == Protocol::Tunnel => Allow::Full,
        (None, true) => return Err(node.error("an endpoint with a `protocol` needs `access` or `rules`")),
    };
    match (protocol, &allow) {
        (Protocol::Tunnel, Allow::Full) => Ok(allow),
        (Protocol::Tunnel, _) => Err(node.error("`access` and `rules` need a `protocol`: without one nothing inside the tunnel is seen")),
        (Protocol::WebSocket, Allow::Access { name: "read-only", .. }) => Err(node.error(
            "the messages of a `websocket` endpoint can't be judged yet, so it can't be `read-only`; give `read-write` or `rules`",
        )),
        _ => Ok(allow),
    }
}

fn allow_rule(node: &Node) -> Result<Rule, MalformedError> {
    let fields = Fields::of(node, "a rule")?;
    fields.only("a rule", &["allow"], &[])?;
    rule(fields.node("allow").ok_or_else(|| node.error("a rule is `allow: {method, path, query}`"))?, "an allow rule")
}

fn rule(node: &Node, what: &str) -> Result<Rule, MalformedError> {
    let fields = Fields::of(node, what)?;
    fields.only(what, RULE, RULE_NOT_YET)?;
    let method = method(&fields)?;
    let path = fields.node("path").map(path_glob).transpose()?;
    let query = fields.node("query").map(query).transpose()?.unwrap_or_default();
    if fields.node("method").is_none() && path.is_none() && query.is_empty() {
        return Err(node.error(format!("{what} needs a `method`, `path` or `query`")));
    }
    let mut shown = method.clone().unwrap_or_else(|| "*".to_owned());
    for part in path.iter().map(Glob::as_str) {
        shown = format!("{shown} {part}");
    }
    Ok(Rule { method, path, query, shown })
}

/// `None` is any method.
fn method(fields: &Fields<'_>) -> Result<Option<String>, MalformedError> {
    let Some(node) = fields.node("method") else { return Ok(None) };
    let text = node.text().unwrap_or_default();
    match text {
        "*" => Ok(None),
        "WEBSOCKET_TEXT" => {
            Err(node.error("the messages of a WebSocket can't be judged by the local sandbox yet; take this rule out"))
        }
        _ if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic() || b == b'-') => {
            Ok(Some(text.to_ascii_uppercase()))
        }
        _ => Err(node.error("`method` is one HTTP method, or `*`")),
    }
}

fn query(node: &Node) -> Result<Vec<(String, Vec<Glob>)>, MalformedError> {
    let Value::Map(entries) = &node.value else {
        return Err(node.error("`query` is a mapping of names to `{any: [pattern…]}`"));
    };
    let mut query = Vec::new();
    for (key, value) in entries {
        let globs = match value.value {
            Value::Str(_) => vec![glob(value)?],
            _ => {
                let fields = Fields::of(value, "a query rule")?;
                fields.only("a query rule", &["any"], &[])?;
                fields.list("any")?.iter().map(glob).collect::<Result<_, _>>()?
            }
        };
        if globs.is_empty() {
            return Err(value.error("a query rule is `{any: [pattern…]}` with at least one pattern"));
        }
        query.push((key.name.clone(), globs));
    }
    Ok(query)
}

fn glob(node: &Node) -> Result<Glob, MalformedError> {
    let text = node.text().ok_or_else(|| node.error(format!("a pattern must be a string, this is {}", node.kind())))?;
    Glob::parse(text).map_err(|what| node.error(what))
}

/// A pattern of a decoded path: one that no canonical path can match is a mistake.
fn path_glob(node: &Node) -> Result<Glob, MalformedError> {
    let glob = glob(node)?;
    let text = glob.as_str();
    if !text.starts_with(['/', '*']) {
        return Err(node.error("`path` starts with `/`"));
    }
    if text.contains('%') || text.contains("//") || text.split('/').any(|segment| matches!(segment, "." | "..")) {
        return Err(node.error("`path` is matched decoded: no `%`, `//` or dot segments"));
    }
    Ok(glob)
}

fn cidr(node: &Node) -> Result<Cidr, MalformedError> {
    let parsed = node.text().and_then(Cidr::parse);
    parsed.ok_or_else(|| {
        node.error("an element of `allowed_ips` is an address or a range without host bits, as in `10.1.0.0/16`")
    })
}

fn one_of<'n>(fields: &Fields<'n>, key: &str, all: &[&str]) -> Result<Option<&'n str>, MalformedError> {
    let Some(text) = fields.text(key)? else { return Ok(None) };
    if all.contains(&text) {
        return Ok(Some(text));
    }
    Err(fields.at(key).error(format!("`{key}` is one of {}", all.join(", "))))
}
