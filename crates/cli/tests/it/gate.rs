//! Every command that reads or serves passes the gate, and says the code when it refuses.

use crate::support::{Machine, rows};

#[test]
fn what_is_unsigned_or_edited_runs_nothing() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha")]);
    machine.swept(&folder).ok();
    let manifest = folder.join(".agent/manifest.yaml");
    let path = manifest.to_str().unwrap();
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("{text}# a comment changes nothing\n")).unwrap();
    machine.run(&["verify", path]).ok();
    std::fs::write(&manifest, text.replace("sweep: hourly", "sweep: daily")).unwrap();
    std::fs::write(folder.join("b.md"), "beta").unwrap();
    for command in ["walk", "extract", "sanitize", "chunk", "embed", "catalog", "seal"] {
        let refused = machine.run(&[command, path]).fails(3);
        assert!(refused.err.contains("bad_signature"), "{command}: {}", refused.err);
    }
    let refused = machine.run(&["sweep", "--once", path]).fails(3);
    assert!(refused.err.contains("bad_signature"), "{}", refused.err);
    machine.run(&["up", "--once", folder.to_str().unwrap()]).fails(3);
    machine.run(&["grant", folder.to_str().unwrap(), "x.example", "--until", "2999-01-01"]).fails(3);
    assert_eq!(rows(&folder.join(".agent/walk.jsonl")).len(), 1, "a refused run walked");
    let last = rows(&folder.join(".agent/run.jsonl")).pop().unwrap();
    assert_eq!(last["gate"]["refused"]["code"], "bad_signature", "{last}");
}

#[test]
fn an_unsigned_manifest_passes_only_where_that_was_asked_for_and_is_recorded() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha")]);
    machine.run(&["ca", "init"]).ok();
    machine.run(&["init", folder.to_str().unwrap()]).ok();
    let manifest = folder.join(".agent/manifest.yaml");
    let path = manifest.to_str().unwrap();
    let refused = machine.run(&["sweep", "--once", path]).fails(3);
    assert!(refused.err.contains("unsigned"), "{}", refused.err);
    let ran = machine.run(&["sweep", "--once", "--allow-unsigned", path]).ok();
    assert!(ran.err.contains("FOR DEVELOPMENT ONLY"), "{}", ran.err);
    let last = rows(&folder.join(".agent/run.jsonl")).pop().unwrap();
    assert_eq!(last["allow_unsigned"], true);
    assert!(last["gate"]["bypassed"].is_string(), "{last}");
}

#[test]
fn sterilize_is_refused_as_not_yet() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha")]);
    machine.swept(&folder).ok();
    let manifest = folder.join(".agent/manifest.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let edited = text.replace("sanitize", "sterilize");
    assert_ne!(edited, text, "the template no longer names the stage");
    std::fs::write(&manifest, edited).unwrap();
    machine.run(&["sign", manifest.to_str().unwrap()]).ok();
    machine.run(&["verify", manifest.to_str().unwrap()]).ok();
    let ran = machine.run(&["sweep", "--once", manifest.to_str().unwrap()]).fails(1);
    assert!(ran.err.contains("not yet"), "{}", ran.err);
}

#[test]
fn a_second_sweep_is_told_who_holds_the_lock() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha")]);
    machine.swept(&folder).ok();
    // A lock of a process that lives: this one.
    let held = machine.folder("held", &[]);
    let lock =
        bastion_host::lock::RunLock::acquire(&held.join("sweep.lock"), &bastion_host::clock::SystemClock).unwrap();
    let manifest = folder.join(".agent/manifest.yaml");
    let refused =
        machine.run(&["sweep", "--once", manifest.to_str().unwrap(), "--out", held.to_str().unwrap()]).fails(4);
    assert!(refused.err.contains(&std::process::id().to_string()), "{}", refused.err);
    drop(lock);
}

#[test]
fn agents_and_doctor_say_which_manifest_is_refused() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "The alpha text.")]);
    machine.swept(&folder).ok();
    assert!(!machine.run(&["agents"]).ok().out.contains("refused"));
    assert!(machine.run(&["doctor"]).ok().out.contains("its manifest verifies"));
    let manifest = folder.join(".agent/manifest.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text.replace("sweep: hourly", "sweep: daily")).unwrap();
    let agents = machine.run(&["agents"]).ok();
    assert!(agents.out.contains("bad_signature"), "{}", agents.out);
    let json: serde_json::Value = serde_json::from_str(&machine.run(&["agents", "--json"]).ok().out).unwrap();
    assert_eq!(json["refused"], "bad_signature");
    let doctor = machine.run(&["doctor"]).fails(1);
    assert!(doctor.out.contains("bad_signature"), "{}", doctor.out);
    std::fs::write(machine.state().join("identities/tls.key"), "no key").unwrap();
    let doctor = machine.run(&["doctor"]).fails(1);
    assert!(doctor.out.lines().any(|line| line.starts_with("NO") && line.contains("mutual TLS")), "{}", doctor.out);
}
