//! Being the main process: orphans are collected, nobody looks in.

use std::os::unix::process::CommandExt;

use crate::support::{Agent, PROGRAM, said};

fn unshared(agent: &Agent) -> Option<std::process::Command> {
    let flags = ["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
    let works = agent.command("unshare").args(flags).arg("true").output().is_ok_and(|output| output.status.success());
    if !works {
        println!("SKIPPED: no pid namespace here");
        return None;
    }
    let mut command = agent.command("unshare");
    command.args(flags).arg(PROGRAM);
    Some(command)
}

#[test]
fn as_pid_1_it_collects_orphans() {
    // The orphans end while the harness runs; then only those that nobody collected are still in /proc.
    let agent = Agent::new(
        "[ $PPID = 1 ] || exit 9; for n in 1 2 3 4 5; do (sleep 0.2 &) ; done; sleep 1.2; \
         grep -l '^State:.Z' /proc/[0-9]*/status | wc -l",
    );
    let Some(mut command) = unshared(&agent) else { return };
    let output = command.output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).trim()), (Some(0), "0"));
}

#[test]
fn as_pid_1_it_collects_orphans_while_it_sleeps() {
    let agent = Agent::cycles(&[
        &format!("for n in 1 2 3; do (sleep 0.4 </dev/null >/dev/null 2>&1 &) ; done; {}", said("waiting")),
        &format!("grep -l '^State:.Z' /proc/[0-9]*/status | wc -l; {}", said("complete")),
    ]);
    let Some(mut command) = unshared(&agent) else { return };
    let output = command.output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).lines().any(|line| line.trim() == "0"));
}

#[test]
fn as_pid_1_it_hears_term() {
    let agent = Agent::new("kill -TERM 1; sleep 1000");
    let Some(mut command) = unshared(&agent) else { return };
    assert_eq!(command.output().unwrap().status.code(), Some(143));
    assert_eq!(agent.status()["result"]["reason"], "stopped");
}

#[test]
fn the_harness_cannot_look_into_its_supervisor() {
    let agent =
        Agent::new("cat /proc/$PPID/environ >/dev/null 2>&1 && echo seen; cat /proc/$$/environ >/dev/null && echo own");
    let mut command = agent.command(PROGRAM);
    if rustix::process::geteuid().is_root() {
        // Root may look at everything: run as somebody who is not.
        let program = agent.path("supervisor");
        std::fs::copy(PROGRAM, &program).unwrap();
        for dir in ["tmp", "home", "."] {
            std::os::unix::fs::chown(agent.path(dir), Some(65534), Some(65534)).unwrap();
        }
        command = agent.command(program);
        command.uid(65534).gid(65534);
    }
    let output = command.output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "own\n", "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}
