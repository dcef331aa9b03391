//! A machine that begins with nothing: its own home, state and PATH.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take before a test gives up on it. Not a measurement.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Machine {
    pub(crate) home: tempfile::TempDir,
    /// What every command is started by, in place of nothing: `setpriv` and its arguments.
    wrapper: Vec<String>,
}

/// An account without rights: `nobody` of Debian.
const NOBODY: u32 = 65534;

/// What a finished process left.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), wrapper: Vec::new() }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.home.path().join(below)
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    /// A folder with these files.
    pub(crate) fn folder(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = self.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            let path = folder.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    pub(crate) fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = match self.uid() {
            Some(_) => self.as_user(&self.path("bastion-copy")),
            None => self.as_user(Path::new(env!("CARGO_BIN_EXE_bastion"))),
        };
        command
            .args(args)
            .env_clear()
            .env("HOME", self.home.path())
            .env("BASTION_STATE_DIR", self.state())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("FREEAGENT_NO_EXTERNAL", "1")
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// The same machine used by somebody who is not root. `None`, and why is said, where that can't be had.
    pub(crate) fn into_ordinary_user(mut self) -> Option<Self> {
        if !rustix::process::getuid().is_root() {
            return Some(self);
        }
        if Command::new("setpriv").arg("--version").output().is_err() {
            println!("SKIPPED: root reads everything, and there is no setpriv to be somebody else");
            return None;
        }
        // The program may lie where others can't reach it.
        std::fs::copy(env!("CARGO_BIN_EXE_bastion"), self.path("bastion-copy")).unwrap();
        let mut open = vec![self.home.path().to_owned()];
        while let Some(path) = open.pop() {
            std::os::unix::fs::lchown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
            if path.is_dir() {
                open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        let user = NOBODY.to_string();
        self.wrapper = ["setpriv", "--reuid", &user, "--regid", &user, "--clear-groups"].map(str::to_owned).to_vec();
        Some(self)
    }

    /// The number of the user that this machine is used by, where that is not whoever runs the tests.
    pub(crate) fn uid(&self) -> Option<u32> {
        (!self.wrapper.is_empty()).then_some(NOBODY)
    }

    /// A program as the user of this machine starts it.
    pub(crate) fn as_user(&self, program: &Path) -> Command {
        match self.wrapper.split_first() {
            Some((wrapper, first)) => {
                let mut command = Command::new(wrapper);
                command.args(first).arg(program);
                command
            }
            None => Command::new(program),
        }
    }

    /// Gives everything in a folder to the user of this machine.
    pub(crate) fn give(&self, path: &Path) {
        std::os::unix::fs::lchown(path, self.uid(), self.uid()).unwrap();
        if path.is_dir() && !path.is_symlink() {
            path.read_dir().unwrap().for_each(|entry| self.give(&entry.unwrap().path()));
        }
    }

    /// The name that this machine's certificates have.
    pub(crate) fn owner(&self) -> String {
        bastion_trust::identity::find(&self.state(), bastion_trust::identity::Kind::Tls).unwrap().host
    }

    /// An agent of `folder` that has swept once.
    pub(crate) fn swept(&self, folder: &Path) -> Ran {
        self.run(&[OsStr::new("up"), OsStr::new("--once"), folder.as_os_str()])
    }

    /// `bastion up` of `folder`, serving.
    pub(crate) fn up(&self, folder: &Path) -> Up {
        let mut child = self
            .command(&[OsStr::new("up"), folder.as_os_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = drain(child.stdout.take().unwrap());
        let err = drain(child.stderr.take().unwrap());
        let up = Up { child, out, err };
        up.wait_for("bastion search");
        up
    }
}

/// A running `bastion up`; stopped and waited for when it goes out of scope.
pub(crate) struct Up {
    pub(crate) child: Child,
    out: std::sync::Arc<std::sync::Mutex<String>>,
    err: std::sync::Arc<std::sync::Mutex<String>>,
}

impl Up {
    pub(crate) fn said(&self) -> String {
        format!("{}\n{}", self.out.lock().unwrap(), self.err.lock().unwrap())
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        until(|| self.said().contains(text), || format!("`{text}` was not said:\n{}", self.said()));
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, signal);
    }

    pub(crate) fn stop(mut self) -> i32 {
        self.signal(rustix::process::Signal::TERM);
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `done`; fails with `why` when patience ends.
#[track_caller]
pub(crate) fn until(done: impl Fn() -> bool, why: impl Fn() -> String) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{}", why());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn drain(mut from: impl Read + Send + 'static) -> std::sync::Arc<std::sync::Mutex<String>> {
    let text = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let kept = std::sync::Arc::clone(&text);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            kept.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..n]));
        }
    });
    text
}

/// Every regular file below `dir`, by path, in order.
pub(crate) fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() { open.push(entry.path()) } else { found.push(entry.path()) }
        }
    }
    found.sort();
    found
}

/// Whether `bytes` hold `needle`.
pub(crate) fn holds(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

/// The rows of a JSONL file.
pub(crate) fn rows(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
