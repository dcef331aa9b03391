//! An agent in a temporary folder, and the real supervisor on it.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_bastion-supervisor");
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A line with a result.
pub(crate) fn said(status: &str) -> String {
    format!(r#"echo 'OPENSHELL_AGENT_RESULT {{"status":"{status}","reason":"r","next_poll_seconds":1,"notes":"n"}}'"#)
}

pub(crate) struct Agent {
    pub(crate) dir: tempfile::TempDir,
    env: Vec<(String, String)>,
    unset: Vec<String>,
}

pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Agent {
    /// An agent whose harness is a shell script; `$HERE` is its folder.
    pub(crate) fn new(script: &str) -> Self {
        let agent = Self { dir: tempfile::tempdir().unwrap(), env: Vec::new(), unset: Vec::new() };
        fs::set_permissions(agent.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        agent.write("payload/agent-prompt.md", "the prompt\n");
        agent.write("script", script);
        let argv = json!(["/bin/sh", agent.path("script")]);
        agent.write("payload/agent.json", &json!({"harness": {"supported": {"command": {"argv": argv}}}}).to_string());
        fs::create_dir(agent.path("home")).unwrap();
        fs::create_dir(agent.path("tmp")).unwrap();
        agent
    }

    /// A watching agent that runs one script a cycle, the last one again and again.
    pub(crate) fn cycles(scripts: &[&str]) -> Self {
        let mut all = String::from("n=$(cat $HERE/n 2>/dev/null || echo 0); echo $((n+1)) > $HERE/n\ncase $n in\n");
        for (n, script) in scripts.iter().enumerate() {
            let pattern = if n + 1 == scripts.len() { "*".into() } else { n.to_string() };
            all += &format!("{pattern})\n{script}\n;;\n");
        }
        Self::new(&(all + "esac\n")).watch()
    }

    pub(crate) fn watch(self) -> Self {
        self.env("OPENSHELL_AGENT_RUN_MODE", "watch").env("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", "1")
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    pub(crate) fn unset(mut self, name: &str) -> Self {
        self.unset.push(name.into());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// An executable script in the agent's folder.
    pub(crate) fn program(&self, name: &str, script: &str) {
        self.write(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    /// `program` with the agent's environment and nothing else.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.env_clear();
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("HERE", self.path("")).env("HOME", self.path("home"));
        command.env("TMPDIR", self.path("tmp")).env("OPENSHELL_AGENT_PAYLOAD_DIR", self.path("payload"));
        command.env("OPENSHELL_AGENT_STATE_DIR", self.path("state")).env("OPENSHELL_AGENT_HARNESS", "command");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        for name in &self.unset {
            command.env_remove(name);
        }
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self) -> Ended {
        self.run_with(&[])
    }

    pub(crate) fn run_with(&self, args: &[&str]) -> Ended {
        self.command(PROGRAM).args(args).output().unwrap().into()
    }

    /// Starts it with stdout and stderr going to the files `out` and `err`.
    pub(crate) fn start(&self) -> Running {
        let file = |name| fs::File::create(self.path(name)).unwrap();
        let child = self.command(PROGRAM).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        Running { child }
    }

    /// Waits until stderr has this text.
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(&format!("{text:?} in stderr: {}", self.read("err")), || self.read("err").contains(text));
    }

    pub(crate) fn status(&self) -> Value {
        serde_json::from_str(&self.read("state/status.json")).expect("a status")
    }

    pub(crate) fn history(&self) -> Vec<Value> {
        self.read("state/history.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        Self {
            code: output.status.code().unwrap_or_else(|| -output.status.signal().unwrap()),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

pub(crate) struct Running {
    pub(crate) child: Child,
}

impl Running {
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn wait(&mut self) -> i32 {
        let mut code = None;
        wait_until("the supervisor to end", || {
            code = self.child.try_wait().unwrap();
            code.is_some()
        });
        code.unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A figure of `/proc/PID/status` in KiB.
pub(crate) fn memory(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Whether a process is there, and not only its remains.
pub(crate) fn alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

/// All that a reader gives.
pub(crate) fn read_all(mut reader: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).unwrap();
    bytes
}
