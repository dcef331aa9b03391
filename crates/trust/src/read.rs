//! From the strict tree to the typed manifest: which keys there are, what each may hold, and how they fit together.
//!
//! Refuses, with its place, whatever manifest.md §1 does not name: a key nobody knows is a typo with consequences.

use std::collections::HashSet;

use jiff::civil::Date;

use crate::fields::{Fields, Read, check_path, host, list, number, signature, string};
use crate::manifest::{Cadence, Grant, Limits, Manifest, Op, Ops, Root, Stage};
use crate::names::AgentId;
use crate::scope::Pattern;
use crate::yaml::{Node, Value};

/// A list of roots or globs may be this long: each costs a compiled matcher before any signature is looked at.
const MAX_LIST: usize = 1_000;

const TOP: &[&str] = &[
    "v",
    "id",
    "owner",
    "roots",
    "include",
    "exclude",
    "stages",
    "sweep",
    "ops",
    "grants",
    "limits",
    "serial",
    "signature",
];

/// The manifest that this tree is.
pub(crate) fn manifest(root: &Node) -> Read<Manifest> {
    let top = Fields::of(root, "the manifest", TOP)?;
    let version = top.required("v")?;
    if version.value != Value::Int(1) {
        return Err(version.error("`v` must be 1, the only version this program reads"));
    }
    let owner = Fields::of(top.required("owner")?, "`owner`", &["host"])?;
    Ok(Manifest {
        v: 1,
        id: id(top.required("id")?)?,
        owner_host: host(owner.required("host")?, "owner.host")?,
        roots: roots(top.required("roots")?)?,
        include: globs(top.get("include"), "include")?,
        exclude: globs(top.get("exclude"), "exclude")?,
        stages: top.get("stages").map_or_else(|| Ok(Stage::DEFAULT.to_vec()), stages)?,
        sweep: top.get("sweep").map_or(Ok(Cadence::Hourly), |node| parsed(node, "sweep"))?,
        ops: top.get("ops").map_or(Ok(Ops::ALL), ops)?,
        grants: top.get("grants").map_or_else(|| Ok(Vec::new()), grants)?,
        limits: top.get("limits").map_or_else(|| Ok(Limits::default()), limits)?,
        serial: top.get("serial").map(|node| number(node, "serial", 1)).transpose()?,
        signature: top.get("signature").map(signature).transpose()?,
    })
}

fn bounded(node: &Node, nodes: &[Node], what: &str) -> Read<()> {
    if nodes.len() > MAX_LIST {
        return Err(node.error(format!("`{what}` has more than {MAX_LIST} entries")));
    }
    Ok(())
}

fn parsed<T: std::str::FromStr>(node: &Node, what: &str) -> Read<T>
where
    T::Err: std::fmt::Display,
{
    string(node, what)?.parse().map_err(|error| node.error(format!("`{what}`: {error}")))
}

fn id(node: &Node) -> Read<AgentId> {
    AgentId::new(string(node, "id")?)
        .ok_or_else(|| node.error("`id` must be 1 to 63 of a to z, 0 to 9 and `-`, not starting with `-`"))
}

fn roots(node: &Node) -> Read<Vec<Root>> {
    let nodes = list(node, "roots")?;
    if nodes.is_empty() {
        return Err(node.error("`roots` is empty; name at least one folder"));
    }
    bounded(node, nodes, "roots")?;
    let mut roots: Vec<Root> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let root = root(node)?;
        if roots.iter().any(|other| other.path == root.path) {
            return Err(root.place.error("this root is there twice"));
        }
        roots.push(root);
    }
    Ok(roots)
}

fn root(node: &Node) -> Read<Root> {
    if let Value::Str(path) = &node.value {
        check_path(node, path)?;
        return Ok(Root {
            path: path.clone(),
            include: vec![],
            exclude: vec![],
            other_mounts: false,
            place: node.place,
        });
    }
    let fields = Fields::of(node, "a root", &["path", "include", "exclude", "other_mounts"])?;
    let path_node = fields.required("path")?;
    let path = string(path_node, "path")?;
    check_path(path_node, path)?;
    let other_mounts = match fields.get("other_mounts") {
        None => false,
        Some(node) => match node.value {
            Value::Bool(yes) => yes,
            _ => return Err(node.error(format!("`other_mounts` must be true or false, this is {}", node.kind()))),
        },
    };
    Ok(Root {
        path: path.to_owned(),
        include: globs(fields.get("include"), "include")?,
        exclude: globs(fields.get("exclude"), "exclude")?,
        other_mounts,
        place: path_node.place,
    })
}

