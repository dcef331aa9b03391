//! Harnesses that hang, ignore TERM, fall silent, or leave somebody behind.

use std::time::Instant;

use crate::support::{Agent, alive, said, wait_until};

const TIME: &str = "OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS";
const SILENCE: &str = "OPENSHELL_AGENT_SILENCE_TIMEOUT_SECONDS";

#[test]
fn a_harness_that_hangs_is_ended_with_124() {
    let agent = Agent::new("sleep 1000 & echo $! > $HERE/child; wait").env(TIME, "1");
    let ended = agent.run();
    assert_eq!(ended.code, 124);
    assert!(
        ended.err.ends_with("openshell-agent: transient watch failure 1 (cycle timed out after 1s)\n"),
        "{}",
        ended.err
    );
    let status = agent.status();
    assert_eq!((&status["harness_exit_code"], &status["result"]["reason"]), (&143.into(), &"cycle_timeout".into()));
    assert_eq!(status["result"]["status"], "transient_failure");
    assert!(!alive(&agent.read("child")), "the whole group gets TERM");
}

#[test]
fn a_harness_that_ignores_term_is_killed_ten_seconds_later() {
    let agent = Agent::new("trap '' TERM; while :; do sleep 1; done").env(TIME, "1");
    let start = Instant::now();
    assert_eq!(agent.run().code, 124);
    assert!(start.elapsed().as_secs_f64() >= 11.0);
    assert_eq!(agent.status()["harness_exit_code"], 137);
}

#[test]
fn the_rest_of_the_group_has_its_time_to_end() {
    let agent = Agent::new(
        "(trap 'sleep 1; echo tidy > $HERE/tidy; exit' TERM; while :; do sleep 0.1; done) >/dev/null 2>&1 & \
         trap 'exit 3' TERM; wait",
    )
    .env(TIME, "1");
    assert_eq!(agent.run().code, 124);
    assert_eq!((agent.read("tidy").as_str(), &agent.status()["harness_exit_code"]), ("tidy\n", &3.into()));
}

#[test]
fn silence_is_ended_with_124() {
    let agent = Agent::new("echo word; sleep 1000").env(SILENCE, "1");
    let ended = agent.run();
    assert_eq!((ended.code, ended.out.as_str()), (124, "word\n"));
    assert!(ended.err.ends_with("openshell-agent: transient watch failure 1 (cycle silent for 1s)\n"), "{}", ended.err);
    assert_eq!(agent.status()["result"]["reason"], "cycle_timeout");
}

#[test]
fn one_that_speaks_is_not_silent() {
    let agent = Agent::new("for n in 1 2 3 4 5 6; do echo . >&2; sleep 0.4; done").env(SILENCE, "2");
    assert_eq!(agent.run().code, 0);
}

#[test]
fn a_usable_result_before_the_limit_counts() {
    let agent = Agent::new(&format!("{}; sleep 1000", said("complete"))).env(TIME, "3");
    assert_eq!(agent.run().code, 0);
    assert_eq!(agent.status()["result"]["status"], "complete");
}

#[test]
fn an_unusable_one_does_not() {
    let agent = Agent::new("echo 'OPENSHELL_AGENT_RESULT {\"status\":'; sleep 1000").env(TIME, "1");
    assert_eq!(agent.run().code, 124);
}

#[test]
fn a_watch_goes_on_after_both() {
    let agent = Agent::cycles(&["echo; sleep 1000", "sleep 1000", &said("complete")]).env(TIME, "2").env(SILENCE, "1");
    let ended = agent.run();
    assert_eq!(ended.code, 0);
    assert!(ended.err.contains("(cycle silent for 1s); retrying in 1s"), "{}", ended.err);
    let agent = Agent::cycles(&["while :; do echo; sleep 0.1; done", &said("complete")]).env(TIME, "1");
    assert!(agent.run().err.contains("(cycle timed out after 1s); retrying in 1s"));
}

#[test]
fn a_background_child_that_holds_the_pipes_is_waited_for_two_seconds() {
    let agent = Agent::new(&format!("sleep 1000 & echo $! > $HERE/child; {}", said("terminal_failure")));
    let start = Instant::now();
    assert_eq!(agent.run().code, 1);
    let took = start.elapsed().as_secs_f64();
    assert!((2.0..20.0).contains(&took), "{took}");
    std::process::Command::new("kill").arg(agent.read("child").trim()).status().unwrap();
}

#[test]
fn what_a_background_child_says_meanwhile_is_passed_on() {
    let ended = Agent::new("(sleep 0.5; echo late) & echo soon").run();
    assert_eq!(ended.out, "soon\nlate\n");
    let ended = Agent::new("sleep 3.5; (sleep 0.5; echo late) &").run();
    assert_eq!(ended.out, "late\n", "the two seconds begin when the harness ends");
}

fn stuck(agent: &Agent) -> std::process::Child {
    let mut command = agent.command(crate::support::PROGRAM);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap()
}

#[test]
fn a_limit_holds_while_nobody_reads_our_output() {
    let agent = Agent::new("yes").env(TIME, "1");
    let mut child = stuck(&agent);
    let _held = child.stdout.take();
    assert_eq!(child.wait().unwrap().code(), Some(124));
}

#[test]
fn term_is_heard_while_nobody_reads_our_output() {
    for script in ["yes", "head -c 100000 /dev/zero; touch $HERE/done"] {
        let agent = Agent::new(script);
        let mut child = stuck(&agent);
        let _held = child.stdout.take();
        wait_until("the harness's start", || agent.path("state/status.json").exists());
        std::thread::sleep(std::time::Duration::from_millis(300));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(143), "{script}");
    }
}

#[test]
fn silence_does_not_count_while_nobody_reads_our_output() {
    let agent = Agent::new("head -c 200000 /dev/zero").env(SILENCE, "1");
    let mut child = stuck(&agent);
    std::thread::sleep(std::time::Duration::from_millis(2000));
    assert_eq!(crate::support::read_all(child.stdout.take().unwrap()).len(), 200_000);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
