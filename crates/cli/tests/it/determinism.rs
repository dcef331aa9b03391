//! Two sweeps of the same folder with the same vault key make the same bytes.

use std::ffi::OsStr;
use std::path::Path;

use crate::formats;
use crate::support::{Machine, files, rows};

fn sweep(machine: &Machine, manifest: &Path, out: &Path) {
    machine
        .run(&[OsStr::new("sweep"), OsStr::new("--once"), manifest.as_os_str(), OsStr::new("--out"), out.as_os_str()])
        .ok();
}

#[test]
fn the_same_folder_and_key_give_the_same_bytes() {
    let machine = Machine::new();
    let folder =
        machine.folder("Documents", &[("deep/er/a.md", "# A\n\nCall +49 30 901820 or write to x.y@example.org.\n")]);
    formats::write_all(&folder, &["The first line.", "Mail to someone@example.com now."]);
    machine.swept(&folder).ok();
    let manifest = folder.join(".agent/manifest.yaml");
    let (one, two) = (machine.path("one"), machine.path("two"));
    sweep(&machine, &manifest, &one);
    // The same key: the second output folder starts with the first one's vault.
    std::fs::create_dir_all(two.join("sanitize")).unwrap();
    std::fs::copy(one.join("sanitize/vault.db"), two.join("sanitize/vault.db")).unwrap();
    set_private(&two.join("sanitize/vault.db"));
    sweep(&machine, &manifest, &two);
    let mut compared = 0;
    for part in ["extract", "sanitize", "catalog"] {
        for path in files(&one.join(part)) {
            if path.file_name().is_some_and(|name| name == "vault.db") {
                continue;
            }
            let other = two.join(path.strip_prefix(&one).unwrap());
            assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(&other).unwrap(), "{}", other.display());
            compared += 1;
        }
    }
    assert!(compared > 40, "only {compared} files were compared");
    assert_eq!(rows(&one.join("walk.jsonl")), rows(&two.join("walk.jsonl")));
}

#[test]
fn a_sweep_with_nothing_new_writes_nothing_but_its_record() {
    let machine = Machine::new();
    let folder = machine.folder("Documents", &[("a.md", "alpha"), ("b/c.txt", "beta")]);
    machine.swept(&folder).ok();
    let out = folder.join(".agent");
    let state = |out: &Path| -> Vec<_> {
        let told = ["run.jsonl", "run.state.json", "sweep.lock"];
        files(out)
            .into_iter()
            .filter(|path| !told.iter().any(|name| path.ends_with(name)))
            .map(|path| (std::fs::metadata(&path).unwrap().modified().unwrap(), path))
            .collect()
    };
    let before = state(&out);
    machine.swept(&folder).ok();
    assert_eq!(state(&out), before);
    let last = rows(&out.join("run.jsonl")).pop().unwrap();
    for stage in last["stages"].as_array().unwrap() {
        assert_eq!(stage["new"].as_u64().unwrap_or(0), 0, "{stage}");
        assert_eq!(stage["changed"].as_u64().unwrap_or(0), 0, "{stage}");
    }
}

fn set_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
