//! Refresh: the gateway's material is kept, replaced only where it was refused, and never after a time-out.

use crate::world::World;

const STATUS: &str = "'provider refresh status'*) echo 'strategy: oauth2-refresh-token'; exit 0;;";

fn refreshed(world: &World) -> Vec<String> {
    let verbs = world
        .lines()
        .into_iter()
        .filter_map(|line| line.strip_prefix("openshell provider refresh ").map(str::to_owned));
    verbs.filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

fn rotate(answers: &str) -> String {
    format!("case \"$call\" in {STATUS} 'provider refresh rotate'*) {answers};; esac\n")
}

#[test]
fn what_the_gateway_has_is_kept_and_rotated() {
    let world = World::new();
    world.behave(&format!("case \"$call\" in {STATUS} esac\n"));
    world.launch().0.unwrap();
    assert_eq!(refreshed(&world), ["status", "rotate"]);
}

#[test]
fn a_refused_material_is_replaced_and_tried_once_more() {
    let world = World::new();
    world.behave(&rotate("[ -f \"$here/second\" ] && exit 0; : > \"$here/second\"; echo 'token endpoint returned HTTP 400 Bad Request' >&2; exit 1"));
    let (launched, said) = world.launch();
    launched.unwrap();
    assert_eq!(refreshed(&world), ["status", "rotate", "configure", "rotate"]);
    assert!(said.0.iter().any(|line| line.starts_with("warning") && line.contains("HTTP 400")), "{said:?}");
}

#[test]
fn a_material_that_is_refused_again_fails_the_launch() {
    let world = World::new();
    world.behave(&rotate("echo 'token endpoint returned HTTP 400 Bad Request' >&2; exit 1"));
    let text = world.launch().0.unwrap_err().to_string();
    assert_eq!(refreshed(&world), ["status", "rotate", "configure", "rotate"]);
    assert!(text.contains("HTTP 400") && text.contains("the refresh material of access_token"), "{text}");
}

#[test]
fn a_network_error_or_time_out_replaces_nothing() {
    for answer in [
        "echo 'request failed: error sending request for url (https://x/)' >&2; exit 1",
        "echo 'operation timed out' >&2; exit 1",
        "sleep 30",
    ] {
        let world = World::new();
        world.behave(&rotate(answer));
        let error = world.launch().0.unwrap_err();
        assert_eq!(error.exit_status(), 1);
        assert_eq!(refreshed(&world), ["status", "rotate"], "{answer}");
        assert!(!world.lines().iter().any(|line| line.contains("sandbox create")));
        world.assert_clean();
    }
}

#[test]
fn a_reset_deletes_first() {
    let mut world = World::new();
    world.env("OPENSHELL_AGENT_RESET_REFRESH", "1");
    world.launch().0.unwrap();
    assert_eq!(refreshed(&world), ["delete", "status", "configure", "rotate"]);
}

#[test]
fn a_first_rotation_that_fails_is_not_tried_with_the_same_material() {
    let world = World::new();
    world.behave("case \"$call\" in 'provider refresh rotate'*) echo 'HTTP 400' >&2; exit 1;; esac\n");
    world.launch().0.unwrap_err();
    assert_eq!(refreshed(&world), ["status", "configure", "rotate"]);
}
