//! Every row of manifest.md §4, with its code.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine as _;
use bastion_trust::{RefusalCode, Standing};

use crate::support::{HOST, MANIFEST, World, after, ca_params, key, now, params, self_signed};

#[test]
fn a_signed_manifest_is_admitted_and_says_why() {
    let world = World::new();
    let signed = world.sign();
    let admitted = world.admitted();
    assert_eq!(admitted.digest(), signed.digest);
    assert_eq!(admitted.manifest().id.as_str(), "notes");
    assert_eq!(admitted.path(), world.manifest().canonicalize().unwrap());
    assert_eq!(
        *admitted.standing(),
        Standing::Signed {
            cn: HOST.into(),
            cert: "../../owner.pem".into(),
            chained: true,
            serial: Some(2),
            not_after: after(86_400)
        }
    );
    let root = world.path("folder").canonicalize().unwrap();
    assert_eq!(admitted.roots()[0].path, root);
    assert_eq!(admitted.roots()[0].label, "..");
    assert_eq!(admitted.default_out(), root.join(".agent"));
    assert!(admitted.scope().contains("..", "a.txt", false) && !admitted.scope().contains("..", "secret/a.txt", false));
}

#[test]
fn malformed() {
    let world = World::new();
    world.write(
        "v: 1\nid: notes\nowner: {host: h}\nroots: [..]\ngrants: [{host: b, ops: [search], utnil: 2030-01-01}]\n",
    );
    let refused = world.refused(RefusalCode::Malformed);
    assert!(refused.detail.contains("line 5") && refused.detail.contains("did you mean `until`"), "{refused}");
    assert_eq!(refused.manifest_id, None);
    fs::remove_file(world.manifest()).unwrap();
    world.refused(RefusalCode::Malformed);
    fs::create_dir(world.manifest()).unwrap();
    world.refused(RefusalCode::Malformed);
}

#[test]
fn unsigned_and_the_bypass_that_lets_only_unsigned_pass() {
    let world = World::new();
    assert_eq!(world.refused(RefusalCode::Unsigned).manifest_id.as_deref(), Some("notes"));
    let bypassed = world.gate_with(None, None).judge(&world.manifest(), true).unwrap();
    assert!(matches!(bypassed.standing(), Standing::Bypassed { reason } if reason.contains("--allow-unsigned")));
    // a signature that is there and fails still refuses
    world.sign();
    world.write(&world.read().replace("[search]", "[read_range]"));
    assert_eq!(world.gate().judge(&world.manifest(), true).unwrap_err().code, RefusalCode::BadSignature);
    // and the bypass makes nothing else pass
    world.write(&MANIFEST.replace("v: 1", "v: 2"));
    assert_eq!(world.gate().judge(&world.manifest(), true).unwrap_err().code, RefusalCode::Malformed);
}

#[test]
fn unknown_alg() {
    let world = World::new();
    world.sign();
    for alg in ["none", "ed25519", "ECDSA-P256-SHA256", "''", "ecdsa-p256-sha384"] {
        world.write(&world.read().replace("alg: ecdsa-p256-sha256", &format!("alg: {alg}")));
        world.refused(RefusalCode::UnknownAlg);
        world.write(&world.read().replace(&format!("alg: {alg}"), "alg: ecdsa-p256-sha256"));
    }
}

