//! Signing keeps every other byte; what signs by itself starts from what the gate admits.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bastion_trust::manifest::{Grant, Op, Ops};
use bastion_trust::{SignError, Warning, sign};

use crate::support::{HOST, MANIFEST, World, after, offset, params};

/// The lines that are not the serial and not in the signature block.
fn rest(text: &str) -> String {
    let mut inside = false;
    let kept = text.split_inclusive('\n').filter(|line| {
        inside = line.starts_with("signature:") || (inside && line.starts_with(' '));
        !inside && !line.starts_with("serial:")
    });
    kept.collect()
}

fn grant(host: &str) -> Grant {
    Grant { host: host.into(), ops: [Op::Search].into_iter().collect(), until: "2031-06-30".parse().unwrap() }
}

#[test]
fn every_other_byte_stays() {
    let world = World::new();
    let block = MANIFEST
        .replace("grants:", "signature: # mine\n  value: 'old' # v\n  cert: old.pem\n  # between\n  alg: x\n\ngrants:");
    for text in [
        MANIFEST.to_owned(),
        block,
        MANIFEST.trim_end().to_owned(),
        format!("\u{feff}{MANIFEST}"),
        MANIFEST.replace('\n', "\r\n"),
        format!("---\n{MANIFEST}...\n"),
    ] {
        world.write(&text);
        world.sign();
        let once = world.read();
        assert_eq!(rest(&once).trim_end(), rest(&text).trim_end(), "{once}");
        assert_eq!(once.matches("signature:").count(), 1);
        assert_eq!(once.contains("\r\n"), text.contains("\r\n"));
        assert_eq!(once.matches('\n').count() - once.matches("\r\n").count() == 0, text.contains("\r\n"));
        assert_eq!(once.ends_with('\n'), text.ends_with('\n'), "{text:?}");
        world.admitted();
        world.sign();
        let twice = world.read();
        let without_value = |text: &str| {
            text.lines()
                .filter(|line| !line.contains("value:") && !line.starts_with("serial:"))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(without_value(&twice), without_value(&once));
        world.admitted();
    }
}

#[test]
fn flow_manifests_are_signed_too() {
    for text in [
        "{v: 1, id: a, owner: {host: alice.example}, roots: [..], serial: 4} # c\n",
        r#"{"v":1,"id":"a","owner":{"host":"alice.example"},"roots":[".."]}"#,
    ] {
        let world = World::new();
        world.write(text);
        world.sign();
        world.admitted();
        world.sign();
        world.admitted();
    }
}

#[test]
fn the_mode_and_the_link_stay() {
    let world = World::new();
    fs::set_permissions(world.manifest(), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(world.manifest(), world.path("link.yaml")).unwrap();
    sign::sign(&world.gate(), &world.path("link.yaml"), Path::new("../../owner.pem"), &world.path("owner.key"))
        .unwrap();
    assert!(world.path("link.yaml").symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::metadata(world.manifest()).unwrap().permissions().mode() & 0o777, 0o640);
    world.admitted();
    assert_eq!(fs::read_dir(world.path("folder/.agent")).unwrap().count(), 1, "no litter");
}

#[test]
fn the_serial_rises_over_the_file_and_the_floor() {
    let world = World::new();
    assert_eq!(world.sign().serial, Some(2));
    assert_eq!(world.sign().serial, Some(3));
    world.admitted();
    world.write(MANIFEST);
    assert_eq!(world.sign().serial, Some(4), "over the floor");
    world.write(&MANIFEST.replace("serial: 1", "serial: 90 # high"));
    assert_eq!(world.sign().serial, Some(91));
    assert!(world.read().contains("serial: 91 # high"));
    world.write(&MANIFEST.replace("serial: 1", "serial: 9007199254740991"));
    assert!(matches!(world.try_sign(), Err(SignError::Serial)));
    world.write(&MANIFEST.replace("serial: 1\n", ""));
    assert_eq!(world.sign().serial, None);
    assert!(!world.read().contains("serial"));
}

#[test]
fn warnings_say_what_the_gate_may_refuse() {
    let world = World::new();
    assert_eq!(world.sign().warnings, [Warning::Ends(after(86_400))]);
    let mut long = params("eve.example");
    long.not_before = offset(after(10));
    long.not_after = offset(after(86_400 * 30));
    world.owner(&world.root.issue(long), "");
    assert_eq!(
        world.sign().warnings,
        [Warning::OtherName { cn: "eve.example".into(), owner_host: HOST.into() }, Warning::NotYetValid(after(10))]
    );
}

#[test]
fn nothing_is_written_where_signing_fails() {
    let world = World::new();
    let try_sign =
        |cert: &str, key: &str| sign::sign(&world.gate(), &world.manifest(), Path::new(cert), &world.path(key));
    assert!(matches!(try_sign("absent.pem", "owner.key"), Err(SignError::Unusable(_))));
    assert!(matches!(try_sign("../../owner.pem", "absent.key"), Err(SignError::File(_))));
    assert!(matches!(try_sign("../../owner\n.pem", "owner.key"), Err(SignError::File(_))));
    assert_eq!(world.read(), MANIFEST);
    world.write("v: 1\nid: a\nowner: {host: h}\nroots: [x]\nbogus: 1\n");
    let error = world.try_sign().unwrap_err();
    assert!(error.to_string().contains("line 5, column 1"), "{error}");
}

#[test]
fn grants_are_given_and_taken_under_a_new_signature() {
    let world = World::new();
    world.sign();
    let key = world.path("owner.key");
    let signed = sign::grant(&world.gate(), &world.manifest(), &grant("carol.example"), None, &key).unwrap();
    assert_eq!(signed.serial, Some(3));
    let text = world.read();
    assert!(
        text.contains(
            "    until: 2031-01-31\n  - host: carol.example\n    ops: [search]\n    until: 2031-06-30\nserial: 3\n"
        ),
        "{text}"
    );
    assert!(text.starts_with("# the owner's words\n") && text.contains("id: notes   # a name"));
    assert_eq!(world.admitted().manifest().grants.len(), 2);
    sign::grant(&world.gate(), &world.manifest(), &Grant { ops: Ops::ALL, ..grant("bob.example") }, None, &key)
        .unwrap();
    assert_eq!(world.admitted().manifest().grant("bob.example").unwrap().ops, Ops::ALL);
    sign::revoke(&world.gate(), &world.manifest(), "bob.example", None, &key).unwrap();
    sign::revoke(&world.gate(), &world.manifest(), "carol.example", None, &key).unwrap();
    assert!(world.admitted().manifest().grants.is_empty());
    assert!(world.read().contains("grants: []"));
    let gone = sign::revoke(&world.gate(), &world.manifest(), "carol.example", None, &key);
    assert!(matches!(gone, Err(SignError::Host { .. })));
    let bad = sign::grant(&world.gate(), &world.manifest(), &grant("Carol"), None, &key);
    assert!(matches!(bad, Err(SignError::Host { .. })));
    sign::resign(&world.gate(), &world.manifest(), None, &key).unwrap();
    assert_eq!(world.admitted().manifest().serial, Some(7));
}

#[test]
fn a_foreign_edit_is_never_signed_along() {
    let world = World::new();
    let key = world.path("owner.key");
    assert!(
        matches!(sign::grant(&world.gate(), &world.manifest(), &grant("c"), None, &key), Err(SignError::Refused(_))),
        "unsigned"
    );
    world.sign();
    let edited = world.read().replace("bob.example", "eve.example");
    world.write(&edited);
    assert!(matches!(
        sign::grant(&world.gate(), &world.manifest(), &grant("c"), None, &key),
        Err(SignError::Refused(_))
    ));
    assert!(matches!(
        sign::revoke(&world.gate(), &world.manifest(), "eve.example", None, &key),
        Err(SignError::Refused(_))
    ));
    assert!(matches!(sign::resign(&world.gate(), &world.manifest(), None, &key), Err(SignError::Refused(_))));
    assert_eq!(world.read(), edited);
}

#[test]
fn signers_at_once_do_not_lose_each_other() {
    let world = World::new();
    world.sign();
    std::thread::scope(|scope| {
        for i in 0..6 {
            let (world, key) = (&world, world.path("owner.key"));
            scope.spawn(move || {
                sign::grant(&world.gate(), &world.manifest(), &grant(&format!("h{i}")), None, &key).unwrap()
            });
        }
    });
    let admitted = world.admitted();
    assert_eq!((admitted.manifest().grants.len(), admitted.manifest().serial), (7, Some(8)));
}