fn globs(node: Option<&Node>, what: &str) -> Read<Vec<String>> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut globs = Vec::new();
    let nodes = list(node, what)?;
    if nodes.is_empty() && what == "include" {
        return Err(node.error("`include` is empty, so nothing would be in scope; leave it out for everything"));
    }
    bounded(node, nodes, what)?;
    for node in nodes {
        let glob = string(node, what)?;
        Pattern::new(glob).map_err(|fault| node.error(format!("`{what}`: {fault}")))?;
        globs.push(glob.to_owned());
    }
    Ok(globs)
}

fn stages(node: &Node) -> Read<Vec<Stage>> {
    let nodes = list(node, "stages")?;
    if nodes.is_empty() {
        return Err(node.error("`stages` is empty; leave it out for all of them"));
    }
    let role = |stage: Stage| if stage == Stage::Sterilize { Stage::Sanitize } else { stage };
    let mut stages: Vec<Stage> = Vec::with_capacity(nodes.len());
    for node in nodes {
        let stage: Stage = parsed(node, "stages")?;
        if stages.contains(&stage) {
            return Err(node.error(format!("the stage `{stage}` is there twice")));
        }
        if stages.iter().any(|other| role(*other) == role(stage)) {
            return Err(node.error("`sterilize` stands in the place of `sanitize`; name one of them"));
        }
        for need in stage.needs() {
            if !stages.iter().any(|other| role(*other) == *need) {
                return Err(node.error(format!("`{stage}` reads what `{need}` writes, which must stand before it")));
            }
        }
        stages.push(stage);
    }
    Ok(stages)
}

fn ops(node: &Node) -> Read<Ops> {
    let mut ops = Ops::NONE;
    for node in list(node, "ops")? {
        let op: Op = parsed(node, "ops")?;
        if ops.contains(op) {
            return Err(node.error(format!("the operation `{op}` is there twice")));
        }
        ops = ops.with(op);
    }
    Ok(ops)
}

fn grants(node: &Node) -> Read<Vec<Grant>> {
    let mut grants: Vec<Grant> = Vec::new();
    let mut hosts = HashSet::new();
    for node in list(node, "grants")? {
        let fields = Fields::of(node, "a grant", &["host", "ops", "until"])?;
        let host_node = fields.required("host")?;
        let grant = Grant {
            host: host(host_node, "host")?,
            ops: ops(fields.required("ops")?)?,
            until: until(fields.required("until")?)?,
        };
        if !hosts.insert(grant.host.clone()) {
            return Err(host_node.error(format!("two grants of the host `{}`; make them one", grant.host)));
        }
        grants.push(grant);
    }
    Ok(grants)
}

fn until(node: &Node) -> Read<Date> {
    let text = string(node, "until")?;
    date(text).ok_or_else(|| node.error("`until` is no date; write the last day as YYYY-MM-DD"))
}

/// A day as exactly `YYYY-MM-DD`.
pub(crate) fn date(text: &str) -> Option<Date> {
    let bytes = text.as_bytes();
    let shape = bytes.len() == 10
        && bytes.iter().enumerate().all(|(i, b)| if i == 4 || i == 7 { *b == b'-' } else { b.is_ascii_digit() });
    if shape { text.parse().ok() } else { None }
}

fn limits(node: &Node) -> Read<Limits> {
    const KEYS: &[&str] = &["max_file_bytes", "max_doc_chars", "extract_seconds", "archive_depth"];
    let fields = Fields::of(node, "`limits`", KEYS)?;
    let default = Limits::default();
    let limit = |key: &str, default: u64| fields.get(key).map_or(Ok(default), |node| number(node, key, 1));
    let archive_depth = match fields.get("archive_depth") {
        None => default.archive_depth,
        Some(node) => match u32::try_from(number(node, "archive_depth", 0)?) {
            Ok(depth) if depth <= 16 => depth,
            _ => return Err(node.error("`archive_depth` must be at most 16")),
        },
    };
    Ok(Limits {
        max_file_bytes: limit("max_file_bytes", default.max_file_bytes)?,
        max_doc_chars: limit("max_doc_chars", default.max_doc_chars)?,
        extract_seconds: limit("extract_seconds", default.extract_seconds)?,
        archive_depth,
    })
}
