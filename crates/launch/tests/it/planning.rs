//! The plan: whole, the same every time, without a secret, and made without doing anything.

use crate::world::{World, assert_unplanted};

/// The plan with this machine's paths and the digests named.
fn shown(world: &World) -> String {
    let prepared = world.prepare().unwrap();
    let plan = prepared.plan();
    let mut text = plan.to_string().replace(&plan.digest, "DIGEST");
    let root = world.machine.cwd.parent().unwrap().display().to_string();
    text = text.replace(&root, "ROOT");
    let about = plan.payload.iter().find(|file| file.path.ends_with("agent.json")).unwrap();
    text.replace(&format!("agent.json ({} bytes", about.bytes), "agent.json (N bytes")
}

#[test]
fn the_plan_of_a_full_agent_reads_like_this() {
    let world = World::new();
    let snapshot = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/plan.txt");
    let expected = std::fs::read_to_string(&snapshot).unwrap_or_default();
    let actual = shown(&world);
    if expected != actual {
        let seen = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("plan.txt");
        std::fs::write(&seen, &actual).unwrap();
        panic!("the plan is not that of {}; it is in {}:\n{actual}", snapshot.display(), seen.display());
    }
}

#[test]
fn a_plan_is_made_without_doing_anything() {
    let world = World::new();
    world.edit("printf planted-;", "touch ran; printf planted-;");
    world.prepare().unwrap();
    assert!(world.all_calls().is_empty() && !world.path("repo/ran").exists());
    assert_eq!(std::fs::read_dir(&world.machine.state_dir).unwrap().count(), 0);
    world.assert_clean();
}

#[test]
fn a_plan_holds_no_secret() {
    let world = World::new();
    let prepared = world.prepare().unwrap();
    assert_unplanted(&prepared.plan().to_string());
    let json = prepared.plan().json();
    assert_unplanted(&json.to_string());
    assert_eq!(json["providers"][0]["credentials"][0]["value"], "***");
    assert_eq!(json["providers"][1]["refresh"]["materials"][0]["value"], "app_made_up");
    assert_eq!(json["providers"][1]["refresh"]["materials"][1]["value"], "***");
    assert_eq!(json["target"]["gateway"], "greenhouse");
}

#[test]
fn a_missing_credential_file_is_told_in_the_plan() {
    let world = World::new();
    std::fs::remove_file(world.path("home/.codex/auth.json")).unwrap();
    let warnings = world.prepare().unwrap().plan().warnings.join("\n");
    assert!(warnings.contains("it could not be launched: the credential CODEX_AUTH_ACCESS_TOKEN"), "{warnings}");
}

#[test]
fn shadowed_profiles_and_older_keys_are_warned_of_once() {
    let warnings = World::new().prepare().unwrap().plan().warnings.clone();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[1].contains("shared/providers/forge.yml is shadowed by"), "{warnings:?}");
}
