//! From a folder to another host's search, with the program alone.

use crate::support::{Machine, Up, rows};

fn address(up: &Up) -> String {
    let said = up.said();
    said.split("serving at ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().to_owned()
}

#[test]
fn another_host_searches_until_its_grant_is_taken_back() {
    let machine = Machine::new();
    let folder = machine.folder(
        "Documents",
        &[("garden.md", "The compost heap needs turning. Ask rose.gardener@example.org about it.")],
    );
    let up = machine.up(&folder);
    let at = address(&up);
    let found = machine.run(&["search", "compost heap"]).ok();
    assert!(found.out.contains("garden.md"), "{}", found.out);
    assert!(found.out.contains("[EMAIL_"), "{}", found.out);

    // The other host: nothing of this machine but a certificate, its key and the CA's root.
    machine.run(&["ca", "issue", "laptop.example", "--to", "."]).ok();
    let other = Machine::new();
    for file in ["laptop.example.pem", "laptop.example.key"] {
        std::fs::copy(machine.path(file), other.path(file)).unwrap();
    }
    std::fs::copy(machine.state().join("ca/root.pem"), other.path("root.pem")).unwrap();
    let owner = machine.owner();
    let ask = |words: &[&str]| {
        let fixed = [
            "--endpoint",
            &at,
            "--owner",
            owner.trim(),
            "--ca",
            "root.pem",
            "--cert",
            "laptop.example.pem",
            "--key",
            "laptop.example.key",
        ];
        other.run(&[words, &fixed].concat())
    };
    ask(&["health"]).ok();
    let refused = ask(&["search", "compost"]).fails(1);
    assert!(refused.err.contains("403") || refused.err.contains("may not"), "{}", refused.err);

    machine
        .run(&["grant", folder.to_str().unwrap(), "laptop.example", "--ops", "search", "--until", "2999-12-31"])
        .ok();
    let found = ask(&["search", "compost", "--json"]).ok();
    let answer: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    let hit = &answer["hits"][0];
    assert!(hit["text"].as_str().unwrap().contains("compost"), "{answer}");
    assert!(hit["path"].is_null(), "a grantee is not told paths: {answer}");
    ask(&["read", hit["doc"].as_str().unwrap()]).fails(1);
    ask(&["cards"]).fails(1);

    machine.run(&["revoke", folder.to_str().unwrap(), "laptop.example"]).ok();
    ask(&["search", "compost"]).fails(1);

    let audit = std::fs::read_to_string(folder.join(".agent/serve.audit.jsonl")).unwrap();
    assert!(!audit.contains("compost"), "{audit}");
    let summed = machine.run(&["audit", folder.to_str().unwrap()]).ok();
    assert!(summed.out.contains("laptop.example"), "{}", summed.out);
    assert_eq!(up.stop(), 143);
}

#[test]
fn a_new_sweep_is_served_without_a_restart() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("one.md", "First there was a lighthouse.")]);
    let up = machine.up(&folder);
    std::fs::write(folder.join("two.md"), "Then there was a windmill.").unwrap();
    machine.run(&["sweep", "--once", folder.join(".agent/manifest.yaml").to_str().unwrap()]).ok();
    let found = machine.run(&["search", "windmill", "--json"]).ok();
    assert!(found.out.contains("two.md"), "{}", found.out);
    drop(up);
}

#[test]
fn an_edit_without_a_signature_stops_the_serving() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("one.md", "A text about kettles.")]);
    let up = machine.up(&folder);
    let manifest = folder.join(".agent/manifest.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("sweep: hourly", "sweep: daily")).unwrap();
    assert_ne!(std::fs::read_to_string(&manifest).unwrap(), text, "the template no longer says `sweep: hourly`");
    let refused = machine.run(&["search", "kettles"]).fails(1);
    assert!(refused.err.contains("bad_signature"), "{}", refused.err);
    machine.run(&["health"]).fails(1);
    machine.run(&["sign", manifest.to_str().unwrap()]).ok();
    machine.run(&["search", "kettles"]).ok();
    machine.run(&["health"]).ok();
    drop(up);
}

#[test]
fn several_folders_are_several_agents() {
    let machine = Machine::new();
    let one = machine.folder("one", &[("a.md", "Apples are red.")]);
    let two = machine.folder("two", &[("b.md", "Bananas are yellow.")]);
    machine.run(&["up", "--once", one.to_str().unwrap(), two.to_str().unwrap()]).ok();
    for folder in [&one, &two] {
        assert_eq!(rows(&folder.join(".agent/walk.jsonl")).len(), 1);
        assert_eq!(rows(&folder.join(".agent/run.jsonl")).pop().unwrap()["ok"], true);
    }
    let listed = machine.run(&["agents", "--json"]).ok();
    assert_eq!(listed.out.lines().count(), 2, "{}", listed.out);
}
