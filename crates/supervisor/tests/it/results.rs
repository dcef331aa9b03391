//! Which words are a result, and what once mode makes of each.

use serde_json::json;

use crate::support::{Agent, Ended, said};

/// Runs a script harness (which needs a result) once.
fn script(script: &str) -> (Agent, Ended) {
    let agent = Agent::new("").env("OPENSHELL_AGENT_HARNESS", "mine");
    agent.program("payload/runtime/harnesses/mine/exec.sh", script);
    let ended = agent.run();
    (agent, ended)
}

fn result(json: &str) -> (Agent, Ended) {
    script(&format!("cat <<'END'\nOPENSHELL_AGENT_RESULT {json}\nEND"))
}

/// The exit status and the supervisor's last line.
fn outcome(ended: &Ended) -> (i32, String) {
    let line = ended.err.lines().rfind(|line| line.starts_with("openshell-agent: ")).unwrap();
    (ended.code, line.strip_prefix("openshell-agent: ").unwrap().to_owned())
}

fn expect(ended: &Ended, code: i32, line: &str) {
    assert_eq!(outcome(ended), (code, line.to_owned()), "stderr: {}", ended.err);
}

const MISSING: &str = "transient watch failure 1 (missing OPENSHELL_AGENT_RESULT after harness exit 0)";

#[test]
fn complete_exits_0() {
    let (agent, ended) = script(&said("complete"));
    expect(&ended, 0, "complete (r)");
    assert_eq!(agent.status()["supervisor_state"], "terminal");
}

#[test]
fn waiting_and_blocked_exit_0() {
    for status in ["waiting", "blocked"] {
        expect(&script(&said(status)).1, 0, "waiting (r)");
    }
}

#[test]
fn transient_failure_exits_1() {
    expect(&script(&said("transient_failure")).1, 1, "transient watch failure 1 (r)");
}

#[test]
fn terminal_failure_exits_1() {
    expect(&script(&said("terminal_failure")).1, 1, "terminal failure (r)");
}

