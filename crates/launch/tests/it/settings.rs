//! Flags above the environment above the manifest; every value judged; one test for each rule.

use bastion_launch::agent::RunMode;
use bastion_launch::{ImageSource, LaunchPlan, Target};

use crate::world::World;

fn plan(world: &World) -> LaunchPlan {
    world.prepare().map(|prepared| prepared.plan().clone()).unwrap_or_else(|error| panic!("{error}"))
}

/// The error's exit status and words; nothing was called.
fn refused(world: &World) -> (u8, String) {
    let error = world.prepare().err().unwrap_or_else(|| panic!("it was not refused"));
    assert!(world.all_calls().is_empty());
    (error.exit_status(), error.to_string())
}

fn variable(plan: &LaunchPlan, name: &str) -> Option<String> {
    plan.env.iter().find(|variable| variable.name == name).map(|variable| variable.value.clone())
}

#[test]
fn flags_count_more_than_the_environment_and_that_more_than_the_manifest() {
    let mut world = World::new();
    let (mode, poll) = ("OPENSHELL_AGENT_RUN_MODE", "OPENSHELL_AGENT_POLL_INTERVAL_SECONDS");
    let plan_of = plan(&world);
    assert_eq!((plan_of.run_mode, plan_of.poll_interval_seconds, plan_of.attach), (RunMode::Watch, 600, false));
    world.env(mode, "once").env(poll, "60").env("OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES", "0");
    let plan_of = plan(&world);
    assert_eq!((plan_of.run_mode, plan_of.poll_interval_seconds, plan_of.attach), (RunMode::Once, 60, true));
    assert_eq!(variable(&plan_of, "OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES").as_deref(), Some("0"));
    world.options.watch = true;
    world.options.poll_interval = Some(5);
    let plan_of = plan(&world);
    assert_eq!((plan_of.run_mode, plan_of.poll_interval_seconds), (RunMode::Watch, 5));
    assert_eq!(variable(&plan_of, mode).as_deref(), Some("watch"));
    assert_eq!(variable(&plan_of, poll).as_deref(), Some("5"));
}

