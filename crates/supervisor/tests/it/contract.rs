//! The contract of harness adapters, run on every one of them with a stand-in for the harness that speaks as the
//! real one does (the event streams are those that Codex 0.171, Claude Code 2.1 and opencode 1.18 print).

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Agent, Ended, PROGRAM};

const ALL: [&str; 5] = ["claude", "codex", "command", "opencode", "mine"];
const RESULT: &str = r#"OPENSHELL_AGENT_RESULT {"status":"complete","reason":"r"}"#;
const CODEX_HELP: &str = "--skip-git-repo-check --ephemeral --sandbox <MODE> --json --output-last-message <FILE>";

/// An agent with a stand-in for `harness`, which keeps its prompt in `seen` and its arguments in `args`, lets a tool
/// print `tool`, says `last` and exits with `exit`.
fn agent(harness: &str, tool: &str, last: &str, exit: u8) -> Agent {
    let agent = Agent::new("").env("OPENSHELL_AGENT_HARNESS", harness);
    agent.write("last", last);
    let (program, script) = stand_in(&agent, harness, tool, last);
    agent.program(&program, &format!("{script}\nexit {exit}"));
    if harness == "command" {
        let argv = json!([agent.path("bin/command")]);
        agent.write("payload/agent.json", &json!({"harness": {"supported": {"command": {"argv": argv}}}}).to_string());
    }
    agent
}

fn stand_in(agent: &Agent, harness: &str, tool: &str, last: &str) -> (String, String) {
    let keep = "cat > $HERE/seen; printf '%s\\n' \"$@\" > $HERE/args; env > $HERE/env";
    let events = |events: &[Value]| {
        let lines: Vec<_> = events.iter().map(Value::to_string).collect();
        agent.write("events", &lines.join("\n"));
        "cat $HERE/events; echo".to_owned()
    };
    let speak = match harness {
        "claude" => events(&[
            json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": tool}]}}),
            json!({"type": "result", "subtype": "success", "is_error": false, "result": last}),
        ]),
        "codex" => {
            let events = events(&[
                json!({"type": "item.completed", "item": {"type": "command_execution", "aggregated_output": tool}}),
                json!({"type": "item.completed", "item": {"type": "agent_message", "text": last}}),
                json!({"type": "turn.completed"}),
            ]);
            format!("{events}; while [ \"$1\" != --output-last-message ]; do shift; done; cat $HERE/last > \"$2\"")
        }
        "opencode" => events(&[
            json!({"type": "step_start"}),
            json!({"type": "text", "part": {"text": tool}}),
            json!({"type": "tool_use", "part": {"state": {"output": tool}}}),
            json!({"type": "step_finish"}),
            json!({"type": "step_start"}),
            json!({"type": "text", "part": {"text": last}}),
            json!({"type": "step_finish"}),
        ]),
        _ => {
            agent.write("tool", &format!("{tool}\n"));
            "cat $HERE/tool $HERE/last".to_owned()
        }
    };
    if harness == "mine" {
        let keep = keep.replace("cat >", "cat \"$1\" >");
        return ("payload/runtime/harnesses/mine/exec.sh".into(), format!("{keep}; {speak}"));
    }
    let help = format!("case \" $* \" in *' --help '*) echo '{CODEX_HELP} --effort --auto --variant'; exit;; esac");
    (format!("bin/{harness}"), format!("{help}; {keep}; {speak}"))
}

fn settings(agent: &Agent, harness: &str, settings: &Value) {
    agent.write("payload/agent.json", &json!({"harness": {"supported": {harness: settings}}}).to_string());
}

#[test]
fn the_prompt_arrives_whole() {
    for harness in ALL {
        let agent = agent(harness, "", RESULT, 0);
        let prompt: Vec<u8> = (0..200_000_u32).map(|n| n.wrapping_mul(40_503).to_le_bytes()[1]).collect();
        std::fs::write(agent.path("payload/agent-prompt.md"), &prompt).unwrap();
        assert_eq!(agent.run().code, 0, "{harness}");
        assert!(std::fs::read(agent.path("seen")).unwrap() == prompt, "{harness}");
    }
}