#[test]
fn a_missing_reason_is_unspecified() {
    for json in
        [r#"{"status":"complete"}"#, r#"{"status":"complete","reason":null}"#, r#"{"status":"complete","reason":""}"#]
    {
        expect(&result(json).1, 0, "complete (unspecified)");
    }
}

#[test]
fn the_status_failed_is_invalid() {
    let (agent, ended) = result(r#"{"status":"failed","notes":"why"}"#);
    expect(&ended, 1, "transient watch failure 1 (invalid OPENSHELL_AGENT_RESULT status: failed)");
    let result = &agent.status()["result"];
    assert_eq!((&result["status"], &result["reason"]), (&json!("transient_failure"), &json!("malformed_agent_result")));
    assert_eq!(result["notes"], "invalid OPENSHELL_AGENT_RESULT status: failed; why");
}

#[test]
fn a_missing_status_is_named_so() {
    let line = "transient watch failure 1 (invalid OPENSHELL_AGENT_RESULT status: <missing>)";
    for json in ["{}", r#"{"status":null}"#, r#"{"status":""}"#] {
        expect(&result(json).1, 1, line);
    }
}

#[test]
fn a_nested_status_counts_for_nothing() {
    let line = "transient watch failure 1 (invalid OPENSHELL_AGENT_RESULT status: <missing>)";
    expect(&result(r#"{"result":{"status":"complete"}}"#).1, 1, line);
}

#[test]
fn truncated_json_and_what_is_no_object_is_malformed() {
    for json in
        [r#"{"status":"complete""#, "", "[]", r#""complete""#, "null", r#"{"status":"complete"} more"#, "{'status':1}"]
    {
        let (agent, ended) = result(json);
        expect(&ended, 1, "transient watch failure 1 (malformed OPENSHELL_AGENT_RESULT JSON)");
        assert_eq!(agent.status()["result"]["reason"], "malformed_agent_result");
        assert_eq!(agent.status()["result"]["status"], "transient_failure");
    }
}

#[test]
fn escaped_quotes_in_the_reason_are_read() {
    expect(&result(r#"{"status":"complete","reason":"he said \"no\" \\ {"}"#).1, 0, r#"complete (he said "no" \ {)"#);
}

#[test]
fn control_characters_in_the_reason_reach_no_terminal() {
    let (_, ended) = result(r#"{"status":"complete","reason":"a\u001b[2J\nb"}"#);
    expect(&ended, 0, "complete (a\\u{1b}[2J\\nb)");
}

#[test]
fn a_tab_after_the_tag_is_white_space() {
    expect(&script(r#"printf 'OPENSHELL_AGENT_RESULT\t{"status":"complete"}\n'"#).1, 0, "complete (unspecified)");
}

#[test]
fn blank_lines_may_follow() {
    expect(&script(&format!("{}; printf '\\n  \\n\\r\\n'", said("complete"))).1, 0, "complete (r)");
}

#[test]
fn no_line_end_is_needed() {
    expect(&script(r#"printf 'OPENSHELL_AGENT_RESULT {"status":"complete"}'"#).1, 0, "complete (unspecified)");
}

#[test]
fn text_after_the_sentinel_undoes_it() {
    expect(&script(&format!("{}; echo more", said("complete"))).1, 1, MISSING);
}

#[test]
fn the_last_sentinel_counts() {
    expect(&script(&format!("{}; {}", said("terminal_failure"), said("complete"))).1, 0, "complete (r)");
}

#[test]
fn a_sentinel_in_the_middle_of_a_line_is_none() {
    expect(&script(r#"echo '> OPENSHELL_AGENT_RESULT {"status":"complete"}'"#).1, 1, MISSING);
}

#[test]
fn a_tag_without_white_space_is_none() {
    expect(&script(r#"echo 'OPENSHELL_AGENT_RESULT{"status":"complete"}'"#).1, 1, MISSING);
}

#[test]
fn a_sentinel_on_stderr_is_none() {
    expect(&script(&format!("{{ {}; }} >&2", said("complete"))).1, 1, MISSING);
}

#[test]
fn no_result_with_exit_0_fails() {
    let (agent, ended) = script("echo done");
    expect(&ended, 1, MISSING);
    let result = &agent.status()["result"];
    assert_eq!((&result["status"], &result["reason"]), (&json!("transient_failure"), &json!("missing_agent_result")));
}

#[test]
fn no_result_keeps_the_harnesss_own_status() {
    expect(&script("exit 7").1, 7, "transient watch failure 1 (missing OPENSHELL_AGENT_RESULT after harness exit 7)");
}

#[test]
fn a_result_decides_whatever_the_exit_status() {
    let (agent, ended) = script(&format!("{}; exit 9", said("complete")));
    expect(&ended, 0, "complete (r)");
    assert_eq!(agent.status()["harness_exit_code"], 9);
}

#[test]
fn a_harness_that_is_killed_exits_with_128_and_the_signal() {
    let (agent, ended) = script("kill -9 $$");
    assert_eq!(ended.code, 137);
    assert_eq!(agent.status()["harness_exit_code"], 137);
}

#[test]
fn a_command_needs_no_result() {
    for code in [0, 3] {
        let agent = Agent::new(&format!("exit {code}"));
        let ended = agent.run();
        let line = if code == 0 { "complete (harness exit 0)" } else { "terminal failure (harness exit 3)" };
        expect(&ended, code, line);
        assert_eq!(agent.status()["harness_exit_code"], code);
    }
}

#[test]
fn a_commands_result_still_decides() {
    expect(&Agent::new(&said("terminal_failure")).run(), 1, "terminal failure (r)");
}

#[test]
fn a_harness_that_cannot_be_started_is_127() {
    let agent = Agent::new("");
    agent.write("payload/agent.json", r#"{"harness":{"supported":{"command":{"argv":["/nowhere/to/be/found"]}}}}"#);
    let ended = agent.run();
    assert_eq!(ended.code, 127);
    assert!(ended.err.contains("openshell-agent: cannot start harness command: "), "{}", ended.err);
}

#[test]
fn a_tools_broken_pipe_is_no_transport_failure() {
    for script_text in ["echo 'write error: Broken pipe' >&2", "echo 'stream disconnected before completion'"] {
        expect(&script(script_text).1, 1, MISSING);
    }
}

#[test]
fn a_lost_model_server_is_named() {
    let line = "transient watch failure 1 (missing OPENSHELL_AGENT_RESULT after harness exit 1; upstream transport failure detected)";
    expect(&script("echo 'ERROR: stream disconnected before completion' >&2; exit 1").1, 1, line);
    expect(&script(r#"echo '{"type":"error","message":"stream disconnected before completion"}'; exit 1"#).1, 1, line);
}

#[test]
fn the_result_file_wins() {
    let both = format!(
        r#"{}; echo '{{"status":"complete","reason":"file"}}' > "$OPENSHELL_AGENT_RESULT_FILE""#,
        said("terminal_failure")
    );
    expect(&script(&both).1, 0, "complete (file)");
}

#[test]
fn a_result_file_without_content_is_none_and_a_strange_one_malformed() {
    expect(&script(&format!(r#": > "$OPENSHELL_AGENT_RESULT_FILE"; {}"#, said("complete"))).1, 0, "complete (r)");
    for strange in ["mkfifo", "mkdir", "ln -s /etc/hostname", "echo x | tee"] {
        let (_, ended) = script(&format!(r#"{strange} "$OPENSHELL_AGENT_RESULT_FILE""#));
        expect(&ended, 1, "transient watch failure 1 (malformed OPENSHELL_AGENT_RESULT JSON)");
    }
}

#[test]
fn nothing_is_left_in_the_temporary_folder() {
    let (agent, _) = script(r#"echo x > "$OPENSHELL_AGENT_RESULT_FILE""#);
    assert_eq!(std::fs::read_dir(agent.path("tmp")).unwrap().count(), 0);
}
