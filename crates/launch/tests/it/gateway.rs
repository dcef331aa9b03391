//! The calls of a launch, their order and environment, for both generations of the program.

use crate::world::{Generation, PLANTED, World, assert_unplanted};

const PAYLOAD_ENV: &str = "env OPENSHELL_AGENT_HARNESS=codex OPENSHELL_AGENT_ID=gardener OPENSHELL_AGENT_RUN_MODE=watch \
    OPENSHELL_AGENT_POLL_INTERVAL_SECONDS=600 OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES=3 OPENSHELL_AGENT_MAX_CYCLES=9 \
    OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS=1200 OPENSHELL_AGENT_SILENCE_TIMEOUT_SECONDS=300 CODEX_MODEL=model-a \
    CODEX_REASONING=medium /etc/openshell/agent-payload/runtime/entrypoint.sh";

fn expected(profile: &str, flags: &str) -> Vec<String> {
    let refresh = "--credential-key access_token";
    [
        "openshell gateway info --output json".to_owned(),
        "docker build --tag openshell/agent-gardener:1767323045 --file TMP/context/Dockerfile TMP/context".to_owned(),
        "openshell settings set --global --key proposal_mode --value auto --yes".to_owned(),
        "openshell settings set --global --key proposals_enabled --value true --yes".to_owned(),
        "openshell settings set --global --key retries --value 3 --yes".to_owned(),
        format!("openshell {profile} import --file TMP/profiles/0-import.yaml"),
        format!("openshell {profile} import --file TMP/profiles/1-import.yaml"),
        "openshell provider get forge-gardener".to_owned(),
        "openshell provider create --name forge-gardener --type forge --credential FORGE_TOKEN --credential FORGE_USER"
            .to_owned(),
        "openshell provider get model-gardener".to_owned(),
        "openshell provider create --name model-gardener --type model --from-existing".to_owned(),
        format!("openshell provider refresh status model-gardener {refresh}"),
        format!(
            "openshell provider refresh configure model-gardener {refresh} --strategy oauth2-refresh-token \
             --material client_id=app_made_up --secret-material-env refresh_token=BASTION_REFRESH_MATERIAL_1"
        ),
        format!("openshell provider refresh rotate model-gardener {refresh}"),
        format!(
            "openshell sandbox create --name gard-20260102030405 --from openshell/agent-gardener:1767323045 \
             --provider forge-gardener --provider model-gardener --no-auto-providers --no-tty{flags} -- {PAYLOAD_ENV}"
        ),
    ]
    .to_vec()
}

#[test]
fn a_new_program_gets_these_calls_in_this_order() {
    let world = World::new();
    let launched = world.launch().0.unwrap();
    assert_eq!(world.lines(), expected("profile", " --detach --no-keep"));
    assert_eq!((launched.run.name.as_str(), launched.exit), ("gard-20260102030405", None));
    world.assert_clean();
}

#[test]
fn an_old_program_gets_provider_profiles_and_no_detach() {
    let world = World::of(Generation::Old);
    world.behave("case \"$call\" in 'sandbox create '*) sleep 3;; esac\n");
    let launched = world.launch().0.unwrap();
    // the create call is left running, so it may be written down late, and behind the look at the sandbox
    let started = std::time::Instant::now();
    while !world.lines().iter().any(|line| line.contains("sandbox create")) && started.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut lines = world.lines();
    let asked = lines.iter().filter(|line| *line == "openshell sandbox get gard-20260102030405").count();
    assert!(asked >= 1, "{lines:?}");
    lines.retain(|line| !line.starts_with("openshell sandbox get"));
    assert_eq!(lines, expected("provider profile", " --no-keep"));
    assert_eq!(launched.exit, None);
    world.assert_clean();
}

#[test]
fn the_program_is_asked_once_what_it_can_do() {
    let world = World::new();
    world.launch().0.unwrap();
    let asked: Vec<_> = world.all_calls().into_iter().filter(|call| call.line.starts_with("openshell --")).collect();
    assert_eq!(
        asked.iter().map(|call| call.line.as_str()).collect::<Vec<_>>(),
        ["openshell --version", "openshell --help"]
    );
}

#[test]
fn every_call_names_the_gateway() {
    let world = World::new();
    world.launch().0.unwrap();
    let text = std::fs::read_to_string(world.path("fake/calls")).unwrap();
    let words = text.lines().filter_map(|line| line.split_once('\u{1f}')).map(|(_, words)| words);
    for line in words.filter(|words| words.starts_with("openshell") && !words.starts_with("openshell\u{1f}--version")) {
        let named = line.starts_with("openshell\u{1f}--gateway\u{1f}greenhouse\u{1f}");
        assert!(named || line == "openshell\u{1f}--help", "{line}");
    }
}

#[test]
fn values_are_in_the_environment_of_the_call_that_needs_them_alone() {
    let world = World::new();
    let (launched, said) = world.launch();
    launched.unwrap();
    for call in world.all_calls() {
        assert_unplanted(&call.line);
        let held: Vec<&str> =
            PLANTED.iter().copied().filter(|planted| call.env.values().any(|value| value.contains(planted))).collect();
        let needed: &[&str] = if call.line.contains("create --name forge") {
            &["planted-from-command", "planted-literal"]
        } else if call.line.contains("create --name model") {
            &["planted-access", "planted-account"]
        } else if call.line.contains("refresh configure") {
            &["planted-refresh"]
        } else {
            &[]
        };
        assert_eq!(held, needed, "{}", call.line);
    }
    assert_unplanted(&said.0.join("\n"));
    let create = world.calls().into_iter().find(|call| call.line.contains("--name forge")).unwrap();
    assert_eq!(create.env["FORGE_TOKEN"], "planted-from-command");
}

