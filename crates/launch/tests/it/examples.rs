//! The agents in the repository's `agents/` load, and can be launched as they are.

use std::path::Path;

use bastion_launch::Target;

use crate::world::World;

fn example(name: &str) -> World {
    let mut world = World::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    crate::world::copy_tree(&repository.join("agents").join(name), &world.path("repo/agents").join(name));
    world.options.agent = Some(name.into());
    world
}

#[test]
fn hello_needs_nothing() {
    let mut world = example("hello");
    let plan = world.prepare().unwrap().plan().clone();
    assert_eq!((plan.target, plan.harness.as_str(), plan.attach), (Target::Local, "command", true));
    assert!(plan.providers.is_empty() && plan.settings.is_empty() && plan.warnings.is_empty());
    world.options.gateway = Some("greenhouse".into());
    let launched = world.launch().0.unwrap();
    assert_eq!(launched.exit, Some(0));
}

#[test]
fn reviewer_runs_on_codex_or_claude_and_watches() {
    let mut world = example("reviewer");
    world.options.gateway = Some("greenhouse".into());
    for (harness, provider) in [("codex", "openai"), ("claude", "anthropic")] {
        world.options.harness = Some(harness.into());
        let plan = world.prepare().unwrap().plan().clone();
        assert_eq!((plan.run_mode.as_str(), plan.attach), ("watch", false));
        assert_eq!(plan.providers.iter().map(|p| p.id.as_str()).collect::<Vec<_>>(), ["github", provider]);
        assert!(plan.payload.iter().any(|file| file.path.ends_with("subagents/second-look.md")));
    }
    let folder = world.path("repo/agents/reviewer/agent.yaml");
    let text = std::fs::read_to_string(&folder).unwrap();
    assert!(!text.contains("sk-") && text.lines().count() < 80, "{}", text.lines().count());
}
