//! Who counts what all processes of a sandbox use together: a cgroup of its own, a scope of the user's systemd, or
//! nobody.
//!
//! A place is used only where a trial process could be moved into it. Sources: `Documentation/admin-guide/cgroup-v2.rst`
//! and `cgroup-v1/` of the Linux kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::bubblewrap::kernel_file;
use super::{LimitedBy, Limits};

/// What cgroups of ours are called; the launcher's process and a number follow.
const PREFIX: &str = "bastion-sandbox-";

/// Not by `PATH`: what comes first there need not be the system's.
const SYSTEMD_RUN: &str = "/usr/bin/systemd-run";

/// The period of processor limits, in microseconds: the kernel's own.
const PERIOD: u64 = 100_000;

/// Who counts, for one sandbox. Its cgroups go when it is dropped.
#[derive(Debug, Default)]
pub(super) struct Group {
    folders: Vec<PathBuf>,
    scope: bool,
    /// What could not be had, as a sentence's end.
    pub(super) missing: Option<String>,
}

impl Group {
    /// Looks for a place, trying each with the process `trial`, which stays in the one that is found.
    pub(super) fn find(limits: &Limits, trial: u32) -> Self {
        let own = kernel_file(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let mut missing = None;
        for group in [unified(&own, limits, trial), legacy(&own, limits, trial)] {
            match group {
                Ok(folders) => return Self { folders, scope: false, missing: None },
                Err(error) => missing = missing.or(Some(format!("no cgroup of its own ({error})"))),
            }
        }
        let scope = scope_works();
        Self { folders: Vec::new(), scope, missing: missing.filter(|_| !scope) }
    }

    pub(super) fn limited_by(&self) -> LimitedBy {
        match (self.folders.is_empty(), self.scope) {
            (false, _) => LimitedBy::Cgroup,
            (true, true) => LimitedBy::SystemdScope,
            (true, false) => LimitedBy::RlimitsOnly,
        }
    }

    /// The files that take a process in.
    pub(super) fn doors(&self) -> Vec<String> {
        self.folders.iter().map(|folder| folder.join("cgroup.procs").to_string_lossy().into_owned()).collect()
    }

    /// `program`, or the command that starts it in a scope.
    #[expect(clippy::disallowed_methods, reason = "the cage starts its own program")]
    pub(super) fn command(&self, program: &Path, limits: &Limits) -> Command {
        if !self.scope {
            let mut command = Command::new(program);
            command.env_clear();
            return command;
        }
        let mut command = Command::new(SYSTEMD_RUN); // with our environment, which it needs to find the manager
        command.args(["--user", "--scope", "--quiet", "--collect"]);
        let mut property = |text: String| {
            command.arg("-p").arg(text);
        };
        property(format!("TasksMax={}", limits.pids));
        property("OOMPolicy=kill".to_owned());
        if let Some(memory) = limits.memory {
            property(format!("MemoryMax={memory}"));
            property("MemorySwapMax=0".to_owned());
        }
        if let Some(millis) = limits.cpu_millis {
            property(format!("CPUQuota={}%", millis.div_ceil(10)));
        }
        command.arg("--").arg(program);
        command
    }

    /// Ends every process in it, where the kernel has a file for that.
    pub(super) fn kill(&self) {
        for folder in &self.folders {
            let _ = put(folder, "cgroup.kill", 1); // version 2 from Linux 5.14 on; bubblewrap is killed besides
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        for folder in &self.folders {
            // The kernel takes a moment to bury the last process.
            for _ in 0..2_000 {
                match fs::remove_dir(folder) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        std::thread::sleep(Duration::from_micros(500));
                    }
                    _ => break,
                }
            }
        }
    }
}

