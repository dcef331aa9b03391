//! Whom do we trust? The CA roots and their revocation list, read again whenever they are needed.
//!
//! Two small files are looked at, and read and parsed where they changed. A list that is there and can't be
//! read refuses: it might have named anyone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bastion_host::seen::SeenFile;
use rustls_pki_types::CertificateDer;

use crate::ca;
use crate::cert;
use crate::crl::{self, RevocationList};
use crate::error::{Fault, RefusalCode};

/// A bundle of roots, or a revocation list, may be this many bytes long.
const MAX_BYTES: u64 = 4 << 20;

/// The roots that are trusted, as they were when read.
#[derive(Debug)]
pub struct Anchors {
    roots: Vec<CertificateDer<'static>>,
    pub(crate) lists: Vec<RevocationList>,
    root_file: SeenFile,
    list_file: SeenFile,
}

impl Anchors {
    /// The root certificates.
    pub fn roots(&self) -> &[CertificateDer<'static>] {
        &self.roots
    }

    /// The roots' subjects, each a DER `Name`: what a TLS server may tell a client to choose its certificate by.
    pub fn subjects(&self) -> Vec<Vec<u8>> {
        self.roots.iter().filter_map(|der| cert::parse(der).ok().map(|root| root.subject().as_raw().to_vec())).collect()
    }
}

/// Where the roots and their revocation list lie, and what was last read there.
#[derive(Debug)]
pub(crate) struct AnchorFiles {
    root: PathBuf,
    /// The machine's own CA stands in for a root that nobody named.
    own: bool,
    list: PathBuf,
    /// Without the list nothing passes: it was named, or it is our own CA's, which always has one.
    list_required: bool,
    last: Mutex<Option<Arc<Anchors>>>,
}

impl AnchorFiles {
    pub(crate) fn new(root: Option<&Path>, list: Option<&Path>, state_dir: &Path) -> Self {
        let own = root.is_none();
        let root = root.map_or_else(|| ca::root_path(state_dir), Path::to_owned);
        let list_required = own || list.is_some();
        let list = list.map_or_else(|| root.with_file_name(ca::CRL_NAME), Path::to_owned);
        Self { root, own, list, list_required, last: Mutex::new(None) }
    }

    /// The roots as the files have them now.
    ///
    /// # Errors
    /// `no_root` where there is no readable root, or a revocation list that can't be read.
    pub(crate) fn load(&self) -> Result<Arc<Anchors>, Fault> {
        let known = self.last().clone();
        if let Some(known) = known.filter(|known| known.root_file.is_still() && known.list_file.is_still()) {
            return Ok(known);
        }
        let root_file = SeenFile::read(&self.root, MAX_BYTES).map_err(|error| self.no_root(&error))?;
        let root_bytes = root_file.bytes().ok_or_else(|| self.no_root(&io::ErrorKind::NotFound.into()))?;
        let unread = |error: &io::Error| fault(&self.list, &format!("the revocation list can't be read: {error}"));
        let list_file = SeenFile::read(&self.list, MAX_BYTES).map_err(|error| unread(&error))?;
        if list_file.bytes().is_none() && self.list_required {
            return Err(unread(&io::ErrorKind::NotFound.into()));
        }
        let mut roots = cert::from_pem(root_bytes).map_err(|why| fault(&self.root, &why))?;
        roots.retain(|der| cert::parse(der).is_ok()); // a bundle may hold one that no strict reader takes
        if roots.is_empty() {
            return Err(fault(&self.root, "has no certificate in it that can be read"));
        }
        let lists = match list_file.bytes() {
            Some(bytes) => crl::from_pem(bytes).map_err(|why| fault(&self.list, &why))?,
            None => Vec::new(),
        };
        let anchors = Arc::new(Anchors { roots, lists, root_file, list_file });
        *self.last() = Some(Arc::clone(&anchors));
        Ok(anchors)
    }

    fn last(&self) -> MutexGuard<'_, Option<Arc<Anchors>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn no_root(&self, error: &io::Error) -> Fault {
        if self.own && error.kind() == io::ErrorKind::NotFound {
            return Fault::new(
                RefusalCode::NoRoot,
                "no CA root to trust: set FREEAGENT_CA_ROOT (or --ca) to its PEM file, or make one with `bastion ca init`",
            );
        }
        fault(&self.root, &error.to_string())
    }
}

fn fault(path: &Path, why: &str) -> Fault {
    Fault::new(RefusalCode::NoRoot, format!("{}: {why}", path.display()))
}
