//! Signed agents: what is signed is what is launched, and an edit of any of it is refused.

use std::path::{Path, PathBuf};

use bastion_host::clock::Clock as _;
use bastion_launch::{LaunchError, sign};
use bastion_trust::RefusalCode;
use bastion_trust::ca::Ca;
use bastion_trust::identity::{self, Kind};

use crate::world::World;

/// A machine with a CA of its own and an owner's certificate beside the agent.
fn machine() -> (World, PathBuf, PathBuf) {
    let world = World::new();
    let now = world.clock.now();
    let state = &world.machine.state_dir;
    let ca = Ca::init(state, now).unwrap();
    let (owner, _) = identity::ensure(&ca, state, Kind::Sign, "alice.example", now).unwrap();
    std::fs::copy(&owner.cert, world.agent().join("owner.crt")).unwrap();
    let manifest = world.agent().join("agent.yaml");
    (world, manifest, owner.key)
}

fn signed() -> (World, PathBuf, PathBuf) {
    let (world, manifest, key) = machine();
    let signed = sign::sign(&world.machine, &manifest, None, Path::new("owner.crt"), &key).unwrap();
    assert_eq!((signed.serial, signed.warnings), (Some(2), vec![]));
    (world, manifest, key)
}

fn refusal(world: &World) -> RefusalCode {
    match world.prepare().map(|_| ()).unwrap_err() {
        LaunchError::Gate { code, .. } => code,
        other => panic!("{other}"),
    }
}

#[test]
fn a_signed_agent_is_launched_without_a_question() {
    let (mut world, ..) = signed();
    world.options.require_signature = true;
    let prepared = world.prepare().unwrap();
    assert!(prepared.question().is_none());
    assert_eq!(prepared.plan().trust, "signed by alice.example");
    prepared.clear(&mut |_| panic!("it asked")).map(|_| ()).unwrap();
}

#[test]
fn signing_changes_the_serial_and_the_signature_and_no_other_byte() {
    let (world, manifest, _) = signed();
    let text = std::fs::read_to_string(&manifest).unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/gardener/agent.yaml");
    let before = std::fs::read_to_string(fixture).unwrap().replace("serial: 1", "serial: 2");
    assert!(text.starts_with(&before) && text[before.len()..].starts_with("signature:\n"), "{text}");
    drop(world);
}

#[test]
fn an_edit_of_anything_it_brings_in_is_refused() {
    for (path, text) in [
        ("helper.md", "Other."),
        ("prompts/gardener.md", "Other."),
        ("skills/prune/SKILL.md", "Other."),
        ("../../shared/notes.md", "Other."),
        ("providers/forge.yaml", "id: forge\n"),
        ("providers/other.yaml", "id: other\n"),
        ("policy.yaml", "version: 9\n"),
        ("image/seed.txt", "other"),
        ("image/new.txt", "new"),
        ("image/Dockerfile", "FROM scratch\nUSER 2000\n"),
    ] {
        let (world, ..) = signed();
        world.write(&format!("repo/agents/gardener/{path}"), text);
        assert_eq!(refusal(&world), RefusalCode::BadSignature, "{path}");
    }
    for (from, to) in
        [("max_cycles: 9", "max_cycles: 8"), ("description: Keeps", "description: keeps"), ("serial: 2", "serial: 3")]
    {
        let (world, ..) = signed();
        world.edit(from, to);
        assert_eq!(refusal(&world), RefusalCode::BadSignature, "{to}");
    }
}

#[test]
fn the_options_of_a_launch_do_not_break_a_signature() {
    let (mut world, ..) = signed();
    world.options.harness = Some("claude".into());
    world.options.from = Some("registry.example/base:1".into());
    world.prepare().unwrap();
    world.options.gateway = Some("local".into());
    world.prepare().unwrap();
}

#[test]
fn a_yes_does_not_help_an_edited_agent() {
    let (mut world, ..) = signed();
    world.options.trust = true;
    world.edit("max_cycles: 9", "max_cycles: 8");
    assert_eq!(refusal(&world), RefusalCode::BadSignature);
}

#[test]
fn another_owner_and_another_ca_are_refused() {
    let (world, ..) = signed();
    world.edit("host: alice.example", "host: bob.example");
    assert_eq!(refusal(&world), RefusalCode::CnMismatch);
    let (world, ..) = signed();
    std::fs::remove_dir_all(world.path("state/ca")).unwrap();
    Ca::init(&world.machine.state_dir, world.clock.now()).unwrap();
    assert_eq!(refusal(&world), RefusalCode::NotChained);
}

