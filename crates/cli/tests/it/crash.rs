//! kill -9 at any moment of a sweep leaves an earlier searchable state, and the next sweep heals.

use std::process::Stdio;
use std::time::Duration;

use crate::support::{Machine, files, holds, rows, until};

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
    let mut killed = 0;
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
        let finished = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
        killed += usize::from(!finished);
        // Whatever was left behind, a reader finds a whole generation.
        let manifest = folder.join(".agent/manifest.yaml");
        assert!(manifest.exists());
        let name = generation();
        assert!(out.join("index").join(name.trim()).join("rows.db").exists(), "round {round}: {before} then {name}");
    }
    assert!(killed > 0, "every sweep was over before it was killed");
    // What a killed run wrote of a file that is gone by the next one is not kept.
    std::fs::write(folder.join("brief.md"), "ephemeral mayfly, brief@example.org").unwrap();
    let mut child = machine
        .command(&["up", "--once", folder.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until(|| out.join("index/dirty").exists() || is_over(child.id()), || "the sweep wrote nothing".to_owned());
    std::thread::sleep(Duration::from_millis(40));
    let _ = child.kill();
    child.wait().unwrap();
    std::fs::remove_file(folder.join("brief.md")).unwrap();
    machine.swept(&folder).ok();
    for path in files(&out) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!holds(&bytes, "mayfly") && !holds(&bytes, "brief@example.org"), "{} keeps it", path.display());
    }
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

/// Whether the process has ended and only waits to be reaped.
fn is_over(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')))
}
