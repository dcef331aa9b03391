//! One run: what is executed, what counts as success, what is written down.

use std::ops::ControlFlow;

use bastion_host::lock::{LockError, RunLock};
use bastion_sweep::{Ended, Event, GateRecord, Job, Report, Runner, StageReport, StageStatus, exit_status};
use bastion_trust::RefusalCode;
use bastion_trust::manifest::Stage;

use crate::world::{Player, World, failed, ok};

#[test]
fn the_stages_run_in_order_and_their_counts_are_logged() {
    let world = World::new("manual", "walk, extract, sanitize");
    let mut stages = Player::new(|_, stage, job: &Job<'_>| {
        assert_eq!(job.out, world.out());
        assert_eq!(job.admitted.manifest().id.as_str(), "notes");
        ok(stage)
    });
    assert_eq!(world.run(&mut stages).unwrap(), Ended::Done);
    assert_eq!(stages.executed, [Stage::Walk, Stage::Extract, Stage::Sanitize]);
    let [record] = &world.records()[..] else { panic!("one record") };
    assert!(record.ok && record.error.is_none() && record.allow_unsigned && record.lock_reclaimed.is_none());
    assert!(matches!(&record.gate, GateRecord::Bypassed { bypassed } if bypassed.contains("no signature")));
    assert_eq!(
        record.stages.iter().map(|stage| stage.stage.as_str()).collect::<Vec<_>>(),
        ["walk", "extract", "sanitize"]
    );
    assert_eq!(record.stages[0].counts.as_ref().unwrap().seen, 3);
    assert_eq!(record.manifest_id.as_deref(), Some("notes"));
    assert_eq!(record.manifest_digest.as_ref().unwrap().len(), 64);
    assert_eq!(record.out, world.out().to_str().unwrap());
}

#[test]
fn a_failing_stage_ends_the_run_and_later_ones_never_execute() {
    let world = World::new("manual", "walk, extract, sanitize");
    let mut stages = Player::new(|_, stage, _| if stage == Stage::Extract { failed(stage) } else { ok(stage) });
    let ended = world.run(&mut stages).unwrap();
    assert_eq!(ended, Ended::Failed { error: "extract failed: the root is not there".into() });
    assert_eq!(stages.executed, [Stage::Walk, Stage::Extract]);
    let record = &world.records()[0];
    assert!(!record.ok);
    assert_eq!(record.stages.len(), 2);
    assert_eq!(record.stages[1].error.as_deref(), Some("the root is not there"));
}

#[test]
fn stopped_counts_as_failed() {
    let world = World::new("manual", "walk, extract, sanitize, catalog");
    let mut stages = Player::new(|_, stage, _| match stage {
        Stage::Sanitize => StageReport::new(stage, StageStatus::Stopped, 0.1).with_error("PII_ADDR does not answer"),
        _ => ok(stage),
    });
    let ended = world.run(&mut stages).unwrap();
    assert_eq!(ended, Ended::Failed { error: "sanitize stopped: PII_ADDR does not answer".into() });
    assert_eq!(stages.executed.last(), Some(&Stage::Sanitize));
    assert_eq!(world.state().consecutive_failures, 1);
}

#[test]
fn a_skipped_stage_does_not_end_the_run() {
    let world = World::new("manual", "walk, extract");
    let mut stages = Player::new(|_, stage, _| match stage {
        Stage::Extract => StageReport::new(stage, StageStatus::Skipped, 0.0),
        _ => ok(stage),
    });
    assert_eq!(world.run(&mut stages).unwrap(), Ended::Done);
}

struct Does<F>(F);
impl<F: FnMut(&Job<'_>, &mut Report<'_>)> Runner for Does<F> {
    fn run(&mut self, job: &Job<'_>, report: &mut Report<'_>) -> ControlFlow<()> {
        (self.0)(job, report);
        ControlFlow::Continue(())
    }
}

