//! Which process is this, and is that one still there?
//!
//! A pid alone names nobody: it is given away again, soon after its owner died and surely after a reboot. A process
//! is named here by pid, start time, boot, machine and pid namespace together. What can't be known is absent and
//! never guessed, and [`ProcessIdentity::fate`] calls a process gone only where that is proven.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The name of one process, unique over machines, boots and containers as far as the system tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// Process id in its own pid namespace.
    pub pid: u32,
    /// When it started, in clock ticks since boot: field 22 of `/proc/<pid>/stat` (proc_pid_stat(5)).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    /// The kernel's random id of this boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// 32 hex digits derived from the machine id. The id itself is confidential (machine-id(5)) and stays here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_id: Option<String>,
    /// The pid namespace, as `/proc/self/ns/pid` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<String>,
}

/// What became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs.
    Alive,
    /// It ended: proven.
    Gone,
    /// It can't be checked from here: another machine or pid namespace, or a system that does not tell.
    Unknown,
}

impl ProcessIdentity {
    /// The process that asks.
    pub fn current() -> Self {
        let pid = std::process::id();
        let boot_id = first_line("/proc/sys/kernel/random/boot_id");
        Self {
            pid,
            start_ticks: start_of(pid).ok().flatten(),
            machine_id: machine_id(boot_id.as_deref()),
            boot_id,
            pid_namespace: fs::read_link("/proc/self/ns/pid").ok().map(|name| name.to_string_lossy().into_owned()),
        }
    }

    /// What became of this process, as far as `here`, the process that asks, can prove.
    pub fn fate(&self, here: &Self) -> Fate {
        if !both_equal(self.machine_id.as_deref(), here.machine_id.as_deref())
            || !both_equal(self.pid_namespace.as_deref(), here.pid_namespace.as_deref())
        {
            return Fate::Unknown;
        }
        match (&self.boot_id, &here.boot_id) {
            (Some(then), Some(now)) if then != now => return Fate::Gone,
            (Some(_), Some(_)) => {}
            _ => return Fate::Unknown,
        }
        let Some(recorded) = self.start_ticks else { return Fate::Unknown };
        match start_of(self.pid) {
            Ok(Some(start)) if start == recorded => Fate::Alive,
            Ok(_) => Fate::Gone,
            // It exists and does not show itself (/proc mounted with hidepid): not proven gone.
            Err(_) => Fate::Alive,
        }
    }
}

impl ProcessIdentity {
    /// Signals it where it is a living process of this machine. Says whether that was so.
    pub fn signal(&self, signal: rustix::process::Signal) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        match (self.fate(&Self::current()), pid) {
            (Fate::Alive, Some(pid)) => rustix::process::kill_process(pid, signal).is_ok(),
            _ => false,
        }
    }
}

fn both_equal(a: Option<&str>, b: Option<&str>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a == b)
}

/// The start of process `pid` in ticks since boot; `None` where there is no such process or it is a zombie.
fn start_of(pid: u32) -> io::Result<Option<u64>> {
    let Some(raw) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else { return Ok(None) };
    if rustix::process::test_kill_process(raw) == Err(rustix::io::Errno::SRCH) {
        return Ok(None);
    }
    // It may end between the two looks: then the next one finds no such process.
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    parse_stat(&stat).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unreadable /proc/<pid>/stat"))
}

/// Field 22 of a `stat` line, `Some(None)` for a process that has ended and only waits to be collected.
fn parse_stat(stat: &[u8]) -> Option<Option<u64>> {
    // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let mut fields = std::str::from_utf8(stat.get(after_name..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    Some(if matches!(state, "Z" | "X" | "x") { None } else { Some(start) })
}

/// A name of the machine that can be shown. Where the system has none, the boot names it: that is the same on no
/// two machines, and costs only that after a reboot an old lock is judged by its age.
fn machine_id(boot_id: Option<&str>) -> Option<String> {
    ["/etc/machine-id", "/var/lib/dbus/machine-id"]
        .into_iter()
        .filter_map(first_line)
        .find(|line| line.len() >= 32)
        .or_else(|| boot_id.map(str::to_owned))
        .map(|id| derived_id(&id))
}

