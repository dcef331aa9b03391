//! Every record is what docs/ says: field names and types, held against what a real sweep writes.

use std::collections::BTreeMap;
use std::path::Path;

use crate::formats;
use crate::support::{Machine, rows};

/// The fields of a record as a document's table gives them: name → type. The table stands below a heading that names
/// the file in backquotes; a `?` behind the type: it may be absent.
fn documented(doc: &str, file: &str) -> BTreeMap<String, String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(doc);
    let text = std::fs::read_to_string(&path).unwrap();
    let heading = format!("`{file}`");
    let mut lines = text.lines().skip_while(|line| !(line.starts_with('#') && line.contains(&heading)));
    lines.next().unwrap_or_else(|| panic!("{doc} has no heading with {heading}"));
    lines
        .take_while(|line| !line.starts_with('#'))
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`').to_owned(), cells[2].to_owned())
        })
        .collect()
}

fn is(value: &serde_json::Value, kind: &str) -> bool {
    match kind.trim_end_matches('?') {
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "list" => value.is_array(),
        "map" => value.is_object(),
        other => panic!("the type `{other}` is not one of ours"),
    }
}

fn hold(doc: &str, file: &str, path: &Path) {
    let fields = documented(doc, file);
    assert!(!fields.is_empty(), "{doc} has no table for {file}");
    let rows = rows(path);
    assert!(!rows.is_empty(), "{} is empty", path.display());
    for row in rows {
        for (name, value) in row.as_object().unwrap() {
            let kind = fields.get(name).unwrap_or_else(|| panic!("{doc}: {file}: `{name}` is not documented"));
            assert!(is(value, kind), "{file}: `{name}` is documented as {kind}: {row}");
        }
        for (name, kind) in &fields {
            assert!(kind.ends_with('?') || row.get(name).is_some(), "{file}: `{name}` is missing: {row}");
        }
    }
}

#[test]
fn every_record_is_as_documented() {
    let machine = Machine::new();
    let folder = machine.folder(
        "Documents",
        &[("locked.zip", "no zip at all"), ("empty.txt", ""), ("deep/a.md", "Mail a.b@example.org")],
    );
    formats::write_all(&folder, &["A line.", "Another line for c.d@example.org."]);
    machine.swept(&folder).ok();
    let out = folder.join(".agent");
    hold("stores.md", "walk.jsonl", &out.join("walk.jsonl"));
    hold("stores.md", "extract/index.jsonl", &out.join("extract/index.jsonl"));
    hold("stores.md", "sanitize/index.jsonl", &out.join("sanitize/index.jsonl"));
    hold("stores.md", "catalog/files.jsonl", &out.join("catalog/files.jsonl"));
    hold("stores.md", "catalog/dirs.jsonl", &out.join("catalog/dirs.jsonl"));
}
