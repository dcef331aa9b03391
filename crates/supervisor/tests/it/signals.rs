//! TERM and INT, while the harness runs and while it sleeps.

use rustix::process::Signal;

use crate::support::{Agent, alive, said};

fn stopped(agent: &Agent, state_code: i64) {
    let status = agent.status();
    assert_eq!((&status["supervisor_state"], &status["result"]["reason"]), (&"terminal".into(), &"stopped".into()));
    assert_eq!(status["harness_exit_code"], state_code);
}

#[test]
fn term_while_running_reaches_the_group_and_exits_143() {
    let agent =
        Agent::cycles(&["sleep 1000 & echo $! > $HERE/child; trap 'echo told; exit 6' TERM; echo ready >&2; wait"]);
    let mut running = agent.start();
    agent.wait_for("ready");
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 143);
    assert_eq!(agent.read("out"), "told\n");
    assert!(!alive(&agent.read("child")));
    stopped(&agent, 6);
}

#[test]
fn int_while_running_exits_130() {
    let agent = Agent::new("trap 'exit 6' INT; echo ready >&2; while :; do sleep 0.1; done");
    let mut running = agent.start();
    agent.wait_for("ready");
    running.signal(Signal::INT);
    assert_eq!(running.wait(), 130);
    stopped(&agent, 6);
}

#[test]
fn a_harness_that_ignores_term_is_killed_when_we_are_stopped() {
    let agent = Agent::new("trap '' TERM; echo ready >&2; while :; do sleep 1; done");
    let mut running = agent.start();
    agent.wait_for("ready");
    running.signal(Signal::TERM);
    assert_eq!(running.wait(), 143);
    stopped(&agent, 137);
}

#[test]
fn a_terminal_that_hangs_up_stops_it_but_not_under_nohup() {
    let agent = Agent::new("echo ready >&2; sleep 1000");
    // whoever runs these tests may run them under nohup
    let mut command = agent.command("env");
    let err = std::fs::File::create(agent.path("err")).unwrap();
    command.args(["--default-signal=HUP", crate::support::PROGRAM]).stdout(std::process::Stdio::null()).stderr(err);
    let mut running = crate::support::Running { child: command.spawn().unwrap() };
    agent.wait_for("ready");
    running.signal(Signal::HUP);
    assert_eq!(running.wait(), 143);

    let agent = Agent::new("echo ready >&2; cat $HERE/gate");
    assert!(std::process::Command::new("mkfifo").arg(agent.path("gate")).status().unwrap().success());
    let mut command = agent.command("nohup");
    let err = std::fs::File::create(agent.path("err")).unwrap();
    let child = command.arg(crate::support::PROGRAM).stdout(std::process::Stdio::null()).stderr(err).spawn().unwrap();
    let mut running = crate::support::Running { child };
    agent.wait_for("ready");
    running.signal(Signal::HUP);
    std::fs::write(agent.path("gate"), "").unwrap();
    assert_eq!(running.wait(), 0);
}

#[test]
fn while_it_sleeps_it_exits_at_once() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let agent = Agent::cycles(&[&said("waiting")]).env("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "900");
        agent.write("script", "echo 'OPENSHELL_AGENT_RESULT {\"status\":\"waiting\"}'");
        let mut running = agent.start();
        agent.wait_for("sleeping 900s outside harness");
        running.signal(signal);
        let start = std::time::Instant::now();
        assert_eq!(running.wait(), code);
        assert!(start.elapsed().as_secs() < 10);
        stopped(&agent, 0);
    }
}
