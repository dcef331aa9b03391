//! Where refusals and runs are written.

use std::path::{Path, PathBuf};

use bastion_sweep::{Ended, place};
use bastion_trust::Refused;

use crate::world::{Player, World, ok, records};

fn refused(world: &World) -> Refused {
    world.gate.judge(&world.settings.manifest, false).unwrap_err()
}

#[test]
fn a_refusal_in_an_agent_folder_stays_in_it() {
    let world = World::new("hourly", "walk");
    assert_eq!(place::of_refused(None, &refused(&world)), world.out());
}

#[test]
fn a_refused_manifest_chooses_no_folder() {
    let mut world = World::new("hourly", "walk");
    let elsewhere = world.dir.path().join("victim");
    std::fs::create_dir(&elsewhere).unwrap();
    world.settings.manifest = world.dir.path().join("m.yaml");
    world.write_raw(&format!(
        "v: 1\nid: notes\nowner:\n  host: owner.example\nroots:\n  - {}\nsweep: hourly\n",
        elsewhere.display()
    ));
    assert_eq!(place::of_refused(None, &refused(&world)), Path::new("build/freeagent/notes"));
    assert_eq!(place::of_refused(Some(Path::new("/o")), &refused(&world)), Path::new("/o"));
}

#[test]
fn a_manifest_too_broken_to_have_an_id_has_a_place_of_its_own() {
    let world = World::new("hourly", "walk");
    for broken in ["", "v: 1\nv: 1\n", "id: [", "v: 1\nid: UPPER\n"] {
        world.write_raw(broken);
        assert_eq!(place::of_refused(None, &refused(&world)), Path::new("build/freeagent/refused"), "{broken:?}");
    }
    std::fs::remove_file(&world.settings.manifest).unwrap();
    assert_eq!(place::of_refused(None, &refused(&world)), Path::new("build/freeagent/refused"));
    assert_eq!(place::of_refused(Some(Path::new("/o")), &refused(&world)), Path::new("/o"));
}

#[test]
fn an_invalid_manifest_is_a_record() {
    let mut world = World::new("hourly", "walk");
    world.settings.out = Some(world.dir.path().join("out"));
    world.write_raw("v: 1\nutnil: 2026-01-01\n");
    let ended = world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    assert!(matches!(ended, Ended::Refused { .. }));
    let [record] = &world.records()[..] else { panic!("one record") };
    assert_eq!((record.manifest_id.as_ref(), record.manifest_digest.as_ref()), (None, None));
    assert!(record.error.as_ref().unwrap().starts_with("malformed: "));
}

#[test]
fn a_run_goes_into_the_agents_folder_and_out_wins() {
    let mut world = World::new("manual", "walk");
    world.run(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    assert_eq!(world.records().len(), 1);
    let out: PathBuf = world.dir.path().join("elsewhere");
    world.settings.out = Some(out.clone());
    world.run(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    assert_eq!(records(&out).len(), 1);
}
