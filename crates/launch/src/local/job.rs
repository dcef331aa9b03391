//! Everything that the launcher of one run has to know, as one value: made by `bastion launch`, and for a detached run
//! handed through a pipe to a process of its own. It holds secrets, so it is never written to a disk.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::binds::Bound;
use super::layout::Layout;

/// A run before it runs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The run's name, which is its host name too.
    pub(crate) name: String,
    /// Its folder.
    pub(crate) dir: PathBuf,
    /// The machine's state folder, for the run's record.
    pub(crate) state_dir: PathBuf,
    /// Where the supervisor keeps its state, where that is not the usual place.
    pub(crate) supervisor_state: Option<String>,
    /// Whose files they are on this machine.
    pub(crate) identity: (u32, u32),
    /// Payload, harness and folders, in order.
    pub(crate) mounts: Vec<Bound>,
    /// All of the sandbox's environment but what depends on the proxy.
    pub(crate) env: Vec<(String, String)>,
    /// What may be used.
    pub(crate) limits: Limits,
    /// Whether a layer that is optional otherwise stops the launch.
    pub(crate) hard_requirement: bool,
    /// The profiles: file and bytes.
    pub(crate) profiles: Vec<(String, Vec<u8>)>,
    /// The agent's policy file.
    pub(crate) policy: Option<(String, Vec<u8>)>,
    /// What the proxy puts in the place of placeholders.
    pub(crate) credentials: Vec<Credential>,
    /// More roots that the proxy trusts, PEM.
    pub(crate) more_roots: Option<Vec<u8>>,
    /// Whether the sandbox stays when the run has ended.
    pub(crate) keep: bool,
}

/// What a run may use.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Limits {
    /// Bytes; none: as the cage has it.
    pub(crate) memory: Option<u64>,
    pub(crate) pids: Option<u64>,
    pub(crate) cpu_millis: Option<u32>,
    /// Bytes of `/tmp`.
    pub(crate) tmp_size: Option<u64>,
}

/// A credential with its value.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Credential {
    pub(crate) env: String,
    pub(crate) profile: String,
    pub(crate) value: Handed,
    /// What it is refreshed with, by name.
    pub(crate) materials: Vec<(String, Handed)>,
    /// Where a rotated material goes back to.
    pub(crate) back: Vec<Back>,
}

/// A field of a JSON file that a value was read from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Back {
    /// The material's name.
    pub(crate) material: String,
    pub(crate) file: PathBuf,
    /// Keys, parted by dots.
    pub(crate) query: String,
}

/// A secret on its way from one process of ours to another. Serialized it is what it is; printed it is not.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Handed(pub(crate) Zeroizing<String>);

impl fmt::Debug for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(crate::secret::MASK)
    }
}

impl Job {
    pub(crate) fn layout(&self) -> Layout {
        Layout::at(self.dir.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handed_secret_is_not_printed() {
        let handed = Handed(Zeroizing::new("hunter22".to_owned()));
        assert_eq!(format!("{handed:?}"), "***");
        let text = serde_json::to_string(&handed).unwrap();
        let back: Handed = serde_json::from_str(&text).unwrap();
        assert_eq!(back.0.as_str(), "hunter22");
    }
}
