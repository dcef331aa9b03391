//! How does an agent run without anybody looking? As a service of the owner's account, with no root.
//!
//! A [`Unit`] is text, a path and the commands that switch it on and off: it can be shown, tested and read before
//! anything is done. One unit per agent, `bastion-<id>`, each with its own output folder.
//!
//! Refused: a path that the format can't hold, and an environment file that others may read, as it holds keys.

mod launchd;
mod schtasks;
mod systemd;

use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bastion_host::files::{PRIVATE_FILE, create_private_dir, replace};
use bastion_trust::{Admitted, AgentId};

/// Which service manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    /// A systemd user unit.
    Systemd,
    /// A launchd agent (macOS).
    Launchd,
    /// A Task Scheduler task (Windows).
    TaskScheduler,
}

impl Platform {
    /// The one of the system that this program was built for.
    pub fn here() -> Self {
        if cfg!(target_os = "macos") {
            Self::Launchd
        } else if cfg!(windows) {
            Self::TaskScheduler
        } else {
            Self::Systemd
        }
    }
}

/// The account that the service runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its home folder.
    pub home: PathBuf,
    /// Its numeric id, which names its session to launchd.
    pub uid: u32,
}

impl Account {
    /// The settings that the service reads: `KEY=value` lines.
    pub fn env_file(&self) -> PathBuf {
        self.home.join(".config/bastion-agent/env")
    }

    fn data(&self) -> PathBuf {
        self.home.join(".local/share/bastion-agent")
    }
}

/// The agent that is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id; the unit is `bastion-<id>`.
    pub id: AgentId,
    /// The absolute path of this program.
    pub program: PathBuf,
    /// The absolute path of the manifest.
    pub manifest: PathBuf,
    /// The output folder to give with `--out`; none where the agent's own is meant.
    pub out: Option<PathBuf>,
}

impl Agent {
    /// The agent of an admitted manifest. One of several roots writes into the account's data folder, under its id;
    /// one of a single root into its `.agent`.
    pub fn of(admitted: &Admitted, program: PathBuf, account: &Account) -> Self {
        let id = admitted.manifest().id.clone();
        let out = (admitted.roots().len() != 1).then(|| account.data().join("out").join(id.as_str()));
        Self { out, program, manifest: admitted.path().to_owned(), id }
    }

    fn arguments(&self) -> Result<Vec<String>, ServiceError> {
        let mut arguments = vec![text(&self.program)?, "sweep".to_owned(), text(&self.manifest)?];
        if let Some(out) = &self.out {
            arguments.extend(["--out".to_owned(), text(out)?]);
        }
        Ok(arguments)
    }

    fn name(&self) -> String {
        format!("bastion-{}", self.id)
    }
}

/// A program and its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program, found on PATH.
    pub program: &'static str,
    /// Its arguments, as they are: no shell reads them.
    pub args: Vec<String>,
}

impl Invocation {
    fn new<const N: usize>(program: &'static str, args: [&str; N]) -> Self {
        Self { program, args: args.map(str::to_owned).to_vec() }
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {arg}"))
    }
}

/// A service, described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// `bastion-<id>`.
    pub name: String,
    /// Where its file belongs.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
    /// Makes it run, now and at every login.
    pub enable: Vec<Invocation>,
    /// Ends it (a run that goes on is finished first).
    pub disable: Vec<Invocation>,
    /// To be run once the file is gone.
    pub forget: Vec<Invocation>,
    /// Says how it is.
    pub status: Invocation,
    /// The settings file that it reads.
    pub env_file: PathBuf,
    /// Folders that must be there.
    folders: Vec<PathBuf>,
    utf16: bool,
}

/// Why a service can't be described, installed or asked.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The path can't stand in a service description.
    #[error("{} can't be named in a service: {why}; move or rename it", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Others may read the settings.
    #[error("{} holds keys and others may read it (mode {mode:03o}): chmod 600 it", path.display())]
    EnvOpen {
        /// The settings file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// There is no such service.
    #[error("{} is not installed: there is no {}", name, path.display())]
    NotInstalled {
        /// The service's name.
        name: String,
        /// Where its file would be.
        path: PathBuf,
    },
    /// A file can't be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The service manager can't be started.
    #[error("cannot run `{invocation}`: {source}")]
    Start {
        /// What was to be run.
        invocation: Invocation,
        /// What the system said.
        source: io::Error,
    },
    /// The service manager refused.
    #[error("`{invocation}` failed: {said}")]
    Manager {
        /// What was run.
        invocation: Invocation,
        /// What it said.
        said: String,
    },
}

/// What a command of the service manager gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether its exit status was 0.
    pub success: bool,
    /// What it printed, errors last.
    pub text: String,
}

/// Runs the service manager's commands. A trait, so that tests need none.
pub trait Manager {
    /// Runs `invocation` to its end.
    ///
    /// # Errors
    /// Where the program can't be started.
    fn run(&mut self, invocation: &Invocation) -> io::Result<Answer>;
}

