//! What lands in the payload, and what must not.

use std::os::unix::fs::PermissionsExt as _;

use crate::world::{World, assert_unplanted};

/// A file of the payload as the image builder got it.
fn built(world: &World, path: &str) -> String {
    std::fs::read_to_string(world.path("fake/context/openshell-agent-payload").join(path)).unwrap()
}

fn refusal(world: &World) -> String {
    let error = world.prepare().err().unwrap_or_else(|| panic!("it was not refused"));
    assert_eq!(error.exit_status(), 3, "{error}");
    assert!(world.all_calls().is_empty());
    error.to_string()
}

#[test]
fn the_payload_holds_everything_and_no_secret() {
    let world = World::new();
    world.launch().0.unwrap();
    assert_eq!(
        built(&world, "agent-prompt.md"),
        "You tend a repository with codex in watch mode, every 600 s (payload 7).\n\
         For help write task.md and run: bash /etc/openshell/agent-payload/runtime/subagent.sh helper < task.md\n\
         Templates such as {{ .Values.name }} are not yours.\n\n\
         Request: Tend it; {{HARNESS}} stays.\n"
    );
    assert_eq!(built(&world, "skills/prune/SKILL.md"), "# Prune\nCut what is dead.\n");
    assert_eq!(built(&world, "subagents/helper.md"), "You help with one bed.\n");
    assert_eq!(built(&world, "resources/notes.md"), "Shared notes.\n");
    assert_eq!(built(&world, "runtime/entrypoint.sh"), "#!/bin/sh\nexec \"${0%/*}/bastion-supervisor\" \"$@\"\n");
    assert_eq!(
        built(&world, "runtime/subagent.sh"),
        "#!/bin/sh\nexec \"${0%/*}/bastion-supervisor\" subagent \"$@\"\n"
    );
    assert_eq!(built(&world, "runtime/bastion-supervisor"), "the supervisor");
    let about: serde_json::Value = serde_json::from_str(&built(&world, "agent.json")).unwrap();
    assert_eq!(about["harness"]["supported"]["codex"]["model"], "model-a");
    assert_eq!(about["subagents"][0]["path"], "subagents/helper.md");
    assert_unplanted(&about.to_string());
}

#[test]
fn modes_let_all_read_and_none_write() {
    let world = World::new();
    world.behave("case \"$name\" in docker) find \"$last\" >/dev/null; for l; do :; done; find \"$l/openshell-agent-payload\" -printf '%m %P\\n' | sort -k2 > \"$here/modes\";; esac\n");
    world.launch().0.unwrap();
    let modes = std::fs::read_to_string(world.path("fake/modes")).unwrap();
    for line in modes.lines() {
        let (mode, path) = line.split_once(' ').unwrap();
        let runs = path.starts_with("runtime/") || !path.contains('.');
        assert_eq!(mode, if runs { "555" } else { "444" }, "{line}");
    }
    assert!(modes.lines().count() > 10, "{modes}");
}

#[test]
fn destinations_stay_inside_and_out_of_each_others_way() {
    for (destination, said) in [
        ("../x", "leaves the payload"),
        ("/etc/passwd", "is absolute"),
        ("a/../../x", "leaves the payload"),
        ("runtime/entrypoint.sh", "runtime's own"),
        ("runtime/mine.sh", "runtime's own"),
        ("agent.json", "runtime's own"),
        ("agent-prompt.md", "runtime's own"),
        ("skills/prune/SKILL.md", "in the way of"),
        ("skills/prune", "in the way of"),
        ("skills/prune/SKILL.md/x", "in the way of"),
    ] {
        let world = World::new();
        world.edit("destination: resources/notes.md", &format!("destination: {destination}"));
        let text = refusal(&world);
        assert!(text.contains(said), "{destination}: {text}");
    }
}

#[test]
fn sources_are_regular_files() {
    let world = World::new();
    let file = world.agent().join("helper.md");
    std::fs::rename(&file, world.agent().join("real.md")).unwrap();
    assert!(refusal(&world).contains("the subagent helper"));
    std::os::unix::fs::symlink("real.md", &file).unwrap();
    assert!(refusal(&world).contains("links are not followed"));
    std::fs::remove_file(&file).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &file, fifo, rustix::fs::Mode::from_raw_mode(0o600), 0).unwrap();
    assert!(refusal(&world).contains("no regular file"));
}

#[test]
fn an_undefined_variable_is_an_error_that_names_it() {
    let world = World::new();
    world.write("repo/agents/gardener/prompts/gardener.md", "a\n{{REVIEWER_COMMAND}}\n");
    let text = refusal(&world);
    assert!(text.contains("{{REVIEWER_COMMAND}}") && text.contains("gardener.md:2"), "{text}");
}

#[test]
fn a_subagent_is_also_where_the_supervisor_looks() {
    let world = World::new();
    world.edit("destination: subagents/helper.md", "destination: team/h.md");
    world.launch().0.unwrap();
    assert_eq!(built(&world, "team/h.md"), built(&world, "subagents/helper.md"));
}

