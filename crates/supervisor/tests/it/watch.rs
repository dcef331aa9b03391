//! Watch mode: only `complete` and `terminal_failure` end it.

use std::time::Instant;

use crate::support::{Agent, said};

fn own_lines(err: &str) -> Vec<&str> {
    err.lines().filter_map(|line| line.strip_prefix("openshell-agent: ")).collect()
}

fn result(json: &str) -> String {
    format!("echo 'OPENSHELL_AGENT_RESULT {json}'")
}

#[test]
fn twice_missing_then_complete() {
    let agent = Agent::cycles(&["exit 0", "exit 3", &said("complete")]);
    let ended = agent.run();
    assert_eq!(ended.code, 0);
    assert_eq!(
        own_lines(&ended.err),
        [
            "starting watch cycle 1 with harness command",
            "transient watch failure 1 (missing OPENSHELL_AGENT_RESULT after harness exit 0); retrying in 1s",
            "starting watch cycle 2 with harness command",
            "transient watch failure 2 (missing OPENSHELL_AGENT_RESULT after harness exit 3); retrying in 1s",
            "starting watch cycle 3 with harness command",
            "complete (r)",
        ]
    );
}

#[test]
fn terminal_failure_ends_it_with_1() {
    let ended = Agent::cycles(&[&said("terminal_failure")]).run();
    assert_eq!((ended.code, own_lines(&ended.err)[1]), (1, "terminal failure (r)"));
}

#[test]
fn waiting_and_blocked_sleep_and_go_on() {
    let ended = Agent::cycles(&[&said("waiting"), &said("blocked"), &said("complete")]).run();
    let lines = own_lines(&ended.err);
    assert_eq!(
        (ended.code, lines[1], lines[3]),
        (0, "waiting (r); sleeping 1s outside harness", "waiting (r); sleeping 1s outside harness")
    );
}

