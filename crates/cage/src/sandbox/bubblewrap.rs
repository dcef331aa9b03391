//! Which bubblewrap, may it be trusted, and does it work here?

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{SandboxError, wire};

/// Where packages put it. Not `PATH`: what comes first there need not be the system's.
const PLACES: &[&str] = &["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// The oldest that can do what is needed: `--disable-userns`, and `--size` for what lies in memory.
const OLDEST: (u32, u32) = (0, 8);

/// Where the system's programs and libraries are, beside `/usr`; links where they are links on the host.
pub(super) const SYSTEM: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// The namespaces, and what the process loses. The same for the trial and for the sandbox.
pub(super) const ISOLATION: &[&str] = &[
    "--unshare-user",
    "--unshare-ipc",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-uts",
    "--unshare-cgroup",
    "--disable-userns",
    "--die-with-parent",
    "--new-session",
    "--cap-drop",
    "ALL",
    "--uid",
    "1000",
    "--gid",
    "1000",
];

/// The system's bubblewrap.
pub(super) fn find() -> Result<PathBuf, SandboxError> {
    PLACES.iter().map(PathBuf::from).find(|place| place.is_file()).ok_or(SandboxError::NoBubblewrap)
}

/// Refuses one that others than root and we can write.
pub(super) fn judge(path: &Path) -> Result<(), SandboxError> {
    let bad = |why: String| SandboxError::BadBubblewrap { path: path.to_owned(), why };
    let file = fs::metadata(path).map_err(|error| bad(error.to_string()))?;
    if file.mode() & 0o022 != 0 || ![0, rustix::process::geteuid().as_raw()].contains(&file.uid()) {
        return Err(bad("others can change it".into()));
    }
    Ok(())
}

/// Its version, as it says it. Refuses one that is too old. Asked where a trial failed, to say why: one that is too old does
/// not know the options of the trial.
pub(super) fn version_of(path: &Path) -> Result<String, SandboxError> {
    let bad = |why: String| SandboxError::BadBubblewrap { path: path.to_owned(), why };
    let output = command(path).arg("--version").output().map_err(|error| bad(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match version(&said) {
        Some(found) if found >= OLDEST => Ok(said),
        Some(_) => Err(bad(format!("{said} is older than {}.{}", OLDEST.0, OLDEST.1))),
        None => Err(bad("it does not say its version".into())),
    }
}

/// `bubblewrap 0.8.0` → (0, 8).
fn version(said: &str) -> Option<(u32, u32)> {
    let mut numbers = said.strip_prefix("bubblewrap ")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// A process that waits and does nothing, to try cgroups with. It ends with this value, and where its maker is killed: its
/// stdin is then at its end.
#[derive(Debug)]
pub(super) struct Idle(Child);

impl Idle {
    #[expect(clippy::disallowed_methods, reason = "the cage starts a program of the system's")]
    pub(super) fn start() -> io::Result<Self> {
        let mut command = Command::new("/usr/bin/cat");
        command.env_clear().current_dir("/").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// A bubblewrap that runs `cat`: a small sandbox to try things with.
#[derive(Debug)]
pub(super) struct Trial(Child);

impl Trial {
    pub(super) fn start(path: &Path) -> Result<Self, SandboxError> {
        let mut command = command(path);
        command.args(ISOLATION).args(system()).args(["--proc", "/proc", "--", "/usr/bin/cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|source| SandboxError::Launcher { step: "starting bubblewrap", source })?;
        Ok(Self(child))
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// A byte there and back, in at most 10 s. What it said where that does not work.
    pub(super) fn finish(mut self) -> Result<(), SandboxError> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let sent = self.0.stdin.take().map(|mut stdin| stdin.write_all(b"x"));
        let ready = self.0.stdout.as_ref().map(|stdout| wire::wait_readable(stdout.as_fd(), deadline));
        if !matches!(ready, Some(Ok(()))) {
            let _ = self.0.kill();
            let _ = self.0.wait();
            return Err(SandboxError::TimedOut);
        }
        let mut answer = String::new();
        if let Some(stdout) = &mut self.0.stdout {
            let _ = stdout.read_to_string(&mut answer); // an error is an answer that is not the expected one
        }
        let mut said = String::new();
        if let Some(stderr) = &mut self.0.stderr {
            let _ = stderr.take(4096).read_to_string(&mut said);
        }
        let status = self.0.wait();
        if answer == "x" && status.is_ok_and(|status| status.success()) && sent.is_some_and(|sent| sent.is_ok()) {
            Ok(())
        } else {
            Err(SandboxError::Bubblewrap { said: one_line(&said) })
        }
    }
}

/// `/usr`, and the old places of its parts as they are on this host.
pub(super) fn system() -> Vec<String> {
    let mut words = vec!["--ro-bind".to_owned(), "/usr".to_owned(), "/usr".to_owned()];
    for place in SYSTEM {
        if let Ok(target) = fs::read_link(place) {
            words.extend(["--symlink".to_owned(), target.to_string_lossy().into_owned(), (*place).to_owned()]);
        } else if Path::new(place).is_dir() {
            words.extend(["--ro-bind".to_owned(), (*place).to_owned(), (*place).to_owned()]);
        }
    }
    words
}

/// A message as one line without control characters.
pub(super) fn one_line(said: &str) -> String {
    let line: String = said.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(400).collect();
    if line.is_empty() { "it ended without a word".to_owned() } else { line }
}

#[expect(clippy::disallowed_methods, reason = "the cage starts bubblewrap")]
fn command(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.env_clear().current_dir("/").stdin(Stdio::null());
    command
}

/// Whether the kernel's file at `path` holds `word`.
pub(super) fn kernel_says(path: &str, word: &str) -> bool {
    let mut text = String::new();
    let read = File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.is_ok() && text.split_whitespace().any(|found| found == word)
}

/// The first line of a small file of the kernel.
pub(super) fn kernel_file(path: &Path) -> io::Result<String> {
    Ok(fs::read_to_string(path)?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_two_numbers_and_more() {
        assert_eq!(version("bubblewrap 0.8.0"), Some((0, 8)));
        assert_eq!(version("bubblewrap 0.11.0-rc1"), Some((0, 11)));
        assert_eq!(version("bwrap 0.8.0"), None);
        assert_eq!(version(""), None);
    }

    #[test]
    fn a_message_is_one_harmless_line() {
        assert_eq!(one_line("bwrap: no\n\u{1b}[2J"), "bwrap: no  [2J");
        assert_eq!(one_line(" \n"), "it ended without a word");
    }
}
