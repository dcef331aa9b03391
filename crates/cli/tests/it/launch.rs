//! A launch from the command line to the last word of its run: the real supervisor, in a real sandbox, behind programs
//! that stand in for the gateway and the image builder alone.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Machine, Ran};

/// Answers as the `openshell` program and `docker` were measured to; a sandbox is bubblewrap's.
const GATEWAY: &str = r#"#!/bin/sh
here=${0%/*}
name=${0##*/}
[ "$1" = --gateway ] && shift 2
printf '%s\n' "$name $*" >> "$here/calls"
inside() {
  while [ "$1" != -- ]; do shift; done
  shift
  exec bwrap --unshare-pid --die-with-parent --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib \
    --symlink usr/lib64 /lib64 --proc /proc --dev /dev --tmpfs /tmp --bind "$here/volume" /sandbox \
    --ro-bind "$here/context/openshell-agent-payload" /etc/openshell/agent-payload --chdir /sandbox -- "$@"
}
case "$name $*" in
"openshell --version") echo "openshell 0.1.3" ;;
"openshell --help") printf 'Commands:\n  gateway  Manage\n  profile  Manage\n  provider  Manage\n  sandbox  Manage\n' ;;
"openshell gateway info --output json") echo '{"compute_drivers":[{"name":"docker"}]}' ;;
"openshell sandbox create "*|"openshell sandbox exec "*) inside "$@" ;;
"docker build "*) for last; do :; done; cp -R "$last" "$here/context" ;;
"docker image inspect "*) echo '"1000"' ;;
esac
"#;

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents").canonicalize().unwrap()
}

