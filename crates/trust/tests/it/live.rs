//! The manifest is the policy, live: every change counts at once, and nothing is remembered in its stead.

use std::fs;
use std::sync::Arc;

use bastion_trust::{LivePolicy, RefusalCode};

use crate::support::{HOST, MANIFEST, World, after, ca_params, now, params, self_signed};

fn live(world: &World) -> LivePolicy {
    LivePolicy::new(Arc::new(world.gate()), world.manifest(), false)
}

#[track_caller]
fn refused(live: &LivePolicy, code: RefusalCode) {
    assert_eq!(live.current().unwrap_err().code, code);
}

#[test]
fn what_did_not_change_is_not_judged_anew() {
    let world = World::new();
    world.sign();
    let live = live(&world);
    let first = live.current().unwrap();
    // a changed time stamp alone decides nothing
    let text = world.read();
    world.write(&text);
    world.clock.set(after(60));
    assert!(Arc::ptr_eq(&first, &live.current().unwrap()));
    world.write(&format!("{text}# a comment\n"));
    let second = live.current().unwrap();
    assert!(!Arc::ptr_eq(&first, &second) && first.digest() == second.digest());
}

#[test]
fn an_edit_closes_and_a_signature_opens_again() {
    let world = World::new();
    world.sign();
    let live = live(&world);
    assert!(live.current().unwrap().manifest().grant("bob.example").is_some());
    let good = world.read();
    world.write(&good.replace("bob.example", "eve.example"));
    refused(&live, RefusalCode::BadSignature);
    refused(&live, RefusalCode::BadSignature);
    world.write("v: [");
    refused(&live, RefusalCode::Malformed);
    fs::remove_file(world.manifest()).unwrap();
    refused(&live, RefusalCode::Malformed);
    world.write(&good.replace("bob.example", "eve.example"));
    world.sign();
    assert!(live.current().unwrap().manifest().grant("bob.example").is_none());
    world.write(&good);
    refused(&live, RefusalCode::RolledBack);
}

#[test]
fn certificates_roots_lists_and_dates_count_at_once() {
    let world = World::new();
    world.sign();
    let live = live(&world);
    live.current().unwrap();
    world.clock.set(after(86_400));
    live.current().unwrap();
    world.clock.set(after(86_401));
    refused(&live, RefusalCode::Expired);
    world.clock.set(now());
    live.current().unwrap();
    // the certificate is renewed for the same key; then it is another's
    let good = fs::read(world.path("owner.pem")).unwrap();
    world.owner(&world.root.issue(params(HOST)), "");
    refused(&live, RefusalCode::BadSignature);
    fs::write(world.path("owner.pem"), &good).unwrap();
    live.current().unwrap();
    // the roots change
    fs::write(world.path("root.pem"), self_signed(ca_params("root")).pem).unwrap();
    refused(&live, RefusalCode::NotChained);
    fs::remove_file(world.path("root.pem")).unwrap();
    refused(&live, RefusalCode::NoRoot);
    fs::write(world.path("root.pem"), &world.root.pem).unwrap();
    live.current().unwrap();
    // a revocation list appears beside the root
    fs::write(world.path("crl.pem"), "no list").unwrap();
    refused(&live, RefusalCode::NoRoot);
    fs::remove_file(world.path("crl.pem")).unwrap();
    live.current().unwrap();
}

#[test]
fn the_floor_counts_at_once() {
    let world = World::new();
    world.sign();
    let live = live(&world);
    live.current().unwrap();
    fs::write(world.path("state/floors/serials.json"), "broken").unwrap();
    refused(&live, RefusalCode::FloorUnusable);
    fs::remove_file(world.path("state/floors/serials.json")).unwrap();
    live.current().unwrap();
    world.clock.set(after(80_000));
    live.current().unwrap();
    world.clock.set(after(-8_000));
    refused(&live, RefusalCode::Clock);
}

#[test]
fn a_root_that_becomes_a_link_outside_refuses() {
    let world = World::new();
    fs::create_dir_all(world.path("folder/docs")).unwrap();
    world.write(&MANIFEST.replace("path: ..", "path: ../docs"));
    world.sign();
    let live = live(&world);
    live.current().unwrap();
    fs::remove_dir(world.path("folder/docs")).unwrap();
    std::os::unix::fs::symlink("/etc", world.path("folder/docs")).unwrap();
    refused(&live, RefusalCode::Malformed);
}

#[test]
fn the_bypass_is_live_too() {
    let world = World::new();
    let live = LivePolicy::new(Arc::new(world.gate()), world.manifest(), true);
    let first = live.current().unwrap();
    assert!(Arc::ptr_eq(&first, &live.current().unwrap()));
    world.sign();
    assert!(matches!(live.current().unwrap().standing(), bastion_trust::Standing::Signed { .. }));
    world.write(&world.read().replace("[search]", "[]"));
    refused(&live, RefusalCode::BadSignature);
}
