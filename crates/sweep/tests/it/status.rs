//! What a health check sees.

use std::time::Duration;

use bastion_host::lock::RunLock;
use bastion_sweep::{RunState, status};

use crate::world::{Player, World, ok};

#[test]
fn before_the_first_run_there_is_no_state_and_nothing_is_overdue() {
    let world = World::new("hourly", "walk");
    let seen = status(&world.out(), &*world.clock).unwrap();
    assert!(seen.state.is_none() && seen.running.is_none() && !seen.overdue);
}

#[test]
fn a_loop_that_died_is_overdue_once_its_time_has_passed() {
    let world = World::new("hourly", "walk");
    world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    world.clock.advance(Duration::from_secs(3600 + 60));
    assert!(!status(&world.out(), &*world.clock).unwrap().overdue);
    world.clock.advance(Duration::from_secs(1));
    let seen = status(&world.out(), &*world.clock).unwrap();
    assert!(seen.overdue && seen.running.is_none() && seen.state.unwrap().last_ok);
}

#[test]
fn a_run_that_goes_on_is_not_overdue_and_its_holder_is_named() {
    let world = World::new("hourly", "walk");
    world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    world.clock.advance(Duration::from_secs(86_400));
    let _held = RunLock::acquire(&world.out().join("sweep.lock"), &*world.clock).unwrap();
    let seen = status(&world.out(), &*world.clock).unwrap();
    assert!(!seen.overdue);
    assert_eq!(seen.running.unwrap().record.unwrap().process.pid, std::process::id());
}

#[test]
fn manual_is_never_overdue() {
    let world = World::new("manual", "walk");
    world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    world.clock.advance(Duration::from_secs(86_400 * 400));
    assert!(!status(&world.out(), &*world.clock).unwrap().overdue);
}

#[test]
fn a_state_that_is_none_is_an_error_and_does_not_stop_a_run() {
    let world = World::new("hourly", "walk");
    let path = world.out().join("run.state.json");
    std::fs::write(&path, "{").unwrap();
    assert!(status(&world.out(), &*world.clock).is_err());
    world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    assert!(RunState::read(&world.out()).unwrap().unwrap().last_ok);
}