#[test]
fn a_result_in_the_final_message_counts() {
    for harness in ALL {
        let ended = agent(harness, "tool", &format!("All done.\n{RESULT}"), 0).run();
        assert!(ended.err.ends_with("openshell-agent: complete (r)\n"), "{harness}: {}", ended.err);
    }
}

#[test]
fn what_a_tool_prints_never_counts() {
    for harness in ALL {
        let tool = format!("stream disconnected before completion\n{RESULT}");
        let ended = agent(harness, &tool, "I am not sure.", 3).run();
        let line = match harness {
            "command" => "terminal failure (harness exit 3)",
            _ => "transient watch failure 1 (missing OPENSHELL_AGENT_RESULT after harness exit 3)",
        };
        assert_eq!(ended.code, 3);
        assert!(ended.err.ends_with(&format!("openshell-agent: {line}\n")), "{harness}: {}", ended.err);
    }
}

#[test]
fn a_raw_line_beside_an_event_stream_never_counts() {
    for harness in ["claude", "codex", "opencode"] {
        let agent = agent(harness, "", "I am not sure.", 0);
        let script = agent.read(&format!("bin/{harness}")).replace("\nexit 0", &format!("\necho '{RESULT}'"));
        agent.program(&format!("bin/{harness}"), &script);
        assert_eq!(agent.run().code, 1, "{harness}");
    }
}

#[test]
fn a_program_that_is_missing_is_127() {
    for harness in ["claude", "codex", "command", "opencode"] {
        let agent = agent(harness, "", "", 0);
        std::fs::remove_file(agent.path(&format!("bin/{harness}"))).unwrap();
        let mut command = agent.command(PROGRAM);
        command.env("PATH", agent.path("bin"));
        assert_eq!(command.output().unwrap().status.code(), Some(127), "{harness}");
    }
}

#[test]
fn a_subagent_runs_and_its_final_message_goes_to_stdout() {
    for harness in ALL {
        let agent = agent(harness, "", &format!("Looks good.\n{RESULT}"), 0);
        agent.write("payload/subagents/reviewer.md", "You review.");
        agent.write("task", "Look.");
        let mut command = agent.command(PROGRAM);
        command.args(["subagent", "reviewer"]).stdin(std::fs::File::open(agent.path("task")).unwrap());
        let ended: Ended = command.stdout(Stdio::piped()).output().unwrap().into();
        assert_eq!((ended.code, ended.out.trim()), (0, format!("Looks good.\n> {RESULT}").as_str()), "{harness}");
        assert_eq!(agent.read("seen"), "You review.\n\n# Task\n\nLook.", "{harness}");
    }
}

#[test]
fn a_program_that_was_handed_over_wins_over_the_path() {
    for harness in ["claude", "codex", "opencode"] {
        let agent = agent(harness, "", RESULT, 0);
        let script = agent.read(&format!("bin/{harness}"));
        agent.program(&format!("bin/{harness}"), "exit 9");
        agent.program(&format!("payload/runtime/harnesses/{harness}/{harness}"), &script);
        assert_eq!(agent.run().code, 0, "{harness}");
    }
}

#[test]
fn an_adapter_in_the_payload_wins_over_a_built_in_one() {
    let agent = agent("codex", "", "", 0);
    agent.program("payload/runtime/harnesses/codex/exec.sh", &format!("echo '{RESULT}'"));
    assert_eq!(agent.run().code, 0);
    assert!(!agent.path("seen").exists());
}

