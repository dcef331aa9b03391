//! The vault: which value stands behind which token.
//!
//! One SQLite file that is never changed in place: an edit works on a copy beside it and takes its place by one
//! rename, so that neither a crash nor a program that copies the folder in the middle finds a broken one, and no
//! journal ever lies beside it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bastion_host::clock::{Clock, rfc3339_millis};
use bastion_host::files::{self, PRIVATE_FILE};
use bastion_store::DocId;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::AgentKey;

const SCHEMA: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE value (
  token TEXT PRIMARY KEY, type TEXT NOT NULL, value TEXT NOT NULL, normalised TEXT NOT NULL, first_seen TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE seen (doc BLOB NOT NULL, token TEXT NOT NULL, PRIMARY KEY (doc, token)) WITHOUT ROWID;
CREATE INDEX seen_token ON seen (token);
PRAGMA user_version = 1;
";

/// Why the vault could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// Prepared stores are there and the vault that belongs to them is not.
    #[error(
        "the vault {path} is missing, but prepared stores that belong to it are there. Restore it, or set \
         FREEAGENT_VAULT_DIR to where it is; to start afresh with a new key, remove {} first", stores.display()
    )]
    Missing {
        /// Where it should be.
        path: PathBuf,
        /// The output folder with the stores.
        stores: PathBuf,
    },
    /// Others than the owner could read it.
    #[error("the vault {path} can be read by others (mode {mode:03o}); run: chmod 600 {}", path.display())]
    Exposed {
        /// The vault.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system refused a read or write.
    #[error("the vault {path}: {source}")]
    Io {
        /// The vault or its folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no vault of this version, or is damaged.
    #[error("the vault {path}: {source}")]
    Rows {
        /// The vault.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// Two different values have one token. Not to be expected in the life of the universe; never ignored.
    #[error("two values share the token {token}; nothing was written")]
    Clash {
        /// The token.
        token: String,
    },
}

/// An agent's vault, open for reading.
#[derive(Debug)]
pub struct Vault {
    path: PathBuf,
    key: AgentKey,
}

/// A value that sanitize hid.
#[derive(Debug, Clone, Copy)]
pub struct Hidden<'a> {
    /// The token that stands in its place.
    pub token: &'a str,
    /// Its type, as `EMAIL`.
    pub kind: &'a str,
    /// The value as it was written.
    pub value: &'a str,
    /// The form of it that the token is made of.
    pub normalised: &'a str,
}

/// What the vault knows of a token.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Revealed {
    /// The token, without its brackets' content changed: `[EMAIL_…]`.
    pub token: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The value, as it was first seen.
    pub value: String,
    /// When it was first seen, RFC 3339.
    pub first_seen: String,
    /// The documents that hold it.
    pub docs: Vec<DocId>,
}

