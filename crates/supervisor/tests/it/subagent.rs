//! `runtime/subagent.sh ID < task.md`.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Agent, Ended, PROGRAM};

/// An agent whose scripted harness runs `script`, with a subagent called `reviewer`.
fn agent(script: &str) -> Agent {
    let agent = Agent::new(script);
    agent.write("payload/subagents/reviewer.md", "You review.");
    agent.write("payload/subagents/tester.md", "You test.");
    agent.program("payload/runtime/subagent.sh", "");
    std::fs::write(agent.path("payload/runtime/subagent.sh"), bastion_supervisor::SUBAGENT).unwrap();
    std::fs::write(agent.path("payload/runtime/entrypoint.sh"), bastion_supervisor::ENTRYPOINT).unwrap();
    std::fs::copy(PROGRAM, agent.path("payload/runtime/bastion-supervisor")).unwrap();
    agent
}

fn ask(agent: &Agent, id: &str, task: &str) -> Ended {
    let mut command = agent.command("sh");
    command.arg(agent.path("payload/runtime/subagent.sh")).arg(id);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(task.as_bytes());
    child.wait_with_output().unwrap().into()
}

#[test]
fn it_gets_its_definition_and_the_task_and_its_last_word_goes_to_stdout() {
    let ended = ask(&agent("cat; echo aside >&2; exit 5"), "reviewer", "Look at this.");
    assert_eq!((ended.code, ended.out.as_str()), (5, "You review.\n\n# Task\n\nLook at this."));
    assert_eq!(ended.err, "aside\n");
}

#[test]
fn an_unknown_one_lists_the_known() {
    for id in ["nobody", "../subagents/reviewer", "a/b", ""] {
        let ended = ask(&agent("cat"), id, "");
        assert_eq!((ended.code, ended.out.as_str()), (1, ""));
        assert_eq!(ended.err, format!("openshell-agent: unknown subagent {id}; known: reviewer, tester\n"));
    }
}

#[test]
fn a_timeout_bounds_it() {
    let ended = ask(&agent("echo word; sleep 1000").env("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", "1"), "reviewer", "");
    assert_eq!((ended.code, ended.out.as_str()), (124, "word\n"));
}

#[test]
fn its_result_never_counts_for_the_parent() {
    let script = "if [ \"$SUB\" ]; then echo 'OPENSHELL_AGENT_RESULT {\"status\":\"terminal_failure\"}'; \
         [ -z \"$OPENSHELL_AGENT_RESULT_FILE\" ] || echo leaked; \
         else echo task | SUB=1 sh $HERE/payload/runtime/subagent.sh reviewer; fi";
    let ended = agent(script).run();
    assert_eq!((ended.code, ended.out.as_str()), (0, "> OPENSHELL_AGENT_RESULT {\"status\":\"terminal_failure\"}\n"));
}

#[test]
fn stopping_the_parent_stops_it() {
    let script = "if [ \"$SUB\" ]; then trap 'echo told >&2; exit 1' TERM; echo ready >&2; while :; do sleep 0.1; done; \
         else echo task | SUB=1 sh $HERE/payload/runtime/subagent.sh reviewer; fi";
    let agent = agent(script);
    let mut running = agent.start();
    agent.wait_for("ready");
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait(), 143);
    agent.wait_for("told");
}

#[test]
fn it_finds_its_harness_by_the_path_of_its_parent() {
    let script = "if [ \"$SUB\" ]; then cat; \
         else echo task | SUB=1 PATH=/bin:/usr/bin sh $HERE/payload/runtime/subagent.sh reviewer; fi";
    let agent = agent("");
    agent.program("bin/only-here", script);
    agent.write("payload/agent.json", r#"{"harness":{"supported":{"command":{"argv":["only-here"]}}}}"#);
    assert_eq!(agent.run().out, "You review.\n\n# Task\n\ntask\n");
}

#[test]
fn a_script_harness_may_have_its_own_way() {
    let agent = agent("").env("OPENSHELL_AGENT_HARNESS", "mine");
    agent.program("payload/runtime/harnesses/mine/exec.sh", "cat \"$1\"");
    assert_eq!(ask(&agent, "tester", "T").out, "You test.\n\n# Task\n\nT");
    agent.program("payload/runtime/harnesses/mine/subagent.sh", "echo \"$1:\"; cat");
    assert_eq!(ask(&agent, "tester", "T").out, "tester:\nT");
}

#[test]
fn a_slow_reader_gets_the_whole_final_message() {
    let agent = agent("head -c 900000 /dev/zero");
    let mut command = agent.command(PROGRAM);
    let mut child = command.args(["subagent", "reviewer"]).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(2500)); // longer than last words are waited for
    assert_eq!(crate::support::read_all(child.stdout.take().unwrap()).len(), 900_000);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_task_has_a_largest_size() {
    let ended = ask(&agent("cat"), "reviewer", &"x".repeat((8 << 20) + 1));
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("larger than"), "{}", ended.err);
}

#[test]
fn the_entrypoint_starts_the_program_beside_it() {
    let agent = agent("echo ran");
    let ended: Ended = agent.command("sh").arg(agent.path("payload/runtime/entrypoint.sh")).output().unwrap().into();
    assert_eq!((ended.code, ended.out.as_str()), (0, "ran\n"));
}

#[test]
fn both_shell_files_are_one_exec() {
    for file in [bastion_supervisor::ENTRYPOINT, bastion_supervisor::SUBAGENT] {
        let lines: Vec<_> = file.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[1].starts_with("exec ")), (2, "#!/bin/sh", true));
    }
}

#[test]
fn a_task_that_never_ends_is_bounded_and_ended_by_a_signal() {
    let agent = agent("cat").env("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", "1");
    let start = |agent: &Agent| {
        let mut command = agent.command("sh");
        command.arg(agent.path("payload/runtime/subagent.sh")).arg("reviewer");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut child = start(&agent);
    let open = child.stdin.take(); // nobody closes it
    assert_eq!(child.wait().unwrap().code(), Some(124));
    drop(open);
    let mut child = start(&agent.env("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", "1000"));
    let open = child.stdin.take();
    std::thread::sleep(std::time::Duration::from_millis(500)); // until it listens; a signal before that ends it as well
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(!child.wait().unwrap().success());
    drop(open);
}
