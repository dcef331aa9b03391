//! Which files are read, and which never.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Machine, rows};

fn walked(folder: &Path) -> BTreeSet<String> {
    rows(&folder.join(".agent/walk.jsonl"))
        .iter()
        .filter(|row| row["status"] == "ok")
        .map(|row| row["path"].as_str().unwrap().to_owned())
        .collect()
}

fn skipped(folder: &Path) -> Vec<(String, String)> {
    rows(&folder.join(".agent/walk.jsonl"))
        .iter()
        .filter(|row| row["status"] == "skipped")
        .map(|row| (row["path"].as_str().unwrap().to_owned(), row["reason"].as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn links_pipes_and_loops_are_not_followed_out_or_round() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("real.md", "real"), ("sub/inner.md", "inner")]);
    symlink("/etc/passwd", folder.join("passwd.txt")).unwrap();
    symlink("..", folder.join("sub/loop")).unwrap();
    symlink("real.md", folder.join("again.md")).unwrap();
    symlink("nowhere", folder.join("dangling.md")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, folder.join("pipe.md"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket.md")).unwrap();
    machine.swept(&folder).ok();
    assert_eq!(walked(&folder), BTreeSet::from(["real.md".to_owned(), "sub/inner.md".to_owned()]));
    let expected =
        [("dangling.md", "broken_link"), ("passwd.txt", "outside_root"), ("pipe.md", "fifo"), ("socket.md", "socket")];
    assert_eq!(skipped(&folder), expected.map(|(path, reason)| (path.to_owned(), reason.to_owned())));
    assert_eq!(rows(&folder.join(".agent/extract/index.jsonl")).len(), 2);
}

#[test]
fn names_are_never_merged() {
    let machine = Machine::new();
    let names = ["a b.md", "a_b.md", "README.md", "readme.md", "caf\u{e9}.md", "cafe\u{301}.md", "back\\slash.md"];
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, *name)).collect();
    let folder = machine.folder("Documents", &files);
    std::fs::write(folder.join(OsStr::from_bytes(b"not \xff utf8.md")), "bytes").unwrap();
    machine.swept(&folder).ok();
    let walked = walked(&folder);
    assert_eq!(walked.len(), names.len() + 1, "{walked:?}");
    assert!(walked.contains("not \\xff utf8.md"), "{walked:?}");
    assert!(walked.contains("back\\\\slash.md"), "{walked:?}");
    assert_eq!(rows(&folder.join(".agent/extract/index.jsonl")).len(), names.len() + 1);
}

#[test]
fn the_scope_is_the_manifests() {
    let machine = Machine::new();
    let folder = machine.folder(
        "Documents",
        &[
            ("keep.md", "k"),
            ("private/diary.md", "d"),
            ("node_modules/x/readme.md", "n"),
            (".git/config", "g"),
            ("draft.tmp", "t"),
            ("secret.md", "s"),
            (".agentignore", "secret.md\n"),
        ],
    );
    machine.swept(&folder).ok();
    let keep = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert_eq!(walked(&folder), keep(&["keep.md", "private/diary.md"]));

    let manifest = folder.join(".agent/manifest.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, format!("exclude: [private/]\ninclude: ['*.md', 'node_modules/']\n{text}")).unwrap();
    machine.run(&["sign", manifest.to_str().unwrap()]).ok();
    machine.swept(&folder).ok();
    assert_eq!(walked(&folder), keep(&["keep.md", "node_modules/x/readme.md"]));
    for kept in rows(&folder.join(".agent/catalog/files.jsonl")) {
        assert_ne!(kept["path"], "private/diary.md");
    }
}

#[test]
fn an_agent_never_reads_its_own_output_wherever_it_lies() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha")]);
    machine.swept(&folder).ok();
    let manifest = folder.join(".agent/manifest.yaml");
    let inside = folder.join("prepared");
    for _ in 0..2 {
        machine
            .run(&[
                OsStr::new("sweep"),
                OsStr::new("--once"),
                manifest.as_os_str(),
                OsStr::new("--out"),
                inside.as_os_str(),
            ])
            .ok();
        let paths: Vec<_> = rows(&inside.join("walk.jsonl")).iter().map(|row| row["path"].clone()).collect();
        assert_eq!(paths, ["a.md"]);
    }
}

#[test]
fn a_file_that_cannot_be_read_is_skipped_and_keeps_what_was_known() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let machine = Machine::new();
    let folder = machine
        .folder("Documents", &[("a.md", "alpha"), ("b.md", "beta"), ("deep/c.md", "gamma"), ("shut/d.md", "delta")]);
    let Some(user) = machine.into_ordinary_user() else { return };
    user.swept(&folder).ok();
    mode(&folder.join("b.md"), 0); // was read before, and is not different
    std::fs::write(folder.join("new.md"), "epsilon").unwrap();
    mode(&folder.join("new.md"), 0);
    mode(&folder.join("deep"), 0);
    mode(&folder.join("shut"), 0o600); // names can be listed, and nothing else
    user.swept(&folder).ok();
    let skipped = skipped(&folder);
    mode(&folder.join("deep"), 0o700);
    mode(&folder.join("shut"), 0o700);
    let denied = |path: &str| (path.to_owned(), "permission".to_owned());
    assert_eq!(skipped, [denied("b.md"), denied("deep/c.md"), denied("new.md"), denied("shut/d.md")]);
    assert_eq!(rows(&folder.join(".agent/sanitize/index.jsonl")).len(), 4);
}

#[test]
fn an_agentignore_that_cannot_be_obeyed_stops_the_walk() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha"), ("sub/secret.md", "secret")]);
    let pipe = folder.join("sub/.agentignore");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
    let refused = machine.swept(&folder).fails(1);
    assert!(refused.err.contains(".agentignore"), "{}", refused.err);
    std::fs::remove_file(&pipe).unwrap();
    std::fs::write(&pipe, "se{cret.md\n").unwrap();
    let refused = machine.swept(&folder).fails(1);
    assert!(refused.err.contains(".agentignore"), "{}", refused.err);
    assert!(!folder.join(".agent/walk.jsonl").exists());
}

#[test]
fn what_became_a_link_loses_its_old_text() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha"), ("diary.md", "dear diary")]);
    machine.swept(&folder).ok();
    std::fs::remove_file(folder.join("diary.md")).unwrap();
    symlink("/etc/hostname", folder.join("diary.md")).unwrap();
    machine.swept(&folder).ok();
    assert_eq!(rows(&folder.join(".agent/sanitize/index.jsonl")).len(), 1);
}

#[test]
fn an_output_folder_with_files_of_others_is_refused_and_left_alone() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha")]);
    machine.swept(&folder).ok();
    let manifest = folder.join(".agent/manifest.yaml");
    let work = machine.folder("work", &[("extract/report.docx", "mine"), ("seal/old.age", "mine")]);
    let sweep = |out: &Path| {
        machine.run(&[
            OsStr::new("sweep"),
            OsStr::new("--once"),
            manifest.as_os_str(),
            OsStr::new("--out"),
            out.as_os_str(),
        ])
    };
    let refused = sweep(&work).fails(1);
    assert!(refused.err.contains("is not ours"), "{}", refused.err);
    assert!(work.join("extract/report.docx").exists() && work.join("seal/old.age").exists());
    let refused = sweep(&folder).fails(1);
    assert!(refused.err.contains("is a root"), "{}", refused.err);
}
