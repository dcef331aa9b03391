//! `agent.yaml`: what loads, with which values, and what is refused where.

use bastion_launch::agent::{CredentialMode, RunMode, Source};
use bastion_launch::parse::parse;

use crate::world::World;

const LEAST: &str = "id: a\nharness: {supported: {codex: }}\nprompt_template: p.md\n";

#[test]
fn every_section_is_read() {
    let world = World::new();
    let parsed = parse(&std::fs::read(world.agent().join("agent.yaml")).unwrap()).unwrap();
    let agent = parsed.agent;
    assert_eq!((agent.id.as_str(), agent.payload_version, agent.serial), ("gardener", 7, Some(1)));
    assert_eq!(agent.display_name.as_deref(), Some("Gardener"));
    assert_eq!(agent.owner_host.as_deref(), Some("alice.example"));
    assert_eq!(agent.sandbox.name_prefix.as_deref(), Some("gard"));
    assert_eq!(agent.sandbox.gateway.as_deref(), Some("greenhouse"));
    assert_eq!(agent.sandbox.from.as_deref(), Some("agent://image"));
    let local = &agent.sandbox.local;
    assert_eq!((local.memory.as_deref(), local.pids, local.cpu.as_deref()), (Some("2GiB"), Some(512), Some("1")));
    assert!(local.hard_requirement && local.binds[0].writable);
    assert_eq!(agent.harness.default.as_deref(), Some("codex"));
    assert_eq!(agent.harness.supported[0].1["anything"]["deep"][1], "two");
    assert_eq!(agent.harness.supported[2].1, serde_json::json!({}));
    assert_eq!(agent.runtime.mode, RunMode::Watch);
    assert_eq!((agent.runtime.poll_interval_seconds, agent.runtime.max_cycles), (600, 9));
    assert_eq!((agent.runtime.cycle_timeout_seconds, agent.runtime.silence_timeout_seconds), (1200, 300));
    assert_eq!(agent.policy.as_deref(), Some("policy.yaml"));
    assert_eq!(agent.profile_paths, ["providers", "repo://shared/providers"]);
    let settings: Vec<_> = agent.settings.iter().map(|s| format!("{}={}", s.key, s.value)).collect();
    assert_eq!(settings, ["proposal_mode=auto", "proposals_enabled=true", "retries=3"]);
    let [forge, model, other] = agent.providers.as_slice() else { panic!("{:?}", agent.providers) };
    assert_eq!((forge.mode, model.mode), (CredentialMode::Explicit, CredentialMode::FromExisting));
    assert!(matches!(&forge.credentials[0].source, Source::HostCommand { command } if command.starts_with("printf")));
    assert!(!forge.credentials[2].export && forge.credentials[1].export);
    let refresh = model.refresh.as_ref().unwrap();
    assert_eq!((refresh.credential_key.as_str(), refresh.strategy.as_str()), ("access_token", "oauth2-refresh-token"));
    assert!(!refresh.materials[0].hidden() && refresh.materials[1].hidden());
    assert_eq!(other.harness.as_deref(), Some("claude"));
    assert_eq!(agent.subagents[0].expose_as.as_deref(), Some("HELPER_COMMAND"));
    assert_eq!(agent.resources[0].destination, "resources/notes.md");
}

#[test]
fn keys_of_older_agents_are_warned_of() {
    let world = World::new();
    let parsed = parse(&std::fs::read(world.agent().join("agent.yaml")).unwrap()).unwrap();
    assert_eq!(parsed.warnings, ["line 13: `sandbox.background_log_dir` is of older agents and does nothing"]);
}

#[test]
fn the_least_agent_has_the_defaults() {
    let agent = parse(LEAST.as_bytes()).unwrap().agent;
    assert_eq!(agent.payload_version, 1);
    let runtime = agent.runtime;
    assert_eq!((runtime.mode, runtime.poll_interval_seconds, runtime.max_transient_failures), (RunMode::Once, 900, 5));
    assert_eq!((runtime.cycle_timeout_seconds, runtime.silence_timeout_seconds, runtime.max_cycles), (3600, 0, 0));
    assert!(agent.sandbox.from.is_none() && agent.providers.is_empty());
}

#[test]
fn a_subagents_place_follows_from_its_id() {
    let text = format!("{LEAST}subagents: [{{id: b, source: b.md}}]\n");
    assert_eq!(parse(text.as_bytes()).unwrap().agent.subagents[0].destination, "subagents/b.md");
}

