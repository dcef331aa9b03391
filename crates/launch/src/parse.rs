//! Is this an `agent.yaml`? Strict: unknown keys, duplicate keys and wrong types are refused with line and column.
//!
//! What belongs to an adapter (`harness.supported.*`) is passed on as it is; keys of older agents are warned of.

mod parts;
mod providers;

use bastion_trust::fields::{Fields, Read, host, number, signature, string};
use bastion_trust::manifest;
use bastion_trust::yaml::{Node, Value};
use bastion_trust::{AgentId, MalformedError};

use crate::agent::Agent;

const TOP: &[&str] = &[
    "id",
    "display_name",
    "description",
    "payload_version",
    "owner",
    "serial",
    "signature",
    "sandbox",
    "harness",
    "runtime",
    "policy",
    "profile_paths",
    "settings",
    "providers",
    "skills",
    "subagents",
    "resources",
    "folders",
    "prompt_template",
];

/// An agent as it was read once: the typed fields and the very value they came from.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedAgent {
    /// The fields.
    pub agent: Agent,
    /// The whole value without its signature: what is signed and what a digest is over.
    pub json: serde_json::Value,
    /// Keys that older agents carry and nothing reads.
    pub warnings: Vec<String>,
}

/// Reads an agent.
///
/// # Errors
/// What is wrong, with line and column.
pub fn parse(bytes: &[u8]) -> Result<ParsedAgent, MalformedError> {
    let root = manifest::tree(bytes)?;
    let mut warnings = Vec::new();
    let agent = agent(&root, &mut warnings)?;
    let mut json = root.to_json();
    if let Some(object) = json.as_object_mut() {
        object.remove("signature");
    }
    Ok(ParsedAgent { agent, json, warnings })
}

fn agent(root: &Node, warnings: &mut Vec<String>) -> Read<Agent> {
    let top = Fields::of(root, "the agent", TOP)?;
    if let Some(folders) = top.get("folders") {
        return Err(folders.error("`folders` is not yet supported; leave it out"));
    }
    let owner_host = match top.get("owner") {
        None => None,
        Some(node) => Some(host(Fields::of(node, "`owner`", &["host"])?.required("host")?, "owner.host")?),
    };
    let signed = top.get("signature").map(signature).transpose()?;
    if let (Some(node), None) = (top.get("signature"), &owner_host) {
        return Err(node.error("a signed agent names its signer in `owner.host`"));
    }
    let agent = Agent {
        id: id(top.required("id")?)?,
        display_name: text(&top, "display_name")?,
        description: text(&top, "description")?,
        payload_version: top.get("payload_version").map_or(Ok(1), |node| number(node, "payload_version", 0))?,
        owner_host,
        serial: top.get("serial").map(|node| number(node, "serial", 1)).transpose()?,
        signature: signed,
        sandbox: top.get("sandbox").map_or_else(|| Ok(Default::default()), |node| parts::sandbox(node, warnings))?,
        harness: parts::harness(top.required("harness")?)?,
        runtime: top.get("runtime").map_or_else(|| Ok(Default::default()), parts::runtime)?,
        policy: path(&top, "policy")?,
        profile_paths: parts::paths(top.get("profile_paths"), "profile_paths")?,
        settings: parts::settings(top.get("settings"))?,
        providers: providers::providers(top.get("providers"))?,
        skills: parts::assets(top.get("skills"), "skills", None)?,
        subagents: parts::assets(top.get("subagents"), "subagents", Some("subagents/"))?,
        resources: parts::assets(top.get("resources"), "resources", None)?,
        prompt_template: path_of(top.required("prompt_template")?, "prompt_template")?,
    };
    for provider in &agent.providers {
        if let Some(harness) = &provider.harness
            && !agent.harness.supported.iter().any(|(name, _)| name == harness)
        {
            let id = &provider.id;
            warnings
                .push(format!("the provider `{id}` is for the harness `{harness}`, which the agent does not support"));
        }
    }
    Ok(agent)
}

fn id(node: &Node) -> Read<AgentId> {
    AgentId::new(string(node, "id")?)
        .ok_or_else(|| node.error("`id` must be 1 to 63 of a to z, 0 to 9 and `-`, not starting with `-`"))
}

fn text(fields: &Fields<'_>, key: &str) -> Read<Option<String>> {
    fields.get(key).map(|node| string(node, key).map(str::to_owned)).transpose()
}

fn path(fields: &Fields<'_>, key: &str) -> Read<Option<String>> {
    fields.get(key).map(|node| path_of(node, key)).transpose()
}

/// A path: some text without control characters.
fn path_of(node: &Node, what: &str) -> Read<String> {
    let path = string(node, what)?;
    if path.is_empty() || path.chars().any(char::is_control) {
        return Err(node.error(format!("`{what}` is no path")));
    }
    Ok(path.to_owned())
}

fn flag(fields: &Fields<'_>, key: &str, default: bool) -> Read<bool> {
    match fields.get(key) {
        None => Ok(default),
        Some(node) => match node.value {
            Value::Bool(yes) => Ok(yes),
            _ => Err(node.error(format!("`{key}` must be true or false, this is {}", node.kind()))),
        },
    }
}

/// A value that may be written without quotes: text, a number, true or false.
fn plain(node: &Node, what: &str) -> Read<String> {
    match &node.value {
        Value::Str(text) => Ok(text.clone()),
        Value::Int(n) => Ok(n.to_string()),
        Value::Bool(yes) => Ok(yes.to_string()),
        _ => Err(node.error(format!("`{what}` must be a string, a number, true or false, this is {}", node.kind()))),
    }
}

/// The name of a variable of the environment.
fn variable(node: &Node, what: &str) -> Read<String> {
    let name = string(node, what)?;
    if !is_variable(name) {
        return Err(node.error(format!("`{what}` must be the name of a variable: letters, digits and `_`")));
    }
    Ok(name.to_owned())
}

/// Whether this can be a variable of the environment.
pub(crate) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether this is one component of a path and safe in a shell word: letters, digits, `.`, `_`, `-`.
pub(crate) fn is_component(name: &str) -> bool {
    name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
}

fn component(node: &Node, what: &str) -> Read<String> {
    let name = string(node, what)?;
    if !is_component(name) {
        return Err(
            node.error(format!("`{what}` must be letters, digits, `.`, `_`, `-`, starting with one of the first two"))
        );
    }
    Ok(name.to_owned())
}

/// Refuses a second entry of the same name.
fn once<T>(node: &Node, what: &str, name: &str, others: &[T], name_of: impl Fn(&T) -> &str) -> Read<()> {
    if others.iter().any(|other| name_of(other) == name) {
        return Err(node.error(format!("{what} `{name}` is there twice")));
    }
    Ok(())
}
