//! The loop in played time: cadence, backoff, naps, and clocks that are set.

use std::time::Duration;

use bastion_host::clock::Clock;
use bastion_host::signals::StopSignal;
use bastion_sweep::{Ended, Event};
use jiff::Timestamp;

use crate::world::{Player, START, World, failed, ok};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Stops the loop in its `last` run, which is still finished.
fn stop_in(world: &World, run: u32, last: u32) {
    if run == last {
        world.stop.request(StopSignal::Terminate);
    }
}

fn starts(world: &World) -> Vec<String> {
    world.records().iter().map(|record| record.started.0.to_string()).collect()
}

#[test]
fn manual_runs_once() {
    let world = World::new("manual", "walk");
    let mut stages = Player::new(|_, stage, _| ok(stage));
    assert_eq!(world.run(&mut stages).unwrap(), Ended::Done);
    assert_eq!((stages.runs, world.records().len()), (1, 1));
    assert!(world.clock.naps().is_empty());
    let state = world.state();
    assert_eq!((state.sweep.as_str(), state.next_due, state.last_ok), ("manual", None, true));
}

#[test]
fn once_ends_after_one_run_on_any_cadence() {
    let mut world = World::new("15m", "walk");
    world.settings.once = true;
    let mut stages = Player::new(|_, stage, _| failed(stage));
    assert!(matches!(world.run(&mut stages).unwrap(), Ended::Failed { .. }));
    assert_eq!(stages.runs, 1);
    assert!(world.clock.naps().is_empty());
}

#[test]
fn a_quarter_hour_loop_sleeps_exactly_two_periods_between_three_runs() {
    let world = World::new("15m", "walk");
    let mut dues = Vec::new();
    let mut stages = Player::new(|run, stage, _| {
        stop_in(&world, run, 3);
        ok(stage)
    });
    let ended = world
        .sweep()
        .run(&mut stages, &mut |event| {
            if let Event::Finished { state: Some(state), .. } = event {
                dues.push(state.next_due.unwrap().0);
            }
        })
        .unwrap();
    assert_eq!(ended, Ended::Stopped(StopSignal::Terminate));
    assert_eq!(starts(&world), ["2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"]);
    let naps = world.clock.naps();
    assert_eq!(naps.iter().sum::<Duration>(), Duration::from_secs(1800));
    assert!(naps.iter().all(|nap| *nap <= Duration::from_secs(30)));
    assert_eq!(dues, [at("2026-01-01T00:15:00Z"), at("2026-01-01T00:30:00Z"), at("2026-01-01T00:45:00Z")]);
    let state = world.state();
    assert_eq!((state.runs_this_process, state.consecutive_failures), (3, 0));
    assert_eq!(state.pid, std::process::id());
}

