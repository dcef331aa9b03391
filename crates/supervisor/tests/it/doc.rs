//! docs/supervisor.md holds every field of every record with its type, and this holds the records to it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Agent, said};

const DOC: &str = include_str!("../../../../docs/supervisor.md");

/// The tables below the headings of the third rank: record → field → type.
fn documented(record: &str) -> BTreeMap<&'static str, &'static str> {
    let section = DOC.split("\n### ").find(|section| section.starts_with(&format!("`{record}`"))).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(field, rest)| (field, rest.split(" | ").next().unwrap())).collect()
}

fn holds(record: &str, examples: &[&Value]) {
    let fields = documented(record);
    let mut seen = BTreeSet::new();
    for example in examples {
        for (name, value) in example.as_object().unwrap() {
            let kind = fields.get(name.as_str()).unwrap_or_else(|| panic!("{record}: `{name}` is not documented"));
            assert!(is(kind, value), "{record}: `{name}` is documented as {kind} and written as {value}");
            seen.insert(name.as_str());
        }
        for (name, kind) in &fields {
            assert!(kind.ends_with("absent") || example.get(name).is_some(), "{record}: `{name}` is absent");
        }
    }
    assert_eq!(seen, fields.keys().copied().collect(), "{record}: fields that no example has");
}

fn is(kind: &str, value: &Value) -> bool {
    let time = |text: &str| {
        let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        shape == "0000-00-00T00:00:00.000Z"
    };
    kind.split(" or ").any(|kind| match kind {
        "absent" => false,
        "null" => value.is_null(),
        "string" => value.is_string(),
        "time" => value.as_str().is_some_and(time),
        "integer" => value.is_u64(),
        "object" => value.is_object(),
        "array of object" => value.as_array().is_some_and(|all| all.iter().all(Value::is_object)),
        other => panic!("docs/supervisor.md has a type that nothing is: {other}"),
    })
}

#[test]
fn the_records_are_as_documented() {
    let agent = Agent::cycles(&["exit 1", &said("complete")]);
    assert_eq!(agent.run().code, 0);
    let history = agent.history();
    holds("status.json", &history.iter().collect::<Vec<_>>());
    holds("result", &[&history[1]["result"]]);
    let report: Value = serde_json::from_str(&agent.run_with(&["report"]).out).unwrap();
    holds("report", &[&report]);
    let report: Value = serde_json::from_str(&Agent::new("").run_with(&["report", "--log"]).out).unwrap();
    holds("report", &[&report]);
}

#[test]
fn every_variable_that_is_read_is_documented_with_its_default() {
    let settings = include_str!("../../src/settings.rs");
    let read = settings.split('"').filter(|word| word.starts_with("OPENSHELL_AGENT_") && !word.contains(' '));
    for name in read {
        assert!(DOC.contains(&format!("| `{name}` | ")), "{name}");
    }
    for (name, default) in
        [("POLL_INTERVAL_SECONDS", "900"), ("CYCLE_TIMEOUT_SECONDS", "3600"), ("HEARTBEAT_SECONDS", "60")]
    {
        assert!(DOC.contains(&format!("| `OPENSHELL_AGENT_{name}` | {default} | ")), "{name}");
    }
}

#[test]
fn the_supervisor_stands_alone() {
    let manifest = include_str!("../../Cargo.toml");
    let dependencies = manifest.split("dependencies]").nth(1).unwrap();
    let ours: Vec<_> = dependencies.lines().filter(|line| line.starts_with("bastion-")).collect();
    assert_eq!(ours, ["bastion-cage.workspace = true"], "it depends on no other crate of ours");
    for name in ["tokio", "clap", "libc"] {
        assert!(!dependencies.contains(name), "{name}");
    }
}