/// Version 2: in the nearest folder from our own upwards that hands on the controllers.
fn unified(own: &str, limits: &Limits, trial: u32) -> io::Result<Vec<PathBuf>> {
    let top = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(Path::new);
    let top = top.into_iter().find(|top| top.join("cgroup.controllers").is_file()).ok_or(io::ErrorKind::NotFound)?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or(io::ErrorKind::NotFound)?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for parent in top.join(path).ancestors().take_while(|parent| parent.starts_with(top)) {
        match unified_below(parent, limits, trial) {
            Ok(folder) => return Ok(vec![folder]),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn unified_below(parent: &Path, limits: &Limits, trial: u32) -> io::Result<PathBuf> {
    let wanted: &[&str] = if limits.cpu_millis.is_some() { &["memory", "pids", "cpu"] } else { &["memory", "pids"] };
    let on = |controller: &&str| {
        let active = kernel_file(&parent.join("cgroup.subtree_control")).unwrap_or_default();
        active.split(' ').any(|active| active == *controller)
    };
    for controller in wanted.iter().filter(|controller| !on(controller)) {
        put(parent, "cgroup.subtree_control", format!("+{controller}"))?;
    }
    made(parent, |folder| {
        put(folder, "pids.max", limits.pids)?;
        if let Some(memory) = limits.memory {
            put(folder, "memory.max", memory)?;
            let _ = put(folder, "memory.swap.max", 0); // absent on a kernel without swap
            put(folder, "memory.oom.group", 1)?;
        }
        if let Some(millis) = limits.cpu_millis {
            put(folder, "cpu.max", format!("{} {PERIOD}", u64::from(millis) * PERIOD / 1000))?;
        }
        put(folder, "cgroup.procs", trial)
    })
}

/// Version 1: a folder for each controller.
fn legacy(own: &str, limits: &Limits, trial: u32) -> io::Result<Vec<PathBuf>> {
    let mut group = Group::default(); // so that what was made goes where a later one fails
    let mut controllers = vec!["pids", "memory"];
    controllers.extend(limits.cpu_millis.map(|_| "cpu"));
    for controller in controllers {
        let (mount, path) =
            own.lines().find_map(|line| legacy_place(line, controller)).ok_or(io::ErrorKind::NotFound)?;
        let parent = Path::new("/sys/fs/cgroup").join(mount).join(path);
        let folder = made(&parent, |folder| {
            match controller {
                "pids" => put(folder, "pids.max", limits.pids)?,
                "memory" => {
                    if let Some(memory) = limits.memory {
                        put(folder, "memory.limit_in_bytes", memory)?;
                        let _ = put(folder, "memory.memsw.limit_in_bytes", memory); // where swap is counted
                    }
                }
                _ => {
                    let quota = u64::from(limits.cpu_millis.unwrap_or_default()) * PERIOD / 1000;
                    put(folder, "cpu.cfs_quota_us", quota)?;
                }
            }
            put(folder, "cgroup.procs", trial)
        })?;
        group.folders.push(folder);
    }
    Ok(std::mem::take(&mut group.folders))
}

/// `4:memory:/user` → the mount's name and the path below it, for the controller that is asked for.
fn legacy_place<'l>(line: &'l str, controller: &str) -> Option<(&'l str, &'l str)> {
    let (_, rest) = line.split_once(':')?;
    let (controllers, path) = rest.split_once(":/")?;
    controllers.split(',').any(|found| found == controller).then_some((controllers, path))
}

/// A folder of ours below `parent`, filled in; gone again where that fails.
fn made(parent: &Path, fill: impl FnOnce(&Path) -> io::Result<()>) -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    forget_the_dead(parent);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
    fs::create_dir(&folder)?;
    match fill(&folder) {
        Ok(()) => Ok(folder),
        Err(error) => {
            let _ = fs::remove_dir(&folder); // empty, so it goes
            Err(error)
        }
    }
}

/// Removes what launchers left that were killed. A cgroup that is in use can't be removed.
fn forget_the_dead(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let launcher = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|rest| rest.split('-').next());
        if launcher.is_some_and(|launcher| !Path::new("/proc").join(launcher).exists()) {
            let _ = fs::remove_dir(entry.path()); // of another user, or in use
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a file of the kernel, which takes one write")]
fn put(folder: &Path, file: &str, value: impl ToString) -> io::Result<()> {
    fs::write(folder.join(file), value.to_string())
}

/// Whether the user's systemd makes scopes.
#[expect(clippy::disallowed_methods, reason = "the cage asks for a scope")]
fn scope_works() -> bool {
    if !Path::new("/run/systemd/system").is_dir() {
        return false; // sd_booted(3): no systemd runs here
    }
    let mut command = Command::new(SYSTEMD_RUN);
    command.args(["--user", "--scope", "--quiet", "--collect", "--", "/usr/bin/true"]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_of_version_2_is_limited_before_anyone_enters() {
        let parent = tempfile::tempdir().unwrap();
        fs::write(parent.path().join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        let limits = Limits { memory: Some(1 << 20), pids: 7, cpu_millis: Some(1500), ..Limits::default() };
        let folder = unified_below(parent.path(), &limits, 42).unwrap();
        let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!((read("memory.max"), read("memory.swap.max")), ("1048576".into(), "0".into()));
        assert_eq!((read("pids.max"), read("cpu.max")), ("7".into(), "150000 100000".into()));
        assert_eq!((read("memory.oom.group"), read("cgroup.procs")), ("1".into(), "42".into()));
    }

    #[test]
    fn a_line_of_version_1_names_mount_and_path() {
        assert_eq!(legacy_place("4:memory:/a/b", "memory"), Some(("memory", "a/b")));
        assert_eq!(legacy_place("3:cpu,cpuacct:/", "cpu"), Some(("cpu,cpuacct", "")));
        assert_eq!(legacy_place("0::/a", "memory"), None);
    }
}