/// A machine with a gateway; none, and why is said, where there is no bubblewrap to run sandboxes with.
fn with_gateway() -> Option<Machine> {
    let works = Command::new("bwrap").args(["--unshare-pid", "--ro-bind", "/", "/", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        println!("SKIPPED: no bwrap that may make a sandbox here");
        return None;
    }
    let machine = Machine::new();
    std::fs::create_dir_all(machine.path("gateway/volume")).unwrap();
    for name in ["openshell", "docker"] {
        let program = machine.path("gateway").join(name);
        std::fs::write(&program, GATEWAY).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    Some(machine)
}

fn bastion(machine: &Machine, args: &[&str]) -> Ran {
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", machine.path("gateway").display());
    machine.command(args).env("PATH", path).output().unwrap().into()
}

#[test]
fn hello_runs_to_its_end_and_is_remembered() {
    let Some(machine) = with_gateway() else { return };
    let hello = examples().join("hello");
    let hello = hello.to_str().unwrap();
    let launch = ["launch", "--agent", hello, "--gateway", "greenhouse", "--keep", "good", "morning"];
    let refused = bastion(&machine, &launch).fails(3);
    assert!(refused.err.contains("--trust"), "{}", refused.err);
    assert!(!machine.path("gateway/context").exists(), "nothing is done before the answer");

    let ran = bastion(&machine, &[&launch[..], &["--trust"]].concat()).ok();
    assert!(ran.out.contains("Hello from a once run on command.\n\ngood morning\n"), "{}", ran.out);
    assert!(ran.err.contains("openshell-agent: complete (greeted)"), "{}", ran.err);
    assert!(ran.err.contains("bastion runs show hello-"), "{}", ran.err);
    assert_eq!(
        std::fs::read_to_string(machine.path("gateway/volume/hello.txt")).unwrap().trim_end(),
        "Hello from a once run on command.\n\ngood morning"
    );
    let calls = std::fs::read_to_string(machine.path("gateway/calls")).unwrap();
    assert!(calls.contains("sandbox create --name hello-"), "{calls}");

    let listed: serde_json::Value = serde_json::from_str(&bastion(&machine, &["runs", "--json"]).ok().out).unwrap();
    let name = listed["name"].as_str().unwrap();
    assert_eq!((listed["agent"].as_str(), listed["exit"].as_u64()), (Some("hello"), Some(0)));
    let shown = bastion(&machine, &["runs", "show", name]).ok();
    assert!(shown.out.contains("The prompt was read"), "{}", shown.out);
    let logs = bastion(&machine, &["runs", "logs", name]).ok();
    assert!(logs.out.contains("good morning"), "{}", logs.out);
    bastion(&machine, &["runs", "rm", name]).ok();
    assert_eq!(bastion(&machine, &["runs", "--json"]).ok().out, "");
    let left: Vec<_> = std::fs::read_dir(std::env::temp_dir())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("bastion-launch"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn every_driver_keeps_the_same_promises() {
    for gateway in ["greenhouse", "local"] {
        let Some(machine) = with_gateway() else { return };
        let hello = examples().join("hello");
        let hello = hello.to_str().unwrap();
        let launch = |more: &[&str]| {
            bastion(
                &machine,
                &[&["launch", "--agent", hello, "--trust", "--gateway", gateway], more, &["dear"]].concat(),
            )
        };
        // the output passes through, and the status is the run's
        let ran = launch(&["--keep"]).ok();
        assert!(ran.out.contains("Hello from a once run on command.\n\ndear\n"), "{gateway}: {}", ran.out);
        let run: serde_json::Value = serde_json::from_str(&bastion(&machine, &["runs", "--json"]).ok().out).unwrap();
        let kept = run["name"].as_str().unwrap();
        assert!(ran.err.contains(&format!("bastion runs show {kept}")), "{gateway}: {}", ran.err);
        // a name is one run's
        assert!(launch(&["--name", kept]).fails(2).err.contains("is the name of a run"), "{gateway}");
        let shown: serde_json::Value =
            serde_json::from_str(&bastion(&machine, &["runs", "show", kept, "--json"]).ok().out).unwrap();
        assert_eq!((&shown["run"]["exit"], &shown["run"]["agent"]), (&0.into(), &"hello".into()), "{gateway}");
        assert_eq!(shown["history"].as_array().unwrap().last().unwrap()["status"], "complete", "{gateway}: {shown}");
        assert!(bastion(&machine, &["runs", "logs", kept]).ok().out.contains("dear"), "{gateway}");
        // it can be ended once, and is remembered until it is forgotten
        for said in ["is stopped", "was gone already"] {
            // the stand-in for a gateway has no memory of what was deleted
            let said = if gateway == "local" { said } else { "is stopped" };
            assert!(bastion(&machine, &["runs", "stop", kept]).ok().out.contains(said), "{gateway}");
        }
        let run: serde_json::Value = serde_json::from_str(&bastion(&machine, &["runs", "--json"]).ok().out).unwrap();
        assert_eq!((&run["exit"], &run["last"]["gone"]), (&0.into(), &true.into()), "{gateway}");
        bastion(&machine, &["runs", "rm", kept]).ok();
        assert_eq!(bastion(&machine, &["runs", "--json"]).ok().out, "", "{gateway}");
        bastion(&machine, &["runs", "show", kept]).fails(1);
    }
}

#[test]
fn a_dry_run_shows_the_plan_and_does_nothing() {
    let machine = Machine::new();
    let agents = examples();
    for name in ["hello", "reviewer"] {
        let agent = agents.join(name);
        let plan = machine.run(&["launch", "--agent", agent.to_str().unwrap(), "--dry-run", "--json", "look"]).ok();
        let plan: serde_json::Value = serde_json::from_str(&plan.out).unwrap();
        assert_eq!(plan["agent"], name);
        let files: Vec<&str> =
            plan["payload"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect();
        for file in ["agent-prompt.md", "runtime/bastion-supervisor", "runtime/entrypoint.sh"] {
            assert!(files.contains(&file), "{files:?}");
        }
    }
    assert!(!machine.state().exists(), "a dry run writes nothing");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_fault() {
    let machine = Machine::new();
    let hello = examples().join("hello");
    let mut command = machine.command(&["launch", "--agent", hello.to_str().unwrap(), "--dry-run", "look"]);
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.stderr.is_empty(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn what_is_wrong_with_a_launch_is_said_with_its_exit_status() {
    let machine = Machine::new();
    let hello = examples().join("hello");
    let hello = hello.to_str().unwrap();
    for (args, status, said) in [
        (vec!["--agent", hello, "--once", "--watch"], 2, "exclude each other"),
        (vec!["--agent", hello, "--harness", "codex"], 3, "supported are command"),
        (vec!["--agent", "nobody"], 3, "is in none of"),
        (vec!["--agent", hello], 3, "nothing outside its sandbox"),
        (vec![], 2, "--agent"),
    ] {
        let ran = machine.run(&[&["launch"], &args[..], &["look"]].concat()).fails(status);
        assert!(ran.err.contains(said), "{args:?}: {}", ran.err);
    }
    assert!(machine.run(&["runs", "show", "nobody"]).fails(1).err.contains("there is no run"));
}

#[test]
fn an_agent_is_signed_as_a_folder_is() {
    let machine = Machine::new();
    let agent = machine.folder(
        "agent",
        &[
            ("agent.yaml", "id: mine\nowner: {host: OWNER}\nharness: {supported: {command: {argv: [cat]}}}\nprompt_template: p.md\n"),
            ("p.md", "Read."),
        ],
    );
    machine.swept(&machine.folder("Documents", &[("a.md", "alpha")])).ok();
    let manifest = agent.join("agent.yaml");
    let text = std::fs::read_to_string(&manifest).unwrap().replace("OWNER", &machine.owner());
    std::fs::write(&manifest, text).unwrap();
    let path = agent.to_str().unwrap();
    machine.run(&["sign", path]).ok();
    let required = ["launch", "--agent", path, "--require-signature", "--dry-run", "x"];
    assert!(machine.run(&required).ok().out.contains("signed by"));
    std::fs::write(agent.join("p.md"), "Read everything.").unwrap();
    assert!(machine.run(&required).fails(3).err.contains("bad_signature"));
}

/// The sandbox's main process needs nothing of the image: no interpreter is named in it, and it is small.
#[test]
fn the_supervisor_in_the_program_is_static_and_small() {
    let bytes = std::fs::read(env!("BASTION_SUPERVISOR")).unwrap();
    assert!(bytes.len() < 5_000_000, "{} bytes", bytes.len());
    let table = usize::try_from(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).unwrap();
    let (size, count) = (u16::from_le_bytes([bytes[54], bytes[55]]), u16::from_le_bytes([bytes[56], bytes[57]]));
    for n in 0..usize::from(count) {
        let entry = table + n * usize::from(size);
        let kind = u32::from_le_bytes(bytes[entry..entry + 4].try_into().unwrap());
        assert_ne!(kind, 3, "PT_INTERP: it asks for a dynamic linker"); // elf(5)
    }
}
