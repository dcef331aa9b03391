//! Where an agent's vault lies.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The file's name.
const VAULT: &str = "vault.db";

/// The rule that finds an agent's vault, from the machine's settings alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VaultPlace {
    /// The folder of all vaults (`FREEAGENT_VAULT_DIR`).
    pub dir: Option<PathBuf>,
    /// Where `up` keeps vaults; a vault that is there already is used by every command.
    pub home: Option<PathBuf>,
    /// Whether a vault that is nowhere yet is made in `home`.
    pub make_in_home: bool,
}

impl VaultPlace {
    /// The vault of the agent `id` whose output folder is `out` (canonical): `<dir>/<id>-<8 hex of out>/vault.db`, or,
    /// without a folder of vaults, `<out>/sanitize/vault.db`.
    pub fn of(&self, id: &str, out: &Path) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        let digest = Sha256::digest(out.as_os_str().as_bytes());
        let print: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        let within = |dir: &Path| dir.join(format!("{id}-{print}")).join(VAULT);
        if let Some(dir) = &self.dir {
            return within(dir);
        }
        let beside = out.join("sanitize").join(VAULT);
        match self.home.as_deref().map(within) {
            Some(home) if home.exists() || self.make_in_home && !beside.exists() => home,
            _ => beside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_output_folders_never_share_a_vault() {
        let dir = tempfile::tempdir().unwrap();
        let place = VaultPlace { dir: Some(dir.path().into()), ..VaultPlace::default() };
        let (a, b) = (place.of("notes", Path::new("/a/.agent")), place.of("notes", Path::new("/b/.agent")));
        assert_ne!(a, b);
        assert!(a.parent().unwrap().file_name().unwrap().to_str().unwrap().starts_with("notes-"));
        assert_eq!(VaultPlace::default().of("notes", Path::new("/a/.agent")), Path::new("/a/.agent/sanitize/vault.db"));
    }

    #[test]
    fn a_vault_that_up_made_is_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let out = Path::new("/a/.agent");
        let up = VaultPlace { home: Some(dir.path().into()), make_in_home: true, dir: None };
        let made = up.of("notes", out);
        let later = VaultPlace { make_in_home: false, ..up };
        assert_eq!(later.of("notes", out), out.join("sanitize/vault.db"));
        std::fs::create_dir_all(made.parent().unwrap()).unwrap();
        std::fs::write(&made, "").unwrap();
        assert_eq!(later.of("notes", out), made);
    }
}
