//! The crate graph is a security argument: who can't reach a crate can't leak what is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Every package of the workspace with the packages it is built with (not those of its tests).
fn graph() -> (Graph, BTreeMap<String, BTreeSet<String>>) {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let (mut ours, mut others) = (Graph::new(), Graph::new());
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap().to_owned();
        let (mut inner, mut outer) = (BTreeSet::new(), BTreeSet::new());
        for dependency in package["dependencies"].as_array().unwrap() {
            if dependency["kind"].as_str() == Some("dev") {
                continue;
            }
            let to = dependency["name"].as_str().unwrap().to_owned();
            if dependency["path"].is_string() {
                inner.insert(to)
            } else {
                outer.insert(to)
            };
        }
        ours.insert(name.clone(), inner);
        others.insert(name, outer);
    }
    (ours, others)
}

fn reaches(graph: &Graph, from: &str) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(name) = open.pop() {
        for next in &graph[&name] {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

#[test]
fn what_answers_requests_cannot_reach_plaintext_or_the_stages() {
    let (graph, _) = graph();
    for from in ["bastion-serve", "bastion-retrieval", "bastion-store"] {
        let reached = reaches(&graph, from);
        for forbidden in ["bastion-private", "bastion-stages", "bastion-extract", "bastion-sanitize"] {
            assert!(!reached.contains(forbidden), "{from} reaches {forbidden}");
        }
    }
}

#[test]
fn only_the_stages_and_the_program_reach_plaintext() {
    let (graph, _) = graph();
    for (name, direct) in &graph {
        let may = matches!(name.as_str(), "bastion-stages" | "bastion");
        assert!(may || !direct.contains("bastion-private"), "{name} uses bastion-private");
    }
}

#[test]
fn the_cage_and_the_rules_know_nothing_of_the_rest() {
    let (graph, outer) = graph();
    assert!(graph["bastion-cage"].is_empty(), "{:?}", graph["bastion-cage"]);
    assert!(graph["bastion-sanitize"].is_empty(), "{:?}", graph["bastion-sanitize"]);
    assert!(graph["bastion-host"].is_empty(), "{:?}", graph["bastion-host"]);
    let network = ["tokio", "hyper", "ureq", "rustls", "tokio-rustls"];
    for name in [
        "bastion-cage",
        "bastion-extract",
        "bastion-private",
        "bastion-store",
        "bastion-sanitize",
        "bastion-trust",
        "bastion-sweep",
    ] {
        let found: Vec<_> = network.iter().filter(|crate_| outer[name].contains(**crate_)).collect();
        assert!(found.is_empty(), "{name} has network code: {found:?}");
    }
}

#[test]
fn what_goes_into_a_sandbox_brings_nothing_of_the_host() {
    let (graph, _) = graph();
    assert_eq!(graph["bastion-supervisor"], BTreeSet::from(["bastion-cage".to_owned()]));
    let reached = reaches(&graph, "bastion-launch");
    for forbidden in ["bastion-private", "bastion-stages", "bastion-store", "bastion-serve"] {
        assert!(!reached.contains(forbidden), "bastion-launch reaches {forbidden}");
    }
}

#[test]
fn hostile_formats_are_read_in_one_crate_alone() {
    let (_, outer) = graph();
    for (name, uses) in &outer {
        for parser in ["docling", "pdf_oxide", "mail-parser"] {
            assert!(name == "bastion-extract" || !uses.contains(parser), "{name} uses {parser}");
        }
    }
}

#[test]
fn only_the_program_sees_all() {
    let (graph, _) = graph();
    for (name, direct) in &graph {
        assert!(!direct.contains("bastion"), "{name} depends on the program");
    }
}
