//! Each call failing, hanging, answering garbage: the step is named, what was done is said, and nothing is left.

use crate::world::{World, assert_unplanted};

/// The start of each call of a launch, in order, and how many of them count as done before it.
const STEPS: &[(&str, usize)] = &[
    ("openshell gateway info", 0),
    ("docker build", 0),
    ("openshell settings set --global --key proposal_mode", 1),
    ("openshell profile import", 4),
    ("openshell provider get forge-gardener", 6),
    ("openshell provider create --name forge-gardener", 6),
    ("openshell provider create --name model-gardener", 7),
    ("openshell provider refresh status", 8),
    ("openshell provider refresh configure", 8),
    ("openshell provider refresh rotate", 9),
    ("openshell sandbox create", 10),
];

fn on(step: &str, act: &str) -> String {
    format!("case \"$name $call\" in '{step}'*) {act};; esac\n")
}

#[test]
fn a_step_that_fails_stops_the_launch_and_says_what_was_done() {
    for (i, (step, done)) in STEPS.iter().enumerate() {
        let world = World::new();
        // it prints everything that it has, as a careless program might
        world.behave(&on(
            step,
            "echo \"Error: no luck $FORGE_TOKEN $CODEX_AUTH_ACCESS_TOKEN $BASTION_REFRESH_MATERIAL_1\" >&2; exit 1",
        ));
        let (launched, said) = world.launch();
        let error = launched.unwrap_err();
        let text = error.to_string();
        assert_eq!(error.exit_status(), 1);
        assert!(text.contains("no luck") && text.contains("failed"), "{text}");
        assert!(text.starts_with(&step.replace("openshell ", "openshell --gateway greenhouse ")), "{text}");
        assert_unplanted(&text);
        assert_unplanted(&said.0.join("\n"));
        let told = text.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(told, *done, "{text}");
        assert_eq!(text.contains("Nothing was done on the gateway before"), *done == 0, "{text}");
        let later = STEPS.get(i + 1).map_or("nothing", |(step, _)| step);
        assert!(!world.lines().iter().any(|line| line.starts_with(later)), "{later} after {step}");
        world.assert_clean();
    }
}

#[test]
fn a_step_that_hangs_is_ended() {
    let world = World::new();
    let limits = bastion_launch::Limits {
        call: std::time::Duration::from_millis(1500),
        build: std::time::Duration::from_millis(1500),
        create: std::time::Duration::from_millis(1500),
    };
    for (step, _) in STEPS {
        std::fs::remove_file(world.path("fake/calls")).unwrap_or_default();
        world.behave(&on(step, "sleep 60"));
        let driver = bastion_launch::OpenShell::new(&world.machine).unwrap().with_limits(limits);
        let cleared = world.prepare().unwrap().clear(&mut |_| bastion_launch::Answer::Yes).unwrap();
        let error = cleared.launch(&driver, &bastion_host::signals::Stop::new(), &mut |_| {}).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("took longer than 1.5 s and was ended"), "{step}: {text}");
        assert_eq!(text.contains("may be there: bastion runs rm"), step.contains("sandbox create"), "{text}");
        world.assert_clean();
    }
}

#[test]
fn garbage_is_no_answer() {
    let noise = "head -c 3000000 /dev/urandom; exit 0";
    for (step, act, ok) in [
        ("openshell gateway info", noise, false),
        ("openshell gateway info", "echo '{\"compute_drivers\":[]}'; exit 0", false),
        (
            "openshell gateway info",
            "echo '{\"compute_drivers\":[{\"name\":\"docker\"},{\"name\":\"podman\"}]}'; exit 0",
            false,
        ),
        ("openshell gateway info", "echo '{\"compute_drivers\":[{\"name\":\"\u{1b}[2Jk8s\"}]}'; exit 0", false),
        ("openshell settings set", noise, true),
        ("openshell profile import", "head -c 3000000 /dev/urandom >&2; exit 1", false),
        ("openshell provider get", "echo nonsense; exit 1", false),
        ("openshell provider refresh status", "echo nonsense; exit 3", false),
        ("openshell sandbox create", "kill -9 $$", false),
    ] {
        let world = World::new();
        world.behave(&on(step, act));
        let launched = world.launch().0;
        assert_eq!(launched.is_ok(), ok, "{step} {act}");
        if let Err(error) = launched {
            let text = error.to_string();
            assert!(!text.contains('\u{1b}') && text.len() < 40_000, "{}", text.len());
        }
        world.assert_clean();
    }
}

