//! Ctrl-C at each step: the step is ended, nothing stays in the temporary folder, and what was done is said.

use std::time::{Duration, Instant};

use bastion_host::signals::{Stop, StopSignal};
use bastion_launch::LaunchError;

use crate::world::{Generation, World, assert_unplanted};

/// Interrupts a launch once the fake has said that it is in this step.
fn interrupted(world: &World, step: &str) -> String {
    world.behave(&format!("case \"$name $call\" in '{step}'*) : > \"$here/reached\"; sleep 60;; esac\n"));
    let stop = Stop::new();
    let (asked, reached) = (stop.clone(), world.path("fake/reached"));
    let asker = std::thread::spawn(move || {
        let started = Instant::now();
        while !reached.exists() && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        asked.request(StopSignal::Interrupt);
    });
    let started = Instant::now();
    let error = world.launch_until(&stop).0.unwrap_err();
    asker.join().unwrap();
    assert!(matches!(error, LaunchError::Interrupted { .. }), "{error}");
    assert_eq!(error.exit_status(), 130);
    assert!(started.elapsed() < Duration::from_secs(30));
    world.assert_clean();
    assert_unplanted(&error.to_string());
    error.to_string()
}

#[test]
fn every_step_can_be_interrupted() {
    for (step, said) in [
        ("openshell gateway info", "Nothing was done on the gateway before"),
        ("docker build", "Nothing was done on the gateway before"),
        ("openshell settings set", "  the image openshell/agent-gardener:1767323045 is built with docker"),
        ("openshell profile import", "  the setting retries is 3"),
        ("openshell provider get", "  the profile model is imported"),
        ("openshell provider create --name model", "  the provider forge-gardener is created"),
        ("openshell provider refresh configure", "  the provider model-gardener is created"),
        (
            "openshell provider refresh rotate",
            "  the refresh of access_token of the provider model-gardener is configured",
        ),
        (
            "openshell sandbox create",
            "  the sandbox gard-20260102030405 may be there: bastion runs rm gard-20260102030405",
        ),
    ] {
        let text = interrupted(&World::new(), step);
        assert!(text.starts_with("stopped by SIGINT during ") && text.contains(said), "{step}: {text}");
    }
}

#[test]
fn a_program_that_is_left_running_is_ended_when_it_is_not_left_yet() {
    let world = World::of(Generation::Old);
    let text = interrupted(&world, "openshell sandbox get");
    assert!(text.contains("may be there"), "{text}");
}

#[test]
fn a_credentials_command_can_be_interrupted() {
    let world = World::new();
    let reached = world.path("fake/reached").display().to_string();
    world.edit("printf planted-;", &format!(": > {reached}; sleep 60;"));
    let text = interrupted(&world, "nothing");
    assert!(text.contains("while the credential FORGE_TOKEN was being fetched"), "{text}");
    assert!(world.calls().is_empty());
}

#[test]
fn a_stop_before_the_first_call_makes_none() {
    let world = World::new();
    let stop = Stop::new();
    stop.request(StopSignal::Terminate);
    let error = world.launch_until(&stop).0.unwrap_err();
    assert_eq!(error.exit_status(), 143);
    assert!(world.calls().is_empty());
    world.assert_clean();
}
