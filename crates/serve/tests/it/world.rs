//! A folder with an agent, its CA and its hosts, and an endpoint that serves it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use bastion_host::clock::{Clock, ManualClock};
use bastion_retrieval::{ChunkKey, Embedder, IndexWriter, ModelTag, windows};
use bastion_serve::{Endpoint, NoticeSink, Running, ServeConfig, ServeError, TlsFiles};
use bastion_store::{ChunkRow, DocId, Draft, Layout, NewDoc, PathRow, PathStatus, Served};
use bastion_trust::ca::{Ca, Purpose};
use bastion_trust::{Gate, GateSettings, LivePolicy};
use jiff::Timestamp;
use rustls_pki_types::pem::PemObject;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::peer::Peer;

pub(crate) const OWNER: &str = "owner.example";
pub(crate) const READER: &str = "reader.example";

/// What stands in the plaintext and must never go out.
pub(crate) const PLANTED: &str = "planted.person@private.example";

/// A manifest's changing parts.
#[derive(Debug, Clone)]
pub(crate) struct Manifest {
    pub(crate) ops: &'static str,
    pub(crate) grants: String,
    pub(crate) more: &'static str,
}

impl Default for Manifest {
    fn default() -> Self {
        Self { ops: "[search, read_range]", grants: grant(READER, "[search]", "2026-12-31"), more: "" }
    }
}

pub(crate) fn grant(host: &str, ops: &str, until: &str) -> String {
    format!("  - {{host: {host}, ops: {ops}, until: {until}}}\n")
}