#[test]
fn hourly_failures_retry_after_a_minute_then_two() {
    let world = World::new("hourly", "walk");
    let mut stages = Player::new(|run, stage, _| {
        stop_in(&world, run, 3);
        failed(stage)
    });
    world.run(&mut stages).unwrap();
    assert_eq!(starts(&world), ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:03:00Z"]);
    let state = world.state();
    assert_eq!(state.consecutive_failures, 3);
    assert_eq!(state.next_due.unwrap().0, at("2026-01-01T00:07:00Z"));
    assert_eq!(state.last_error.as_deref(), Some("walk failed: the root is not there"));
    assert!(!state.last_ok);
}

#[test]
fn a_success_resets_the_counter() {
    let world = World::new("hourly", "walk");
    let mut stages = Player::new(|run, stage, _| {
        stop_in(&world, run, 3);
        if run == 3 { ok(stage) } else { failed(stage) }
    });
    world.run(&mut stages).unwrap();
    let state = world.state();
    assert_eq!((state.consecutive_failures, state.last_error, state.last_ok), (0, None, true));
    assert_eq!(state.next_due.unwrap().0, at("2026-01-01T01:03:00Z"));
}

#[test]
fn a_restarted_process_goes_on_counting_failures() {
    let world = World::new("hourly", "walk");
    for expected in 1..=3 {
        let _ = world.once(&mut Player::new(|_, stage, _| failed(stage))).unwrap();
        assert_eq!(world.state().consecutive_failures, expected);
        assert_eq!(world.state().runs_this_process, 1);
    }
}

#[test]
fn a_manifest_edited_between_runs_takes_effect_on_the_next() {
    let world = World::new("15m", "walk");
    let mut stages = Player::new(|run, stage, _| {
        if run == 1 {
            world.write_manifest("hourly", "walk, extract");
        }
        stop_in(&world, run, 3);
        ok(stage)
    });
    world.run(&mut stages).unwrap();
    // Run 2 is due by the cadence that run 1 was admitted with, run 3 by the new one.
    assert_eq!(starts(&world), ["2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", "2026-01-01T01:15:00Z"]);
    assert_eq!(world.records().iter().map(|record| record.stages.len()).collect::<Vec<_>>(), [1, 2, 2]);
}

#[test]
fn a_refusal_keeps_the_last_admitted_cadence_with_the_backoff() {
    let mut world = World::new("15m", "walk");
    world.settings.out = Some(world.out());
    let mut refusals = 0;
    let mut stages = Player::new(|_, stage, _| {
        world.write_manifest("daily", "walk, walk");
        ok(stage)
    });
    world
        .sweep()
        .run(&mut stages, &mut |event| {
            if let Event::Finished { record, .. } = event
                && !record.ok
            {
                refusals += 1;
                if refusals == 6 {
                    world.stop.request(StopSignal::Terminate);
                }
            }
        })
        .unwrap();
    assert_eq!(stages.runs, 1, "nothing runs under a refused manifest");
    // 900 s to the first refusal, then 60, 120, 240, 480 and, capped at the quarter hour, 900 s to the sixth.
    assert_eq!(world.clock.now(), at("2026-01-01T00:15:00Z") + Duration::from_secs(60 + 120 + 240 + 480 + 900));
}

#[test]
fn a_refusal_before_any_admission_keeps_hourly() {
    let mut world = World::new("daily", "walk");
    world.settings.allow_unsigned = false;
    let mut refusals = 0;
    let ended = world.sweep().run(&mut Player::new(|_, stage, _| ok(stage)), &mut |event| {
        if let Event::Finished { state: Some(state), .. } = event {
            refusals += 1;
            assert_eq!(state.sweep, "hourly");
            if refusals == 8 {
                // 60 · 2⁷ s is more than an hour.
                assert_eq!(state.next_due.unwrap().0, state.last_finished.0 + Duration::from_secs(3600));
                world.stop.request(StopSignal::Interrupt);
            }
        }
    });
    assert_eq!(ended.unwrap(), Ended::Stopped(StopSignal::Interrupt));
    assert_eq!(refusals, 8);
}

#[test]
fn a_run_that_outlasts_its_period_is_followed_at_once_and_once() {
    let world = World::new("15m", "walk");
    let mut stages = Player::new(|run, stage, _| {
        if run == 1 {
            world.clock.advance(Duration::from_secs(5 * 900 + 60));
        }
        stop_in(&world, run, 3);
        ok(stage)
    });
    world.run(&mut stages).unwrap();
    assert_eq!(starts(&world), ["2026-01-01T00:00:00Z", "2026-01-01T01:16:00Z", "2026-01-01T01:31:00Z"]);
}

/// A clock that something happens to in the nap with the given number (from 1).
struct Meddled<'w> {
    world: &'w World,
    nap: usize,
    to: Timestamp,
}

impl Clock for Meddled<'_> {
    fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    fn nap(&self, duration: Duration) {
        self.world.clock.nap(duration);
        if self.world.clock.naps().len() == self.nap {
            self.world.clock.set(self.to);
        }
    }
}

/// The starts of three runs of an hourly loop, where the clock is set to `to` in the given nap.
fn starts_with_the_clock_set(nap: usize, to: &str) -> (World, Vec<String>) {
    let world = World::new("hourly", "walk");
    let mut stages = Player::new(|run, stage, _| {
        stop_in(&world, run, 3);
        ok(stage)
    });
    let clock = Meddled { world: &world, nap, to: at(to) };
    let mut sweep = world.sweep();
    sweep.clock = &clock;
    sweep.run(&mut stages, &mut |_| {}).unwrap();
    let starts = starts(&world);
    (world, starts)
}

#[test]
fn a_clock_set_back_does_not_stall_the_loop() {
    // Ten hours back, at half past midnight: the next run comes an hour later, not eleven.
    let (_, starts) = starts_with_the_clock_set(60, "2025-12-31T14:30:00Z");
    assert_eq!(starts, [START, "2025-12-31T15:30:00Z", "2025-12-31T16:30:00Z"]);
}

#[test]
fn a_clipped_due_time_is_written_for_the_health_check() {
    let world = World::new("hourly", "walk");
    let mut stages = Player::new(|_, stage, _| ok(stage));
    let clock = Meddled { world: &world, nap: 60, to: at("2025-12-31T14:30:00Z") };
    let mut sweep = world.sweep();
    sweep.clock = &clock;
    let mut seen = Vec::new();
    sweep
        .run(&mut stages, &mut |event| {
            if let Event::Sleeping { until } = event {
                seen.push((*until, world.state().next_due.unwrap().0));
                if seen.len() == 2 {
                    world.stop.request(StopSignal::Terminate);
                }
            }
        })
        .unwrap();
    let (first, clipped) = (at("2026-01-01T01:00:00Z"), at("2025-12-31T15:30:00Z"));
    assert_eq!(seen, [(first, first), (clipped, clipped)]);
}

#[test]
fn a_clock_far_ahead_runs_once_and_the_cadence_goes_on() {
    let (_, starts) = starts_with_the_clock_set(60, "2031-01-01T00:00:00Z");
    assert_eq!(starts, [START, "2031-01-01T00:00:00Z", "2031-01-01T01:00:00Z"]);
}