#[test]
fn an_older_version_is_refused_where_a_newer_was_seen() {
    let (world, manifest, key) = signed();
    let older = std::fs::read_to_string(&manifest).unwrap();
    sign::sign(&world.machine, &manifest, None, Path::new("owner.crt"), &key).unwrap();
    let newer = std::fs::read_to_string(&manifest).unwrap();
    world.prepare().unwrap();
    std::fs::write(&manifest, &older).unwrap();
    world.prepare().unwrap(); // a plan leaves no trace
    std::fs::write(&manifest, newer).unwrap();
    world.prepare().unwrap().clear(&mut |_| panic!("it asked")).map(|_| ()).unwrap();
    std::fs::write(&manifest, older).unwrap();
    assert_eq!(refusal(&world), RefusalCode::RolledBack);
}

#[test]
fn an_unsigned_agent_is_refused_where_signatures_are_required() {
    let mut world = World::new();
    world.options.require_signature = true;
    assert_eq!(refusal(&world), RefusalCode::Unsigned);
    world.options.require_signature = false;
    world.env("BASTION_REQUIRE_SIGNATURE", "1");
    assert_eq!(refusal(&world), RefusalCode::Unsigned);
}

#[test]
fn a_signature_made_elsewhere_is_recorded_where_it_holds() {
    let (world, manifest, key) = machine();
    let payload = sign::payload(&world.machine, &manifest, None).unwrap();
    let file = world.path("payload");
    std::fs::write(&file, &payload).unwrap();
    let der = bastion_trust::detached::sign_file(&file, &key).unwrap();
    let value = base64(&der);
    sign::record(&world.machine, &manifest, None, Path::new("owner.crt"), &value).unwrap();
    assert!(world.prepare().unwrap().question().is_none());
    assert!(sign::record(&world.machine, &manifest, None, Path::new("owner.crt"), "AAAA").is_err());
}

#[test]
fn an_agent_without_an_owner_is_not_signed() {
    let (world, manifest, key) = machine();
    world.edit("owner: {host: alice.example}\n", "");
    let error = sign::sign(&world.machine, &manifest, None, Path::new("owner.crt"), &key).unwrap_err();
    assert!(error.to_string().contains("owner"), "{error}");
    assert!(sign::is_agent(&manifest) && !sign::is_agent(Path::new("x/manifest.yaml")));
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0_usize, |word, byte| word << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            text.push(if digit <= chunk.len() { DIGITS[word >> (18 - 6 * digit) & 63].into() } else { '=' });
        }
    }
    text
}

#[test]
fn a_manifest_inside_its_own_image_context_can_be_signed() {
    let (world, manifest, key) = machine();
    world.edit("from: agent://image", "from: agent://.");
    world.write("repo/agents/gardener/Dockerfile", "FROM scratch\nUSER 1000\n");
    sign::sign(&world.machine, &manifest, None, Path::new("owner.crt"), &key).unwrap();
    assert!(world.prepare().unwrap().question().is_none());
    world.launch().0.unwrap();
    assert!(world.path("fake/context/agent.yaml").exists());
    world.write("repo/agents/gardener/notes.txt", "new in the context");
    assert_eq!(refusal(&world), RefusalCode::BadSignature);
}

#[test]
fn what_an_option_puts_in_is_not_signed() {
    let (mut world, ..) = signed();
    world.write("repo/agents/gardener/providers/extra.yaml", "id: extra\nendpoints: [{host: evil.example}]\n");
    // the folder of profiles is no part of the image, so the signature still holds
    assert_eq!(world.prepare().unwrap().plan().trust, "signed by alice.example");
    for put_in in [
        |world: &mut World| world.options.from = Some("image:1".into()),
        |world: &mut World| world.options.providers = vec!["forge.profile=extra".into()],
    ] {
        put_in(&mut world);
        let question = world.prepare().unwrap().question().cloned().unwrap();
        assert!(question.acts.iter().any(|act| act.contains("evil.example") || act.contains("image:1")), "{question}");
        world.options.require_signature = true;
        assert_eq!(refusal(&world), RefusalCode::Unsigned);
        world.options.require_signature = false;
        (world.options.from, world.options.providers) = (None, vec![]);
    }
}
