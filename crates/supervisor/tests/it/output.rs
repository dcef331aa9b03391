//! Output is passed on byte for byte, apart, as it comes.

use std::io::Read;
use std::process::Stdio;

use crate::support::{Agent, PROGRAM, read_all, said};

#[test]
fn stdout_and_stderr_are_kept_apart() {
    let ended = Agent::new("echo out; echo err >&2").run();
    assert_eq!(ended.out, "out\n");
    let foreign: Vec<_> = ended.err.lines().filter(|line| !line.starts_with("openshell-agent: ")).collect();
    assert_eq!(foreign, ["err"]);
}

#[test]
fn bytes_that_are_not_text_arrive_as_they_were() {
    let agent = Agent::new("cat $HERE/bytes");
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    std::fs::write(agent.path("bytes"), &bytes).unwrap();
    let output = agent.command(PROGRAM).output().unwrap();
    assert!(output.stdout == bytes);
}

#[test]
fn bytes_arrive_through_a_file_and_a_socket_too() {
    let agent = Agent::new("cat $HERE/bytes");
    let bytes: Vec<u8> = (0..300_000_u32).map(|n| n.to_le_bytes()[1]).collect();
    std::fs::write(agent.path("bytes"), &bytes).unwrap();
    agent.start().wait();
    assert!(std::fs::read(agent.path("out")).unwrap() == bytes);

    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut command = agent.command(PROGRAM);
    command.stdout(std::os::fd::OwnedFd::from(theirs)).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    assert!(read_all(ours) == bytes);
    child.wait().unwrap();
}

#[test]
fn output_arrives_before_the_harness_has_ended() {
    let agent = Agent::new("echo first; cat $HERE/gate; echo second");
    assert!(std::process::Command::new("mkfifo").arg(agent.path("gate")).status().unwrap().success());
    let mut child = agent.command(PROGRAM).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut first = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first\n");
    std::fs::write(agent.path("gate"), "").unwrap();
    assert_eq!(read_all(child.stdout.take().unwrap()), b"second\n");
    child.wait().unwrap();
}

#[test]
fn the_prompt_is_the_harnesss_stdin_and_it_has_no_terminal() {
    let ended = Agent::new("cat; [ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none").run();
    assert_eq!(ended.out, "the prompt\nnone\n");
}

#[test]
fn a_terminal_of_ours_is_not_the_harnesss() {
    let agent = Agent::new("(: < /dev/tty) 2>/dev/null && echo has || echo hasnot; cat; exit 5");
    let Ok(output) = agent.command("script").args(["-qec", PROGRAM, "/dev/null"]).output() else {
        println!("SKIPPED: no `script` program to make a terminal with");
        return;
    };
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(out.contains("hasnot") && out.contains("the prompt"), "{out}");
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn the_harness_has_a_process_group_of_its_own() {
    let ended =
        Agent::new("read -r pid comm state parent group rest < /proc/$$/stat; [ $pid = $group ] && echo own").run();
    assert_eq!(ended.out, "own\n");
}

#[test]
fn a_reader_that_goes_away_ends_nothing() {
    let agent = Agent::new(&format!("head -c 1000000 /dev/zero; {}", said("complete")));
    let mut child = agent.command(PROGRAM).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let err = read_all(child.stderr.take().unwrap());
    assert!(!String::from_utf8_lossy(&err).contains("failure"));
    child.wait().unwrap();
    assert_eq!(agent.status()["supervisor_state"], "terminal");
}

#[test]
fn a_slow_reader_loses_nothing() {
    // The smaller fits into the pipes, so that the harness has ended long before it is read.
    for size in [150_000, 1_000_000] {
        let agent = Agent::new(&format!("head -c {size} /dev/zero"));
        let mut child = agent.command(PROGRAM).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2500)); // longer than held pipes are waited for
        assert_eq!(read_all(child.stdout.take().unwrap()).len(), size);
        child.wait().unwrap();
    }
}

#[test]
fn our_lines_begin_at_the_start_of_a_line() {
    let ended = Agent::new("printf half >&2").run();
    assert!(ended.err.contains("half\nopenshell-agent: complete"), "{}", ended.err);
}

#[test]
fn the_kept_output_is_the_last_four_mebibytes() {
    let agent = Agent::new("yes 0123456789abcdef | head -c 6000000; echo the end");
    agent.run();
    let kept = std::fs::read(agent.path("state/output.log")).unwrap();
    assert_eq!(kept.len(), 4 << 20);
    assert!(agent.read("state/output.log").contains("the end\n"));
}

#[test]
fn a_result_after_a_flood_is_still_found() {
    let agent = Agent::new(&format!("head -c 5000000 /dev/zero; echo; {}", said("terminal_failure")));
    assert_eq!(agent.run().code, 1);
}
