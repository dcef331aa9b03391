//! The temporary folder of a launch: the user's alone, and gone on every way out that a process can take.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::error::LaunchError;

/// A folder that removes itself, also where parts of it are read-only.
pub(crate) struct Temp(Option<tempfile::TempDir>);

impl Temp {
    pub(crate) fn new(inside: &Path) -> Result<Self, LaunchError> {
        let private = std::fs::Permissions::from_mode(bastion_host::files::PRIVATE_DIR);
        let made = tempfile::Builder::new().prefix("bastion-launch-").permissions(private).tempdir_in(inside);
        Ok(Self(Some(made.map_err(LaunchError::file(inside))?)))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.as_ref().map_or(Path::new(""), tempfile::TempDir::path)
    }

    /// Removes it now.
    pub(crate) fn close(&mut self) {
        let Some(dir) = self.0.take() else { return };
        make_removable(dir.path());
        // what can't be removed lies in a folder of mode 0700; there is no one to tell in the middle of an error
        let _ = dir.close();
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        self.close();
    }
}

/// The payload's folders are written by nobody, so what is in them can't be removed before they are.
fn make_removable(dir: &Path) {
    let _ = std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700));
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_removable(&entry.path());
        }
    }
}
