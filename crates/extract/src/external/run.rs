//! Running one program in its cage: our own binary starts, cages itself, and becomes the program, which reads the file
//! from standard input and writes text to standard output.

use std::convert::Infallible;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::pool::Recipe;
use crate::wire::{self, Ask};

/// Address space of a program's process in bytes. Office suites map much more than they use.
const MEMORY: u64 = 4 << 30;
/// The largest file it may write, in bytes.
const FILE_SIZE: u64 = 512 << 20;

/// A program to run.
pub(super) struct Order<'a> {
    pub(super) program: &'a Path,
    pub(super) arguments: &'a [&'a str],
    /// The folder it may write.
    pub(super) folder: Option<&'a Path>,
}

/// How programs are run for one file.
pub(super) struct Runner<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) deadline: Instant,
    pub(super) max_output: u64,
}

impl Runner<'_> {
    /// What the program writes when it reads `input`; `None` where it fails, is late or writes too much.
    pub(super) fn run(&self, order: &Order<'_>, input: &[u8]) -> Option<Vec<u8>> {
        let left = self.deadline.checked_duration_since(Instant::now())?;
        let ask = Ask::Become {
            uncaged: self.recipe.uncaged,
            program: order.program.to_owned(),
            arguments: order.arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            folder: order.folder.map(Path::to_owned),
            seconds: left.as_secs() + 1,
        };
        let head = wire::head(&ask, 0).ok()?;
        #[expect(
            clippy::disallowed_methods,
            reason = "the pool's crate is one of the three places that start processes"
        )]
        let mut command = Command::new(&self.recipe.program);
        command.args(&self.recipe.args).env_clear().current_dir("/");
        // A group of its own, so that its helpers end with it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
        let mut group = Group(command.spawn().ok()?);
        let (mut stdin, mut stdout) = (group.0.stdin.take()?, group.0.stdout.take()?);
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // Ends with an error where the program stops reading or is killed.
                let _ = stdin.write_all(&head).and_then(|()| stdin.write_all(input));
            });
            let output = self.collect(&mut stdout);
            if output.is_none() {
                group.kill();
            }
            output
        })?;
        group.0.wait().ok()?.success().then_some(output)
    }

    fn collect(&self, pipe: &mut (impl Read + AsFd)) -> Option<Vec<u8>> {
        let mut output = Vec::new();
        let mut buffer = [0; 64 * 1024];
        loop {
            let left = self.deadline.checked_duration_since(Instant::now())?;
            let timeout = Timespec::try_from(left).ok()?;
            match poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            }
            match pipe.read(&mut buffer) {
                Ok(0) => return Some(output),
                Ok(read) => output.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
            if output.len() as u64 > self.max_output {
                return None;
            }
        }
    }
}

/// A program and its helpers, all killed when dropped.
struct Group(Child);

impl Group {
    fn kill(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            self.kill();
            let _ = self.0.wait();
        }
    }
}

/// The other side, in the process that was started: cages itself and becomes the program. Comes back only with an error.
#[cfg_attr(not(target_os = "linux"), expect(unused_variables, reason = "there is no cage elsewhere"))]
pub(crate) fn become_program(
    uncaged: bool,
    program: &Path,
    arguments: &[String],
    folder: Option<PathBuf>,
    seconds: u64,
) -> io::Result<Infallible> {
    let home = folder.clone().unwrap_or_else(|| PathBuf::from("/"));
    if !uncaged {
        #[cfg(target_os = "linux")]
        {
            // The program may live outside the system's folders, with its libraries beside or above it.
            let readable = program.canonicalize()?.parent().map(|folder| vec![folder.to_owned()]).unwrap_or_default();
            let profile = bastion_cage::ProgramProfile {
                memory: MEMORY,
                processor_seconds: seconds,
                file_size: FILE_SIZE,
                readable,
                writable: folder,
            };
            bastion_cage::prepare_program(&profile)
                .and_then(bastion_cage::PreparedProgram::enforce)
                .map_err(io::Error::other)?;
        }
        #[cfg(not(target_os = "linux"))]
        return Err(io::Error::other(bastion_cage::CageError::Unsupported));
    }
    #[expect(clippy::disallowed_methods, reason = "the pool's crate is one of the three places that start processes")]
    let mut command = Command::new(program);
    command.args(arguments).env_clear().current_dir(&home);
    command.env("LC_ALL", "C.UTF-8").env("PATH", "/usr/bin:/bin").env("HOME", &home).env("TMPDIR", &home);
    command.env("OMP_THREAD_LIMIT", "1");
    Err(command.exec())
}