#[test]
fn no_policy_of_the_environment_gets_to_the_sandbox() {
    const VARIABLE: &str = "OPENSHELL_SANDBOX_POLICY";
    if std::env::var_os(VARIABLE).is_none() {
        // once more, in a process that has the variable
        let this = std::env::current_exe().unwrap();
        let name = "gateway::no_policy_of_the_environment_gets_to_the_sandbox";
        let again =
            std::process::Command::new(this).args(["--exact", name]).env(VARIABLE, "other.yaml").output().unwrap();
        let text = String::from_utf8_lossy(&again.stdout);
        assert!(again.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    let world = World::new();
    world.launch().0.unwrap();
    let calls = world.calls();
    assert!(calls[0].env.contains_key(VARIABLE), "the other calls keep it");
    let create = calls.last().unwrap();
    assert!(create.line.contains("sandbox create") && !create.env.contains_key(VARIABLE));
}

#[test]
fn a_kept_attached_run_passes_output_and_status_on() {
    let mut world = World::new();
    world.options.once = true;
    world.options.keep = true;
    world.behave("case \"$call\" in 'sandbox create '*) printf 'one\\033[2J\\ntw'; sleep 0.3; printf 'o\\n'; echo err >&2; exit 7;; esac\n");
    let (launched, said) = world.launch();
    let launched = launched.unwrap();
    assert_eq!((launched.exit, launched.run.exit), (Some(7), Some(7)));
    let told = said
        .0
        .iter()
        .any(|line| line.starts_with("warning") && line.contains("ended with status 7; done before: the image"));
    assert!(told, "{said:?}");
    let create = world.lines().pop().unwrap();
    assert!(create.contains("--no-auto-providers --no-tty -- env"), "{create}");
    let output: String = said.0.iter().filter_map(|line| line.strip_prefix("output ")).collect();
    assert!(output.contains("one\\u{1b}[2J\n") && output.contains("two\n") && output.contains("err\n"), "{output}");
}

#[test]
fn a_program_that_cannot_detach_what_removes_itself_is_asked_again() {
    let world = World::new();
    world.behave("case \"$call\" in 'sandbox create '*--no-keep*) echo \"error: the argument '--detach' cannot be used with '--no-keep'\" >&2; exit 2;; esac\n");
    let (launched, said) = world.launch();
    assert!(launched.unwrap().run.keep);
    let created: Vec<_> = world.lines().into_iter().filter(|line| line.contains("sandbox create")).collect();
    assert!(created.len() == 2 && created[1].contains("--detach -- env"), "{created:?}");
    assert!(said.0.iter().any(|line| line.starts_with("warning") && line.contains("runs rm")), "{said:?}");
}

#[test]
fn podman_builds_where_the_gateway_uses_it() {
    let world = World::new();
    world.behave(
        "case \"$call\" in 'gateway info'*) echo '{\"compute_drivers\":[{\"name\":\"podman\"}]}'; exit 0;; esac\n",
    );
    world.launch().0.unwrap();
    assert!(world.lines()[1].starts_with("podman build --tag openshell/agent-gardener:"));
}

#[test]
fn an_active_profile_is_updated_with_its_version() {
    for (generation, words) in [(Generation::New, "profile"), (Generation::Old, "provider profile")] {
        let mut world = World::of(generation);
        world.options.attach = true;
        world.behave(
            "case \"$call\" in *'profile import'*0-import*) echo \"Error: custom provider profile 'forge' already exists\" >&2; exit 1;;\n\
             *'profile export'*) echo '{\"id\":\"forge\",\"resource_version\":41}'; exit 0;;\n\
             *'profile update'*) for l; do :; done; cp \"$l\" \"$here/updated\";; esac\n",
        );
        world.launch().0.unwrap();
        let lines = world.lines();
        let at = lines.iter().position(|line| line.contains("0-import.yaml")).unwrap();
        assert_eq!(lines[at + 1], format!("openshell {words} export --output json forge"));
        assert_eq!(lines[at + 2], format!("openshell {words} update forge --file TMP/profiles/0-import-update.yaml"));
        let updated: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(world.path("fake/updated")).unwrap()).unwrap();
        assert_eq!((updated["resource_version"].as_u64(), updated["id"].as_str()), (Some(41), Some("forge")));
    }
}

#[test]
fn a_provider_that_is_there_is_updated_without_what_refresh_manages() {
    let world = World::new();
    world.behave("case \"$call\" in 'provider get '*) echo there; exit 0;; esac\n");
    world.launch().0.unwrap();
    let lines = world.lines();
    let updates: Vec<_> = lines.iter().filter(|line| line.contains("provider update")).collect();
    assert_eq!(updates[0], "openshell provider update forge-gardener --credential FORGE_TOKEN --credential FORGE_USER");
    assert_eq!(updates[1], "openshell provider update model-gardener --credential CODEX_AUTH_ACCOUNT_ID");
    let update = world.calls().into_iter().find(|call| call.line.contains("update model")).unwrap();
    assert!(!update.env.contains_key("CODEX_AUTH_ACCESS_TOKEN"));
}

#[test]
fn a_program_that_is_not_openshell_is_refused_first() {
    let mut world = World::new();
    world.write("fake/version", "hello\n");
    let error = world.launch().0.unwrap_err();
    assert!(error.exit_status() == 3 && error.to_string().contains("does not tell its version"), "{error}");
    assert!(world.calls().is_empty());
    world.env("OPENSHELL_BIN", "/nowhere/openshell");
    assert!(bastion_launch::OpenShell::new(&world.machine).is_err());
}
