//! The question for agents from elsewhere: when it is asked, what it shows, and how long the answer holds.

use bastion_launch::{Answer, LaunchError, Question};

use crate::world::{World, assert_unplanted};

/// Whether a launch of this world would ask, and with what.
fn asked(world: &World, answer: Answer) -> (Option<Question>, Result<(), LaunchError>) {
    let mut question = None;
    let cleared = world.prepare().unwrap().clear(&mut |asked| {
        question = Some(asked.clone());
        answer
    });
    (question, cleared.map(|_| ()))
}

#[test]
fn the_question_lists_what_the_agent_does() {
    let world = World::new();
    let (question, cleared) = asked(&world, Answer::No);
    assert_eq!(cleared.unwrap_err().exit_status(), 3);
    let question = question.unwrap();
    let acts = question.acts.iter().map(String::as_str).collect::<Vec<_>>();
    let dockerfile = world.agent().join("image/Dockerfile");
    assert_eq!(
        acts,
        [
            "run on this machine: printf planted-; printf from-command",
            "read a credential: ~/.codex/auth.json (tokens.access_token)",
            "read a credential: ~/.codex/auth.json (accounts.0.id)",
            "read a credential: ~/.codex/auth.json (tokens.refresh_token)",
            &format!("build an image, running what is in {}", dockerfile.display()),
            "reach from inside: forge.example:443",
            "reach from inside: model.example:443",
            "reach from inside what policy.yaml says",
            "change a setting of the gateway: proposal_mode = auto",
            "change a setting of the gateway: proposals_enabled = true",
            "change a setting of the gateway: retries = 3",
        ]
    );
    assert_unplanted(&question.to_string());
    assert!(question.to_string().ends_with(&format!("This version: {}", question.digest)));
}

#[test]
fn a_yes_holds_for_this_version_alone() {
    let world = World::new();
    assert!(asked(&world, Answer::Yes).0.is_some());
    assert!(asked(&world, Answer::No).0.is_none(), "it is remembered");
    for (path, text) in [
        ("repo/agents/gardener/helper.md", "Other."),
        ("repo/agents/gardener/providers/model.yaml", "id: model\n"),
        ("repo/agents/gardener/image/seed.txt", "other"),
        ("repo/agents/gardener/policy.yaml", "version: 2\n"),
        ("repo/agents/gardener/prompts/gardener.md", "Hello."),
        ("repo/shared/notes.md", "Other."),
    ] {
        world.write(path, text);
        assert!(asked(&world, Answer::Yes).0.is_some(), "{path}");
        assert!(asked(&world, Answer::No).0.is_none(), "{path}");
    }
    world.edit("max_cycles: 9", "max_cycles: 8");
    assert!(asked(&world, Answer::No).0.is_some());
}

#[test]
fn a_no_is_not_remembered_and_no_terminal_is_no_yes() {
    let world = World::new();
    asked(&world, Answer::No).1.unwrap_err();
    let (question, cleared) = asked(&world, Answer::NoTerminal);
    assert!(question.is_some());
    let error = cleared.unwrap_err();
    assert!(error.exit_status() == 3 && error.to_string().contains("--trust"), "{error}");
}

#[test]
fn the_option_is_a_yes_that_is_remembered() {
    let mut world = World::new();
    world.options.trust = true;
    assert!(asked(&world, Answer::No).0.is_none());
    world.options.trust = false;
    let (question, cleared) = asked(&world, Answer::NoTerminal);
    assert!(question.is_none() && cleared.is_ok());
}

#[test]
fn the_users_own_agents_are_not_asked_about() {
    let mut world = World::new();
    crate::world::copy_tree(&world.agent(), &world.path("config/agents/mine"));
    world.options.agent = Some("mine".into());
    world.options.repo = Some(world.path("repo"));
    let (question, cleared) = asked(&world, Answer::No);
    assert!(question.is_none() && cleared.is_ok());
}

#[test]
fn files_from_outside_are_told() {
    let world = World::new();
    world.write("elsewhere/x.md", "x");
    let outside = world.path("elsewhere/x.md").display().to_string();
    world.edit("source: helper.md", &format!("source: {outside}"));
    let acts = asked(&world, Answer::No).0.unwrap().acts;
    assert!(acts.contains(&format!("take a file from outside its folder: {outside}")), "{acts:?}");
    // also through a folder that is a link
    let world = World::new();
    world.write("elsewhere/x.md", "x");
    std::os::unix::fs::symlink(world.path("elsewhere"), world.agent().join("linked")).unwrap();
    world.edit("source: helper.md", "source: linked/x.md");
    assert!(asked(&world, Answer::No).0.unwrap().acts.iter().any(|act| act.contains("outside its folder")));
}

#[test]
fn what_the_question_shows_is_fit_for_a_terminal() {
    let world = World::new();
    world.edit("command: \"printf planted-;", "command: \"printf '\\e[2J\\u202e'; printf planted-;");
    let text = asked(&world, Answer::No).0.unwrap().to_string();
    assert!(text.contains("\\u{1b}[2J\\u{202e}") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn the_question_says_what_a_policy_and_odd_profiles_open() {
    let world = World::new();
    world.write("repo/agents/gardener/policy.yaml", "network: {a: {endpoints: [{host: deep.example, port: 8443}]}}\n");
    world.write(
        "repo/agents/gardener/providers/model.yaml",
        "id: model\nendpoints: [{hosts: [a.example, b.example]}, plain.example]\n",
    );
    let acts = asked(&world, Answer::No).0.unwrap().acts.join("\n");
    for host in ["deep.example:8443 (policy.yaml)", "a.example", "b.example", "plain.example"] {
        assert!(
            acts.contains(&format!("reach from inside: {host}")) || acts.contains(&format!("\"{host}\"")),
            "{acts}"
        );
    }
    world.write("repo/agents/gardener/policy.yaml", "version: 1\n");
    assert!(asked(&world, Answer::No).0.unwrap().acts.contains(&"reach from inside what policy.yaml says".to_owned()));
}
