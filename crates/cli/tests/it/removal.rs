//! What leaves the folder leaves every store.

use crate::support::{Machine, files, holds, rows};

#[test]
fn a_deleted_file_leaves_every_store_and_the_vault() {
    let machine = Machine::new();
    let folder = machine.folder(
        "Documents",
        &[
            ("keep.md", "The keeper writes to keep@example.org."),
            ("gone.md", "The goner wrote to gone.person@example.org about periwinkle."),
        ],
    );
    machine.swept(&folder).ok();
    let out = folder.join(".agent");
    let doc = rows(&out.join("walk.jsonl")).iter().find(|row| row["path"] == "gone.md").unwrap()["doc"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(out.join(format!("sanitize/{doc}.txt")).exists());
    std::fs::remove_file(folder.join("gone.md")).unwrap();
    machine.swept(&folder).ok();
    for path in files(&out).into_iter().chain(files(&machine.state())) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(!name.contains(&doc), "{} is still there", path.display());
        let bytes = std::fs::read(&path).unwrap();
        for trace in ["gone.person@example.org", "periwinkle", doc.as_str()] {
            assert!(!holds(&bytes, trace), "{trace} is still in {}", path.display());
        }
    }
    let up = machine.up(&folder);
    let found = machine.run(&["search", "periwinkle", "--json"]).ok();
    assert!(!found.out.contains("goner"), "{}", found.out);
    drop(up);
}

#[test]
fn an_empty_root_removes_nothing_unless_that_is_meant() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha text")]);
    machine.swept(&folder).ok();
    let walk = folder.join(".agent/walk.jsonl");
    assert_eq!(rows(&walk).len(), 1);
    std::fs::remove_file(folder.join("a.md")).unwrap();
    let refused = machine.swept(&folder).fails(1);
    assert!(refused.err.contains("--accept-empty"), "{}", refused.err);
    assert_eq!(rows(&walk).len(), 1);
    machine.run(&["up", "--once", "--accept-empty", folder.to_str().unwrap()]).ok();
    assert_eq!(rows(&walk).len(), 0);
}

#[test]
fn a_vault_that_is_gone_is_never_made_anew() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "Write to a.b@example.org.")]);
    machine.swept(&folder).ok();
    std::fs::remove_dir_all(machine.state().join("vaults")).unwrap();
    let refused = machine.swept(&folder).fails(1);
    assert!(refused.err.contains("is missing"), "{}", refused.err);
}

#[test]
fn a_prepared_text_that_was_taken_away_is_made_again() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "The alpha text."), ("b.md", "The beta text.")]);
    machine.swept(&folder).ok();
    let pieces = folder.join(".agent/sanitize/pieces");
    let before = files(&pieces);
    std::fs::remove_file(&before[0]).unwrap();
    std::fs::write(folder.join("c.md"), "The gamma text.").unwrap();
    machine.swept(&folder).ok();
    assert!(before.iter().all(|piece| piece.exists()));
    let _up = machine.up(&folder);
    for word in ["alpha", "beta", "gamma"] {
        assert!(machine.run(&["search", word, "--json"]).ok().out.contains(&format!("The {word} text.")));
    }
}
