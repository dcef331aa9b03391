//! What does a first manifest look like? Comments, defaults, `serial: 1`; ready to sign.

use std::path::{Path, PathBuf};

use bastion_host::files;

use crate::error::FileError;
use crate::names::{AgentId, host_name_fault};
use crate::scope::AGENT_DIR;

/// The manifest's file name in `.agent/`.
pub const MANIFEST_NAME: &str = "manifest.yaml";

/// The manifest was not made; whatever is there is as it was.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// There is one already.
    #[error("{} is there already; edit it and sign it with `bastion sign`", .0.display())]
    AlreadyThere(PathBuf),
    /// The owner's name is no host name.
    #[error("the owner's host name `{host}` {fault}")]
    Host {
        /// The name.
        host: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Where the manifest of an agent of one folder lies.
pub fn manifest_path(folder: &Path) -> PathBuf {
    folder.join(AGENT_DIR).join(MANIFEST_NAME)
}

/// Writes a folder's first manifest, unsigned. `taken` knows the ids that are in use on this machine.
///
/// # Errors
/// Where there is one already, the folder is not there, or `owner_host` is no host name.
pub fn init(folder: &Path, owner_host: &str, taken: impl Fn(&str) -> bool) -> Result<(PathBuf, AgentId), InitError> {
    if let Some(fault) = host_name_fault(owner_host) {
        return Err(InitError::Host { host: owner_host.to_owned(), fault });
    }
    let folder = folder.canonicalize().map_err(FileError::at(folder))?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let id = AgentId::from_folder_name(&name, taken);
    let path = manifest_path(&folder);
    let agent_dir = folder.join(AGENT_DIR);
    files::create_private_dir(&agent_dir).map_err(FileError::at(&agent_dir))?;
    if path.symlink_metadata().is_ok() {
        return Err(InitError::AlreadyThere(path));
    }
    files::replace(&path, template(&id, owner_host).as_bytes(), files::PRIVATE_FILE).map_err(FileError::at(&path))?;
    Ok((path, id))
}

/// The text of a first manifest for the folder that holds `.agent/`.
pub fn template(id: &AgentId, owner_host: &str) -> String {
    format!(
        "\
# What may be prepared from this folder, and who may read it.
# Nothing is prepared or served until this file is signed, and again after every edit:
#   bastion sign MANIFEST --cert CERT --key KEY

v: 1

# Names the agent in logs and paths.
id: {id}

# The host name in the signer's certificate, and in the certificate that reads as the owner.
owner:
  host: {owner_host}

# Folders in scope. A relative path starts at this file's folder; `..` is the folder that holds `.agent/`.
roots:
  - ..

# Globs in gitignore syntax, matched below each root. Without `include` everything is in scope but version control,
# package folders, caches, build output, lock and temporary files. `exclude` always wins.
#include:
#  - \"*.pdf\"
#exclude:
#  - private/

# What runs, in this order. `sterilize` in the place of `sanitize` also hides names, places and organisations.
stages: [walk, extract, sanitize, chunk, embed, catalog, seal]

# How often: 15m, hourly, daily or manual.
sweep: hourly

# What can be asked at all, by the owner too.
ops: [search, read_range]

# Who else may read, what, and until which day (that day included, UTC):
#  - host: laptop.example
#    ops: [search]
#    until: 2030-12-31
grants: []

#limits:
#  max_file_bytes: 268435456
#  max_doc_chars: 10000000
#  extract_seconds: 30
#  archive_depth: 0

# Rises with every signing, so that an older signed version of this file is refused.
serial: 1
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::{Limits, Stage, parse};

    #[test]
    fn the_template_says_the_defaults() {
        let id = AgentId::new("a").unwrap();
        let parsed = parse(template(&id, "h.example").as_bytes()).unwrap();
        let manifest = parsed.manifest();
        assert_eq!((manifest.id.as_str(), manifest.owner_host.as_str(), manifest.serial), ("a", "h.example", Some(1)));
        assert_eq!((manifest.stages.as_slice(), manifest.limits), (Stage::DEFAULT.as_slice(), Limits::default()));
        let uncommented = template(&id, "h.example")
            .replace("\n#include:\n#  -", "\ninclude:\n  -")
            .replace("\n#exclude:\n#  -", "\nexclude:\n  -")
            .replace("\n#limits:", "\nlimits:")
            .replace("\n#  max", "\n  max")
            .replace("\n#  extract", "\n  extract")
            .replace("\n#  archive", "\n  archive");
        assert_eq!(parse(uncommented.as_bytes()).unwrap().manifest().limits, Limits::default());
    }
}
