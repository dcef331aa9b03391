//! Whom do we trust? The CA roots and their revocation list, read again whenever they are needed.
//!
//! Reading is two small files; parsing happens only where a byte of them changed. A list that is there and can't be
//! read refuses: it might have named anyone.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bastion_host::files::read_capped;
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
    source: (Vec<u8>, Option<Vec<u8>>),
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
        let root = read_capped(&self.root, MAX_BYTES).map_err(|error| self.no_root(&error))?;
        let list = match read_capped(&self.list, MAX_BYTES) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.list_required => None,
            Err(error) => return Err(fault(&self.list, &format!("the revocation list can't be read: {error}"))),
        };
        let source = (root, list);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(|known| known.source == source) {
            return Ok(Arc::clone(known));
        }
        let mut roots = cert::from_pem(&source.0).map_err(|why| fault(&self.root, &why))?;
        roots.retain(|der| cert::parse(der).is_ok()); // a bundle may hold one that no strict reader takes
        if roots.is_empty() {
            return Err(fault(&self.root, "has no certificate in it that can be read"));
        }
        let lists = match &source.1 {
            Some(bytes) => crl::from_pem(bytes).map_err(|why| fault(&self.list, &why))?,
            None => Vec::new(),
        };
        let anchors = Arc::new(Anchors { roots, lists, source });
        *last = Some(Arc::clone(&anchors));
        Ok(anchors)
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
