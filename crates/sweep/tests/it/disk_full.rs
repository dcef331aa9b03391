//! A full disk fails the run, is tried again, and loses nothing.

use std::path::Path;
use std::process::Command;

use bastion_host::signals::StopSignal;
use bastion_sweep::{Ended, Event};

use crate::world::{Player, World, ok};

#[test]
fn a_record_that_cannot_be_written_fails_the_run_which_is_retried() {
    if !Path::new("/dev/full").exists() {
        println!("SKIPPED: no /dev/full here");
        return;
    }
    let world = World::new("hourly", "walk");
    let log = world.out().join("run.jsonl");
    world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    let earlier = std::fs::read(&log).unwrap();
    std::fs::rename(&log, world.dir.path().join("kept")).unwrap();
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();

    let mut unwritten = 0;
    let mut dues = Vec::new();
    let mut stages = Player::new(|run, stage, _| {
        if run == 3 {
            // There is room again.
            std::fs::rename(world.dir.path().join("kept"), &log).unwrap();
            world.stop.request(StopSignal::Terminate);
        }
        ok(stage)
    });
    world
        .sweep()
        .run(&mut stages, &mut |event| match event {
            Event::NotRecorded(why) => {
                unwritten += 1;
                assert!(why.contains("run.jsonl") && why.contains("No space left"), "{why}");
            }
            Event::Finished { state: Some(state), record } => {
                dues.push((state.consecutive_failures, record.ok));
            }
            _ => {}
        })
        .unwrap();
    assert_eq!(unwritten, 2);
    assert_eq!(dues, [(1, false), (2, false), (0, true)]);
    assert_eq!(world.clock.naps().iter().sum::<std::time::Duration>().as_secs(), 60 + 120);
    assert!(std::fs::read(&log).unwrap().starts_with(&earlier), "an earlier record was lost");
    assert_eq!(world.records().len(), 2);
}

/// A file system of a few pages, gone when the test ends.
struct Tiny<'a>(&'a Path);

impl<'a> Tiny<'a> {
    fn mount(at: &'a Path) -> Option<Self> {
        std::fs::create_dir_all(at).unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(Self(at))
    }
}

impl Drop for Tiny<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).output();
    }
}

#[test]
fn on_a_disk_that_is_really_full_nothing_earlier_is_lost_and_the_next_run_with_room_is_recorded() {
    let mut world = World::new("hourly", "walk");
    let out = world.dir.path().join("tiny");
    let Some(_tiny) = Tiny::mount(&out) else {
        println!("SKIPPED: no file system can be mounted here");
        return;
    };
    world.settings.out = Some(out.clone());
    assert_eq!(world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap(), Ended::Done);
    let (log, state) =
        (std::fs::read(out.join("run.jsonl")).unwrap(), std::fs::read(out.join("run.state.json")).unwrap());

    let filler = out.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 512]).is_ok() {}
    drop(file);
    let mut fails = 0;
    while matches!(world.once(&mut Player::new(|_, stage, _| ok(stage))), Ok(Ended::Failed { .. })) && fails < 3 {
        fails += 1;
    }
    assert_eq!(fails, 3, "a full disk was taken for a success");
    assert!(std::fs::read(out.join("run.jsonl")).unwrap().starts_with(&log));
    assert_eq!(std::fs::read(out.join("run.state.json")).unwrap(), state, "the old state stays whole");
    assert!(!out.join("sweep.lock").exists(), "a lock that could not be written stays");

    std::fs::remove_file(filler).unwrap();
    assert_eq!(world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap(), Ended::Done);
    assert!(world.records().len() >= 2 && world.records().last().unwrap().ok);
    assert!(world.state().last_ok);
}

#[test]
fn an_output_folder_that_cannot_be_made_fails_the_run() {
    let mut world = World::new("hourly", "walk");
    let file = world.dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    world.settings.out = Some(file.join("out"));
    let mut stages = Player::new(|_, stage, _| ok(stage));
    let Ended::Failed { error } = world.once(&mut stages).unwrap() else { panic!() };
    assert!(error.starts_with("cannot make the output folder"), "{error}");
    assert_eq!(stages.runs, 0);
}