fn derived_id(secret: &str) -> String {
    let digest = Sha256::new().chain_update(b"bastion lock holder\0").chain_update(secret.as_bytes()).finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn first_line(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

/// Runs `program` to its end with no input and gives what it printed. For small tools such as `systemctl`.
pub fn output<S: AsRef<OsStr>>(program: &str, args: &[S]) -> io::Result<Output> {
    Command::new(program).args(args).stdin(Stdio::null()).output()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_fully_named() {
        let me = ProcessIdentity::current();
        if !Path::new("/proc/self/stat").exists() {
            println!("SKIPPED: no /proc here");
            return;
        }
        assert!(me.start_ticks.is_some() && me.boot_id.is_some() && me.machine_id.is_some());
        assert_eq!(me.fate(&me), if me.pid_namespace.is_some() { Fate::Alive } else { Fate::Unknown });
    }

    #[test]
    fn the_start_is_read_past_any_program_name() {
        let line = b"7 (a) S 9 (x) R 1 7 7 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 81215 3133440 392\n";
        assert_eq!(parse_stat(line), Some(Some(81215)));
        let zombie = b"7 (cat) Z 1 7 7 0 -1 4194304 100 0 0 0 0 0 0 0 20 0 1 0 81215 0 0\n";
        assert_eq!(parse_stat(zombie), Some(None));
        assert_eq!(parse_stat(b"7 (cat"), None);
        assert_eq!(parse_stat(b"7 (cat) S 1"), None);
    }

    #[test]
    fn a_pid_reused_with_another_start_or_after_a_reboot_is_gone() {
        let me = ProcessIdentity::current();
        let (Some(start), Some(_), Some(_)) = (me.start_ticks, &me.boot_id, &me.pid_namespace) else {
            println!("SKIPPED: this system does not name its processes");
            return;
        };
        assert_eq!(ProcessIdentity { start_ticks: Some(start + 1), ..me.clone() }.fate(&me), Fate::Gone);
        assert_eq!(ProcessIdentity { boot_id: Some("earlier".into()), ..me.clone() }.fate(&me), Fate::Gone);
        assert_eq!(ProcessIdentity { pid: i32::MAX as u32, ..me.clone() }.fate(&me), Fate::Gone);
        assert_eq!(ProcessIdentity { pid: 0, ..me.clone() }.fate(&me), Fate::Gone);
    }

    #[test]
    fn another_machine_or_namespace_or_a_missing_name_proves_nothing() {
        let me = ProcessIdentity::current();
        let elsewhere = |change: fn(&mut ProcessIdentity)| {
            let mut other = ProcessIdentity { pid: i32::MAX as u32, ..me.clone() };
            change(&mut other);
            other.fate(&me)
        };
        assert_eq!(elsewhere(|id| id.machine_id = Some("other".into())), Fate::Unknown);
        assert_eq!(elsewhere(|id| id.pid_namespace = Some("pid:[1]".into())), Fate::Unknown);
        assert_eq!(elsewhere(|id| id.machine_id = None), Fate::Unknown);
        assert_eq!(elsewhere(|id| id.boot_id = None), Fate::Unknown);
        assert_eq!(elsewhere(|id| id.start_ticks = None), Fate::Unknown);
        assert_eq!(elsewhere(|id| (id.machine_id, id.boot_id) = (Some("o".into()), Some("b".into()))), Fate::Unknown);
    }

    #[test]
    fn the_machine_id_itself_is_not_shown() {
        let secret = "0123456789abcdef0123456789abcdef";
        assert_eq!(derived_id(secret).len(), 32);
        assert_ne!(derived_id(secret), secret);
        assert_eq!(derived_id(secret), derived_id(secret));
    }

    #[test]
    fn a_child_that_ended_is_gone_even_before_it_is_collected() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let me = ProcessIdentity::current();
        let start = start_of(child.id()).unwrap();
        let named = ProcessIdentity { pid: child.id(), start_ticks: start, ..me.clone() };
        if me.pid_namespace.is_some() {
            assert_eq!(named.fate(&me), Fate::Alive);
        }
        child.kill().unwrap();
        // The zombie keeps its pid until it is waited for; it is looked at until the kernel has ended it.
        while start_of(child.id()).ok().flatten().is_some() {
            std::thread::yield_now();
        }
        if me.pid_namespace.is_some() {
            assert_eq!(named.fate(&me), Fate::Gone);
        }
        child.wait().unwrap();
    }
}
