//! kill -9 at any moment of a sweep leaves an earlier searchable state, and the next sweep heals.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{Machine, files, rows};

/// Files enough that a sweep takes a while.
fn fill(folder: &std::path::Path, round: usize) {
    for at in 0..120 {
        let text = format!(
            "# Note {at} of round {round}\n\n{}\nWrite to person{at}@example.org.\n",
            "The quick brown fox jumps. ".repeat(40)
        );
        std::fs::write(folder.join(format!("note{at}.md")), text).unwrap();
    }
}

#[test]
fn a_killed_sweep_leaves_the_earlier_state_and_the_next_one_heals() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[]);
    fill(&folder, 0);
    machine.swept(&folder).ok();
    let out = folder.join(".agent");
    let generation = || std::fs::read_to_string(out.join("index/current")).unwrap();
    for round in 1..=8_u64 {
        fill(&folder, usize::try_from(round).unwrap());
        let before = generation();
        let mut child = machine
            .command(&["up", "--once", folder.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(round * 25));
        let _ = child.kill();
        child.wait().unwrap();
        // Whatever was left behind, a reader finds a whole generation.
        let manifest = folder.join(".agent/manifest.yaml");
        assert!(manifest.exists());
        let name = generation();
        assert!(out.join("index").join(name.trim()).join("rows.db").exists(), "round {round}: {before} then {name}");
    }
    machine.swept(&folder).ok();
    let last = rows(&out.join("run.jsonl")).pop().unwrap();
    assert_eq!(last["ok"], true, "{last}");
    assert_eq!(rows(&out.join("sanitize/index.jsonl")).len(), 120);
    assert_eq!(rows(&out.join("extract/index.jsonl")).len(), 120);
    let leftovers: Vec<_> = files(&out).into_iter().filter(|path| path.to_string_lossy().ends_with(".tmp")).collect();
    assert!(leftovers.is_empty(), "{leftovers:?}");
    let generations = std::fs::read_dir(out.join("index"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("gen-"))
        .count();
    assert_eq!(generations, 1);
    let up = machine.up(&folder);
    let found = machine.run(&["search", "note 7 of round 8", "-k", "50", "--json"]).ok();
    assert!(found.out.contains("round 8") && !found.out.contains("round 7"), "{}", found.out);
    drop(up);
}
