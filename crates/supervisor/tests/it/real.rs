//! The real harnesses, driven by the supervisor against a scripted model server on loopback. Each is looked for in
//! `BASTION_TEST_CODEX`, `BASTION_TEST_CLAUDE`, `BASTION_TEST_OPENCODE`, then in `PATH`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;

use crate::server::{Script, Server};
use crate::support::{Agent, PROGRAM};

fn program(name: &str) -> Option<PathBuf> {
    let named = std::env::var_os(format!("BASTION_TEST_{}", name.to_uppercase())).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = named.into_iter().chain(std::env::split_paths(&path).map(|dir| dir.join(name)));
    let found = places.find(|path| path.is_file());
    if found.is_none() {
        println!("SKIPPED: no {name} program in BASTION_TEST_{} or PATH", name.to_uppercase());
    }
    found
}

/// An agent whose harness is the real program, with a model server that follows `script`.
fn agent(name: &str, script: impl FnOnce(&Agent) -> Script) -> Option<(Agent, Server)> {
    let program = program(name)?;
    let agent = Agent::new("").env("OPENSHELL_AGENT_HARNESS", name);
    std::fs::create_dir_all(agent.path("bin")).unwrap();
    std::os::unix::fs::symlink(program, agent.path("bin").join(name)).unwrap();
    let server = Server::start(script(&agent));
    let base = format!("http://127.0.0.1:{}", server.port);
    agent.write("payload/agent-prompt.md", "THE-PROMPT: do it.");
    agent.write("home/.codex/config.toml", &format!(
        "model_provider = 'mock'\nchatgpt_base_url = '{base}/backend-api'\n[analytics]\nenabled = false\n[model_providers.mock]\n\
         name = 'mock'\nbase_url = '{base}/v1'\nwire_api = 'responses'\nrequires_openai_auth = true\n\
         request_max_retries = 0\nstream_max_retries = 0\n"
    ));
    let provider = json!({"npm": "@ai-sdk/openai-compatible", "name": "mock", "options": {"baseURL": format!("{base}/v1"), "apiKey": "k"},
        "models": {"mock-model": {"name": "mock-model"}}});
    agent.write(
        "home/.config/opencode/opencode.json",
        &json!({"autoupdate": false, "share": "disabled",
        "small_model": "mock/mock-model", "provider": {"mock": provider}})
        .to_string(),
    );
    let supported = json!({"codex": {"model": "mock-model", "reasoning": "low"}, "claude": {"model": "sonnet"},
        "opencode": {"model": "mock/mock-model"}});
    agent.write("payload/agent.json", &json!({"harness": {"supported": supported}}).to_string());
    agent.write("payload/subagents/reviewer.md", "SUBAGENT-DEFINITION: you review.");
    std::fs::create_dir_all(agent.path("payload/runtime")).unwrap();
    std::fs::write(agent.path("payload/runtime/subagent.sh"), bastion_supervisor::SUBAGENT).unwrap();
    std::fs::copy(PROGRAM, agent.path("payload/runtime/bastion-supervisor")).unwrap();
    let agent = agent
        .env("OPENAI_API_KEY", "openshell:resolve:env:v3_OPENAI_API_KEY")
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &base)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    Some((agent, server))
}

fn says(status: &str) -> String {
    format!(
        r#"All done.
OPENSHELL_AGENT_RESULT {{"status":"{status}","reason":"{status} it is","next_poll_seconds":1}}"#
    )
}

/// One cycle whose tool call leaves a mark and prints a result of its own, which must not count.
fn one_cycle(name: &str) {
    let Some((agent, server)) = agent(name, |agent| Script {
        command: Some(format!("touch {}; echo 'OPENSHELL_AGENT_RESULT {{}}'", agent.path("mark").display())),
        last: vec![says("complete")],
        ..Script::default()
    }) else {
        return;
    };
    let ended = agent.run();
    assert_eq!(ended.code, 0, "{}\n{}", ended.err, ended.out);
    assert!(ended.err.ends_with("openshell-agent: complete (complete it is)\n"), "{}", ended.err);
    assert!(agent.path("mark").exists(), "the tool ran");
    server.requests(|requests| assert!(requests.iter().any(|request| request.body.contains("THE-PROMPT"))));
}