#[test]
fn no_root() {
    let world = World::new();
    world.sign();
    let code = |root: Option<&Path>| {
        world.gate_with(root.map(Into::into), None).judge(&world.manifest(), false).unwrap_err().code
    };
    assert_eq!(code(None), RefusalCode::NoRoot, "never the certificate beside the manifest");
    assert_eq!(code(Some(&world.path("absent.pem"))), RefusalCode::NoRoot);
    assert_eq!(code(Some(&world.path("owner.key"))), RefusalCode::NoRoot);
    fs::write(world.path("empty.pem"), "").unwrap();
    assert_eq!(code(Some(&world.path("empty.pem"))), RefusalCode::NoRoot);
    fs::write(world.path("broken.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert_eq!(code(Some(&world.path("broken.pem"))), RefusalCode::NoRoot);
    assert_eq!(code(Some(world.dir.path())), RefusalCode::NoRoot);
}

#[test]
fn cert_unreadable() {
    let world = World::new();
    world.sign();
    let good = fs::read(world.path("owner.pem")).unwrap();
    fs::write(world.path("owner.pem"), [good.as_slice(), &vec![b'\n'; 64 << 10]].concat()).unwrap();
    world.refused(RefusalCode::CertUnreadable);
    fs::write(world.path("owner.pem"), [good.as_slice(), &vec![b'\n'; (64 << 10) - good.len()]].concat()).unwrap();
    world.admitted();
    for bad in [&b""[..], b"no pem", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
        fs::write(world.path("owner.pem"), bad).unwrap();
        world.refused(RefusalCode::CertUnreadable);
    }
    // bytes behind the certificate, in the same block
    let mut der = pem::parse(&good).unwrap().into_contents();
    der.push(0);
    fs::write(world.path("owner.pem"), pem::encode(&pem::Pem::new("CERTIFICATE", der))).unwrap();
    world.refused(RefusalCode::CertUnreadable);
    fs::remove_file(world.path("owner.pem")).unwrap();
    world.refused(RefusalCode::CertUnreadable);
    let fifo = world.path("owner.pem");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    world.refused(RefusalCode::CertUnreadable);
}

#[test]
fn cn_mismatch_is_byte_for_byte() {
    for cn in ["bob.example", "Alice.example", "alice.example.", " alice.example", "alice.exampl\u{435}"] {
        let world = World::new();
        world.owner(&world.root.issue(params(cn)), "");
        assert_eq!(world.sign().warnings.len(), 2, "another name, and it ends soon");
        world.refused(RefusalCode::CnMismatch);
    }
}

#[test]
fn a_foreign_root_of_the_same_name_does_not_count() {
    let world = World::new();
    let foreign = self_signed(ca_params("root"));
    world.owner(&foreign.issue(params(HOST)), &foreign.pem);
    world.sign();
    world.refused(RefusalCode::NotChained);
    // the right one of two same-named roots is found
    fs::write(world.path("root.pem"), format!("{}{}", world.root.pem, foreign.pem)).unwrap();
    world.admitted();
}

#[test]
fn wrong_key() {
    let world = World::new();
    let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    world.sign();
    let good = world.read();
    world.owner(&world.root.issue_for(params(HOST), p384), "");
    world.refused(RefusalCode::WrongKey);
    assert!(world.try_sign().is_err());
    assert_eq!(world.read(), good);
}

#[test]
fn bad_signature_of_any_kind() {
    let world = World::new();
    world.sign();
    let good = world.read();
    let value = good.lines().find_map(|line| line.strip_prefix("  value: ")).unwrap().to_owned();
    let engine = base64::engine::general_purpose::STANDARD;
    let der = engine.decode(&value).unwrap();
    let mut forged = vec![vec![], vec![0x30, 6, 2, 1, 0, 2, 1, 0], [der.as_slice(), &[0]].concat()];
    for byte in 0..der.len() {
        let mut flipped = der.clone();
        flipped[byte] ^= 1;
        forged.push(flipped);
    }
    for der in forged {
        world.write(&good.replace(&value, &format!("\"{}\"", engine.encode(der))));
        world.refused(RefusalCode::BadSignature);
    }
    for text in ["'not base64!'", "''"] {
        world.write(&good.replace(&value, text));
        world.refused(RefusalCode::BadSignature);
    }
    // another key under a certificate of the same name
    world.write(&good);
    world.owner(&world.root.issue(params(HOST)), "");
    world.refused(RefusalCode::BadSignature);
}

#[test]
fn every_leaf_is_under_the_signature() {
    let world = World::new();
    let text = "v: 1\nid: notes\nowner:\n  host: alice.example\nroots:\n  - path: ..\n    include: [a]\n    exclude: [b]\n    other_mounts: false\ninclude: [c]\nexclude: [d]\nstages: [walk, extract]\nsweep: daily\nops: [search]\ngrants:\n  - host: bob.example\n    ops: [search]\n    until: 2031-01-31\nlimits:\n  max_file_bytes: 10\n  max_doc_chars: 11\n  extract_seconds: 12\n  archive_depth: 1\nserial: 7\n";
    world.write(text);
    world.sign();
    let good = world.read();
    world.admitted();
    for (from, to) in [
        ("id: notes", "id: notez"),
        ("path: ..", "path: ../x"),
        ("include: [a]", "include: [A]"),
        ("exclude: [b]", "exclude: []"),
        ("other_mounts: false", "other_mounts: true"),
        ("include: [c]", "include: [d]"),
        ("exclude: [d]", "exclude: [e]"),
        ("[walk, extract]", "[walk]"),
        ("sweep: daily", "sweep: hourly"),
        ("ops: [search]\ngrants", "ops: [read_range]\ngrants"),
        ("host: bob", "host: bo"),
        ("    ops: [search]", "    ops: []"),
        ("2031-01-31", "2031-02-01"),
        ("bytes: 10", "bytes: 100"),
        ("chars: 11", "chars: 111"),
        ("seconds: 12", "seconds: 121"),
        ("depth: 1", "depth: 2"),
        ("serial: 8", "serial: 9"),
        // a default written out, and one left out
        ("sweep: daily\n", ""),
        ("    other_mounts: false\n", ""),
        ("  archive_depth: 1\n", ""),
        ("serial: 8\n", ""),
    ] {
        assert!(good.contains(from), "{from}");
        world.write(&good.replacen(from, to, 1));
        world.refused(RefusalCode::BadSignature);
    }
    world.write(&good.replacen("alice.example", "bob.example", 1));
    world.refused(RefusalCode::CnMismatch);
    // comments, layout, key order and other ways to write the same value are not
    let same = good
        .replace("serial: 8\n", "")
        .replace("v: 1\n", "# c\nserial: 0x8\n'v':   1   # c\n")
        .replace("daily", "\"dail\\x79\"");
    world.write(&same);
    world.admitted();
}

#[test]
fn an_older_serial_is_rolled_back() {
    let world = World::new();
    world.sign();
    let old = world.read();
    world.admitted();
    world.sign();
    let newer = world.read();
    world.write(&old);
    world.admitted(); // the newer one was never accepted here
    world.write(&newer);
    world.admitted();
    world.write(&old);
    world.refused(RefusalCode::RolledBack);
    world.write(&newer);
    world.admitted();
    // signing what was restored raises it over the floor
    world.write(&old);
    assert_eq!(world.sign().serial, Some(4));
    world.admitted();
}

#[test]
fn a_serial_that_vanished_is_rolled_back_and_one_never_there_is_fine() {
    let world = World::new();
    let without = MANIFEST.replace("serial: 1\n", "");
    world.write(&without);
    assert_eq!(world.sign().serial, None);
    assert!(matches!(world.admitted().standing(), Standing::Signed { serial: None, .. }));
    let unserialled = world.read();
    world.write(MANIFEST);
    world.sign();
    world.admitted();
    world.write(&unserialled);
    world.refused(RefusalCode::RolledBack);
}

#[test]
fn a_serial_with_another_digest_is_reused() {
    let world = World::new();
    world.sign();
    let first = world.read();
    world.admitted();
    let other = World::new(); // another machine signs serial 2 too
    other.write(&MANIFEST.replace("2031-01-31", "2032-01-31"));
    fs::copy(world.path("owner.key"), other.path("owner.key")).unwrap();
    fs::copy(world.path("owner.pem"), other.path("owner.pem")).unwrap();
    other.sign();
    world.write(&other.read());
    world.refused(RefusalCode::SerialReused);
    world.write(&first);
    world.admitted();
}

#[test]
fn a_copied_folder_starts_its_own_floor() {
    let world = World::new();
    world.sign();
    let old = world.read();
    world.sign();
    world.admitted();
    let copy = world.path("copy/.agent/manifest.yaml");
    fs::create_dir_all(copy.parent().unwrap()).unwrap();
    fs::write(&copy, old).unwrap();
    assert!(world.gate().judge(&copy, false).is_ok());
    // a symbolic link is no other place
    std::os::unix::fs::symlink(world.manifest(), world.path("link.yaml")).unwrap();
    assert_eq!(
        world.gate().judge(&world.path("link.yaml"), false).unwrap().path(),
        world.manifest().canonicalize().unwrap()
    );
}

#[test]
fn a_floor_that_cannot_be_used_admits_nothing() {
    let world = World::new();
    world.sign();
    world.admitted();
    let serials = world.path("state/floors/serials.json");
    let good = fs::read(&serials).unwrap();
    for bad in [&b"{"[..], b"", b"[]", b"{\"v\":1,\"floors\":[{}]}"] {
        fs::write(&serials, bad).unwrap();
        world.refused(RefusalCode::FloorUnusable);
        assert_eq!(world.gate().judge(&world.manifest(), true).unwrap_err().code, RefusalCode::FloorUnusable);
    }
    fs::write(&serials, good).unwrap();
    world.admitted();
    fs::write(world.path("state/floors/clock.json"), "x").unwrap();
    world.refused(RefusalCode::FloorUnusable);
    // no place for it at all
    fs::remove_dir_all(world.path("state")).unwrap();
    fs::write(world.path("state"), "a file").unwrap();
    world.refused(RefusalCode::FloorUnusable);
}

#[test]
fn a_floor_that_cannot_be_written_admits_nothing() {
    let world = World::new();
    world.sign();
    world.admitted();
    if rustix::process::geteuid().is_root() {
        println!("SKIPPED: root writes into read-only folders");
        return;
    }
    fs::set_permissions(world.path("state/floors"), fs::Permissions::from_mode(0o500)).unwrap();
    world.refused(RefusalCode::FloorUnusable);
    fs::set_permissions(world.path("state/floors"), fs::Permissions::from_mode(0o700)).unwrap();
    world.admitted();
}

#[test]
fn the_floor_is_private_and_not_rewritten_for_nothing() {
    let world = World::new();
    world.sign();
    world.admitted();
    let inode = |name: &str| {
        use std::os::unix::fs::MetadataExt;
        let meta = fs::metadata(world.path("state/floors").join(name)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o600);
        meta.ino()
    };
    assert_eq!(fs::metadata(world.path("state")).unwrap().permissions().mode() & 0o777, 0o700);
    let before = (inode("serials.json"), inode("clock.json"));
    world.clock.set(after(3_599));
    world.admitted();
    assert_eq!((inode("serials.json"), inode("clock.json")), before);
    world.clock.set(after(3_600));
    world.admitted();
    assert_ne!(inode("clock.json"), before.1);
}

#[test]
fn a_clock_more_than_a_day_back_refuses() {
    let world = World::new();
    let mut long = params(HOST);
    long.not_before = crate::support::offset(after(-900_000));
    let mut root = ca_params("root");
    root.not_before = long.not_before;
    let world = World { root: self_signed(root), ..world };
    fs::write(world.path("root.pem"), &world.root.pem).unwrap();
    world.owner(&world.root.issue(long), "");
    world.sign();
    world.admitted();
    world.clock.set(after(-86_400));
    world.admitted();
    world.clock.set(after(-86_401));
    let refused = world.refused(RefusalCode::Clock);
    assert!(refused.detail.contains("clock.json"), "says how to mend it: {refused}");
    fs::remove_file(world.path("state/floors/clock.json")).unwrap();
    world.admitted();
    world.clock.set(now());
    world.admitted();
}

#[test]
fn floors_of_two_processes_do_not_lose_each_other() {
    let world = World::new();
    let manifests: Vec<_> = (0..8)
        .map(|i| {
            let path = world.path(&format!("f{i}/.agent/manifest.yaml"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, MANIFEST).unwrap();
            bastion_trust::sign::sign(&world.gate(), &path, Path::new("../../owner.pem"), &world.path("owner.key"))
                .unwrap();
            path
        })
        .collect();
    std::thread::scope(|scope| {
        for path in &manifests {
            scope.spawn(|| world.gate().judge(path, false).unwrap());
        }
    });
    let floors = fs::read_to_string(world.path("state/floors/serials.json")).unwrap();
    assert_eq!(floors.matches("\"serial\":2").count(), 8);
}

#[test]
fn a_relative_root_may_not_leave_the_folder() {
    let world = World::new();
    fs::create_dir_all(world.path("elsewhere")).unwrap();
    fs::create_dir_all(world.path("folder/in")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", world.path("folder/out")).unwrap();
    std::os::unix::fs::symlink("in", world.path("folder/inner")).unwrap();
    let judged = |root: &str| {
        world.write(&MANIFEST.replace("path: ..", &format!("path: {root}")));
        world.gate().judge(&world.manifest(), true)
    };
    for bad in ["../..", "../../folder2", "../../elsewhere", "../out", "../out/x", "../in/../../elsewhere"] {
        let refused = judged(bad).unwrap_err();
        assert_eq!(refused.code, RefusalCode::Malformed, "{bad}");
        assert!(refused.detail.contains("line 6, column 11"), "{refused}");
    }
    let folder = world.path("folder").canonicalize().unwrap();
    for (good, path) in [
        ("..", ""),
        ("../in", "in"),
        ("../inner", "in"),
        ("../not-there-yet", "not-there-yet"),
        ("../../folder/in", "in"),
    ] {
        assert_eq!(judged(good).unwrap().roots()[0].path, folder.join(path), "{good}");
    }
    let elsewhere = world.path("elsewhere").canonicalize().unwrap();
    assert_eq!(judged(elsewhere.to_str().unwrap()).unwrap().roots()[0].path, elsewhere);
    assert_eq!(judged(&format!("{}/x/../y", elsewhere.display())).unwrap().roots()[0].path, elsewhere.join("y"));
}

#[test]
fn an_agent_of_several_roots_has_its_output_elsewhere() {
    let world = World::new();
    world.write(&MANIFEST.replace("  - path: ..", "  - ../a\n  - path: ../b"));
    let admitted = world.gate().judge(&world.manifest(), true).unwrap();
    assert_eq!(admitted.default_out(), Path::new("build/freeagent/notes"));
    world.write(&MANIFEST.replace("  - path: ..", "  - ../a\n  - path: ../x/../a"));
    assert_eq!(world.gate().judge(&world.manifest(), true).unwrap_err().code, RefusalCode::Malformed);
}

#[test]
fn the_leaf_key_is_not_needed_to_be_its_own_root() {
    // a self-signed certificate beside the manifest is nobody, though it holds the right name
    let world = World::new();
    let own = self_signed(params(HOST));
    world.owner(&own, "");
    world.sign();
    world.refused(RefusalCode::NotChained);
    let _ = key();
}
