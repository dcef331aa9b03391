//! What is the image made of? A copy of the source folder, with the payload laid into it and its Dockerfile extended.
//!
//! Everything is listed and hashed before anything is done, and only that is copied. A link is copied as a link.

mod dockerfile;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use bastion_host::files::{PRIVATE_FILE, create_private_dir, write_new};

use crate::copy;
use crate::error::LaunchError;
use crate::paths::read_source;
use crate::settings::ImageSource;

pub(crate) use dockerfile::{FinalUser, is_root};

/// The payload's folder in the build context.
pub(crate) const PAYLOAD: &str = "openshell-agent-payload";
/// The policy in the build context.
pub(crate) const POLICY: &str = "openshell-agent-policy.yaml";
/// Where the policy is inside the sandbox.
const POLICY_MOUNT: &str = "/etc/openshell/policy.yaml";

/// A context may hold so many files and folders,
const MAX_ENTRIES: usize = 100_000;
/// and so many bytes.
const MAX_BYTES: u64 = 4 << 30;

/// A build context before it is copied.
#[derive(Debug)]
pub(crate) struct Context {
    root: Option<PathBuf>,
    entries: BTreeMap<PathBuf, Entry>,
    /// The Dockerfile's name in the context.
    pub(crate) dockerfile: String,
    /// The extended Dockerfile.
    pub(crate) text: String,
    /// Who the sandbox runs as.
    pub(crate) user: FinalUser,
}

#[derive(Debug)]
enum Entry {
    Folder { mode: u32 },
    File { mode: u32, sha256: String },
    Link { to: PathBuf },
}