impl Vault {
    /// Opens the vault at `path`. Where there is none, makes one with a new key, but only if `stores` (the output
    /// folder) holds nothing that an older key made: a new key would silently cut every token off its value.
    pub fn open(path: &Path, stores: &Path, has_stores: bool) -> Result<Self, VaultError> {
        match fs::symlink_metadata(path) {
            Ok(meta) => {
                let mode = meta.permissions().mode() & 0o777;
                if mode & 0o077 != 0 {
                    return Err(VaultError::Exposed { path: path.to_owned(), mode });
                }
                let rows = read_only(path).map_err(failed(path))?;
                let key = rows
                    .query_row("SELECT value FROM meta WHERE key = 'key'", [], |row| row.get(0))
                    .map_err(failed(path))?;
                Ok(Self { path: path.to_owned(), key: AgentKey::from_bytes(key) })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound && has_stores => {
                Err(VaultError::Missing { path: path.to_owned(), stores: stores.to_owned() })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(path),
            Err(source) => Err(VaultError::Io { path: path.to_owned(), source }),
        }
    }

    /// Opens a vault that must be there.
    pub fn open_existing(path: &Path) -> Result<Self, VaultError> {
        Self::open(path, path.parent().unwrap_or(path), true)
    }

    fn create(path: &Path) -> Result<Self, VaultError> {
        let io = |source| VaultError::Io { path: path.to_owned(), source };
        if let Some(dir) = path.parent() {
            files::create_private_dir(dir).map_err(io)?;
        }
        let key = AgentKey::random().map_err(io)?;
        let vault = Self { path: path.to_owned(), key };
        vault.replaced(true, |rows| {
            rows.execute_batch(SCHEMA)?;
            rows.execute("INSERT INTO meta (key, value) VALUES ('key', ?1)", [vault.key.as_bytes()])?;
            Ok(Ok(()))
        })?;
        Ok(vault)
    }

    /// The agent's key.
    pub const fn key(&self) -> &AgentKey {
        &self.key
    }

    /// Where the vault lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Changes the vault: all that `change` does, or nothing.
    pub fn edit<T>(&self, change: impl FnOnce(&mut VaultEdit<'_>) -> Result<T, VaultError>) -> Result<T, VaultError> {
        self.replaced(false, |rows| Ok(change(&mut VaultEdit { rows, path: &self.path })))
    }

    /// What stands behind `token`. `None`: nothing this vault knows.
    pub fn reveal(&self, token: &str) -> Result<Option<Revealed>, VaultError> {
        let run = || {
            let rows = read_only(&self.path)?;
            let mut query = rows.prepare("SELECT doc FROM seen WHERE token = ?1 ORDER BY doc")?;
            let docs =
                query.query_map([token], |row| row.get(0).map(DocId::from_bytes))?.collect::<Result<Vec<_>, _>>()?;
            rows.query_row("SELECT type, value, first_seen FROM value WHERE token = ?1", [token], |row| {
                Ok(Revealed {
                    token: token.to_owned(),
                    kind: row.get(0)?,
                    value: row.get(1)?,
                    first_seen: row.get(2)?,
                    docs,
                })
            })
            .optional()
        };
        run().map_err(failed(&self.path))
    }

    /// How many values there are.
    pub fn len(&self) -> Result<u64, VaultError> {
        let run = || read_only(&self.path)?.query_row("SELECT count(*) FROM value", [], |row| row.get::<_, i64>(0));
        run().map(i64::cast_unsigned).map_err(failed(&self.path))
    }

    /// Whether there is no value in it.
    pub fn is_empty(&self) -> Result<bool, VaultError> {
        Ok(self.len()? == 0)
    }

    /// Removes every document for which `keep` does not hold, and every value that nothing refers to any more. Gives
    /// the number of values removed. Where there is nothing to remove the file stays as it is.
    pub fn sweep_out(&self, keep: impl Fn(&DocId) -> bool) -> Result<u64, VaultError> {
        let look = || -> rusqlite::Result<(Vec<DocId>, bool)> {
            let rows = read_only(&self.path)?;
            let mut query = rows.prepare("SELECT DISTINCT doc FROM seen")?;
            let docs = query.query_map([], |row| row.get(0).map(DocId::from_bytes))?.collect::<Result<Vec<_>, _>>()?;
            let unseen = "SELECT EXISTS (SELECT 1 FROM value WHERE NOT EXISTS (SELECT 1 FROM seen WHERE seen.token = value.token))";
            Ok((docs, rows.query_row(unseen, [], |row| row.get(0))?))
        };
        let (mut docs, unseen) = look().map_err(failed(&self.path))?;
        docs.retain(|doc| !keep(doc));
        if docs.is_empty() && !unseen {
            return Ok(0);
        }
        self.replaced(false, |rows| {
            let mut edit = VaultEdit { rows, path: &self.path };
            for doc in &docs {
                if let Err(error) = edit.forget_doc(doc) {
                    return Ok(Err(error));
                }
            }
            let removed = edit.forget_unseen()?;
            // Deleted rows stay readable in free pages until they are overwritten; the copy is made without them.
            rows.execute_batch("COMMIT; VACUUM; BEGIN")?;
            Ok(Ok(removed as u64))
        })
    }

    fn replaced<T>(
        &self,
        fresh: bool,
        change: impl FnOnce(&Connection) -> rusqlite::Result<Result<T, VaultError>>,
    ) -> Result<T, VaultError> {
        let io = |source| VaultError::Io { path: self.path.clone(), source };
        self.remove_leftovers().map_err(io)?;
        let temporary = files::temporary_beside(&self.path);
        let run = || {
            if fresh {
                files::write_new(&temporary, b"", PRIVATE_FILE).map_err(io)?;
            } else {
                files::write_new(&temporary, &fs::read(&self.path).map_err(io)?, PRIVATE_FILE).map_err(io)?;
            }
            let rows = Connection::open(&temporary).map_err(failed(&self.path))?;
            rows.execute_batch(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = MEMORY; BEGIN",
            )
            .map_err(failed(&self.path))?;
            let value = change(&rows).map_err(failed(&self.path))??;
            rows.execute_batch("COMMIT").map_err(failed(&self.path))?;
            rows.close().map_err(|(_, source)| VaultError::Rows { path: self.path.clone(), source })?;
            fs::File::open(&temporary).and_then(|file| file.sync_all()).map_err(io)?;
            fs::rename(&temporary, &self.path).and_then(|()| files::sync_parent(&self.path)).map_err(io)?;
            Ok(value)
        };
        let result = run();
        if result.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        result
    }

    /// A crash in the middle of an edit leaves a copy with plaintext values behind: the next edit removes it.
    fn remove_leftovers(&self) -> io::Result<()> {
        let (Some(dir), Some(name)) = (self.path.parent(), self.path.file_name().and_then(|name| name.to_str())) else {
            return Ok(());
        };
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let file_name = entry.file_name();
            if file_name.to_str().is_some_and(|file| file.starts_with(&format!(".{name}.")) && file.ends_with(".tmp")) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// The changes of one edit.
#[derive(Debug)]
pub struct VaultEdit<'a> {
    rows: &'a Connection,
    path: &'a Path,
}

impl VaultEdit<'_> {
    /// Notes what `doc` holds now; what it held before is forgotten first.
    pub fn put_doc(&mut self, doc: &DocId, hidden: &[Hidden<'_>], clock: &dyn Clock) -> Result<(), VaultError> {
        self.forget_doc(doc)?;
        let now = rfc3339_millis(clock.now());
        for value in hidden {
            self.put_value(value, &now)?;
            self.rows
                .prepare_cached("INSERT OR IGNORE INTO seen (doc, token) VALUES (?1, ?2)")
                .and_then(|mut insert| insert.execute(params![doc.as_bytes(), value.token]))
                .map_err(failed(self.path))?;
        }
        Ok(())
    }

    fn put_value(&mut self, value: &Hidden<'_>, now: &str) -> Result<(), VaultError> {
        let known: Option<(String, String)> = self
            .rows
            .prepare_cached("SELECT type, normalised FROM value WHERE token = ?1")
            .and_then(|mut query| query.query_row([value.token], |row| Ok((row.get(0)?, row.get(1)?))).optional())
            .map_err(failed(self.path))?;
        match known {
            Some((kind, normalised)) if kind == value.kind && normalised == value.normalised => Ok(()),
            Some(_) => Err(VaultError::Clash { token: value.token.to_owned() }),
            None => self
                .rows
                .prepare_cached(
                    "INSERT INTO value (token, type, value, normalised, first_seen) VALUES (?1, ?2, ?3, ?4, ?5)",
                )
                .and_then(|mut insert| {
                    insert.execute(params![value.token, value.kind, value.value, value.normalised, now])
                })
                .map(|_| ())
                .map_err(failed(self.path)),
        }
    }

    /// Forgets what `doc` holds. Values that nothing refers to stay until [`Vault::sweep_out`].
    pub fn forget_doc(&mut self, doc: &DocId) -> Result<(), VaultError> {
        self.rows
            .prepare_cached("DELETE FROM seen WHERE doc = ?1")
            .and_then(|mut delete| delete.execute([doc.as_bytes()]))
            .map(|_| ())
            .map_err(failed(self.path))
    }

    fn forget_unseen(&mut self) -> rusqlite::Result<usize> {
        self.rows.execute("DELETE FROM value WHERE NOT EXISTS (SELECT 1 FROM seen WHERE seen.token = value.token)", [])
    }
}

fn read_only(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> VaultError + '_ {
    |source| VaultError::Rows { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bastion_host::clock::SystemClock;

    fn hidden<'a>(token: &'a str, value: &'a str) -> Hidden<'a> {
        Hidden { token, kind: "EMAIL", value, normalised: value }
    }

    fn doc(n: u8) -> DocId {
        DocId::from_bytes([n; 32])
    }

    #[test]
    fn a_missing_vault_beside_stores_is_refused_and_never_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v/vault.db");
        assert!(matches!(Vault::open(&path, dir.path(), true), Err(VaultError::Missing { .. })));
        assert!(!path.exists());
        let key = Vault::open(&path, dir.path(), false).unwrap().key().clone();
        assert_eq!(Vault::open(&path, dir.path(), true).unwrap().key(), &key);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_vault_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vault.db");
        Vault::open(&path, dir.path(), false).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Vault::open(&path, dir.path(), false).unwrap_err();
        assert!(refused.to_string().ends_with(&format!("chmod 600 {}", path.display())), "{refused}");
    }

    #[test]
    fn a_value_goes_with_the_last_document_that_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vault.db");
        let vault = Vault::open(&path, dir.path(), false).unwrap();
        let clock = SystemClock;
        vault
            .edit(|edit| {
                edit.put_doc(&doc(1), &[hidden("[EMAIL_a]", "a@x.org"), hidden("[EMAIL_b]", "b@x.org")], &clock)?;
                edit.put_doc(&doc(2), &[hidden("[EMAIL_a]", "a@x.org")], &clock)
            })
            .unwrap();
        let shown = vault.reveal("[EMAIL_a]").unwrap().unwrap();
        assert_eq!((shown.value.as_str(), shown.docs), ("a@x.org", vec![doc(1), doc(2)]));
        assert_eq!(vault.sweep_out(|id| *id == doc(2)).unwrap(), 1);
        assert_eq!(vault.reveal("[EMAIL_b]").unwrap(), None);
        assert_eq!(vault.reveal("[EMAIL_a]").unwrap().unwrap().docs, [doc(2)]);
        let raw = fs::read(&path).unwrap();
        assert!(!raw.windows(7).any(|window| window == b"b@x.org"), "a removed value is still in the file");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "something lies beside the vault");
    }

    #[test]
    fn a_clash_stops_and_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::open(&dir.path().join("vault.db"), dir.path(), false).unwrap();
        let clashed = vault.edit(|edit| {
            edit.put_doc(&doc(1), &[hidden("[EMAIL_a]", "a@x.org"), hidden("[EMAIL_a]", "other@x.org")], &SystemClock)
        });
        assert!(matches!(clashed, Err(VaultError::Clash { .. })));
        assert!(vault.is_empty().unwrap());
    }
}