#[test]
fn success_needs_evidence() {
    type Play = fn(&mut Report<'_>);
    let cases: [(&str, Play); 3] = [
        ("walk did not report", |_| {}),
        ("extract did not report", |report| {
            let _ = report(ok(Stage::Walk));
        }),
        ("no stage did anything", |report| {
            for stage in [Stage::Walk, Stage::Extract] {
                let _ = report(StageReport::new(stage, StageStatus::Skipped, 0.0));
            }
        }),
    ];
    for (words, play) in cases {
        let world = World::new("manual", "walk, extract");
        let ended = world.run(&mut Does(|_: &Job<'_>, report: &mut Report<'_>| play(report)));
        let Ended::Failed { error } = ended.unwrap() else { panic!("{words}: taken for a success") };
        assert!(error.starts_with(words), "{error}");
        assert!(!world.records()[0].ok);
    }
}

#[test]
fn a_report_of_a_failure_is_answered_with_break() {
    let world = World::new("manual", "walk, extract");
    let mut answers = Vec::new();
    let _ = world.run(&mut Does(|_: &Job<'_>, report: &mut Report<'_>| {
        answers.push(report(ok(Stage::Walk)));
        answers.push(report(failed(Stage::Extract)));
    }));
    assert_eq!(answers, [ControlFlow::Continue(()), ControlFlow::Break(())]);
}

#[test]
fn a_panicking_stage_is_a_failed_run_with_a_record_and_no_lock_stays() {
    let world = World::new("manual", "walk");
    let mut stages =
        Player::new(|_, _, _: &Job<'_>| panic!("byte index 3 is not a char boundary; it is inside a private text"));
    let Ended::Failed { error } = world.run(&mut stages).unwrap() else { panic!() };
    assert!(error.starts_with("the run broke off"), "{error}");
    assert!(!error.contains("private"), "a panic's message can quote a text: {error}");
    assert_eq!(world.records()[0].error.as_deref(), Some(error.as_str()));
    assert!(!world.out().join("sweep.lock").exists());
}

#[test]
fn an_unsigned_manifest_is_refused_and_recorded() {
    let mut world = World::new("manual", "walk");
    world.settings.allow_unsigned = false;
    let mut stages = Player::new(|_, stage, _| ok(stage));
    let ended = world.once(&mut stages);
    assert!(matches!(&ended, Ok(Ended::Refused { code: RefusalCode::Unsigned, .. })));
    assert_eq!(exit_status(&ended), 3);
    assert_eq!(stages.runs, 0);
    let record = &world.records()[0];
    assert!(matches!(&record.gate, GateRecord::Refused { refused } if refused.code == "unsigned"));
    assert!(!record.ok && record.stages.is_empty() && !record.allow_unsigned);
    assert!(record.error.as_ref().unwrap().starts_with("unsigned: "));
    assert_eq!(record.manifest_id.as_deref(), Some("notes"));
    let state = world.state();
    assert!(!state.last_ok && state.last_error.unwrap().starts_with("unsigned: "));
    assert!(!world.out().join("sweep.lock").exists());
}

#[test]
fn a_refusal_is_logged_even_while_somebody_holds_the_lock_whose_state_stays() {
    let mut world = World::new("manual", "walk");
    world.settings.allow_unsigned = false;
    let _held = RunLock::acquire(&world.out().join("sweep.lock"), &*world.clock).unwrap();
    assert!(matches!(world.once(&mut Player::new(|_, stage, _| ok(stage))), Ok(Ended::Refused { .. })));
    assert_eq!(world.records().len(), 1);
    assert!(!world.out().join("run.state.json").exists());
}

#[test]
fn a_second_sweep_on_the_folder_is_refused_and_leaves_no_trace() {
    let world = World::new("hourly", "walk");
    let held = RunLock::acquire(&world.out().join("sweep.lock"), &*world.clock).unwrap();
    let mut stages = Player::new(|_, stage, _| ok(stage));
    let ended = world.run(&mut stages);
    let Err(LockError::Held { holder, .. }) = &ended else { panic!("not refused") };
    assert_eq!(holder.record.as_ref().unwrap().process.pid, std::process::id());
    assert_eq!(exit_status(&ended), 4);
    assert_eq!((stages.runs, world.records().len()), (0, 0));
    drop(held);
}

#[test]
fn a_reclaimed_lock_is_noted() {
    let world = World::new("manual", "walk");
    let me = bastion_host::process::ProcessIdentity::current();
    if me.fate(&me) != bastion_host::process::Fate::Alive {
        println!("SKIPPED: this system does not name its processes");
        return;
    }
    let mut gone = serde_json::to_value(&me).unwrap();
    gone["boot_id"] = "an earlier boot".into();
    gone["taken"] = "2025-12-31T00:00:00.000Z".into();
    std::fs::write(world.out().join("sweep.lock"), gone.to_string()).unwrap();
    assert_eq!(world.run(&mut Player::new(|_, stage, _| ok(stage))).unwrap(), Ended::Done);
    let reclaimed = world.records()[0].lock_reclaimed.clone().unwrap();
    assert_eq!(reclaimed.pid, Some(std::process::id()));
    assert_eq!(reclaimed.taken.unwrap().0.to_string(), "2025-12-31T00:00:00Z");
}

#[test]
fn a_single_stage_takes_the_lock_writes_its_record_and_leaves_the_state() {
    let world = World::new("hourly", "walk, extract");
    let lock = world.out().join("sweep.lock");
    let mut stages = Player::new(|_, stage, _| {
        assert!(lock.exists());
        ok(stage)
    });
    let ended = world.sweep().run_single_stage(Stage::Extract, &mut stages, &mut |_| {}).unwrap();
    assert_eq!(ended, Ended::Done);
    assert_eq!(stages.executed, [Stage::Extract]);
    let record = &world.records()[0];
    assert!(record.ok && record.stages.len() == 1);
    assert!(!world.out().join("run.state.json").exists(), "a stage by hand says nothing of the sweep's health");

    let _held = RunLock::acquire(&lock, &*world.clock).unwrap();
    let ended = world.sweep().run_single_stage(Stage::Walk, &mut stages, &mut |_| {});
    assert_eq!(exit_status(&ended), 4);
}

#[test]
fn a_single_stage_passes_the_same_gate() {
    let mut world = World::new("hourly", "walk");
    world.settings.allow_unsigned = false;
    let mut stages = Player::new(|_, stage, _| ok(stage));
    let ended = world.sweep().run_single_stage(Stage::Walk, &mut stages, &mut |_| {});
    assert_eq!(exit_status(&ended), 3);
    assert_eq!((stages.runs, world.records().len()), (0, 1));
}

#[test]
fn a_torn_last_line_is_set_aside_and_breaks_no_reader() {
    let world = World::new("manual", "walk");
    world.run(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    let log = world.out().join("run.jsonl");
    let whole = std::fs::read(&log).unwrap();
    std::fs::write(&log, [&whole[..], br#"{"v":1,"started":"20"#].concat()).unwrap();
    assert_eq!(world.records().len(), 1);
    world.run(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    assert_eq!(world.records().len(), 2);
    let lines = std::fs::read_to_string(&log).unwrap();
    assert!(lines.as_bytes().starts_with(&whole) && lines.ends_with("}\n") && lines.lines().count() == 3);
}

#[test]
fn everything_written_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new("manual", "walk");
    world.settings.out = Some(world.dir.path().join("a/b"));
    world.run(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    let mode = |path: &str| std::fs::metadata(world.dir.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("a"), mode("a/b"), mode("a/b/run.jsonl"), mode("a/b/run.state.json")),
        (0o700, 0o700, 0o600, 0o600)
    );
}

#[test]
fn a_terminal_is_told_as_it_happens() {
    let world = World::new("manual", "walk, extract");
    let mut told = Vec::new();
    world
        .sweep()
        .run(&mut Player::new(|_, stage, _| ok(stage)), &mut |event| {
            told.push(match event {
                Event::Started { job } => format!("started {}", job.stages.len()),
                Event::StageDone(report) => format!("{} {}", report.stage, report.status.as_str()),
                Event::Finished { record, .. } => format!("finished {}", record.ok),
                other => format!("{other:?}"),
            });
        })
        .unwrap();
    assert_eq!(told, ["started 2", "walk ok", "extract ok", "finished true"]);
}

#[test]
fn every_end_has_its_exit_status() {
    use bastion_host::signals::StopSignal;
    let io = LockError::Io { path: "x".into(), source: std::io::Error::other("x") };
    let cases = [
        (Ok(Ended::Done), 0),
        (Ok(Ended::Failed { error: String::new() }), 1),
        (Err(io), 1),
        (Ok(Ended::Refused { code: RefusalCode::Clock, detail: String::new() }), 3),
        (Ok(Ended::Stopped(StopSignal::Interrupt)), 130),
        (Ok(Ended::Stopped(StopSignal::Terminate)), 143),
    ];
    for (ended, status) in cases {
        assert_eq!(exit_status(&ended), status, "{ended:?}");
    }
}
