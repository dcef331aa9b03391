//! The environment is judged before the first cycle.

use crate::support::{Agent, said};

fn refused(name: &str, value: &str, code: i32, line: &str) {
    let agent = Agent::new("touch $HERE/ran").env(name, value);
    let ended = agent.run();
    assert_eq!((ended.code, ended.err.as_str(), ended.out.as_str()), (code, format!("{line}\n").as_str(), ""));
    assert!(!agent.path("ran").exists() && !agent.path("state").exists(), "{name}={value} ran");
}

#[test]
fn what_is_no_integer_exits_2() {
    for name in [
        "MAX_CYCLES",
        "POLL_INTERVAL_SECONDS",
        "MAX_TRANSIENT_FAILURES",
        "HEARTBEAT_SECONDS",
        "CYCLE_TIMEOUT_SECONDS",
        "SILENCE_TIMEOUT_SECONDS",
        "STATE_HISTORY_LIMIT",
        "MAX_NOTES_LENGTH",
    ] {
        let name = format!("OPENSHELL_AGENT_{name}");
        for value in ["x", "1.5", "-1", "+1", " 1", "1s", "٣"] {
            refused(&name, value, 2, &format!("{name} must be an integer"));
        }
    }
}

#[test]
fn zero_exits_2_where_it_makes_no_sense() {
    for name in ["POLL_INTERVAL_SECONDS", "STATE_HISTORY_LIMIT", "MAX_NOTES_LENGTH"] {
        let name = format!("OPENSHELL_AGENT_{name}");
        refused(&name, "0", 2, &format!("{name} must be greater than zero"));
    }
}

#[test]
fn zero_switches_limits_off() {
    let agent = Agent::new(&said("complete"))
        .env("OPENSHELL_AGENT_MAX_CYCLES", "0")
        .env("OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES", "0")
        .env("OPENSHELL_AGENT_HEARTBEAT_SECONDS", "0")
        .env("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", "0")
        .env("OPENSHELL_AGENT_SILENCE_TIMEOUT_SECONDS", "0");
    assert_eq!(agent.run().code, 0);
}

#[test]
fn a_mode_is_once_or_watch() {
    refused("OPENSHELL_AGENT_RUN_MODE", "loop", 2, "OPENSHELL_AGENT_RUN_MODE must be once or watch");
}

#[test]
fn once_is_the_default_and_the_agent_is_unknown() {
    let agent = Agent::new(&said("complete"));
    assert!(agent.run().err.contains("openshell-agent: starting once cycle 1 with harness command\n"));
    assert_eq!(agent.status()["agent_id"], "unknown");
}

#[test]
fn no_harness_exits_2() {
    let ended = Agent::new("").unset("OPENSHELL_AGENT_HARNESS").run();
    assert_eq!((ended.code, ended.err.as_str()), (2, "OPENSHELL_AGENT_HARNESS is required\n"));
}

#[test]
fn a_missing_adapter_exits_1_with_one_line() {
    for name in ["nope", "../payload", "a/b", ".."] {
        let ended = Agent::new("").env("OPENSHELL_AGENT_HARNESS", name).run();
        assert_eq!((ended.code, ended.err.lines().count()), (1, 1), "{}", ended.err);
        let start =
            format!("openshell-agent: unknown harness {name}: neither built in (claude, codex, command, opencode)");
        assert!(ended.err.starts_with(&start), "{}", ended.err);
    }
}

#[test]
fn a_missing_prompt_exits_1_with_one_line() {
    let agent = Agent::new("");
    std::fs::remove_file(agent.path("payload/agent-prompt.md")).unwrap();
    let ended = agent.run();
    assert_eq!((ended.code, ended.err.lines().count()), (1, 1));
    assert!(ended.err.starts_with("openshell-agent: cannot read prompt "), "{}", ended.err);
}

#[test]
fn a_command_without_words_exits_1() {
    for agent_json in [
        "{}",
        r#"{"harness":{"supported":{"command":{"argv":[]}}}}"#,
        r#"{"harness":{"supported":{"command":{"argv":"sh"}}}}"#,
        r#"{"harness":{"supported":{"command":{"argv":[1]}}}}"#,
    ] {
        let agent = Agent::new("");
        agent.write("payload/agent.json", agent_json);
        let ended = agent.run();
        assert_eq!((ended.code, ended.err.lines().count()), (1, 1), "{}", ended.err);
        assert!(ended.err.contains("harness.supported.command.argv"), "{}", ended.err);
    }
}

#[test]
fn an_agent_json_that_cannot_be_read_exits_1() {
    for text in ["", "{", "[]"] {
        let agent = Agent::new("");
        agent.write("payload/agent.json", text);
        let ended = agent.run();
        assert_eq!((ended.code, ended.err.lines().count()), (1, 1), "{}", ended.err);
        assert!(ended.err.starts_with("openshell-agent: cannot read the payload's agent.json: "), "{}", ended.err);
    }
}

#[test]
fn unknown_arguments_exit_2() {
    assert_eq!(Agent::new("").run_with(&["loop"]).code, 2);
    assert_eq!(Agent::new("").run_with(&["subagent"]).code, 2);
    assert_eq!(Agent::new("").run_with(&["--version"]).code, 0);
}