#[test]
fn next_poll_seconds_is_honoured() {
    let agent = Agent::cycles(&[&result(r#"{"status":"waiting","next_poll_seconds":2}"#), &said("complete")])
        .env("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "900");
    let start = Instant::now();
    let ended = agent.run();
    assert!(ended.err.contains("waiting (unspecified); sleeping 2s outside harness\n"), "{}", ended.err);
    assert!(start.elapsed().as_secs_f64() >= 2.0);
}

#[test]
fn an_unusable_next_poll_is_the_poll_interval_and_a_huge_one_a_day() {
    for (value, seconds) in [("0", 1), ("-3", 1), (r#""9""#, 1), ("1.5", 1), ("null", 1)] {
        let json = format!(r#"{{"status":"waiting","next_poll_seconds":{value}}}"#);
        let ended = Agent::cycles(&[&result(&json), &said("complete")]).run();
        assert!(ended.err.contains(&format!("sleeping {seconds}s outside")), "{value}: {}", ended.err);
    }
    let agent = Agent::cycles(&[&result(r#"{"status":"waiting","next_poll_seconds":86401}"#)]);
    let _running = agent.start();
    agent.wait_for("sleeping 86400s outside");
}

#[test]
fn a_declared_failure_is_retried_after_its_own_time() {
    let ended = Agent::cycles(&[&said("transient_failure"), &said("complete")])
        .env("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "900")
        .run();
    assert_eq!((ended.code, own_lines(&ended.err)[1]), (0, "transient watch failure 1 (r); retrying in 1s"));
}

#[test]
fn the_backoff_starts_at_thirty_seconds() {
    let agent = Agent::cycles(&["exit 0"]).env("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "900");
    let _running = agent.start();
    agent.wait_for("(missing OPENSHELL_AGENT_RESULT after harness exit 0); retrying in 30s");
}

#[test]
fn invalid_malformed_and_lost_are_retried() {
    let lost = "echo 'stream disconnected before completion' >&2; exit 1";
    let ended =
        Agent::cycles(&[&result(r#"{"status":"failed"}"#), &result("{"), lost, "kill -9 $$", &said("complete")]).run();
    let lines: Vec<_> = own_lines(&ended.err).into_iter().filter(|line| line.starts_with("transient")).collect();
    assert_eq!(
        lines,
        [
            "transient watch failure 1 (invalid OPENSHELL_AGENT_RESULT status: failed); retrying in 1s",
            "transient watch failure 2 (malformed OPENSHELL_AGENT_RESULT JSON); retrying in 1s",
            "transient watch failure 3 (missing OPENSHELL_AGENT_RESULT after harness exit 1; upstream transport failure detected); retrying in 1s",
            "transient watch failure 4 (missing OPENSHELL_AGENT_RESULT after harness exit 137); retrying in 1s",
        ]
    );
    assert_eq!(ended.code, 0);
}

#[test]
fn every_so_many_failures_it_is_still_retrying() {
    let ended = Agent::cycles(&["exit 0", "exit 0", "exit 0", &said("complete")])
        .env("OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES", "2")
        .run();
    let still: Vec<bool> = ended
        .err
        .lines()
        .filter(|line| line.contains("failure"))
        .map(|line| line.contains("; still retrying in 1s"))
        .collect();
    assert_eq!(still, [false, true, false]);
}

#[test]
fn waiting_forgets_earlier_failures() {
    let ended = Agent::cycles(&["exit 0", &said("waiting"), "exit 0", &said("complete")]).run();
    assert_eq!(ended.err.matches("transient watch failure 1 ").count(), 2, "{}", ended.err);
}

#[test]
fn a_harness_that_cannot_be_started_is_retried() {
    let agent = Agent::new("").watch();
    agent.write("payload/agent.json", r#"{"harness":{"supported":{"command":{"argv":["/nowhere"]}}}}"#);
    let _running = agent.start();
    agent.wait_for("transient watch failure 2 (missing OPENSHELL_AGENT_RESULT after harness exit 127)");
}

#[test]
fn a_command_needs_a_result_in_watch_mode() {
    let agent = Agent::cycles(&["exit 0"]);
    let _running = agent.start();
    agent.wait_for("transient watch failure 1 (missing");
}

#[test]
fn the_cycle_limit_ends_it_as_once_mode_would() {
    for (script, code, line) in [
        (said("waiting"), 0, "waiting (r)"),
        (said("transient_failure"), 1, "transient watch failure 2 (r)"),
        ("exit 4".into(), 4, "terminal failure (harness exit 4)"),
    ] {
        let agent = Agent::cycles(&[&script]).env("OPENSHELL_AGENT_MAX_CYCLES", "2");
        let ended = agent.run();
        assert_eq!((ended.code, own_lines(&ended.err)[3]), (code, line));
        let status = agent.status();
        assert_eq!((&status["supervisor_state"], &status["cycle"]), (&"terminal".into(), &2.into()));
    }
}

#[test]
fn the_result_file_is_fresh_for_each_cycle() {
    let first = r#"echo '{"status":"waiting"}' > "$OPENSHELL_AGENT_RESULT_FILE""#;
    let second = r#"[ -e "$OPENSHELL_AGENT_RESULT_FILE" ] || echo 'OPENSHELL_AGENT_RESULT {"status":"complete","reason":"fresh"}'"#;
    let ended = Agent::cycles(&[first, second]).run();
    assert!(ended.err.ends_with("openshell-agent: complete (fresh)\n"), "{}", ended.err);
}

#[test]
fn a_heartbeat_tells_of_long_cycles_and_long_sleeps() {
    let agent = Agent::cycles(&[
        &format!("sleep 2.5; {}", result(r#"{"status":"waiting","reason":"checks","next_poll_seconds":3}"#)),
        &said("complete"),
    ])
    .env("OPENSHELL_AGENT_HEARTBEAT_SECONDS", "1");
    let err = agent.run().err;
    let (_, after) =
        err.split_once("openshell-agent: still running watch cycle 1 with harness command after ").unwrap();
    assert!(after.starts_with("1s\n") || after.starts_with("2s\n"), "{err}");
    assert!(err.contains("openshell-agent: still waiting (checks); next cycle in "), "{err}");
    let quiet = Agent::new("sleep 1.5").env("OPENSHELL_AGENT_HEARTBEAT_SECONDS", "0").run().err;
    assert!(!quiet.contains("still running"), "{quiet}");
}

#[test]
fn the_last_allowed_cycle_of_a_command_ends_as_its_exit_status_says() {
    for (script, code) in [("exit 0", 0), ("exit 3", 3)] {
        let agent = Agent::new(script).watch().env("OPENSHELL_AGENT_MAX_CYCLES", "1");
        assert_eq!(agent.run().code, code, "{script}");
    }
}
