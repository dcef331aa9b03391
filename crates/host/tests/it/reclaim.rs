//! Many processes that find one stale lock: one gets it, and a holder that was killed is reclaimed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bastion_host::clock::SystemClock;
use bastion_host::lock::{LockError, RunLock};
use bastion_host::process::{Fate, ProcessIdentity};

const LOCK: &str = "BASTION_TEST_LOCK";

/// Not a test: the program that the tests below start. It tries for the lock when told to, says what came of it,
/// and keeps what it has until its input ends.
#[test]
#[ignore = "a child process of the other tests"]
fn child() {
    let Some(path) = std::env::var_os(LOCK).map(PathBuf::from) else { return };
    let mut line = String::new();
    println!("ready");
    std::io::stdin().read_line(&mut line).unwrap();
    let got = RunLock::acquire(&path, &SystemClock);
    match &got {
        Ok(acquired) if acquired.reclaimed.is_some() => println!("reclaimed"),
        Ok(_) => println!("acquired"),
        Err(LockError::Held { .. }) => println!("held"),
        Err(error) => println!("error {error}"),
    }
    std::io::stdin().read_line(&mut line).unwrap();
}

struct Contender {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Contender {
    fn start(lock: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "reclaim::child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(LOCK, lock)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut contender = Self { child, output };
        contender.wait_for(&["ready"]);
        contender
    }

    fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// The harness prints around our words, on the same line too.
    fn wait_for(&mut self, words: &[&str]) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "the child ended");
            if let Some(word) = words.iter().find(|word| line.trim_end().ends_with(**word)) {
                return (*word).to_owned();
            }
            assert!(!line.contains("error"), "{line}");
        }
    }

    fn result(&mut self) -> String {
        self.wait_for(&["reclaimed", "acquired", "held"])
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn provable() -> bool {
    let me = ProcessIdentity::current();
    let can = me.fate(&me) == Fate::Alive;
    if !can {
        println!("SKIPPED: this system does not name its processes");
    }
    can
}

#[test]
fn of_twenty_processes_one_reclaims_a_killed_holders_lock() {
    if !provable() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("sweep.lock");
    let mut first = Contender::start(&lock);
    first.go();
    assert_eq!(first.result(), "acquired");
    first.kill();
    assert!(lock.exists(), "a killed holder leaves its lock");

    let mut contenders: Vec<_> = (0..20).map(|_| Contender::start(&lock)).collect();
    contenders.iter_mut().for_each(Contender::go);
    let results: Vec<_> = contenders.iter_mut().map(Contender::result).collect();
    assert_eq!(results.iter().filter(|result| *result == "reclaimed").count(), 1, "{results:?}");
    assert_eq!(results.iter().filter(|result| *result == "held").count(), 19, "{results:?}");
    contenders.into_iter().for_each(Contender::end);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "released, and no litter");
}

#[test]
fn of_twenty_processes_one_takes_a_free_lock() {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("sweep.lock");
    let mut contenders: Vec<_> = (0..20).map(|_| Contender::start(&lock)).collect();
    contenders.iter_mut().for_each(Contender::go);
    let results: Vec<_> = contenders.iter_mut().map(Contender::result).collect();
    assert_eq!(results.iter().filter(|result| *result == "acquired").count(), 1, "{results:?}");
    contenders.into_iter().for_each(Contender::end);
}
