//! What does an agent say it is? The fields of `agent.yaml` (launch.md §1), typed, with the defaults filled in.
//!
//! [`parse`](crate::parse::parse) makes one. Paths are kept as they were written.

use bastion_trust::AgentId;
use bastion_trust::manifest::Signature;
use serde::Serialize;

/// A whole agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// Its name in logs, images and records.
    pub id: AgentId,
    /// Its name for people.
    pub display_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Version of its payload; a prompt variable.
    pub payload_version: u64,
    /// Who signs it.
    pub owner_host: Option<String>,
    /// Rises with every signing.
    pub serial: Option<u64>,
    /// The owner's signature.
    pub signature: Option<Signature>,
    /// Where it runs.
    pub sandbox: Sandbox,
    /// Which harnesses it runs on.
    pub harness: Harness,
    /// How it runs.
    pub runtime: Runtime,
    /// An OpenShell policy file.
    pub policy: Option<String>,
    /// Ordered folders of provider profiles.
    pub profile_paths: Vec<String>,
    /// Gateway settings applied before launch.
    pub settings: Vec<Setting>,
    /// Provider instances.
    pub providers: Vec<Provider>,
    /// Files for the payload.
    pub skills: Vec<Asset>,
    /// Definitions of subagents for the payload.
    pub subagents: Vec<Asset>,
    /// Files for the payload.
    pub resources: Vec<Asset>,
    /// The prompt.
    pub prompt_template: String,
}

/// `sandbox`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sandbox {
    /// What a made-up name starts with; the id where there is none.
    pub name_prefix: Option<String>,
    /// The gateway's name, or `local`.
    pub gateway: Option<String>,
    /// A Dockerfile, a folder with one, or an image reference.
    pub from: Option<String>,
    /// What only the local driver reads.
    pub local: Local,
}

/// `sandbox.local`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Local {
    /// Memory limit: a number with an optional unit.
    pub memory: Option<String>,
    /// Largest number of processes.
    pub pids: Option<u64>,
    /// Processors, such as `2` or `1.5`.
    pub cpu: Option<String>,
    /// Size of `/tmp`.
    pub tmp_size: Option<String>,
    /// Folders of the host that the sandbox sees.
    pub binds: Vec<Bind>,
    /// Whether a missing layer of protection that is optional otherwise stops the launch.
    pub hard_requirement: bool,
}

/// A folder of the host inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bind {
    /// The folder on the host, as written.
    pub source: String,
    /// Where it appears; none: at the same path.
    pub destination: Option<String>,
    /// Whether it can be written.
    pub writable: bool,
}

/// `harness`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Harness {
    /// The one that runs unless another is asked for.
    pub default: Option<String>,
    /// Each supported one with what belongs to its adapter, in the manifest's order.
    pub supported: Vec<(String, serde_json::Value)>,
}

/// One harness run, or cycles until the work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// One cycle.
    Once,
    /// Cycles with sleep between them.
    Watch,
}

impl RunMode {
    /// Its name in manifests and variables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Watch => "watch",
        }
    }

    /// The mode of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Once, Self::Watch].into_iter().find(|mode| mode.as_str() == name)
    }
}

/// `runtime`. Times in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runtime {
    /// Once or watch.
    pub mode: RunMode,
    /// Sleep between cycles.
    pub poll_interval_seconds: u64,
    /// Every so many failures are told; 0: none.
    pub max_transient_failures: u64,
    /// A cycle may take so long; 0: any time.
    pub cycle_timeout_seconds: u64,
    /// A cycle may be silent so long; 0: any time.
    pub silence_timeout_seconds: u64,
    /// Watch ends after so many cycles; 0: never.
    pub max_cycles: u64,
}

impl Default for Runtime {
    fn default() -> Self {
        Self {
            mode: RunMode::Once,
            poll_interval_seconds: 900,
            max_transient_failures: 5,
            cycle_timeout_seconds: 3600,
            silence_timeout_seconds: 0,
            max_cycles: 0,
        }
    }
}

/// One gateway setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// Its key.
    pub key: String,
    /// Its value as text.
    pub value: String,
}

/// How a provider gets its credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CredentialMode {
    /// Each is named.
    Explicit,
    /// The gateway's program finds them in the environment that the sources filled.
    FromExisting,
}

/// One provider instance.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// Its name in the manifest and in `--provider`.
    pub id: String,
    /// Its name on the gateway.
    pub name: String,
    /// The id of its profile.
    pub profile: String,
    /// Only for this harness.
    pub harness: Option<String>,
    /// How it gets its credentials.
    pub mode: CredentialMode,
    /// Its credentials.
    pub credentials: Vec<Credential>,
    /// How one of them is refreshed.
    pub refresh: Option<Refresh>,
}

/// One credential.
#[derive(Debug, Clone, PartialEq)]
pub struct Credential {
    /// The variable that carries it.
    pub env: String,
    /// Whether the gateway's program gets it.
    pub export: bool,
    /// Where it comes from.
    pub source: Source,
}

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
    /// What `sh -c` prints.
    HostCommand {
        /// The command.
        command: String,
    },
    /// A field of a JSON file.
    FileJson {
        /// The file.
        path: String,
        /// Keys, parted by dots.
        query: String,
    },
    /// The value itself; it may be a secret and is not shown.
    Value {
        /// The value.
        value: String,
    },
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Source {
    /// The source in words, without a value.
    pub fn shown(&self) -> String {
        match self {
            Self::HostCommand { command } => format!("host command: {command}"),
            Self::FileJson { path, query } => format!("file: {path} ({query})"),
            Self::Value { .. } => "a value in the manifest".to_owned(),
        }
    }
}

/// How the gateway refreshes a credential.
#[derive(Debug, Clone, PartialEq)]
pub struct Refresh {
    /// Which credential.
    pub credential_key: String,
    /// How.
    pub strategy: String,
    /// With what.
    pub materials: Vec<Material>,
}

/// One piece of refresh material.
#[derive(Debug, Clone, PartialEq)]
pub struct Material {
    /// Its name.
    pub name: String,
    /// Whether the manifest calls it a secret.
    pub secret: bool,
    /// Where it comes from.
    pub source: Source,
}

impl Material {
    /// Whether it may not stand on a command line: what comes from a file or a command is treated as a secret too.
    pub fn hidden(&self) -> bool {
        self.secret || !matches!(self.source, Source::Value { .. })
    }
}

/// A file for the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asset {
    /// Its name.
    pub id: String,
    /// Where it is.
    pub source: String,
    /// Where in the payload it goes.
    pub destination: String,
    /// The prompt variable that a subagent is called by.
    pub expose_as: Option<String>,
}

impl Agent {
    /// Every file for the payload, with its kind.
    pub(crate) fn assets(&self) -> impl Iterator<Item = (&'static str, &Asset)> {
        let skills = self.skills.iter().map(|asset| ("skill", asset));
        let subagents = self.subagents.iter().map(|asset| ("subagent", asset));
        skills.chain(subagents).chain(self.resources.iter().map(|asset| ("resource", asset)))
    }
}