#[test]
fn a_clock_that_was_far_ahead_during_a_run_and_is_put_right_does_not_stall() {
    let world = World::new("hourly", "walk");
    let mut stages = Player::new(|run, stage, _| {
        if run == 1 {
            world.clock.set(at("2026-01-01T20:00:00Z"));
        }
        stop_in(&world, run, 3);
        failed(stage)
    });
    let clock = Meddled { world: &world, nap: 1, to: at("2026-01-01T00:00:30Z") };
    let mut sweep = world.sweep();
    sweep.clock = &clock;
    sweep.run(&mut stages, &mut |_| {}).unwrap();
    assert_eq!(starts(&world)[1], "2026-01-01T01:00:30Z");
}

#[test]
fn after_more_than_a_hundred_missed_starts_one_run_then_the_cadence() {
    // The machine slept for ten days: 240 starts were missed.
    let (_, starts) = starts_with_the_clock_set(10, "2026-01-11T00:00:00Z");
    assert_eq!(starts, [START, "2026-01-11T00:00:00Z", "2026-01-11T01:00:00Z"]);
}

#[test]
fn the_lock_is_held_while_a_run_goes_on_and_never_while_the_loop_sleeps() {
    let world = World::new("15m", "walk");
    let lock = world.out().join("sweep.lock");
    let mut stages = Player::new(|run, stage, _| {
        assert!(lock.exists());
        stop_in(&world, run, 2);
        ok(stage)
    });
    let mut slept = 0;
    world
        .sweep()
        .run(&mut stages, &mut |event| {
            if let Event::Sleeping { .. } = event {
                slept += 1;
                assert!(!lock.exists());
            }
        })
        .unwrap();
    assert_eq!(slept, 1, "one wait is announced once");
    assert!(!lock.exists());
}

#[test]
fn a_stop_asked_for_before_the_first_run_runs_nothing() {
    let world = World::new("15m", "walk");
    world.stop.request(StopSignal::Interrupt);
    let mut stages = Player::new(|_, stage, _| ok(stage));
    assert_eq!(world.run(&mut stages).unwrap(), Ended::Stopped(StopSignal::Interrupt));
    assert_eq!(stages.runs, 0);
}

#[test]
fn a_loop_that_finds_the_lock_held_later_waits_and_goes_on() {
    let world = World::new("15m", "walk");
    let lock = world.out().join("sweep.lock");
    let mut stages = Player::new(|run, stage, _| {
        stop_in(&world, run, 2);
        ok(stage)
    });
    let mut by_hand = None;
    let mut held = 0;
    world
        .sweep()
        .run(&mut stages, &mut |event| match event {
            Event::Sleeping { .. } if held == 0 => {
                by_hand.get_or_insert_with(|| bastion_host::lock::RunLock::acquire(&lock, &*world.clock).unwrap());
            }
            Event::Held(holder) => {
                assert_eq!(holder.record.as_ref().unwrap().process.pid, std::process::id());
                held += 1;
                if held == 2 {
                    by_hand = None;
                }
            }
            _ => {}
        })
        .unwrap();
    assert_eq!(held, 2);
    assert_eq!(starts(&world), ["2026-01-01T00:00:00Z", "2026-01-01T00:17:00Z"]);
}

#[test]
fn a_state_that_another_process_wrote_meanwhile_is_left_alone() {
    let world = World::new("hourly", "walk");
    let mut stages = Player::new(|_, stage, _| ok(stage));
    let clock = Meddled { world: &world, nap: 60, to: at("2025-12-31T14:30:00Z") };
    let mut sweep = world.sweep();
    sweep.clock = &clock;
    let mut slept = 0;
    let path = world.out().join("run.state.json");
    sweep
        .run(&mut stages, &mut |event| {
            if let Event::Sleeping { .. } = event {
                slept += 1;
                if slept == 1 {
                    let mut theirs = world.state();
                    theirs.pid += 1;
                    std::fs::write(&path, serde_json::to_string(&theirs).unwrap()).unwrap();
                } else {
                    world.stop.request(StopSignal::Terminate);
                }
            }
        })
        .unwrap();
    let state = world.state();
    assert_eq!((state.pid, state.next_due.unwrap().0), (std::process::id() + 1, at("2026-01-01T01:00:00Z")));
}

#[test]
fn a_running_sweep_renews_its_lock_after_each_stage() {
    let world = World::new("manual", "walk, extract");
    let lock = world.out().join("sweep.lock");
    let mut stages = Player::new(|_, stage, _| {
        // In played time the lock's time of change is whatever the last renewal made it.
        let modified = Timestamp::try_from(std::fs::metadata(&lock).unwrap().modified().unwrap()).unwrap();
        assert_eq!(modified == world.clock.now(), stage == bastion_trust::manifest::Stage::Extract);
        ok(stage)
    });
    assert_eq!(world.run(&mut stages).unwrap(), Ended::Done);
}
