//! What was asked for, and on which machine: plain values that the caller fills in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use bastion_host::clock::Clock;
use bastion_trust::Gate;

/// The options of `bastion launch` (launch.md §2), as typed.
#[derive(Debug, Clone, Default)]
pub struct LaunchOptions {
    /// `--agent`: a name, or a path (it has a `/`). None: `OPENSHELL_AGENT_DIR`.
    pub agent: Option<String>,
    /// The operator's prompt.
    pub prompt: String,
    /// `--gateway NAME|local`.
    pub gateway: Option<String>,
    /// `--name`.
    pub name: Option<String>,
    /// `--from`; a relative path starts at the current folder.
    pub from: Option<String>,
    /// `--harness`.
    pub harness: Option<String>,
    /// `--harness-bin`, `--codex-bin`.
    pub harness_bin: Option<PathBuf>,
    /// `--harness-dir`.
    pub harness_dir: Option<PathBuf>,
    /// `--once`.
    pub once: bool,
    /// `--watch`.
    pub watch: bool,
    /// `--poll-interval`, seconds.
    pub poll_interval: Option<u64>,
    /// `--reset-refresh`.
    pub reset_refresh: bool,
    /// `--keep`.
    pub keep: bool,
    /// `--provider ID.FIELD=VALUE`, each time.
    pub providers: Vec<String>,
    /// `--repo`.
    pub repo: Option<PathBuf>,
    /// `--attach`.
    pub attach: bool,
    /// `--detach`.
    pub detach: bool,
    /// `--bind DIR[:DEST][:rw]`, each time.
    pub binds: Vec<String>,
    /// `--env KEY=VALUE`, each time.
    pub env: Vec<String>,
    /// `--trust`.
    pub trust: bool,
    /// `--require-signature`; the variable `BASTION_REQUIRE_SIGNATURE=1` counts too.
    pub require_signature: bool,
}

/// The program that becomes the sandbox's main process.
#[derive(Debug, Clone)]
pub enum Supervisor {
    /// A file.
    Path(PathBuf),
    /// Its bytes, as a build put them into this program.
    Bytes(&'static [u8]),
}

/// This machine, as far as a launch looks at it.
#[derive(Clone)]
pub struct Machine {
    /// The environment.
    pub env: BTreeMap<String, String>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The current folder.
    pub cwd: PathBuf,
    /// The user's configuration folder of Bastion; its `agents/` are the user's own.
    pub config_dir: PathBuf,
    /// This machine's own state: runs, answers.
    pub state_dir: PathBuf,
    /// Where the temporary folder is made.
    pub temp_dir: PathBuf,
    /// The program that supervises.
    pub supervisor: Supervisor,
    /// Judges signed agents.
    pub gate: Arc<Gate>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl Machine {
    /// A variable of the environment; an empty one is none.
    pub(crate) fn var(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }
}
