//! How is one value of the file changed, and every other byte kept? Comments, layout, line ends, key order stay.
//!
//! An edit is a guess at the text, checked by reading it again: what comes out must be exactly the value wanted, or
//! the edit is refused and the owner edits by hand. So no layout of YAML can make an edit change something else.

use serde_json::{Value as Json, json};

use crate::manifest::{self, Grant, Ops, Signature};
use crate::yaml::Node;

/// The file's text and the tree it was read as.
pub(crate) struct Document<'d> {
    pub(crate) text: &'d str,
    pub(crate) root: &'d Node,
}

/// `text` with `new` in the place of these bytes.
fn replaced(text: &str, range: std::ops::Range<usize>, new: &str) -> String {
    [&text[..range.start], new, &text[range.end..]].concat()
}

/// The first candidate that reads as `wanted`.
fn first_that_reads(candidates: impl IntoIterator<Item = String>, wanted: &Json) -> Option<String> {
    candidates.into_iter().find(|text| manifest::tree(text.as_bytes()).is_ok_and(|tree| tree.to_json() == *wanted))
}

impl Document<'_> {
    /// The text with `serial` set, where there is one.
    pub(crate) fn with_serial(&self, serial: u64) -> Option<String> {
        let node = self.root.field("serial")?;
        let mut wanted = self.root.to_json();
        wanted["serial"] = serial.into();
        first_that_reads([replaced(self.text, node.span.clone(), &serial.to_string())], &wanted)
    }

    /// The text with this signature, replaced where there is one, else behind everything.
    pub(crate) fn with_signature(&self, signature: &Signature) -> Option<String> {
        let fields = [("alg", &signature.alg), ("cert", &signature.cert), ("value", &signature.value)];
        let mut wanted = self.root.to_json();
        wanted["signature"] = json!({"alg": signature.alg, "cert": signature.cert, "value": signature.value});
        let Some(block) = self.root.field("signature") else {
            let lines = fields.map(|(key, value)| format!("  {key}: {}", scalar(value)));
            let flow = fields.map(|(key, value)| format!("{key}: {}", scalar(value))).join(", ");
            return self.with_new_key("signature", &lines, &format!("{{{flow}}}"), &wanted);
        };
        // from the last to the first, so that the places of the earlier ones stay true
        let mut parts: Vec<_> =
            fields.iter().filter_map(|(key, value)| Some((block.field(key)?, scalar(value)))).collect();
        parts.sort_by_key(|(node, _)| std::cmp::Reverse(node.span.start));
        // a block scalar (`value: |`) owns the line break that ends it
        let candidates = ["", self.line_break()].into_iter().map(|end| {
            parts.iter().fold(self.text.to_owned(), |text, (node, value)| {
                let owned = self.text[node.span.clone()].ends_with('\n');
                let end = if owned { self.line_break() } else { end };
                replaced(&text, node.span.clone(), &format!("{value}{end}"))
            })
        });
        first_that_reads(candidates, &wanted)
    }

    /// The text with this grant in place of the host's earlier one, or added.
    pub(crate) fn with_grant(&self, grant: &Grant) -> Option<String> {
        let mut wanted = self.root.to_json();
        let entry = json!({"host": grant.host, "ops": ops_json(grant.ops), "until": grant.until.to_string()});
        let (host, ops, until) = (scalar(&grant.host), ops_text(grant.ops), grant.until.to_string());
        let flow = format!("{{host: {host}, ops: {ops}, until: {until}}}");
        let lines = |indent: &str| {
            [format!("{indent}- host: {host}"), format!("{indent}  ops: {ops}"), format!("{indent}  until: {until}")]
        };
        let Some(list) = self.root.field("grants") else {
            wanted["grants"] = json!([entry]);
            return self.with_new_key("grants", &lines("  "), &format!("[{flow}]"), &wanted);
        };
        let items = list.elements()?;
        if let Some(i) = self.position(&grant.host) {
            wanted["grants"][i] = entry;
            let (old_ops, old_until) = (items[i].field("ops")?, items[i].field("until")?);
            let mut edits = [(old_ops.span.clone(), ops), (old_until.span.clone(), until)];
            edits.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
            let in_place =
                edits.iter().fold(self.text.to_owned(), |text, (span, new)| replaced(&text, span.clone(), new));
            return first_that_reads([in_place], &wanted).or_else(|| {
                let without = self.without_grant(&grant.host)?;
                let root = manifest::tree(without.as_bytes()).ok()?;
                Document { text: &without, root: &root }.with_grant(grant)
            });
        }
        wanted["grants"].as_array_mut()?.push(entry);
        let candidates: Vec<String> = if list.flow {
            let comma = if items.is_empty() { "" } else { ", " };
            let at = list.span.end - 1;
            [comma, " "].iter().map(|comma| replaced(self.text, at..at, &format!("{comma}{flow}"))).collect()
        } else {
            let at = self.line_end(list.content_end());
            let dash = self.text[..items.last()?.span.start].rfind('-')?;
            let indent = &self.text[self.line_start(dash)..dash];
            let nl = self.line_break();
            vec![replaced(self.text, at..at, &format!("{nl}{}", lines(indent).join(nl)))]
        };
        first_that_reads(candidates, &wanted)
    }

    /// The text without the host's grant.
    pub(crate) fn without_grant(&self, host: &str) -> Option<String> {
        let list = self.root.field("grants")?;
        let items = list.elements()?;
        let i = self.position(host)?;
        let mut wanted = self.root.to_json();
        wanted["grants"].as_array_mut()?.remove(i);
        let item = &items[i];
        if list.flow {
            let range = match (items.get(i + 1), i.checked_sub(1).map(|before| &items[before])) {
                (Some(next), _) => item.span.start..next.span.start,
                (None, Some(before)) => before.content_end()..item.content_end(),
                (None, None) => item.span.start..item.content_end(),
            };
            let bare = replaced(self.text, range, "");
            let emptied = replaced(self.text, list.span.clone(), "[]"); // a comma behind the only one
            return first_that_reads([bare, emptied], &wanted);
        }
        let dash = self.text[..item.span.start].rfind('-')?;
        let start = self.line_start(dash);
        let end = self.next_line(item.content_end());
        let mut text = replaced(self.text, start..end, "");
        if end == self.text.len() && !self.text.ends_with('\n') {
            text.truncate(text.trim_end_matches(['\n', '\r']).len()); // the file still ends without a line break
        }
        if items.len() == 1 {
            let key = self.key_end("grants")?;
            let colon = key + self.text[key..].find(':')? + 1;
            text = replaced(&text, colon..colon, " []");
        }
        first_that_reads([text], &wanted)
    }

    fn position(&self, host: &str) -> Option<usize> {
        let items = self.root.field("grants")?.elements()?;
        items.iter().position(|item| item.field("host").and_then(Node::text) == Some(host))
    }

    fn key_end(&self, name: &str) -> Option<usize> {
        match &self.root.value {
            crate::yaml::Value::Map(entries) => {
                entries.iter().find(|(key, _)| key.name == name).map(|(key, _)| key.span.end)
            }
            _ => None,
        }
    }

    /// The text with a key that is not there yet, behind the others.
    fn with_new_key(&self, key: &str, lines: &[String], flow: &str, wanted: &Json) -> Option<String> {
        if self.root.flow {
            let at = self.root.span.end - 1;
            let candidates = [", ", " "].map(|comma| replaced(self.text, at..at, &format!("{comma}{key}: {flow}")));
            return first_that_reads(candidates, wanted);
        }
        let nl = self.line_break();
        let indent = " ".repeat(self.root.place.column - 1);
        let block: Vec<String> = std::iter::once(format!("{indent}{key}:"))
            .chain(lines.iter().map(|line| format!("{indent}{line}")))
            .collect();
        let block = block.join(nl);
        // in front of a `...` that ends the document, else at the file's end
        let content_end = self.line_end(self.root.content_end());
        let marker = self.text[content_end..].find("\n...").map(|at| content_end + at + 1);
        let at = marker.unwrap_or(self.text.len());
        let before = if self.text[..at].ends_with(['\n', '\r']) { "" } else { nl };
        let after = if before.is_empty() { nl } else { "" };
        first_that_reads([replaced(self.text, at..at, &format!("{before}{block}{after}"))], wanted)
    }

    /// The file's own line break: that of its first line.
    fn line_break(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |nl| nl + 1)
    }

    /// The end of the line that the byte before `at` is in, without its line break.
    fn line_end(&self, at: usize) -> usize {
        if self.text[..at].ends_with('\n') {
            return self.text[..at].trim_end_matches(['\n', '\r']).len();
        }
        let end = self.text[at..].find('\n').map_or(self.text.len(), |nl| at + nl);
        if self.text[at..end].ends_with('\r') { end - 1 } else { end }
    }

    fn next_line(&self, at: usize) -> usize {
        if self.text[..at].ends_with('\n') {
            return at;
        }
        self.text[at..].find('\n').map_or(self.text.len(), |nl| at + nl + 1)
    }
}

