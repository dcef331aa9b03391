//! Real signals to a real process: the run is finished, the loop ends.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use bastion_host::clock::{Clock, SystemClock};
use bastion_host::signals::{Stop, WakingClock};
use bastion_sweep::{Event, RunRecord, Sweep, SweepSettings, exit_status};
use bastion_trust::{Gate, GateSettings};
use rustix::process::{Pid, Signal, kill_process};

use crate::world::{Player, World, ok, records};

const FOLDER: &str = "BASTION_TEST_SIGNALS";

/// Not a test: the sweep that the tests below signal. Its stage goes on until the file `go` is there.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let Some(dir) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let stop = Stop::on_signals(|signal, count| println!("\nheard {} {count}", signal.name())).unwrap();
    let clock = WakingClock::new(&stop);
    let gate =
        Gate::new(GateSettings { ca_root: None, crl: None, state_dir: dir.join("state") }, Arc::new(SystemClock));
    let settings =
        SweepSettings { manifest: dir.join("docs/.agent/manifest.yaml"), out: None, once: false, allow_unsigned: true };
    let mut stages = Player::new(|_, stage, _| {
        println!("\nrunning");
        while !dir.join("go").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        ok(stage)
    });
    let sweep = Sweep { gate: &gate, clock: &clock, stop: &stop, settings: &settings };
    let ended = sweep.run(&mut stages, &mut |event| {
        if let Event::Sleeping { .. } = event {
            println!("\nsleeping");
        }
    });
    std::process::exit(i32::from(exit_status(&ended)));
}

struct Loop {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Loop {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "signals::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(FOLDER, dir)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn wait_for(&mut self, word: &str) {
        let mut line = String::new();
        while line.trim_end() != word {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the sweep ended before it said {word}");
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn ok_records(world: &World) -> Vec<RunRecord> {
    let records = records(&world.out());
    assert!(records.iter().all(|record| record.ok && record.stages.len() == 2));
    records
}

#[test]
fn a_signal_within_a_run_lets_it_finish_and_a_second_changes_nothing() {
    let world = World::new("15m", "walk, extract");
    let mut sweep = Loop::start(world.dir.path());
    sweep.wait_for("running");
    sweep.signal(Signal::TERM);
    sweep.wait_for("heard SIGTERM 1");
    sweep.signal(Signal::INT);
    sweep.wait_for("heard SIGINT 2");
    assert!(world.out().join("sweep.lock").exists(), "the run goes on");
    std::fs::write(world.dir.path().join("go"), "").unwrap();
    assert_eq!(sweep.end(), Some(143), "the first signal decides");
    assert_eq!(ok_records(&world).len(), 1);
    assert!(!world.out().join("sweep.lock").exists());
}

#[test]
fn a_signal_while_the_loop_sleeps_ends_it() {
    for (signal, status) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let world = World::new("daily", "walk, extract");
        std::fs::write(world.dir.path().join("go"), "").unwrap();
        let mut sweep = Loop::start(world.dir.path());
        sweep.wait_for("sleeping");
        sweep.signal(signal);
        assert_eq!(sweep.end(), Some(status));
        assert_eq!(ok_records(&world).len(), 1);
    }
}

#[test]
fn a_sweep_that_is_killed_leaves_a_lock_that_the_next_one_reclaims() {
    let world = World::new("manual", "walk, extract");
    let me = bastion_host::process::ProcessIdentity::current();
    if me.fate(&me) != bastion_host::process::Fate::Alive {
        println!("SKIPPED: this system does not name its processes");
        return;
    }
    let mut sweep = Loop::start(world.dir.path());
    sweep.wait_for("running");
    let pid = sweep.child.id();
    sweep.signal(Signal::KILL);
    assert_eq!(sweep.end(), None);
    assert!(world.out().join("sweep.lock").exists());
    world.clock.set(SystemClock.now()); // the killed one lived in real time, and the gate remembers
    world.once(&mut Player::new(|_, stage, _| ok(stage))).unwrap();
    assert_eq!(ok_records(&world)[0].lock_reclaimed.as_ref().unwrap().pid, Some(pid));
}
