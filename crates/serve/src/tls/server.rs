//! The endpoint's TLS settings, made anew when the certificate or key file is replaced.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bastion_trust::{Gate, Usage};
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;

use super::verify::PeerVerifier;
use super::{TlsError, TlsFiles, provider};
use crate::notice::Notices;

/// What to answer handshakes with.
#[derive(Debug)]
pub(crate) struct ServerTls {
    files: TlsFiles,
    verifier: Arc<PeerVerifier>,
    notices: Notices,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    /// What the two files were when they were last read, whether or not they could be used.
    marks: [Option<Mark>; 2],
    config: Arc<ServerConfig>,
}

/// What of a file changes when its content does. Nothing is decided by it but whether to read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mark {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl ServerTls {
    pub(crate) fn load(files: TlsFiles, gate: Arc<Gate>, notices: Notices) -> Result<Self, TlsError> {
        files.roots()?; // all three must be there; which roots count is the gate's to say
        if files.key_is_open() {
            notices.say(&format!("{}: others may read this key; chmod 600 it", files.key.display()));
        }
        let marks = marks(&files);
        let verifier = Arc::new(PeerVerifier::new(Arc::clone(&gate), provider()));
        let config = config(&files, &verifier)?;
        if let Err(fault) = files.chain().map(|chain| gate.judge_peer(&chain, Usage::Server, gate.now()))? {
            notices.say(&format!(
                "{}: clients will not accept this certificate: {}",
                files.cert.display(),
                fault.detail
            ));
        }
        Ok(Self { files, verifier, notices, loaded: Mutex::new(Loaded { marks, config }) })
    }

    /// The settings for a new connection. Files that changed are read again; while they don't fit together (one is
    /// replaced and the other not yet) the pair before them goes on.
    pub(crate) fn current(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let marks = marks(&self.files);
        if marks != loaded.marks {
            loaded.marks = marks;
            match config(&self.files, &self.verifier) {
                Ok(config) => loaded.config = config,
                Err(error) => self.notices.say(&format!("the certificate before goes on being used: {error}")),
            }
        }
        Arc::clone(&loaded.config)
    }
}

fn config(files: &TlsFiles, verifier: &Arc<PeerVerifier>) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, key) = (files.chain()?, files.private_key()?);
    let pair = |source| TlsError::Pair { cert: files.cert.clone(), key: files.key.clone(), source };
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions() // 1.2 and 1.3
        .map_err(pair)?
        .with_client_cert_verifier(Arc::clone(verifier) as _)
        .with_single_cert(chain, key)
        .map_err(pair)?;
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn marks(files: &TlsFiles) -> [Option<Mark>; 2] {
    [mark(&files.cert), mark(&files.key)]
}

fn mark(path: &Path) -> Option<Mark> {
    let meta = fs::metadata(path).ok()?;
    Some(Mark {
        inode: meta.ino(),
        length: meta.len(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    })
}
