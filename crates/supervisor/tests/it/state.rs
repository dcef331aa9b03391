//! The state folder, the report, and what a hostile or full folder does.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Agent, PROGRAM, said};

#[test]
fn notes_and_exit_code_stand_in_the_status_with_two_history_lines() {
    let agent = Agent::new(&format!("{}; exit 4", said("complete"))).env("OPENSHELL_AGENT_ID", "tester");
    agent.run();
    let status = agent.status();
    assert_eq!((&status["harness_exit_code"], &status["result"]["notes"]), (&json!(4), &json!("n")));
    assert_eq!(
        (&status["agent_id"], &status["harness"], &status["run_mode"]),
        (&json!("tester"), &json!("command"), &json!("once"))
    );
    let history = agent.history();
    assert_eq!(history.len(), 2);
    assert_eq!(history[0]["supervisor_state"], "running");
    assert_eq!((&history[0]["result"], &history[0]["harness_exit_code"]), (&json!({}), &Value::Null));
    assert_eq!(history[1], status);
}

#[test]
fn a_record_is_compact_and_has_its_fields_in_order() {
    let agent = Agent::new(&said("complete"));
    agent.run();
    let text = agent.read("state/status.json");
    let time = agent.status()["recorded_at"].as_str().unwrap().to_owned();
    let expected = format!(
        r#"{{"schema_version":1,"recorded_at":"{time}","agent_id":"unknown","harness":"command","run_mode":"once","cycle":1,"supervisor_state":"terminal","harness_exit_code":0,"result":"#
    );
    let result =
        text.strip_prefix(&expected).and_then(|rest| rest.strip_suffix("}\n")).unwrap_or_else(|| panic!("{text}"));
    // within the agent's object the order is the JSON library's, which other programs of the workspace can change
    let said: Value = serde_json::from_str(result).unwrap();
    assert_eq!(said, json!({ "status": "complete", "reason": "r", "next_poll_seconds": 1, "notes": "n" }));
    assert!(!result.contains(": ") && !result.contains(", "), "{result}");
}

#[test]
fn the_running_state_is_there_while_the_harness_runs() {
    let agent = Agent::new("cat $OPENSHELL_AGENT_STATE_DIR/status.json");
    let seen: Value = serde_json::from_str(&agent.run().out).unwrap();
    assert_eq!(seen["supervisor_state"], "running");
}

#[test]
fn a_sleeping_record_says_when_the_next_cycle_is() {
    let agent = Agent::cycles(&[&said("waiting"), &said("complete")]);
    agent.run();
    let history = agent.history();
    let states: Vec<_> = history.iter().map(|record| record["supervisor_state"].as_str().unwrap()).collect();
    assert_eq!(states, ["running", "sleeping", "running", "terminal"]);
    assert!(history[1]["next_cycle_at"].as_str().unwrap() > history[1]["recorded_at"].as_str().unwrap());
    assert!(history[3].get("next_cycle_at").is_none());
}

#[test]
fn the_history_is_bounded() {
    let agent = Agent::new(&said("complete")).env("OPENSHELL_AGENT_STATE_HISTORY_LIMIT", "3");
    (0..3).for_each(|_| assert_eq!(agent.run().code, 0));
    let states: Vec<_> = agent.history().iter().map(|record| record["supervisor_state"].clone()).collect();
    assert_eq!(states, ["terminal", "running", "terminal"]);
}

