//! How a harness is started: one value, so that adapters say what they want and start nothing themselves.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Argument that makes this program give up the terminal and become another program.
pub const IN_SESSION: &str = "in-session";

/// A program to run.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// The program, found by `PATH` where it has no slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Variables beside the supervisor's own.
    pub env: Vec<(OsString, OsString)>,
    /// Variables that it must not inherit.
    pub without: Vec<&'static str>,
    /// The file that is its stdin; none at all where `None`.
    pub stdin: Option<PathBuf>,
}

impl Launch {
    /// `program` with `args`.
    pub fn new<A: AsRef<OsStr>>(program: impl Into<OsString>, args: impl IntoIterator<Item = A>) -> Self {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        Self { program: program.into(), args, ..Self::default() }
    }

    /// With a file as stdin.
    pub fn stdin(self, path: &Path) -> Self {
        Self { stdin: Some(path.to_owned()), ..self }
    }

    /// With one more argument and its value.
    pub fn option(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.args.extend([name.into(), value.into()]);
        self
    }

    /// With one more variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts it in a process group of its own, without a terminal, its stdout and stderr piped to us.
    ///
    /// A new session would do both, but only the process itself can ask for one. Where we have a terminal this
    /// program goes ahead, asks, and becomes the harness; without one a new process group is all that is needed.
    pub fn spawn(&self) -> io::Result<Child> {
        let mut command = if has_terminal() {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(IN_SESSION).arg(&self.program);
            command
        } else {
            let mut command = Command::new(&self.program);
            command.process_group(0);
            command
        };
        let stdin = self.stdin.as_ref().map(File::open).transpose()?.map_or_else(Stdio::null, Stdio::from);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        for name in &self.without {
            command.env_remove(name);
        }
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    }
}

/// The exit status that a shell gives for a program that could not be started.
pub fn exit_of(error: &io::Error) -> i32 {
    if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
}

/// Gives up the terminal and becomes another program. Returns only where that fails.
pub fn in_session(mut argv: impl Iterator<Item = OsString>) -> io::Error {
    if let Err(error) = rustix::process::setsid() {
        return error.into();
    }
    match argv.next() {
        Some(program) => Command::new(program).args(argv).exec(),
        None => io::ErrorKind::InvalidInput.into(),
    }
}

fn has_terminal() -> bool {
    use rustix::fs::{Mode, OFlags, open};
    open("/dev/tty", OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).is_ok()
}
