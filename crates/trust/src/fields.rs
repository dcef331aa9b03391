//! How is a mapping read strictly? Known keys only, each of its type, every refusal with its place.
//!
//! What the manifest of a folder and other signed files share.

use crate::error::MalformedError;
use crate::manifest::Signature;
use crate::names::host_name_fault;
use crate::yaml::{Node, Place, Value};

/// A value, or what is wrong with it and where.
pub type Read<T> = Result<T, MalformedError>;

/// A mapping whose keys are all known.
pub struct Fields<'n> {
    entries: &'n [(crate::yaml::Key, Node)],
    what: &'static str,
    place: Place,
}

impl<'n> Fields<'n> {
    /// `node` as a mapping of no other keys than `known`; `what` names it in errors.
    ///
    /// # Errors
    /// Where it is no mapping, or has another key: at that key, with the one that may have been meant.
    pub fn of(node: &'n Node, what: &'static str, known: &[&str]) -> Read<Self> {
        let Value::Map(entries) = &node.value else {
            return Err(node.error(format!("{what} must be a mapping, this is {}", node.kind())));
        };
        for (key, _) in entries {
            if !known.contains(&key.name.as_str()) {
                let hint = known
                    .iter()
                    .map(|name| (distance(name, &key.name), name))
                    .min()
                    .filter(|(distance, _)| *distance <= 2)
                    .map_or_else(
                        || format!("known are {}", known.join(", ")),
                        |(_, name)| format!("did you mean `{name}`?"),
                    );
                let name = key.name.escape_debug().take(64).collect::<String>();
                return Err(key.place.error(format!("unknown key `{name}` in {what}; {hint}")));
            }
        }
        Ok(Self { entries, what, place: node.place })
    }

    /// The value of `key`, where it is there.
    pub fn get(&self, key: &str) -> Option<&'n Node> {
        self.entries.iter().find(|(k, _)| k.name == key).map(|(_, node)| node)
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// Where it is not there.
    pub fn required(&self, key: &str) -> Read<&'n Node> {
        self.get(key).ok_or_else(|| self.place.error(format!("{} has no `{key}`", self.what)))
    }
}

/// How many single-character edits part two names (bounded: names are short).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(32).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The text of a string.
///
/// # Errors
/// Where it is something else.
pub fn string<'n>(node: &'n Node, what: &str) -> Read<&'n str> {
    node.text().ok_or_else(|| node.error(format!("`{what}` must be a string, this is {}", node.kind())))
}

/// The elements of a list.
///
/// # Errors
/// Where it is something else.
pub fn list<'n>(node: &'n Node, what: &str) -> Read<&'n [Node]> {
    node.elements().ok_or_else(|| node.error(format!("`{what}` must be a list, this is {}", node.kind())))
}

/// A whole number of at least `least`.
///
/// # Errors
/// Where it is something else or smaller.
pub fn number(node: &Node, what: &str, least: u64) -> Read<u64> {
    match node.value {
        Value::Int(n) => match u64::try_from(n) {
            Ok(n) if n >= least => Ok(n),
            _ => Err(node.error(format!("`{what}` must be at least {least}"))),
        },
        _ => Err(node.error(format!("`{what}` must be a whole number, this is {}", node.kind()))),
    }
}

/// A lower-case host name.
///
/// # Errors
/// Where it is none.
pub fn host(node: &Node, what: &str) -> Read<String> {
    let host = string(node, what)?;
    match host_name_fault(host) {
        Some(fault) => Err(node.error(format!("`{what}` {fault}"))),
        None => Ok(host.to_owned()),
    }
}

/// Refuses a path that no file of the owner's can have.
pub(crate) fn check_path(node: &Node, path: &str) -> Read<()> {
    if path.is_empty() {
        return Err(node.error("a path is empty"));
    }
    if path.chars().any(char::is_control) {
        return Err(node.error("a path has a control character in it"));
    }
    if path == "~" || path.starts_with("~/") {
        return Err(node.error("`~` is not expanded; write the whole path"));
    }
    Ok(())
}

/// Reads the block's shape only: whether `alg` is known and `value` verifies is the gate's to say.
///
/// # Errors
/// Where a part is missing, unknown or no string.
pub fn signature(node: &Node) -> Read<Signature> {
    let fields = Fields::of(node, "`signature`", &["alg", "cert", "value"])?;
    let text = |key: &str| fields.required(key).and_then(|node| string(node, key)).map(str::to_owned);
    let signature = Signature { alg: text("alg")?, cert: text("cert")?, value: text("value")? };
    check_path(fields.required("cert")?, &signature.cert)?;
    Ok(signature)
}
