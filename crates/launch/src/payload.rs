//! What does the sandbox get to read? Every file of the payload, before and after it is on disk.
//!
//! Readable by all, writable by none. Nothing lands outside it, on another file of it, or in the place of the runtime.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bastion_host::files::write_new;
use serde::Serialize;

use crate::copy;
use crate::error::LaunchError;

/// Where the payload is inside the sandbox.
pub const MOUNT: &str = "/etc/openshell/agent-payload";
/// The supervisor inside the sandbox.
pub const SUPERVISOR: &str = "/etc/openshell/agent-payload/runtime/bastion-supervisor";
/// What the sandbox's main process is started by.
pub const ENTRYPOINT: &str = "/etc/openshell/agent-payload/runtime/entrypoint.sh";

const FILE: u32 = 0o444;
const PROGRAM: u32 = 0o555;
const FOLDER: u32 = 0o555;

/// The files of a payload by their place in it.
#[derive(Debug, Default)]
pub struct Payload {
    files: BTreeMap<PathBuf, Item>,
}

#[derive(Debug)]
struct Item {
    content: Content,
    program: bool,
    sha256: String,
    bytes: u64,
    origin: String,
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    /// A file too large to hold; copied later, and held to its digest then.
    File(PathBuf),
}

/// One file of the payload, for the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedFile {
    /// Its place in the payload.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
    /// Whether it can be run.
    pub program: bool,
    /// What put it there.
    pub origin: String,
}

impl Payload {
    /// Puts bytes at `place`.
    pub(crate) fn put(&mut self, place: &Path, bytes: Vec<u8>, program: bool, origin: &str) -> Result<(), LaunchError> {
        let item = Item {
            sha256: copy::sha256(&bytes),
            bytes: bytes.len() as u64,
            content: Content::Bytes(bytes),
            program,
            origin: origin.to_owned(),
        };
        self.insert(place, item)
    }

    /// Puts a file of any size at `place`.
    pub(crate) fn put_file(
        &mut self,
        place: &Path,
        from: &Path,
        program: bool,
        origin: &str,
    ) -> Result<(), LaunchError> {
        let refused = |why: std::io::Error| {
            LaunchError::refused(format!("{origin} {}", from.display()), format!("can't be read: {why}"))
        };
        let (sha256, bytes) = copy::digest(from).map_err(refused)?;
        let content = Content::File(from.to_owned());
        self.insert(place, Item { content, program, sha256, bytes, origin: origin.to_owned() })
    }

    fn insert(&mut self, place: &Path, item: Item) -> Result<(), LaunchError> {
        let clash = self.files.iter().find(|(other, _)| other.starts_with(place) || place.starts_with(other));
        if let Some((other, there)) = clash {
            return Err(LaunchError::refused(
                format!("the destination {} of {}", place.display(), item.origin),
                format!("is in the way of {}, which is there for {}", other.display(), there.origin),
            ));
        }
        self.files.insert(place.to_owned(), item);
        Ok(())
    }

    /// Whether something is at exactly this place.
    pub(crate) fn holds(&self, place: &Path) -> bool {
        self.files.contains_key(place)
    }

    /// The files, for the plan.
    pub(crate) fn planned(&self) -> Vec<PlannedFile> {
        let planned = |(path, item): (&PathBuf, &Item)| PlannedFile {
            path: path.clone(),
            bytes: item.bytes,
            sha256: item.sha256.clone(),
            program: item.program,
            origin: item.origin.clone(),
        };
        self.files.iter().map(planned).collect()
    }

    /// Writes the payload as the new folder `root`.
    pub(crate) fn write(&self, root: &Path) -> Result<(), LaunchError> {
        let mut folders = vec![root.to_owned()];
        bastion_host::files::create_private_dir(root).map_err(LaunchError::file(root))?;
        for (place, item) in &self.files {
            let to = root.join(place);
            for folder in place.ancestors().skip(1).filter(|folder| !folder.as_os_str().is_empty()) {
                let folder = root.join(folder);
                if !folders.contains(&folder) {
                    bastion_host::files::create_private_dir(&folder).map_err(LaunchError::file(&folder))?;
                    folders.push(folder);
                }
            }
            let mode = if item.program { PROGRAM } else { FILE };
            match &item.content {
                Content::Bytes(bytes) => {
                    write_new(&to, bytes, bastion_host::files::PRIVATE_FILE).map_err(LaunchError::file(&to))?;
                    copy::set_mode(&to, mode)?;
                }
                Content::File(from) => copy::copy(from, &to, mode, &item.sha256)?,
            }
        }
        folders.iter().try_for_each(|folder| copy::set_mode(folder, FOLDER))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn files_do_not_get_into_each_others_way() {
        let mut payload = Payload::default();
        payload.put(Path::new("a/b"), vec![], false, "one").unwrap();
        for place in ["a/b", "a", "a/b/c"] {
            assert!(payload.put(Path::new(place), vec![], false, "two").is_err(), "{place}");
        }
        payload.put(Path::new("a/bc"), vec![], false, "three").unwrap();
    }

    #[test]
    fn everything_is_readable_by_all_and_writable_by_none() {
        let dir = tempfile::tempdir().unwrap();
        let big = dir.path().join("big");
        std::fs::write(&big, "program").unwrap();
        let mut payload = Payload::default();
        payload.put(Path::new("a/b/c.md"), b"c".to_vec(), false, "x").unwrap();
        payload.put_file(Path::new("a/tool"), &big, true, "y").unwrap();
        let root = dir.path().join("root");
        payload.write(&root).unwrap();
        let mode = |path: &str| std::fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(""), mode("a"), mode("a/b")), (0o555, 0o555, 0o555));
        assert_eq!((mode("a/b/c.md"), mode("a/tool")), (0o444, 0o555));
        crate::copy::set_mode(&root, 0o755).unwrap();
        crate::copy::set_mode(&root.join("a"), 0o755).unwrap();
        crate::copy::set_mode(&root.join("a/b"), 0o755).unwrap();
    }

    #[test]
    fn a_file_that_changed_after_it_was_hashed_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let big = dir.path().join("big");
        std::fs::write(&big, "one").unwrap();
        let mut payload = Payload::default();
        payload.put_file(Path::new("tool"), &big, true, "y").unwrap();
        std::fs::write(&big, "two").unwrap();
        assert!(payload.write(&dir.path().join("root")).unwrap_err().to_string().contains("changed"));
    }
}