#[test]
fn a_script_without_its_executable_bit_runs_too() {
    let agent = agent("mine", "", RESULT, 0);
    let exec = agent.path("payload/runtime/harnesses/mine/exec.sh");
    std::fs::set_permissions(exec, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(agent.run().code, 0);
}

fn args(agent: &Agent) -> Vec<String> {
    assert_eq!(agent.run().code, 0);
    agent.read("args").lines().map(str::to_owned).collect()
}

#[test]
fn codex_gets_its_flags_model_and_reasoning() {
    let agent = agent("codex", "", RESULT, 0);
    settings(&agent, "codex", &json!({"model": "m", "reasoning": "high"}));
    let mut args = args(&agent);
    assert!(args[6].ends_with("/last-message"), "{args:?}");
    args[6] = "FILE".into();
    let expected = "exec --skip-git-repo-check --ephemeral --sandbox danger-full-access --output-last-message FILE \
                    --json --model m -c model_reasoning_effort=\"high\" -";
    assert_eq!(args.join(" "), expected);
}

#[test]
fn codex_is_spared_flags_that_its_version_lacks() {
    let agent = agent("codex", "", "", 0);
    agent.program(
        "bin/codex",
        &format!(
            "case \" $* \" in *' --help '*) echo --sandbox; exit;; esac; echo \"$@\" > $HERE/args; echo '{RESULT}'"
        ),
    );
    assert_eq!(args(&agent), ["exec --sandbox danger-full-access -"], "and its stdout is scanned");
}

#[test]
fn codex_keeps_the_alias_of_its_credential_in_a_private_file() {
    let agent = agent("codex", "", RESULT, 0)
        .env("CODEX_AUTH_ACCESS_TOKEN", "openshell:resolve:env:v7_CODEX_AUTH_ACCESS_TOKEN")
        .env("CODEX_AUTH_ACCOUNT_ID", "openshell:resolve:env:v7_CODEX_AUTH_ACCOUNT_ID");
    agent.write("home/.codex/auth.json", "old");
    let old = agent.path("home/.codex/auth.json");
    std::fs::set_permissions(&old, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(agent.run().code, 0);
    assert_eq!(std::fs::metadata(&old).unwrap().permissions().mode() & 0o777, 0o600);
    let auth: Value = serde_json::from_str(&agent.read("home/.codex/auth.json")).unwrap();
    assert_eq!(auth["tokens"]["access_token"], "openshell:resolve:env:CODEX_AUTH_ACCESS_TOKEN");
    assert_eq!(auth["tokens"]["account_id"], "openshell:resolve:env:CODEX_AUTH_ACCOUNT_ID");
    assert!(!agent.read("home/.codex/auth.json").contains("v7_"));
}

#[test]
fn codex_gets_its_key_where_there_is_no_token() {
    let agent = agent("codex", "", RESULT, 0).env("OPENAI_API_KEY", "openshell:resolve:env:v7_OPENAI_API_KEY");
    assert_eq!(agent.run().code, 0);
    assert!(agent.read("env").contains("\nCODEX_API_KEY=openshell:resolve:env:OPENAI_API_KEY\n"));
    assert!(!agent.path("home/.codex/auth.json").exists());
}

#[test]
fn claude_gets_its_flags_model_and_reasoning() {
    let agent = agent("claude", "", RESULT, 0);
    settings(&agent, "claude", &json!({"model": "sonnet", "reasoning": "high"}));
    let expected =
        "-p --output-format stream-json --verbose --dangerously-skip-permissions --model sonnet --effort high";
    assert_eq!(args(&agent).join(" "), expected);
}

#[test]
fn opencode_gets_its_flags_model_and_reasoning() {
    let agent = agent("opencode", "", RESULT, 0);
    settings(&agent, "opencode", &json!({"model": "p/m", "reasoning": "high"}));
    assert_eq!(args(&agent).join(" "), "run --format json --auto --model p/m --variant high");
}

#[test]
fn a_probe_that_hangs_can_be_stopped() {
    let agent = agent("codex", "", "", 0);
    let script = "case $2 in --help) touch $HERE/asked; sleep 1000;; *) touch $HERE/started;; esac";
    agent.program("bin/codex", script);
    let mut running = agent.start();
    crate::support::wait_until("the probe", || agent.path("asked").exists());
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait(), 143);
    assert!(!agent.path("started").exists());
    assert_eq!(agent.status()["harness_exit_code"], Value::Null);
}
