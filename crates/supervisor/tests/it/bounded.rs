//! Memory and descriptors do not grow, whatever is printed and however often.

use std::process::Stdio;

use crate::support::{Agent, PROGRAM, memory, said};

#[test]
fn a_gigabyte_without_a_line_end_costs_little_memory() {
    let agent = Agent::new(&format!(
        "head -c 1073741824 /dev/zero; echo; {}; echo waiting >&2; cat $HERE/gate",
        said("complete")
    ));
    assert!(std::process::Command::new("mkfifo").arg(agent.path("gate")).status().unwrap().success());
    let err = std::fs::File::create(agent.path("err")).unwrap();
    let mut child = agent.command(PROGRAM).stdout(Stdio::piped()).stderr(err).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()).unwrap());
    agent.wait_for("waiting");
    let peak = memory(child.id(), "VmHWM");
    std::fs::write(agent.path("gate"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(reader.join().unwrap() > 1 << 30);
    println!("peak resident memory after 1 GiB: {peak} KiB");
    assert!(peak > 0 && peak < 32 << 10, "{peak} KiB");
    assert_eq!(agent.status()["result"]["status"], "complete");
}

/// The whole life of the supervisor, a thousand times in one process. Run by the test below in a process of its own,
/// since the supervisor collects every child of its process.
#[test]
#[ignore = "run by a_thousand_cycles_leave_nothing_behind"]
fn a_thousand_lives() {
    use bastion_supervisor::{console::Console, settings, signals::Signals, supervise::supervise};
    let env = |name: &str| std::env::var_os(name);
    let settings = settings::resolve(&env).unwrap();
    let (mut console, signals) = (Console::new(), Signals::listen().unwrap());
    let figures = || {
        let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        (descriptors, memory(std::process::id(), "VmRSS"))
    };
    let mut early = (0, 0);
    for n in 0..1000 {
        assert_eq!(supervise(&settings, &mut console, &signals, &env), 0);
        if n == 99 {
            early = figures();
        }
    }
    let late = figures();
    println!("after 100 cycles: {early:?}, after 1000: {late:?} (descriptors, KiB)");
    assert_eq!(late.0, early.0, "descriptors");
    assert!(late.1 <= early.1 + 1024, "resident memory");
}

#[test]
fn a_thousand_cycles_leave_nothing_behind() {
    let agent = Agent::new(&format!("echo text; {}", said("complete")));
    let program = std::env::current_exe().unwrap();
    let args = ["--exact", "bounded::a_thousand_lives", "--ignored", "--nocapture"];
    let output = agent.command(program).args(args).output().unwrap();
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("1 passed"), "{out}");
    println!("{}", out.lines().find(|line| line.starts_with("after 100")).unwrap_or_default());
    assert_eq!(std::fs::read_dir(agent.path("tmp")).unwrap().count(), 0);
}
