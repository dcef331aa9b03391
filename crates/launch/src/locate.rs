//! Which folder is the agent? A name is looked for in known places, a path is taken as it is.

use std::path::{Path, PathBuf};

use bastion_host::files::read_capped;
use bastion_trust::manifest::MAX_MANIFEST_BYTES;

use crate::error::LaunchError;
use crate::options::{LaunchOptions, Machine};
use crate::parse::{self, ParsedAgent};
use crate::paths::{self, Bases};

/// The manifest's name in an agent's folder.
pub const MANIFEST: &str = "agent.yaml";

/// An agent where it lies.
pub(crate) struct Located {
    /// The canonical path of its manifest.
    pub(crate) manifest: PathBuf,
    pub(crate) parsed: ParsedAgent,
    pub(crate) bases: Bases,
    /// Whether it lies in the user's own configuration folder.
    pub(crate) own: bool,
}

pub(crate) fn locate(options: &LaunchOptions, machine: &Machine) -> Result<Located, LaunchError> {
    let asked = match (&options.agent, machine.var("OPENSHELL_AGENT_DIR")) {
        (Some(agent), _) => agent.clone(),
        (None, Some(dir)) if dir.contains('/') => dir.to_owned(),
        (None, Some(dir)) => format!("./{dir}"),
        (None, None) => return Err(LaunchError::usage("--agent", "is missing: name an agent or give its folder")),
    };
    let given = if asked.contains('/') {
        let path = machine.cwd.join(&asked);
        if path.is_dir() {
            path
        } else {
            path.parent().filter(|_| path.ends_with(MANIFEST)).unwrap_or(&path).to_owned()
        }
    } else {
        named(&asked, options, machine)?
    };
    read(&given, options.repo.as_deref(), machine)
}

/// Reads the agent in `dir`.
pub(crate) fn read(dir: &Path, repo: Option<&Path>, machine: &Machine) -> Result<Located, LaunchError> {
    let refused = |why: String| LaunchError::refused(format!("the agent's folder {}", dir.display()), why);
    let agent = dir.canonicalize().map_err(|error| refused(format!("can't be read: {error}")))?;
    let manifest = agent.join(MANIFEST);
    let bytes = read_capped(&manifest, MAX_MANIFEST_BYTES as u64)
        .map_err(|error| refused(format!("has no readable {MANIFEST}: {error}")))?;
    let parsed = parse::parse(&bytes).map_err(|source| LaunchError::Malformed { path: manifest.clone(), source })?;
    let repo = match repo {
        Some(repo) => Some(machine.cwd.join(repo).canonicalize().map_err(LaunchError::file(repo))?),
        None => paths::repository_of(&agent),
    };
    let own = machine.config_dir.canonicalize().is_ok_and(|config| agent.starts_with(config));
    Ok(Located { manifest, parsed, bases: Bases { agent, repo, home: machine.home.clone() }, own })
}

fn named(name: &str, options: &LaunchOptions, machine: &Machine) -> Result<PathBuf, LaunchError> {
    if !parse::is_component(name) {
        return Err(LaunchError::usage("--agent", format!("`{}` is neither a name nor a path", name.escape_debug())));
    }
    let repo = match &options.repo {
        Some(repo) => Some(machine.cwd.join(repo)),
        None => paths::repository_of(&machine.cwd),
    };
    let mut places = Vec::new();
    if let Some(repo) = repo {
        places.extend([repo.join("agents").join(name), repo.join("scripts/agents").join(name)]);
    }
    places.push(machine.config_dir.join("agents").join(name));
    places.iter().find(|place| place.join(MANIFEST).is_file()).cloned().ok_or_else(|| {
        let looked: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
        LaunchError::refused(format!("the agent `{name}`"), format!("is in none of {}", looked.join(", ")))
    })
}
