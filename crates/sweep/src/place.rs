//! Where does a run leave its output and its record? (manifest.md §5)

use std::path::{Path, PathBuf};

use bastion_trust::scope::AGENT_DIR;
use bastion_trust::{Admitted, Refused};

/// Agents of several roots, and refusals, live below this folder of the current directory.
pub const BUILD: &str = "build/freeagent";

/// The output folder of an admitted manifest: `out` where it is given, else the agent's own.
pub fn of_admitted(out: Option<&Path>, admitted: &Admitted) -> PathBuf {
    out.map_or_else(|| admitted.default_out(), Path::to_owned)
}

/// Where a refusal is recorded: `out` where it is given, else the `.agent` folder that the manifest lies in, else
/// `build/freeagent/<id>`, or `build/freeagent/refused` where it is too broken to have an id.
///
/// The manifest did not verify, so its roots choose nothing: nothing is written into a folder only because it names it.
pub fn of_refused(out: Option<&Path>, refused: &Refused) -> PathBuf {
    if let Some(out) = out {
        return out.to_owned();
    }
    let Some(id) = &refused.manifest_id else { return Path::new(BUILD).join("refused") };
    match refused.path.canonicalize().ok().as_deref().and_then(Path::parent) {
        Some(folder) if folder.file_name().is_some_and(|name| name == AGENT_DIR) => folder.to_owned(),
        _ => Path::new(BUILD).join(id),
    }
}