#[test]
fn what_is_not_an_agent_is_refused_with_its_place() {
    let with = |more: &str| format!("{LEAST}{more}\n");
    let provider = |more: &str| with(&format!("providers: [{{id: p, name: n, profile: q, {more}}}]"));
    for (text, place, said) in [
        (with("utnil: 1"), (4, 1), "unknown key `utnil`"),
        (with("runtme: {}"), (4, 1), "did you mean `runtime`"),
        (with("id: b"), (4, 1), "there twice"),
        (with("folders: []"), (4, 10), "not yet"),
        (with("payload_version: x"), (4, 18), "whole number"),
        (with("payload_version: 1.5"), (4, 18), "floating-point"),
        (with("display_name: [a]"), (4, 15), "must be a string"),
        (with("sandbox: {gatway: x}"), (4, 11), "did you mean `gateway`"),
        (with("sandbox: {local: {pids: 0}}"), (4, 25), "at least 1"),
        (with("sandbox: {local: {binds: [{source: a, mode: x}]}}"), (4, 45), "ro or rw"),
        (with("runtime: {mode: always}"), (4, 17), "once or watch"),
        (with("runtime: {poll_interval_seconds: 0}"), (4, 34), "at least 1"),
        (with("settings: [{key: a, value: 1}, {key: a, value: 2}]"), (4, 38), "there twice"),
        (with("settings: [{key: a, value: [1]}]"), (4, 28), "must be a string, a number"),
        (with("skills: [{id: s, source: a}]"), (4, 10), "has no `destination`"),
        (with("skills: [{id: s, source: a, destination: b, expose_as: X}]"), (4, 45), "unknown key `expose_as`"),
        (with("subagents: [{id: ../s, source: a}]"), (4, 18), "`id` must be"),
        (with("subagents: [{id: s, source: a, expose_as: lower}]"), (4, 43), "A to Z"),
        (with("subagents: [{id: s, source: a, expose_as: HARNESS}]"), (4, 43), "every prompt has"),
        (with("signature: {alg: x, cert: c, value: v}"), (4, 12), "owner.host"),
        (with("signature: {alg: x, cert: c}"), (4, 12), "has no `value`"),
        (with("owner: {host: Alice}"), (4, 15), "lower-case"),
        (provider("credential_mode: x"), (4, 59), "explicit or from_existing"),
        (provider("credentials: [{env: A-B, source: {kind: value, value: x}}]"), (4, 62), "name of a variable"),
        (provider("credentials: [{env: A, source: {kind: magic}}]"), (4, 80), "host_command, file_json or value"),
        (provider("credentials: [{env: A, source: {kind: value, value: x, path: y}}]"), (4, 97), "unknown key `path`"),
        (provider("credentials: [{env: A, source: {kind: host_command, command: \" \"}}]"), (4, 73), "no command"),
        (
            provider("credentials: [{env: A, source: {kind: file_json, path: p, query: a..b}}]"),
            (4, 107),
            "parted by dots",
        ),
        (provider("refresh: {credential_key: K, strategy: guess}"), (4, 81), "must be one of oauth2"),
        (
            provider("refresh: {credential_key: K, strategy: aws-sts-assume-role, materials: [{name: a}]}"),
            (4, 114),
            "either `value` or `source`",
        ),
        ("id: a\n".into(), (1, 1), "has no `harness`"),
        (LEAST.replace("id: a", "id: A"), (1, 5), "`id` must be"),
        (LEAST.replace("{codex: }", "{}"), (2, 22), "names no harness"),
        (LEAST.replace("{codex: }", "{codex: 7}"), (2, 30), "must be a mapping"),
        (LEAST.replace("{codex: }", "{command: {}}"), (2, 32), "needs `argv`"),
        (LEAST.replace("{codex: }", "{command: {argv: x}}"), (2, 39), "must be a list"),
        (LEAST.replace("{supported", "{default: x, supported"), (2, 20), "not in `supported`"),
        (with("x: &a 1"), (4, 7), "anchors"),
        (with("policy: \"a\\nb\""), (4, 9), "is no path"),
    ] {
        let error = parse(text.as_bytes()).unwrap_err();
        assert!(error.what.contains(said), "{text}\n{error}");
        assert_eq!((error.line, error.column), place, "{text}\n{error}");
    }
}

#[test]
fn what_belongs_to_an_adapter_is_not_judged() {
    let text = LEAST.replace("{codex: }", "{codex: {model: 5, whatever: [a, {b: c}]}, my-own: {x: null}}");
    let agent = parse(text.as_bytes()).unwrap().agent;
    assert_eq!(agent.harness.supported[0].1["whatever"][1]["b"], "c");
}