#[test]
fn the_supervisors_variables_are_judged_and_passed_on() {
    let mut world = World::new();
    world.env("OPENSHELL_AGENT_HEARTBEAT_SECONDS", "0").env("OPENSHELL_AGENT_STATE_DIR", "/sandbox/state");
    world.env("OPENSHELL_AGENT_STATE_HISTORY_LIMIT", "7").env("OPENSHELL_AGENT_MAX_NOTES_LENGTH", "9");
    world.env("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", "11").env("OPENSHELL_AGENT_MAX_CYCLES", "");
    let env: Vec<String> = plan(&world).env.iter().map(|v| format!("{}={}", v.name, v.value)).collect();
    assert_eq!(
        env,
        [
            "OPENSHELL_AGENT_HARNESS=codex",
            "OPENSHELL_AGENT_ID=gardener",
            "OPENSHELL_AGENT_RUN_MODE=watch",
            "OPENSHELL_AGENT_POLL_INTERVAL_SECONDS=600",
            "OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES=3",
            "OPENSHELL_AGENT_MAX_CYCLES=9",
            "OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS=11",
            "OPENSHELL_AGENT_SILENCE_TIMEOUT_SECONDS=300",
            "OPENSHELL_AGENT_HEARTBEAT_SECONDS=0",
            "OPENSHELL_AGENT_STATE_HISTORY_LIMIT=7",
            "OPENSHELL_AGENT_MAX_NOTES_LENGTH=9",
            "OPENSHELL_AGENT_STATE_DIR=/sandbox/state",
            "CODEX_MODEL=model-a",
            "CODEX_REASONING=medium",
        ]
    );
    for (name, value, said) in [
        ("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "0", "must be greater than zero"),
        ("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "-5", "must be greater than zero"),
        ("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "1.5", "must be an integer"),
        ("OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES", "x", "must be an integer"),
        ("OPENSHELL_AGENT_MAX_CYCLES", "+1", "must be an integer"),
        ("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", "-1", "must be an integer"),
        ("OPENSHELL_AGENT_SILENCE_TIMEOUT_SECONDS", " 1", "must be an integer"),
        ("OPENSHELL_AGENT_HEARTBEAT_SECONDS", "soon", "must be an integer"),
        ("OPENSHELL_AGENT_STATE_HISTORY_LIMIT", "0", "must be greater than zero"),
        ("OPENSHELL_AGENT_MAX_NOTES_LENGTH", "0", "must be greater than zero"),
        ("OPENSHELL_AGENT_STATE_DIR", "state", "absolute"),
        ("OPENSHELL_AGENT_RUN_MODE", "always", "once or watch"),
        ("OPENSHELL_AGENT_RESET_REFRESH", "maybe", "1 or 0"),
    ] {
        let mut world = World::new();
        world.env(name, value);
        let (status, text) = refused(&world);
        assert!(status == 2 && text.starts_with(name) && text.contains(said), "{text}");
    }
}

#[test]
fn older_variables_set_the_model_of_codex_alone() {
    let mut world = World::new();
    world.env("CODEX_MODEL", "model-z").env("CODEX_REASONING", "high");
    let plan_of = plan(&world);
    assert_eq!(plan_of.harness_settings["model"], "model-z");
    assert_eq!(variable(&plan_of, "CODEX_REASONING").as_deref(), Some("high"));
    world.options.harness = Some("claude".into());
    let plan_of = plan(&world);
    assert_eq!(plan_of.harness_settings, serde_json::json!({ "model": "model-b" }));
    assert_eq!(variable(&plan_of, "CODEX_MODEL"), None);
}

#[test]
fn options_that_exclude_each_other_are_usage_errors() {
    for set in [
        (|world: &mut World| (world.options.once, world.options.watch) = (true, true)) as fn(&mut World),
        |world| (world.options.attach, world.options.detach) = (true, true),
        |world| world.options.poll_interval = Some(0),
        |world| world.options.agent = None,
        |world| world.options.binds = vec!["/x".into()],
    ] {
        let mut world = World::new();
        set(&mut world);
        assert_eq!(refused(&world).0, 2);
    }
}

#[test]
fn once_attaches_and_watch_detaches_unless_told_otherwise() {
    let mut world = World::new();
    let mut attached = |once, attach, detach| {
        let options = &mut world.options;
        (options.once, options.attach, options.detach) = (once, attach, detach);
        plan(&world).attach
    };
    assert!(attached(true, false, false) && !attached(false, false, false));
    assert!(attached(false, true, false) && !attached(true, false, true));
}

#[test]
fn an_unsupported_harness_is_refused_and_the_supported_are_listed() {
    let mut world = World::new();
    world.options.harness = Some("emacs".into());
    let (status, text) = refused(&world);
    assert!(status == 3 && text.contains("codex, claude, opencode, command"), "{text}");
    world.edit("    opencode:\n", "    my-own: {}\n");
    world.options.harness = Some("my-own".into());
    assert!(refused(&world).1.contains("--harness-dir"));
}

#[test]
fn names_fit_the_gateway_or_are_refused_first() {
    let mut world = World::new();
    assert_eq!(plan(&world).sandbox, "gard-20260102030405");
    world.edit("name_prefix: gard", "name_prefix: gardener-");
    let short = plan(&world).sandbox;
    assert!(short.starts_with("gardener-") && short.len() <= 19, "{short}");
    world.edit("name_prefix: gardener-", "name_prefix: gardener-of-eden");
    assert_eq!(refused(&world).0, 3);
    for (name, ok) in [("mine", true), ("twenty-characters-xx", false), ("Mine", false), ("a--b", false)] {
        world.options.name = Some(name.into());
        assert_eq!(world.prepare().is_ok(), ok, "{name}");
    }
}

#[test]
fn no_gateway_anywhere_means_this_machine() {
    let mut world = World::new();
    assert_eq!(plan(&world).target, Target::Gateway("greenhouse".into()));
    world.options.gateway = Some("elsewhere".into());
    assert_eq!(plan(&world).target, Target::Gateway("elsewhere".into()));
    world.options.gateway = Some("local".into());
    world.write("repo/a/file", "x").write("repo/c/file", "x");
    world.options.binds = vec!["a:/b:rw".into(), world.path("repo/c").display().to_string()];
    let local = plan(&world);
    assert_eq!((local.target, local.image), (Target::Local, None));
    let binds: Vec<_> = local.binds.iter().map(|bind| (bind.source.clone(), bind.writable)).collect();
    let here = |path: &str| world.path(path).display().to_string();
    assert_eq!(binds, [(here("repo/shared"), true), (here("repo/a"), true), (here("repo/c"), false)]);
    world.options.gateway = None;
    world.edit("  gateway: greenhouse\n", "");
    assert_eq!(plan(&world).target, Target::Local);
    world.options.gateway = Some("a b".into());
    refused(&world);
}

#[test]
fn providers_are_chosen_by_harness_and_changed_by_flags() {
    let mut world = World::new();
    let ids = |world: &World| plan(world).providers.iter().map(|p| p.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&world), ["forge", "model"]);
    world.options.harness = Some("claude".into());
    assert_eq!(ids(&world), ["forge", "other"]);
    world.options.harness = None;
    world.options.providers =
        ["forge.name=mine", "forge.profile=other", "model.credential_key=KEY"].map(str::to_owned).to_vec();
    let providers = plan(&world).providers;
    assert_eq!((providers[0].name.as_str(), providers[0].profile.as_str()), ("mine", "other"));
    assert_eq!(providers[1].refresh.as_ref().unwrap().credential_key, "KEY");
    for bad in
        ["forge", "forge=x", "nobody.name=x", "forge.size=x", "forge.credential_key=x", "forge.name=a b", "forge.name="]
    {
        world.options.providers = vec![bad.into()];
        assert_eq!(refused(&world).0, 2, "{bad}");
    }
    world.options.providers = vec!["forge.name=model-gardener".into()];
    assert!(refused(&world).1.contains("twice"));
}

#[test]
fn variables_of_the_user_are_no_credentials() {
    let mut world = World::new();
    world.options.env = vec!["LANG=C".into(), "EMPTY=".into(), "MY_TOKEN=x".into()];
    let plan_of = plan(&world);
    assert_eq!(variable(&plan_of, "EMPTY").as_deref(), Some(""));
    assert!(plan_of.warnings.iter().any(|warning| warning.contains("MY_TOKEN")));
    for bad in ["LANG", "1A=x", "A-B=x", "=x", "OPENSHELL_AGENT_ID=x", "FORGE_TOKEN=x", "CODEX_MODEL=x"] {
        world.options.env = vec![bad.into()];
        assert_eq!(refused(&world).0, 2, "{bad}");
    }
    world.options.env = vec!["A=1".into(), "A=2".into()];
    refused(&world);
}

#[test]
fn an_agent_is_found_by_name_or_path() {
    let mut world = World::new();
    let found = |world: &World| plan(world).manifest;
    let own = world.agent().join("agent.yaml");
    assert_eq!(found(&world), own);
    for asked in ["./agents/gardener", "agents/gardener/", "./agents/gardener/agent.yaml"] {
        world.options.agent = Some(asked.into());
        assert_eq!(found(&world), own, "{asked}");
    }
    let full = world.agent().display().to_string();
    world.options.agent = None;
    world.env("OPENSHELL_AGENT_DIR", &full);
    assert_eq!(found(&world), own);
    for place in ["repo/scripts/agents/second", "config/agents/third"] {
        crate::world::copy_tree(&world.agent(), &world.path(place));
        world.options.agent = place.rsplit('/').next().map(str::to_owned);
        world.options.repo = Some(world.path("repo"));
        assert_eq!(found(&world), world.path(place).join("agent.yaml"));
    }
    for (asked, status) in [("nobody", 3), ("..", 2), ("./nobody", 3), ("a b", 2)] {
        world.options.agent = Some(asked.into());
        assert_eq!(refused(&world).0, status, "{asked}");
    }
}

#[test]
fn the_image_source_is_a_folder_a_file_or_a_reference() {
    let mut world = World::new();
    let from = |world: &World| plan(world).image.unwrap().from;
    let file = world.agent().join("image/Dockerfile");
    assert_eq!(from(&world), ImageSource::Dockerfile(file.clone()));
    world.options.from = Some("agents/gardener/image/Dockerfile".into());
    assert_eq!(from(&world), ImageSource::Dockerfile(file));
    for reference in ["debian", "registry.example/team/image:1", "image@sha256:00"] {
        world.options.from = Some(reference.into());
        assert_eq!(from(&world), ImageSource::Reference(reference.into()));
    }
    for bad in ["./nowhere", "agent://prompts", "a b", "/etc", "agent://nowhere"] {
        world.options.from = Some(bad.into());
        assert_eq!(refused(&world).0, 3, "{bad}");
    }
}

#[test]
fn a_dockerfile_that_is_a_link_or_ends_as_root_is_refused() {
    let world = World::new();
    for text in ["FROM scratch\nUSER root\n", "FROM scratch\nUSER 1000\nUSER 0:0\n", "RUN x\n", ""] {
        world.write("repo/agents/gardener/image/Dockerfile", text);
        assert_eq!(refused(&world).0, 3, "{text}");
    }
    let file = world.agent().join("image/Dockerfile");
    world.write("repo/agents/gardener/real", "FROM scratch\nUSER 1000\n");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("../real", &file).unwrap();
    assert!(refused(&world).1.contains("is a link"));
}

#[test]
fn two_launches_of_one_second_have_two_names() {
    let world = World::new();
    world.launch().0.unwrap();
    world.launch().0.unwrap();
    let names: Vec<String> =
        bastion_launch::runs::list(&world.machine.state_dir).unwrap().0.into_iter().map(|run| run.name).collect();
    assert_eq!(names, ["gard-20260102030405", "gard-20260102030406"]);
    assert!(world.lines().iter().any(|line| line.contains("--tag openshell/agent-gardener:1767323046")));
}

#[test]
fn a_name_that_is_taken_is_refused_before_anything_is_done() {
    let mut world = World::new();
    world.options.name = Some("mine".into());
    world.behave("case \"$call\" in 'sandbox get'*) exit 0;; esac\n");
    let error = world.launch().0.unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("the gateway has a sandbox mine"), "{error}");
    assert_eq!(world.lines(), ["openshell sandbox get mine"]);
    assert!(bastion_launch::runs::list(&world.machine.state_dir).unwrap().0.is_empty());
    world.write("fake/behave", "");
    world.launch().0.unwrap();
    let error = world.prepare().map(|_| ()).unwrap_err();
    assert!(error.exit_status() == 2 && error.to_string().contains("bastion runs rm mine"), "{error}");
}

/// A launch on this machine, with these lines in the place of the manifest's own binds.
fn on_this_machine(local: &str) -> World {
    let mut world = World::new();
    world.options.gateway = Some("local".into());
    world.edit("    binds: [{source: repo://shared, destination: /seeds, mode: rw}]\n", local);
    world
}

#[test]
fn what_only_this_machine_can_judge_is_judged_before_anything_is_done() {
    for (local, said) in [
        ("    binds: [{source: ~/, destination: /work}]\n", "home folder"),
        ("    binds: [{source: /nowhere-at-all}]\n", "can't be looked at"),
        ("    binds: [{source: repo://.git, destination: /work, mode: rw}]\n", "Git repository"),
        ("    binds: [{source: repo://shared, destination: /etc/x}]\n", "the sandbox's own"),
    ] {
        let world = on_this_machine(local);
        let error = world.prepare().map(|_| ()).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(error.exit_status(), 3);
    }
    let mut world = on_this_machine("");
    world.env("BASTION_EGRESS_CA", "missing.pem");
    assert_eq!(world.prepare().map(|_| ()).unwrap_err().exit_status(), 2);
    world.write("repo/none.pem", "no certificate");
    world.env("BASTION_EGRESS_CA", "none.pem");
    assert!(world.prepare().map(|_| ()).unwrap_err().to_string().contains("BASTION_EGRESS_CA names a file"));
}

#[test]
fn a_harness_of_this_machine_is_found_and_shown_or_its_lack_is_told() {
    let mut world = on_this_machine("");
    world.env("PATH", "/nowhere");
    let lacking = plan(&world);
    assert!(lacking.warnings.iter().any(|warning| warning.contains("`codex` is not on this machine")), "{lacking}");
    let error = world.prepare().unwrap().clear(&mut |_| bastion_launch::Answer::Yes).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("npm install -g @openai/codex"), "{error}");

    world.write("home/bin/codex", "\u{7f}ELF");
    let program = world.path("home/bin/codex");
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    world.env("PATH", program.parent().unwrap().to_str().unwrap());
    let found = plan(&world);
    assert_eq!(found.harness_files.len(), 1);
    assert_eq!(found.harness_files[0].source, program);
    assert!(found.to_string().contains("program     "), "{found}");
    assert!(found.payload.iter().any(|file| file.path.ends_with("runtime/harnesses/codex/codex") && file.program));
}
