//! Signed manifests: what the gate saw is in the record, and an edit takes effect only once it is signed.

use bastion_host::clock::Clock;
use bastion_sweep::{Ended, Event, GateRecord};
use bastion_trust::ca::Ca;
use bastion_trust::identity::{self, Identity, Kind};
use bastion_trust::{RefusalCode, sign};

use crate::world::{Player, World, ok};

fn signed_world(sweep: &str, stages: &str) -> (World, Identity) {
    let mut world = World::new(sweep, stages);
    world.settings.allow_unsigned = false;
    let (now, state) = (world.clock.now(), world.dir.path().join("state"));
    let ca = Ca::init(&state, now).unwrap();
    let (signer, _) = identity::ensure(&ca, &state, Kind::Sign, "owner.example", now).unwrap();
    resign(&world, &signer);
    (world, signer)
}

fn resign(world: &World, signer: &Identity) {
    sign::sign(&world.gate, &world.settings.manifest, &signer.cert, &signer.key).unwrap();
}

#[test]
fn a_signed_run_records_who_signed() {
    let (world, signer) = signed_world("manual", "walk");
    assert_eq!(world.run(&mut Player::new(|_, stage, _| ok(stage))).unwrap(), Ended::Done);
    let record = &world.records()[0];
    let GateRecord::Signed { cn, cert, chained } = &record.gate else { panic!("{:?}", record.gate) };
    assert_eq!((cn.as_str(), cert.as_str(), *chained), ("owner.example", signer.cert.to_str().unwrap(), true));
    assert!(!record.allow_unsigned);
}

#[test]
fn an_edit_runs_nothing_until_it_is_signed_and_then_takes_effect() {
    let (world, signer) = signed_world("15m", "walk");
    let mut stages = Player::new(|run, stage, _| {
        match run {
            1 => world.write_manifest_keeping_signature("hourly", "walk, extract"),
            _ => drop(world.stop.request(bastion_host::signals::StopSignal::Terminate)),
        }
        ok(stage)
    });
    let mut refused = Vec::new();
    world
        .sweep()
        .run(&mut stages, &mut |event| {
            if let Event::Finished { record, state: Some(state) } = event
                && let GateRecord::Refused { refused: why } = &record.gate
            {
                refused.push((why.code.clone(), state.sweep.clone()));
                if refused.len() == 2 {
                    resign(&world, &signer);
                }
            }
        })
        .unwrap();
    let bad = (RefusalCode::BadSignature.to_string(), "15m".to_owned());
    assert_eq!(refused, [bad.clone(), bad], "an unsigned cadence is not obeyed");
    assert_eq!((stages.runs, stages.executed.len()), (2, 3));
    assert_eq!(world.state().sweep, "hourly");
}