#[test]
fn a_harness_binary_and_an_adapter_are_handed_over() {
    let mut world = World::new();
    world.write("repo/bin/codex-program", "a program");
    world.options.harness_bin = Some("bin/codex-program".into());
    world.launch().0.unwrap();
    assert_eq!(built(&world, "runtime/harnesses/codex/codex"), "a program");
    let mode = std::fs::metadata(world.path("fake/context/openshell-agent-payload/runtime/harnesses/codex/codex"));
    assert_eq!(mode.unwrap().permissions().mode() & 0o111, 0o111);

    let mut world = World::new();
    world.edit("    opencode:\n", "    my-own: {}\n");
    world.options.harness = Some("my-own".into());
    world.options.harness_dir = Some("harnesses".into());
    assert_eq!(world.prepare().err().unwrap().exit_status(), 2);
    world.write("repo/harnesses/my-own/exec.sh", "#!/bin/sh\n").write("repo/harnesses/my-own/lib/x.txt", "x");
    world.launch().0.unwrap();
    assert_eq!(built(&world, "runtime/harnesses/my-own/exec.sh"), "#!/bin/sh\n");
    assert_eq!(built(&world, "runtime/harnesses/my-own/lib/x.txt"), "x");
    std::os::unix::fs::symlink("/etc/passwd", world.path("repo/harnesses/my-own/link")).unwrap();
    assert!(world.prepare().is_err());
}

#[test]
fn the_context_is_a_copy_with_the_payload_let_in() {
    let world = World::new();
    std::os::unix::fs::symlink("/etc/passwd", world.agent().join("image/link")).unwrap();
    world.launch().0.unwrap();
    let context = world.path("fake/context");
    let read = |path: &str| std::fs::read_to_string(context.join(path)).unwrap();
    assert_eq!(
        read("Dockerfile"),
        "FROM scratch\nUSER 1000\nUSER root\n\
         COPY openshell-agent-payload/ /etc/openshell/agent-payload/\n\
         COPY openshell-agent-policy.yaml /etc/openshell/policy.yaml\nUSER 1000\n"
    );
    assert!(
        read(".dockerignore").starts_with("*\n!seed.txt\n")
            && read(".dockerignore").contains("!openshell-agent-payload/**")
    );
    assert_eq!(
        (read("seed.txt").as_str(), read("openshell-agent-policy.yaml").as_str()),
        ("ignored\n", "version: 1\n")
    );
    assert_eq!(std::fs::read_link(context.join("link")).unwrap().to_str(), Some("/etc/passwd"));
}

#[test]
fn a_context_that_has_the_payloads_name_is_refused() {
    let world = World::new();
    world.write("repo/agents/gardener/image/openshell-agent-payload/x", "x");
    assert!(refusal(&world).contains("rename it"));
}

#[test]
fn an_image_of_unknown_user_is_looked_at_before_the_gateway_changes() {
    let mut world = World::new();
    world.options.from = Some("registry.example/base:1".into());
    for (user, ok) in [("\"1000\"", true), ("\"\"", false), ("\"root\"", false), ("\"0:0\"", false)] {
        world.behave(&format!("case \"$name $call\" in 'docker image inspect'*) echo '{user}'; exit 0;; esac\n"));
        std::fs::remove_file(world.path("fake/calls")).unwrap_or_default();
        let (launched, _) = world.launch();
        assert_eq!(launched.is_ok(), ok, "{user}");
        assert_eq!(world.lines().iter().any(|line| line.contains("settings set")), ok, "{user}");
    }
}

#[test]
fn credentials_come_from_where_they_are_said_to() {
    let said = |from: &str, to: &str, home: Option<&str>| {
        let world = World::new();
        world.edit(from, to);
        if let Some(text) = home {
            world.write("home/.codex/auth.json", text);
        }
        let (launched, _) = world.launch();
        assert!(world.calls().is_empty(), "refused before the first call");
        world.assert_clean();
        let error = launched.unwrap_err();
        assert_eq!(error.exit_status(), 1);
        error.to_string()
    };
    let command = "printf planted-; printf from-command";
    assert!(said(command, "echo secret-said >&2; exit 3", None).ends_with("exit status: 3; run it by hand to see why"));
    assert!(said(command, "true", None).contains("FORGE_TOKEN of the provider `forge`: its source is empty"));
    assert!(said(command, "printf '\\\\377'", None).contains("no UTF-8"));
    assert!(said("tokens.access_token", "tokens.nothing", None).contains("there is no `tokens.nothing`"));
    assert!(said("tokens.access_token", "tokens", None).contains("is no text"));
    assert!(said("value: planted-literal", "value: \"\"", None).contains("empty"));
    assert!(said("id: gardener", "id: gardener", Some("{not json")).contains("is no JSON"));
    assert!(
        said("~/.codex/auth.json, query: tokens.access_token", "~/nowhere.json, query: a", None)
            .contains("can't be read")
    );
}
