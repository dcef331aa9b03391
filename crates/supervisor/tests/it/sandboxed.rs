//! The supervisor as the stage and the first program of a local sandbox, and as what runs in one.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitStatus;

use bastion_cage::sandbox::{INIT, Identity, Limits, Mount, Plan, State, survey};

use crate::support::PROGRAM;

const PAYLOAD: &str = "/etc/openshell/agent-payload";

/// Runs a command in a sandbox whose program is the real one; `None` where this host makes no sandboxes.
fn run(command: &[&str], env: &[(&str, &str)], payload: &[(&str, String)]) -> Option<(ExitStatus, String)> {
    if let Some(finding) = survey().into_iter().find(|finding| finding.state == State::Missing) {
        println!("SKIPPED: {}: {}", finding.layer, finding.detail);
        return None;
    }
    // As root only a program that nobody else can change is taken; a build may have been made with another umask.
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bastion-supervisor");
    std::fs::copy(PROGRAM, &program).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let plan = Plan {
        program,
        mounts: vec![Mount::Tmpfs { destination: "/sandbox".into(), size: 1 << 20, mode: 0o755 }],
        files: payload.iter().map(|(name, text)| (Path::new(PAYLOAD).join(name), text.clone().into_bytes())).collect(),
        ca_bundle: vec![],
        env: env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        cwd: "/sandbox".into(),
        hostname: "agent".into(),
        limits: Limits::default(),
        hard_requirement: false,
        identity: Identity::choose().unwrap(),
    };
    let mut running = plan.prepare().unwrap().start().unwrap();
    let mut output = String::new();
    File::from(running.stdout().unwrap()).read_to_string(&mut output).unwrap();
    File::from(running.stderr().unwrap()).read_to_string(&mut output).unwrap();
    Some((running.wait().unwrap(), output))
}

#[test]
fn it_starts_a_command_in_a_sandbox() {
    let Some((status, output)) = run(&["/bin/sh", "-c", "id; ls /; echo done"], &[("PATH", "/usr/bin")], &[]) else {
        return;
    };
    assert!(status.success() && output.starts_with("uid=1000(sandbox)") && output.contains("done\n"), "{output}");
    assert!(!output.contains("home"), "{output}");
}

#[test]
fn it_runs_an_agent_in_a_sandbox_that_cannot_read_its_memory() {
    // The harness is started by the supervisor, which its parent is: directly, or by way of a shell.
    // Its own can be opened, which shows that the probe could succeed.
    let script = "tries() { (: < /proc/$1/mem) 2>/dev/null || (: < /proc/$1/environ) 2>/dev/null; }; \
                  tries $$ && ! tries $PPID && echo unread";
    let env = [("PATH", "/usr/bin"), ("HOME", "/sandbox"), ("TMPDIR", "/tmp"), ("OPENSHELL_AGENT_HARNESS", "command")];
    let argv = serde_json::json!(["/bin/sh", "-c", script]);
    let settings = serde_json::json!({"harness": {"supported": {"command": {"argv": argv}}}});
    let files = [("agent.json", settings.to_string()), ("agent-prompt.md", "the prompt\n".to_owned())];
    let Some((status, output)) = run(&[INIT], &env, &files) else { return };
    assert!(status.success() && output.contains("unread"), "{status} {output}");
}