#[test]
fn an_export_without_a_version_updates_nothing() {
    for answer in ["{}", "{\"resource_version\":0}", "what?"] {
        let world = World::new();
        world.behave(&format!(
            "case \"$call\" in 'profile import'*) echo 'already exists' >&2; exit 1;; 'profile export'*) echo '{answer}'; exit 0;; esac\n"
        ));
        let text = world.launch().0.unwrap_err().to_string();
        assert!(text.contains("resource_version"), "{text}");
        assert!(!world.lines().iter().any(|line| line.contains("profile update")));
    }
}

#[test]
fn an_engine_that_is_not_here_is_named() {
    let world = World::new();
    std::fs::remove_file(world.path("fake/docker")).unwrap();
    let text = world.launch().0.unwrap_err().to_string();
    assert!(text.contains("docker is not on this machine's PATH"), "{text}");
}

#[test]
fn everything_that_can_be_refused_is_refused_before_the_first_call() {
    type Spoil = fn(&mut World);
    let spoils: &[Spoil] = &[
        |world| world.options.name = Some("a-name-that-is-too-long".into()),
        |world| world.options.harness = Some("emacs".into()),
        |world| world.options.providers = vec!["x.name=y".into()],
        |world| {
            world.edit("profile: forge", "profile: nowhere");
        },
        |world| {
            world.write("repo/agents/gardener/providers/again.yaml", "id: forge\n");
        },
        |world| {
            world.write("repo/agents/gardener/providers/bad.yaml", "{");
        },
        |world| {
            world.write("repo/agents/gardener/image/Dockerfile", "FROM scratch\nUSER root\n");
        },
        |world| {
            world.write("repo/agents/gardener/prompts/gardener.md", "{{NOPE}}");
        },
        |world| {
            world.edit("destination: resources/notes.md", "destination: ../x");
        },
        |world| {
            world.edit("policy: policy.yaml", "policy: nowhere.yaml");
        },
        |world| {
            world.edit("source: helper.md", "source: nowhere.md");
        },
        |world| {
            world.edit("printf planted-;", "exit 1;");
        },
        |world| std::fs::remove_file(world.path("home/.codex/auth.json")).unwrap(),
        |world| world.machine.supervisor = bastion_launch::Supervisor::Path("/nowhere".into()),
        |world| world.options.harness_bin = Some("/nowhere".into()),
        |world| world.options.require_signature = true,
        |world| world.options.env = vec!["x".into()],
        |world| {
            world.env("OPENSHELL_AGENT_HEARTBEAT_SECONDS", "x");
        },
    ];
    for (i, spoil) in spoils.iter().enumerate() {
        let mut world = World::new();
        spoil(&mut world);
        let (launched, _) = world.launch();
        assert!(launched.is_err(), "spoil {i}");
        assert!(world.calls().is_empty(), "spoil {i}: {:?}", world.lines());
        world.assert_clean();
    }
}

#[test]
fn a_context_that_changes_meanwhile_is_refused() {
    let world = World::new();
    let cleared = world.prepare().unwrap().clear(&mut |_| bastion_launch::Answer::Yes).unwrap();
    world.write("repo/agents/gardener/image/seed.txt", "changed\n");
    let error = cleared.launch(&world.driver(), &bastion_host::signals::Stop::new(), &mut |_| {}).unwrap_err();
    assert!(error.exit_status() == 3 && error.to_string().contains("changed while"), "{error}");
    assert!(world.calls().is_empty());
    world.assert_clean();
}