impl Context {
    /// Lists and hashes what `source` brings in.
    ///
    /// # Errors
    /// Where it can't be read, is not a Dockerfile that can be extended, or its last user is root.
    pub(crate) fn read(source: &ImageSource, with_policy: bool) -> Result<Self, LaunchError> {
        let (path, own, root) = match source {
            ImageSource::Reference(reference) => (Path::new("Dockerfile"), format!("FROM {reference}\n"), None),
            ImageSource::Dockerfile(path) => {
                let bytes = read_source("the Dockerfile", path)?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| LaunchError::refused(path.display().to_string(), "is not UTF-8"))?;
                (path.as_path(), text, path.parent().map(Path::to_owned))
            }
        };
        let subject = || path.display().to_string();
        let user = dockerfile::final_user(&own).map_err(|why| LaunchError::refused(subject(), why))?;
        if let FinalUser::Named(name) = &user
            && is_root(name)
        {
            let why = format!(
                "ends as the user `{name}`; a sandbox does not run as root, so give it a last USER that is not"
            );
            return Err(LaunchError::refused(subject(), why));
        }
        let mut copies = vec![format!("COPY {PAYLOAD}/ {}/", crate::payload::MOUNT)];
        if with_policy {
            copies.push(format!("COPY {POLICY} {POLICY_MOUNT}"));
        }
        let text = dockerfile::extended(&own, &copies, &user);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut context = Self { root, entries: BTreeMap::new(), dockerfile: name, text, user };
        context.list()?;
        Ok(context)
    }

    fn list(&mut self) -> Result<(), LaunchError> {
        let Some(root) = self.root.clone() else { return Ok(()) };
        let mut bytes = 0;
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let here = root.join(&folder);
            for entry in fs::read_dir(&here).map_err(LaunchError::file(&here))? {
                let entry = entry.map_err(LaunchError::file(&here))?;
                let place = folder.join(entry.file_name());
                let path = entry.path();
                let subject = || format!("the image context's {}", path.display());
                let meta = path.symlink_metadata().map_err(LaunchError::file(&path))?;
                let mode = meta.permissions().mode() & 0o777;
                let listed = if meta.is_dir() {
                    folders.push(place.clone());
                    Entry::Folder { mode }
                } else if meta.is_symlink() {
                    Entry::Link { to: fs::read_link(&path).map_err(LaunchError::file(&path))? }
                } else if meta.is_file() {
                    let (sha256, length) = copy::digest(&path).map_err(LaunchError::file(&path))?;
                    bytes += length;
                    Entry::File { mode, sha256 }
                } else {
                    return Err(LaunchError::refused(subject(), "is neither a file, a folder nor a link"));
                };
                let name = place.to_string_lossy();
                if name == PAYLOAD || name == POLICY {
                    return Err(LaunchError::refused(subject(), "has the name that the launcher needs; rename it"));
                }
                if self.ignore_files().contains(&name.as_ref().to_owned()) && !meta.is_file() {
                    return Err(LaunchError::refused(subject(), "must be a file of its own"));
                }
                self.entries.insert(place, listed);
                if self.entries.len() > MAX_ENTRIES || bytes > MAX_BYTES {
                    return Err(LaunchError::refused(
                        format!("the image context {}", root.display()),
                        format!(
                            "has more than {MAX_ENTRIES} files or {MAX_BYTES} bytes; keep the Dockerfile in a folder of its own"
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Names of the files that say what the engine leaves out of the context.
    fn ignore_files(&self) -> [String; 3] {
        [".dockerignore".into(), ".containerignore".into(), format!("{}.dockerignore", self.dockerfile)]
    }

    /// The place of a file of this machine in the context, where it is in there.
    pub(crate) fn place_of(&self, path: &Path) -> Option<PathBuf> {
        path.strip_prefix(self.root.as_deref()?.canonicalize().ok()?).ok().map(Path::to_owned)
    }

    /// What it brings in, by a name that tells the kind: the digest of each file, where each link leads.
    pub(crate) fn digests(&self) -> impl Iterator<Item = (String, String)> {
        self.entries.iter().filter_map(|(place, entry)| {
            let name = format!("image/{}", place.display());
            match entry {
                Entry::Folder { .. } => None,
                Entry::File { mode, sha256 } if mode & 0o100 != 0 => Some((name, format!("{sha256} run"))),
                Entry::File { sha256, .. } => Some((name, sha256.clone())),
                Entry::Link { to } => Some((name, format!("link {}", copy::sha256(to.as_os_str().as_encoded_bytes())))),
            }
        })
    }

    /// Copies the context to the new folder `to`, without payload and policy.
    pub(crate) fn write(&self, to: &Path) -> Result<(), LaunchError> {
        create_private_dir(to).map_err(LaunchError::file(to))?;
        let ignore_files = self.ignore_files();
        let root = self.root.as_deref().unwrap_or(Path::new(""));
        for (place, entry) in &self.entries {
            let (from, at) = (root.join(place), to.join(place));
            match entry {
                Entry::Folder { .. } => create_private_dir(&at).map_err(LaunchError::file(&at))?,
                Entry::Link { to } => std::os::unix::fs::symlink(to, &at).map_err(LaunchError::file(&at))?,
                Entry::File { .. } if place.as_os_str() == self.dockerfile.as_str() => {}
                Entry::File { mode, sha256 } => copy::copy(&from, &at, *mode, sha256)?,
            }
            if ignore_files.iter().any(|name| place.as_os_str() == name.as_str()) {
                let mut rules = bastion_host::files::read_capped(&at, 1 << 20).map_err(LaunchError::file(&at))?;
                rules.extend_from_slice(format!("\n!{PAYLOAD}\n!{PAYLOAD}/**\n!{POLICY}\n").as_bytes());
                bastion_host::files::replace(&at, &rules, PRIVATE_FILE).map_err(LaunchError::file(&at))?;
            }
        }
        let dockerfile = to.join(&self.dockerfile);
        write_new(&dockerfile, self.text.as_bytes(), PRIVATE_FILE).map_err(LaunchError::file(&dockerfile))?;
        // modes last: a folder that its owner can't write could not be filled
        self.entries.iter().rev().try_for_each(|(place, entry)| match entry {
            Entry::Folder { mode } => copy::set_mode(&to.join(place), *mode),
            _ => Ok(()),
        })
    }
}
