//! The agents that this machine knows: what `up` keeps in the state directory.
//!
//! One small file an agent, replaced whole. It decides nothing: the manifest does; it only says where to look.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use bastion_host::files;
use bastion_host::process::{Fate, ProcessIdentity};
use bastion_sweep::place;
use bastion_trust::manifest;
use bastion_trust::scope::AGENT_DIR;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::settings;

/// An agent and where its things are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Agent {
    /// Its id, from the manifest.
    pub(crate) id: String,
    /// The owner's host name.
    pub(crate) owner: String,
    /// The manifest.
    pub(crate) manifest: PathBuf,
    /// The output folder.
    pub(crate) out: PathBuf,
    /// The address, without its port, at which a client on this machine reaches the endpoint of `up`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<IpAddr>,
    /// The process whose endpoint that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) process: Option<ProcessIdentity>,
}

impl Agent {
    /// The name of its files in the state directory.
    fn name(&self) -> String {
        use std::os::unix::ffi::OsStrExt;
        let digest = Sha256::digest(self.manifest.as_os_str().as_bytes());
        let print: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}-{print}", self.id)
    }

    /// Where the endpoint of `up` writes its port.
    pub(crate) fn port_file(&self) -> Result<PathBuf> {
        Ok(dir()?.join(format!("{}.port", self.name())))
    }

    /// Keeps it.
    pub(crate) fn save(&self) -> Result<()> {
        let dir = dir()?;
        files::create_private_dir(&dir).with_context(|| format!("{}", dir.display()))?;
        let path = dir.join(format!("{}.json", self.name()));
        files::replace(&path, &serde_json::to_vec(self)?, files::PRIVATE_FILE)
            .with_context(|| format!("{}", path.display()))
    }

    /// Where its endpoint listens, if one of `up` runs: the port file goes when the endpoint ends, and after a crash
    /// the process is gone.
    pub(crate) fn endpoint(&self) -> Option<String> {
        let port: u16 = std::fs::read_to_string(self.port_file().ok()?).ok()?.trim().parse().ok()?;
        let fate = self.process.as_ref()?.fate(&ProcessIdentity::current());
        (fate != Fate::Gone).then_some(SocketAddr::new(self.address?, port).to_string())
    }
}

fn dir() -> Result<PathBuf> {
    Ok(settings::state_dir()?.join("agents"))
}

/// Every agent whose manifest is still there, by id.
pub(crate) fn all() -> Result<Vec<Agent>> {
    let dir = dir()?;
    let entries = match std::fs::read_dir(&dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("{}", dir.display())),
    };
    let mut agents = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json")
            && let Ok(bytes) = files::read_capped(&path, 1 << 16)
            && let Ok(agent) = serde_json::from_slice::<Agent>(&bytes)
            && agent.manifest.exists()
        {
            agents.push(agent);
        }
    }
    agents.sort_by(|a, b| (&a.id, &a.manifest).cmp(&(&b.id, &b.manifest)));
    Ok(agents)
}

/// What is kept of the agent with this manifest (canonical), if anything is.
pub(crate) fn known(manifest: &Path) -> Result<Option<Agent>> {
    Ok(all()?.into_iter().find(|agent| agent.manifest == manifest))
}

/// The agent of the folder we stand in, or of one above it.
pub(crate) fn here() -> Result<Option<Agent>> {
    let here = std::env::current_dir()?;
    let manifest = here.ancestors().map(|folder| folder.join(".agent/manifest.yaml")).find(|path| path.is_file());
    manifest.map(|manifest| resolve(&manifest, None)).transpose()
}

/// The manifest's file, where a folder or a manifest is named.
pub(crate) fn manifest_of(named: &Path) -> PathBuf {
    if named.is_dir() { named.join(".agent/manifest.yaml") } else { named.to_owned() }
}

/// The agent of a manifest or folder, as far as it can be known without the gate: for finding files, never for trust.
pub(crate) fn resolve(named: &Path, out: Option<&Path>) -> Result<Agent> {
    let path = manifest_of(named);
    let canonical = path.canonicalize().with_context(|| format!("{}", path.display()))?;
    let bytes = files::read_capped(&canonical, 1 << 20).with_context(|| format!("{}", path.display()))?;
    let parsed = manifest::parse(&bytes).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let manifest = parsed.manifest();
    if let (Some(known), None) = (known(&canonical)?, out) {
        return Ok(Agent { id: manifest.id.to_string(), owner: manifest.owner_host.clone(), ..known });
    }
    let folder = canonical.parent().context("it lies in no folder")?;
    let out = match (out, manifest.roots.as_slice()) {
        (Some(out), _) => std::path::absolute(out)?,
        (None, [root]) => {
            let root = folder.join(&root.path);
            root.canonicalize().unwrap_or(root).join(AGENT_DIR)
        }
        (None, _) => std::path::absolute(Path::new(place::BUILD).join(manifest.id.to_string()))?,
    };
    Ok(Agent {
        id: manifest.id.to_string(),
        owner: manifest.owner_host.clone(),
        manifest: canonical,
        out,
        address: None,
        process: None,
    })
}
