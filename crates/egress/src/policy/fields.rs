//! The fields of a strict YAML mapping, each of the kind that it must be. An empty string or `null` is as if absent.

use bastion_trust::MalformedError;
use bastion_trust::yaml::{Node, Value};

/// A mapping's fields.
pub(super) struct Fields<'n>(&'n Node);

impl<'n> Fields<'n> {
    /// The fields of `node`, which must be a mapping.
    pub(super) fn of(node: &'n Node, what: &str) -> Result<Self, MalformedError> {
        match node.value {
            Value::Map(_) => Ok(Self(node)),
            _ => Err(node.error(format!("{what} must be a mapping, this is {}", node.kind()))),
        }
    }

    /// Fails at the first key that is not known. `not_yet` are keys of the schema that can't be judged here.
    pub(super) fn only(&self, what: &str, known: &[&str], not_yet: &[&str]) -> Result<(), MalformedError> {
        let Value::Map(entries) = &self.0.value else { return Ok(()) };
        for (key, value) in entries {
            let name = key.name.as_str();
            if not_yet.contains(&name) && !matches!(value.value, Value::Null | Value::Bool(false)) {
                return Err(key.place.error(format!(
                    "`{name}` of {what} can't be kept by the local sandbox yet; take it out, or use a gateway"
                )));
            }
            if !known.contains(&name) && !not_yet.contains(&name) {
                return Err(key.place.error(format!("{what} has no key `{name}`; it has {}", known.join(", "))));
            }
        }
        Ok(())
    }

    /// The keys that are not in `known`.
    pub(super) fn others(&self, known: &[&str]) -> impl Iterator<Item = &'n str> {
        let entries: &'n [_] = match &self.0.value {
            Value::Map(entries) => entries,
            _ => &[],
        };
        let known: Vec<String> = known.iter().map(|key| (*key).to_owned()).collect();
        entries.iter().map(|(key, _)| key.name.as_str()).filter(move |name| !known.iter().any(|key| key == name))
    }

    /// A field that is there and not `null`.
    pub(super) fn node(&self, key: &str) -> Option<&'n Node> {
        self.0.field(key).filter(|node| node.value != Value::Null)
    }

    /// The field for a message, or the mapping itself.
    pub(super) fn at(&self, key: &str) -> &'n Node {
        self.0.field(key).unwrap_or(self.0)
    }

    /// A text; an empty one is as if absent.
    pub(super) fn text(&self, key: &str) -> Result<Option<&'n str>, MalformedError> {
        let Some(node) = self.node(key) else { return Ok(None) };
        let text =
            node.text().ok_or_else(|| node.error(format!("`{key}` must be a string, this is {}", node.kind())))?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }

    /// The elements of a list; absent is none.
    pub(super) fn list(&self, key: &str) -> Result<&'n [Node], MalformedError> {
        let Some(node) = self.node(key) else { return Ok(&[]) };
        node.elements().ok_or_else(|| node.error(format!("`{key}` must be a list, this is {}", node.kind())))
    }

    /// The texts of a list.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, MalformedError> {
        let text = |node: &Node| {
            node.text().map(str::to_owned).ok_or_else(|| node.error(format!("`{key}` is a list of strings")))
        };
        self.list(key)?.iter().map(text).collect()
    }
}

/// A number that is not negative.
pub(super) fn whole(node: Option<&Node>, key: &str) -> Result<Option<u64>, MalformedError> {
    let Some(node) = node else { return Ok(None) };
    let number = match node.value {
        Value::Int(number) => u64::try_from(number).ok(),
        _ => None,
    };
    number.map(Some).ok_or_else(|| node.error(format!("`{key}` must be a whole number, 0 or more")))
}