pub(crate) struct World {
    dir: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) ca: Ca,
    pub(crate) notices: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// A CA, an owner with a signed manifest, and nothing swept yet. It is noon on 1 June 2026.
    pub(crate) fn new() -> Self {
        Self::at("2026-06-01T12:00:00Z".parse().unwrap())
    }

    /// As [`World::new`], at another time.
    pub(crate) fn at(now: Timestamp) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::at(now));
        let ca = Ca::init(&dir.path().join("state"), clock.now()).unwrap();
        let world = Self { dir, clock, ca, notices: Arc::default() };
        fs::create_dir_all(world.out()).unwrap();
        for (host, name, purpose) in [
            (OWNER, "signer", Purpose::Sign),
            (OWNER, "endpoint", Purpose::Tls),
            (OWNER, OWNER, Purpose::Owner),
            (READER, READER, Purpose::Client),
            ("stranger.example", "stranger.example", Purpose::Client),
        ] {
            world.issue(host, name, purpose);
        }
        world.sign(&Manifest::default());
        world
    }

    /// As [`World::new`], with three documents swept.
    pub(crate) fn swept() -> Self {
        let world = Self::new();
        world.sweep(&documents());
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.path("folder/.agent")
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.out().join("manifest.yaml")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock) as _
    }

    /// Makes `<name>.pem` and `<name>.key`.
    pub(crate) fn issue(&self, host: &str, name: &str, purpose: Purpose) {
        let issued = self.ca.issue(host, None, purpose, self.now()).unwrap();
        self.keep(name, &issued.cert_pem, &issued.key_pem.unwrap());
    }

    pub(crate) fn keep(&self, name: &str, cert: &str, key: &str) {
        use std::os::unix::fs::PermissionsExt;
        fs::write(self.path(&format!("{name}.pem")), cert).unwrap();
        let key_path = self.path(&format!("{name}.key"));
        fs::write(&key_path, key).unwrap();
        fs::set_permissions(&key_path, fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            cert: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
            ca: self.ca.root_path(),
        }
    }

    /// Writes the manifest with the owner's signature.
    pub(crate) fn sign(&self, manifest: &Manifest) {
        let text = self.unsigned(manifest);
        let payload = bastion_trust::payload(text.as_bytes()).unwrap();
        let key = fs::read(self.path("signer.key")).unwrap();
        let key = rustls_pki_types::PrivatePkcs8KeyDer::from_pem_slice(&key).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.secret_pkcs8_der()).unwrap();
        let signature = key.sign(&SystemRandom::new(), &payload).unwrap();
        let value = base64::engine::general_purpose::STANDARD.encode(signature.as_ref());
        let cert = self.path("signer.pem");
        let block = format!("signature:\n  alg: ecdsa-p256-sha256\n  cert: {}\n  value: {value}\n", cert.display());
        self.write_manifest(&format!("{text}{block}"));
    }

    pub(crate) fn unsigned(&self, manifest: &Manifest) -> String {
        let Manifest { ops, grants, more } = manifest;
        let grants = if grants.is_empty() { "grants: []\n".to_owned() } else { format!("grants:\n{grants}") };
        format!("v: 1\nid: demo\nowner:\n  host: {OWNER}\nroots:\n  - ..\nops: {ops}\n{grants}{more}")
    }

    pub(crate) fn write_manifest(&self, text: &str) {
        bastion_host::files::replace(&self.manifest(), text.as_bytes(), 0o600).unwrap();
    }

    pub(crate) fn gate(&self) -> Arc<Gate> {
        let settings = GateSettings { ca_root: None, crl: None, state_dir: self.state() };
        Arc::new(Gate::new(settings, self.clock()))
    }

    pub(crate) fn config(&self) -> ServeConfig {
        let notices = Arc::clone(&self.notices);
        ServeConfig {
            out: self.out(),
            bind: "127.0.0.1:0".parse().unwrap(),
            port_file: None,
            tls: self.files("endpoint"),
            notices: NoticeSink::new(move |line| notices.lock().unwrap().push(line.to_owned())),
        }
    }

    pub(crate) fn policy(&self) -> LivePolicy {
        LivePolicy::new(self.gate(), self.manifest(), false)
    }

    pub(crate) fn try_start(&self, config: ServeConfig) -> Result<Running, ServeError> {
        Endpoint::start(config, self.policy(), None, self.clock())
    }

    pub(crate) fn start(&self) -> Running {
        self.try_start(self.config()).unwrap()
    }

    pub(crate) fn start_with(&self, embedder: Arc<dyn Embedder>) -> Running {
        Endpoint::start(self.config(), self.policy(), Some(embedder), self.clock()).unwrap()
    }

    /// A connection of the host whose certificate is `<name>.pem`.
    pub(crate) fn connect(&self, endpoint: &Running, name: &str) -> Peer {
        Peer::connect(endpoint.address(), Some(&self.files(name))).unwrap()
    }

    pub(crate) fn audit(&self) -> Vec<serde_json::Value> {
        bastion_host::jsonl::read(&self.out().join("serve.audit.jsonl")).unwrap()
    }

    pub(crate) fn audit_text(&self) -> String {
        fs::read_to_string(self.out().join("serve.audit.jsonl")).unwrap()
    }

    /// Waits until a notice contains `text`.
    pub(crate) fn await_notice(&self, text: &str) {
        for _ in 0..1000 {
            if self.notices.lock().unwrap().iter().any(|line| line.contains(text)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no notice of {text:?} in {:?}", self.notices.lock().unwrap());
    }

    /// Commits a generation that holds exactly these documents.
    pub(crate) fn sweep(&self, documents: &[Document]) {
        self.sweep_with(documents, None);
    }

    /// As [`World::sweep`], with the vectors of `embedder` where one is given.
    pub(crate) fn sweep_with(&self, documents: &[Document], embedder: Option<&dyn Embedder>) {
        let layout = Layout::new(self.out());
        let mut draft = Draft::open(&layout).unwrap();
        for row in draft.docs().unwrap() {
            draft.remove_doc(row.ord).unwrap();
        }
        for row in draft.paths().unwrap() {
            draft.remove_path(&row.root, &row.path).unwrap();
        }
        let dir = draft.search_dir().unwrap();
        let mut index = IndexWriter::create(&dir, None).unwrap();
        if let Some(embedder) = embedder {
            index.set_vectors(embedder.tag());
        }
        fs::create_dir_all(layout.extract()).unwrap();
        for document in documents {
            document.write(&layout, &mut draft, &mut index, embedder);
        }
        draft.put_dirs(&[("notes".into(), "..".into(), r#"{"path":"notes","files":2}"#.into())]).unwrap();
        index.finish().unwrap();
        draft.commit().unwrap().unwrap().export().unwrap();
        assert!(Served::open(&layout).unwrap().is_some());
    }
}

/// One document as a sweep would leave it.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub(crate) path: &'static str,
    pub(crate) plain: String,
    pub(crate) sanitized: String,
}

impl Document {
    pub(crate) fn new(path: &'static str, plain: &str) -> Self {
        Self { path, plain: plain.to_owned(), sanitized: plain.replace(PLANTED, "[EMAIL_abcdefghijkl]") }
    }

    pub(crate) fn id(&self) -> DocId {
        DocId::from_bytes(Sha256::digest(self.plain.as_bytes()).into())
    }

    pub(crate) fn doc(&self) -> String {
        self.id().to_string()
    }

    fn write(&self, layout: &Layout, draft: &mut Draft, index: &mut IndexWriter, embedder: Option<&dyn Embedder>) {
        let doc = self.id();
        fs::write(layout.extract().join(format!("{doc}.txt")), &self.plain).unwrap();
        draft
            .put_path(&PathRow {
                root: "..".into(),
                path: self.path.into(),
                bytes: self.plain.len() as u64,
                mtime_ns: 0,
                ctime_ns: 0,
                inode: 0,
                doc: Some(doc),
                status: PathStatus::Ok,
                reason: None,
            })
            .unwrap();
        draft
            .put_doc(&NewDoc {
                doc,
                extract_print: "x".into(),
                mime: Some("text/plain".into()),
                status: "ok".into(),
                reason: None,
                pages: None,
                lang: Some("en".into()),
            })
            .unwrap();
        let ord = draft.doc(&doc).unwrap().unwrap().ord;
        let piece = draft.pieces().write(&doc, &self.sanitized).unwrap();
        let chars = self.sanitized.chars().count() as u64;
        draft.put_sanitized(ord, "s", &piece, chars, None, &[("EMAIL".to_owned(), 1)].into()).unwrap();
        let windows = windows(&self.sanitized, &[]);
        let rows: Vec<_> =
            windows.iter().map(|w| ChunkRow { index: w.index, start: w.start, end: w.end, print: 0 }).collect();
        draft.put_chunks(ord, "c", &rows).unwrap();
        for window in windows {
            let key = ChunkKey { doc: ord, index: window.index };
            let text = &self.sanitized[window.bytes];
            index.add(key, Some("en"), text);
            if let Some(embedder) = embedder {
                let vectors = embedder.embed(&[text], bastion_retrieval::Role::Passage).unwrap();
                index.add_vector(key, &vectors[0]);
            }
        }
        let head: String = self.sanitized.chars().take(400).collect();
        let card = serde_json::json!({"path": self.path, "doc": doc.to_string(), "head": head});
        draft.put_card("..", self.path, self.path, &card.to_string(), 0).unwrap();
    }
}

pub(crate) fn documents() -> Vec<Document> {
    vec![
        Document::new("notes/lighthouse.txt", &format!("The lighthouse keeper writes to {PLANTED} every spring.")),
        Document::new("notes/harbour.txt", "The harbour is quiet. Ships wait for the tide. 漢字 😀 end."),
        Document::new("letters/orchard.txt", "An orchard of old apple trees stands behind the house."),
    ]
}

/// An embedder whose vectors say which of a few words occur, and that can be taken away.
pub(crate) struct WordEmbedder {
    pub(crate) tag: ModelTag,
    pub(crate) reachable: Mutex<bool>,
}

impl WordEmbedder {
    pub(crate) fn new(name: &str) -> Self {
        Self { tag: ModelTag { name: name.to_owned(), dims: 4 }, reachable: Mutex::new(true) }
    }
}

impl Embedder for WordEmbedder {
    fn tag(&self) -> &ModelTag {
        &self.tag
    }

    fn embed(
        &self,
        texts: &[&str],
        _: bastion_retrieval::Role,
    ) -> Result<Vec<Vec<f32>>, bastion_retrieval::EmbedError> {
        if !*self.reachable.lock().unwrap() {
            return Err(bastion_retrieval::EmbedError::Nonsense { host: "test".into(), what: "taken away" });
        }
        let has = |text: &str, words: &[&str]| f32::from(u8::from(words.iter().any(|word| text.contains(word))));
        Ok(texts
            .iter()
            .map(|text| {
                vec![
                    has(text, &["lighthouse", "beacon"]),
                    has(text, &["harbour", "port"]),
                    has(text, &["orchard", "fruit"]),
                    0.1,
                ]
            })
            .collect())
    }
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