#[test]
fn notes_are_held_to_their_limit_at_a_character() {
    let agent = Agent::new(r#"echo 'OPENSHELL_AGENT_RESULT {"status":"complete","notes":"ä😀öü","more":[1]}'"#)
        .env("OPENSHELL_AGENT_MAX_NOTES_LENGTH", "2");
    agent.run();
    assert_eq!(agent.status()["result"], json!({"status": "complete", "notes": "ä😀", "more": [1]}));
}

#[test]
fn missing_notes_are_said_to_be_missing() {
    for notes in ["", r#","notes":"""#, r#","notes":null"#] {
        let agent = Agent::new(&format!(r#"echo 'OPENSHELL_AGENT_RESULT {{"status":"complete"{notes}}}'"#));
        agent.run();
        assert_eq!(agent.status()["result"]["notes"], "No cycle notes were provided by the agent.");
    }
}

#[test]
fn a_status_is_replaced_and_never_half_written() {
    let agent = Agent::new(
        "cat $OPENSHELL_AGENT_STATE_DIR/status.json >/dev/null; exec 3<$OPENSHELL_AGENT_STATE_DIR/status.json; echo held",
    );
    agent.run();
    let names: Vec<_> =
        std::fs::read_dir(agent.path("state")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn a_state_folder_that_cannot_be_made_never_ends_a_watch() {
    let agent = Agent::cycles(&["exit 0", &said("complete")]).env("OPENSHELL_AGENT_STATE_DIR", "/dev/null/state");
    let ended = agent.run();
    assert_eq!(ended.code, 0);
    assert!(ended.err.contains("openshell-agent: cannot write state: "), "{}", ended.err);
    assert_eq!(ended.err.matches("cannot keep output").count(), 1, "{}", ended.err);
}

#[test]
fn a_temporary_folder_that_takes_nothing_is_made_up_for() {
    let agent = Agent::new(&said("complete")).env("TMPDIR", "/dev/null");
    let ended = agent.run();
    assert_eq!((ended.code, ended.err.contains("cannot")), (0, false), "{}", ended.err);
    assert_eq!(std::fs::read_dir(agent.path("state")).unwrap().count(), 3);

    let agent =
        Agent::new(&said("complete")).env("TMPDIR", "/dev/null").env("OPENSHELL_AGENT_STATE_DIR", "/dev/null/x");
    assert!(agent.watch().env("OPENSHELL_AGENT_MAX_CYCLES", "2").run().err.contains("cannot start harness command: "));
}

#[test]
fn a_full_disk_never_ends_a_watch() {
    let agent = Agent::cycles(&["echo x", "rm $OPENSHELL_AGENT_STATE_DIR/fill", &said("complete")]);
    std::fs::create_dir(agent.path("state")).unwrap();
    let script = "mount -t tmpfs -o size=16k none $OPENSHELL_AGENT_STATE_DIR || exit 99; \
         head -c 100000 /dev/zero > $OPENSHELL_AGENT_STATE_DIR/fill 2>/dev/null; \
         \"$0\"; code=$?; cat $OPENSHELL_AGENT_STATE_DIR/status.json; exit $code";
    let output =
        agent.command("unshare").args(["--user", "--map-root-user", "--mount", "sh", "-c", script, PROGRAM]).output();
    let Some(output) = output.ok().filter(|output| output.status.code() == Some(0)) else {
        println!("SKIPPED: no mount in a user namespace here");
        return;
    };
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("openshell-agent: cannot write state: No space left on device"), "{err}");
    assert!(err.contains("openshell-agent: complete (r)"), "{err}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(r#""supervisor_state":"terminal""#));
}

#[test]
fn links_fifos_and_folders_in_the_state_folder_hang_and_overwrite_nothing() {
    let agent = Agent::new(&said("complete"));
    std::fs::create_dir(agent.path("state")).unwrap();
    agent.write("precious", "precious");
    for name in ["status.json", "output.log"] {
        std::os::unix::fs::symlink(agent.path("precious"), agent.path("state").join(name)).unwrap();
    }
    assert!(Command::new("mkfifo").arg(agent.path("state/history.jsonl")).status().unwrap().success());
    assert_eq!(agent.run().code, 0);
    assert_eq!(agent.read("precious"), "precious");
    assert_eq!((agent.history().len(), &agent.status()["supervisor_state"]), (2, &json!("terminal")));

    let agent = Agent::new(&said("complete"));
    std::fs::create_dir_all(agent.path("state/status.json")).unwrap();
    assert_eq!(agent.run().code, 0);
}

fn report(agent: &Agent, args: &[&str]) -> Value {
    let ended = agent.run_with(args);
    assert_eq!(ended.code, 0);
    serde_json::from_str(&ended.out).unwrap()
}

#[test]
fn a_report_has_status_history_and_the_end_of_the_output() {
    let agent = Agent::new(&format!("yes | head -c 50000; echo; {}", said("complete")));
    agent.run();
    let short = report(&agent, &["report"]);
    assert_eq!((&short["status"], short["history"].as_array().unwrap().len()), (&agent.status(), 2));
    assert_eq!(short["output"].as_str().unwrap().len(), 16 << 10);
    assert!(short["output"].as_str().unwrap().ends_with("openshell-agent: complete (r)\n"));
    let long = report(&agent, &["report", "--log"]);
    assert_eq!(long["output"].as_str().unwrap().len() as u64, long["output_bytes"].as_u64().unwrap());
    assert!(long["output_bytes"].as_u64().unwrap() > 50_000);
}

#[test]
fn a_report_without_a_run_and_one_on_hostile_files_are_reports_too() {
    let agent = Agent::new("");
    let empty = json!({"schema_version": 1, "status": null, "history": [], "output": "", "output_bytes": 0});
    assert_eq!(report(&agent, &["report"]), empty);
    agent.write("state/history.jsonl", "{\"torn\n[]\n");
    agent.write("state/status.json", "\u{1b}[2J");
    std::os::unix::fs::symlink(Path::new("/etc/hostname"), agent.path("state/output.log")).unwrap();
    assert_eq!(report(&agent, &["report"]), empty);
}