fn waiting_then_complete(name: &str) {
    let Some((agent, _server)) =
        agent(name, |_| Script { last: vec![says("waiting"), says("complete")], ..Script::default() })
    else {
        return;
    };
    let ended = agent.watch().run();
    assert_eq!(ended.code, 0, "{}\n{}", ended.err, ended.out);
    assert!(
        ended.err.contains("openshell-agent: waiting (waiting it is); sleeping 1s outside harness\n"),
        "{}",
        ended.err
    );
    assert!(ended.err.ends_with("openshell-agent: complete (complete it is)\n"), "{}", ended.err);
}

fn subagent(name: &str) {
    let Some((agent, server)) = agent(name, |agent| Script {
        command: Some(format!("echo LOOK-AT-IT | sh {} reviewer", agent.path("payload/runtime/subagent.sh").display())),
        last: vec![says("complete")],
        special: Some(("SUBAGENT-DEFINITION".into(), format!("REVIEWED\n{}", says("terminal_failure")))),
        ..Script::default()
    }) else {
        return;
    };
    let ended = agent.run();
    assert_eq!(ended.code, 0, "{}\n{}", ended.err, ended.out);
    server.requests(|requests| {
        let theirs = requests.iter().find(|request| request.body.contains("SUBAGENT-DEFINITION"));
        let theirs = theirs.unwrap_or_else(|| panic!("no subagent: {}", ended.out));
        assert!(theirs.body.contains("LOOK-AT-IT"));
        let answered = requests
            .iter()
            .any(|request| request.body.contains("THE-PROMPT") && request.body.contains("> OPENSHELL_AGENT_RESULT"));
        assert!(answered, "its words came back as a tool's, quoted");
    });
}

#[test]
fn codex_runs_one_cycle_with_a_tool_call() {
    one_cycle("codex");
}

#[test]
fn codex_waits_then_completes() {
    waiting_then_complete("codex");
}

#[test]
fn codex_runs_a_subagent() {
    subagent("codex");
}

#[test]
fn codex_loses_its_server_in_the_middle() {
    let Some((agent, _server)) =
        agent("codex", |_| Script { command: Some("true".into()), dies: true, ..Script::default() })
    else {
        return;
    };
    let ended = agent.run();
    let line = "openshell-agent: transient watch failure 1 (missing OPENSHELL_AGENT_RESULT after harness exit 1; upstream transport failure detected)\n";
    assert!(ended.code == 1 && ended.err.ends_with(line), "{}\n{}", ended.err, ended.out);
}

#[test]
fn codex_signs_in_with_a_placeholder_that_lasts() {
    let Some((agent, server)) = agent("codex", |_| Script { last: vec![says("complete")], ..Script::default() }) else {
        return;
    };
    let agent = agent
        .env("CODEX_AUTH_ACCESS_TOKEN", "openshell:resolve:env:v3_CODEX_AUTH_ACCESS_TOKEN")
        .env("CODEX_AUTH_ACCOUNT_ID", "acct");
    let ended = agent.run();
    assert_eq!(ended.code, 0, "{}\n{}", ended.err, ended.out);
    server.requests(|requests| {
        let model = requests.iter().find(|request| request.path.ends_with("/responses")).unwrap();
        assert_eq!(model.authorization, "Bearer openshell:resolve:env:CODEX_AUTH_ACCESS_TOKEN");
    });
    let mode = std::fs::metadata(agent.path("home/.codex/auth.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn claude_runs_one_cycle_with_a_tool_call() {
    one_cycle("claude");
}

#[test]
fn claude_waits_then_completes() {
    waiting_then_complete("claude");
}

#[test]
fn claude_runs_a_subagent() {
    subagent("claude");
}

#[test]
fn opencode_runs_one_cycle_with_a_tool_call() {
    one_cycle("opencode");
}

#[test]
fn opencode_runs_a_subagent() {
    subagent("opencode");
}