/// The service manager of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemManager;

impl Manager for SystemManager {
    fn run(&mut self, invocation: &Invocation) -> io::Result<Answer> {
        let output = bastion_host::process::output(invocation.program, &invocation.args)?;
        let text = [output.stdout, output.stderr].concat();
        Ok(Answer { success: output.status.success(), text: String::from_utf8_lossy(&text).trim_end().to_owned() })
    }
}

/// Describes the service of `agent`.
///
/// # Errors
/// [`ServiceError::Path`].
pub fn unit(platform: Platform, agent: &Agent, account: &Account) -> Result<Unit, ServiceError> {
    match platform {
        Platform::Systemd => systemd::unit(agent, account),
        Platform::Launchd => launchd::unit(agent, account),
        Platform::TaskScheduler => schtasks::unit(agent, account),
    }
}

/// Writes the unit (and an empty settings file where there is none) and switches it on. Doing it again is fine.
///
/// # Errors
/// What was refused or failed first; what was written by then stays, and `install` may be tried again.
pub fn install(unit: &Unit, manager: &mut dyn Manager) -> Result<(), ServiceError> {
    prepare_env_file(&unit.env_file)?;
    for folder in unit.folders.iter().map(PathBuf::as_path).chain(unit.path.parent()) {
        create_private_dir(folder).map_err(at(folder))?;
    }
    replace(&unit.path, &unit.bytes(), PRIVATE_FILE).map_err(at(&unit.path))?;
    unit.enable.iter().try_for_each(|invocation| must(invocation, manager))
}

/// Ends the service and takes its file away. Output and settings stay.
///
/// # Errors
/// [`ServiceError::NotInstalled`], or what failed.
pub fn uninstall(unit: &Unit, manager: &mut dyn Manager) -> Result<(), ServiceError> {
    installed(unit)?;
    unit.disable.iter().try_for_each(|invocation| must(invocation, manager))?;
    std::fs::remove_file(&unit.path).map_err(at(&unit.path))?;
    unit.forget.iter().try_for_each(|invocation| must(invocation, manager))
}

/// What the service manager says of it.
///
/// # Errors
/// [`ServiceError::NotInstalled`], or where the manager can't be run. A service that is down is an [`Answer`].
pub fn service_status(unit: &Unit, manager: &mut dyn Manager) -> Result<Answer, ServiceError> {
    installed(unit)?;
    manager.run(&unit.status).map_err(|source| ServiceError::Start { invocation: unit.status.clone(), source })
}

impl Unit {
    /// The file's bytes, in the encoding that its reader wants.
    pub fn bytes(&self) -> Vec<u8> {
        if self.utf16 {
            self.text.encode_utf16().fold(vec![0xff, 0xfe], |mut bytes, unit| {
                bytes.extend(unit.to_le_bytes());
                bytes
            })
        } else {
            self.text.clone().into_bytes()
        }
    }
}

const ENV_TEMPLATE: &str = "\
# Settings of the bastion agents of this account: one KEY=value a line. Keep this file at mode 0600.
# `bastion sweep --help` lists them with their meaning.
";

fn prepare_env_file(path: &Path) -> Result<(), ServiceError> {
    match std::fs::metadata(path) {
        Ok(meta) => match meta.permissions().mode() & 0o777 {
            mode if mode & 0o077 != 0 => Err(ServiceError::EnvOpen { path: path.to_owned(), mode }),
            _ => Ok(()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                create_private_dir(folder).map_err(at(folder))?;
            }
            replace(path, ENV_TEMPLATE.as_bytes(), PRIVATE_FILE).map_err(at(path))
        }
        Err(source) => Err(ServiceError::File { path: path.to_owned(), source }),
    }
}

fn installed(unit: &Unit) -> Result<(), ServiceError> {
    match std::fs::symlink_metadata(&unit.path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(ServiceError::NotInstalled { name: unit.name.clone(), path: unit.path.clone() })
        }
        Err(source) => Err(ServiceError::File { path: unit.path.clone(), source }),
    }
}

fn must(invocation: &Invocation, manager: &mut dyn Manager) -> Result<(), ServiceError> {
    let answer =
        manager.run(invocation).map_err(|source| ServiceError::Start { invocation: invocation.clone(), source })?;
    if answer.success {
        return Ok(());
    }
    Err(ServiceError::Manager { invocation: invocation.clone(), said: answer.text })
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ServiceError {
    let path = path.to_owned();
    move |source| ServiceError::File { path, source }
}

/// The path as text for a service description.
fn text(path: &Path) -> Result<String, ServiceError> {
    let refused = |why| ServiceError::Path { path: path.to_owned(), why };
    let text = path.to_str().ok_or_else(|| refused("it is not UTF-8"))?;
    if text.chars().any(char::is_control) {
        return Err(refused("it has a control character"));
    }
    Ok(text.to_owned())
}

/// `text` as the content of an XML element.
fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;").replace('\'', "&apos;")
}