fn ops_json(ops: Ops) -> Json {
    ops.iter().map(|op| Json::from(op.as_str())).collect()
}

fn ops_text(ops: Ops) -> String {
    format!("[{}]", ops.iter().map(|op| op.as_str()).collect::<Vec<_>>().join(", "))
}

/// A string as a YAML scalar: plain where no reader could take it for anything else, else double-quoted.
pub(crate) fn scalar(text: &str) -> String {
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./+=-".contains(c))
        && !["true", "false", "null"].contains(&text.to_lowercase().as_str());
    // JSON's escapes are a part of YAML's
    if plain { text.to_owned() } else { Json::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOP: &str = "v: 1\nid: a\nowner: {host: h}\nroots: [.]\n";

    fn edited(text: &str, edit: impl Fn(&Document<'_>) -> Option<String>) -> String {
        let root = manifest::tree(text.as_bytes()).unwrap();
        edit(&Document { text, root: &root }).unwrap_or_else(|| panic!("no edit of {text:?}"))
    }

    fn grant(host: &str) -> Grant {
        Grant { host: host.into(), ops: Ops::ALL, until: "2030-01-31".parse().unwrap() }
    }

    #[test]
    fn grants_are_added_changed_and_removed_in_every_layout() {
        for (tail, added) in [
            ("", "grants:\n  - host: b\n    ops: [search, read_range]\n    until: 2030-01-31\n"),
            ("grants: []\n", "grants: [{host: b, ops: [search, read_range], until: 2030-01-31}]\n"),
            (
                "grants: # who\n  # first\n  - host: x\n    ops: [search] # only\n    until: 2029-01-01 # ok\n  # tail\nsweep: daily\n",
                "grants: # who\n  # first\n  - host: x\n    ops: [search] # only\n    until: 2029-01-01 # ok\n  - host: b\n    ops: [search, read_range]\n    until: 2030-01-31\n  # tail\nsweep: daily\n",
            ),
            (
                "grants:\n- until: 2029-01-01\n  host: x\n  ops:\n  - search",
                "grants:\n- until: 2029-01-01\n  host: x\n  ops:\n  - search\n- host: b\n  ops: [search, read_range]\n  until: 2030-01-31",
            ),
            (
                "grants: [{host: x, ops: [], until: 2029-01-01}, ] # c",
                "grants: [{host: x, ops: [], until: 2029-01-01},  {host: b, ops: [search, read_range], until: 2030-01-31}] # c",
            ),
        ] {
            let text = format!("{TOP}{tail}");
            let with = edited(&text, |doc| doc.with_grant(&grant("b")));
            assert_eq!(with, format!("{TOP}{added}"));
            let back = edited(&with, |doc| doc.without_grant("b"));
            let json = |text: &str| manifest::parse(text.as_bytes()).unwrap().manifest().grants.clone();
            assert_eq!(json(&back), json(&text), "{back}");
            let changed = edited(&with, |doc| doc.with_grant(&Grant { ops: Ops::NONE, ..grant("b") }));
            assert_eq!(
                changed,
                with.replace("ops: [search, read_range], until: 2030", "ops: [], until: 2030")
                    .replace("    ops: [search, read_range]\n    until: 2030", "    ops: []\n    until: 2030")
                    .replace("  ops: [search, read_range]\n  until: 2030", "  ops: []\n  until: 2030")
            );
        }
    }

    #[test]
    fn the_only_block_grant_leaves_an_empty_list_and_its_neighbours() {
        let text = format!(
            "{TOP}grants: # who\n  - host: x\n    ops:\n      - search\n    until: 2029-01-01 # ok\nsweep: daily # s"
        );
        assert_eq!(edited(&text, |doc| doc.without_grant("x")), format!("{TOP}grants: [] # who\nsweep: daily # s"));
        let changed = edited(&text, |doc| doc.with_grant(&grant("x")));
        assert!(manifest::parse(changed.as_bytes()).unwrap().manifest().grants == [grant("x")], "{changed}");
        assert!(changed.ends_with("sweep: daily # s"));
    }

    #[test]
    fn a_signature_is_placed_without_touching_another_byte() {
        let signature =
            Signature { alg: "ecdsa-p256-sha256".into(), cert: "my certs/ü.pem".into(), value: "MEUC+/a=".into() };
        let block = "signature:\n  alg: ecdsa-p256-sha256\n  cert: \"my certs/ü.pem\"\n  value: MEUC+/a=";
        let cases = [
            (TOP.to_owned(), format!("{TOP}{block}\n")),
            (format!("{TOP}# end"), format!("{TOP}# end\n{block}")),
            (format!("{TOP}...\n# x\n"), format!("{TOP}{block}\n...\n# x\n")),
            (TOP.replace('\n', "\r\n"), format!("{TOP}{block}\n").replace('\n', "\r\n")),
            (
                "  v: 1\n  id: a\n  owner: {host: h}\n  roots: [.]\n".to_owned(),
                format!("  v: 1\n  id: a\n  owner: {{host: h}}\n  roots: [.]\n  {}\n", block.replace('\n', "\n  ")),
            ),
            (
                "{v: 1, id: a, owner: {host: h}, roots: [.],\n# c\n} # d".to_owned(),
                "{v: 1, id: a, owner: {host: h}, roots: [.],\n# c\n signature: {alg: ecdsa-p256-sha256, cert: \"my certs/ü.pem\", value: MEUC+/a=}} # d".to_owned(),
            ),
            (
                format!("signature: # s\n  value: |\n    abc\n  # c\n  cert: 'old'   # d\n  alg: x\n{TOP}"),
                format!("signature: # s\n  value: MEUC+/a=\n  # c\n  cert: \"my certs/ü.pem\"   # d\n  alg: ecdsa-p256-sha256\n{TOP}"),
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(edited(&text, |doc| doc.with_signature(&signature)), wanted);
        }
    }

    #[test]
    fn scalars_read_back_as_themselves() {
        for text in [
            "a", "/x/y.pem", "./a", "true", "Null", "1", "-", "a: b", "a #b", "ü", "\"", "\\", "..", "~", "M+/=",
            "a,b", "[", "\u{7}", "\u{feff}",
        ] {
            for doc in
                [format!("k: {}", scalar(text)), format!("[{}]", scalar(text)), format!("{{k: {}}}", scalar(text))]
            {
                let tree = manifest::tree(doc.as_bytes()).unwrap();
                let node = tree.field("k").or_else(|| tree.elements().map(|e| &e[0])).unwrap();
                assert_eq!(node.text(), Some(text), "{doc}");
            }
        }
    }
}
