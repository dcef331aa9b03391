//! A machine with a CA, an owner and a folder, in a temporary directory, with a clock that stands still.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bastion_host::clock::ManualClock;
use bastion_trust::{Admitted, Gate, GateSettings, RefusalCode, Refused, sign};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256,
};
use tempfile::TempDir;
use time::OffsetDateTime;

pub(crate) const HOST: &str = "alice.example";

pub(crate) fn now() -> Timestamp {
    "2030-06-15T12:00:00Z".parse().unwrap()
}

pub(crate) fn after(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

pub(crate) fn offset(t: Timestamp) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(t.as_second()).unwrap()
}

/// A key with its certificate, and the chain above it.
pub(crate) struct Minted {
    pub(crate) params: CertificateParams,
    pub(crate) key: KeyPair,
    pub(crate) pem: String,
}

pub(crate) fn dn(cn: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, cn);
    name
}

/// Parameters valid for a day around [`now`].
pub(crate) fn params(cn: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = dn(cn);
    params.not_before = offset(after(-86_400));
    params.not_after = offset(after(86_400));
    params.is_ca = IsCa::ExplicitNoCa;
    params
}

pub(crate) fn ca_params(cn: &str) -> CertificateParams {
    let mut params = params(cn);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

pub(crate) fn key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap()
}

pub(crate) fn self_signed(params: CertificateParams) -> Minted {
    let key = key();
    let pem = params.self_signed(&key).unwrap().pem();
    Minted { params, key, pem }
}

impl Minted {
    pub(crate) fn issue(&self, params: CertificateParams) -> Minted {
        self.issue_for(params, key())
    }

    pub(crate) fn issue_for(&self, params: CertificateParams, key: KeyPair) -> Minted {
        let issuer = Issuer::from_params(&self.params, &self.key);
        let pem = params.signed_by(&key, &issuer).unwrap().pem();
        Minted { params, key, pem }
    }

    pub(crate) fn der(&self) -> rustls_pki_types::CertificateDer<'static> {
        pem::parse(&self.pem).unwrap().into_contents().into()
    }
}

pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) root: Minted,
}

pub(crate) const MANIFEST: &str = "\
# the owner's words
v: 1
id: notes   # a name
owner: {host: alice.example}
roots:
  - path: ..
    exclude: [secret/]
grants:
  - host: bob.example
    ops: [search]
    until: 2031-01-31
serial: 1
";

impl World {
    /// A machine whose CA is trusted, with an unsigned manifest and the owner's `owner.pem` and `owner.key`.
    pub(crate) fn new() -> Self {
        Self::with_root(self_signed(ca_params("root")))
    }

    pub(crate) fn with_root(root: Minted) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("folder/.agent")).unwrap();
        let world = Self { dir, clock: Arc::new(ManualClock::at(now())), root };
        fs::write(world.path("root.pem"), &world.root.pem).unwrap();
        world.owner(&world.root.issue(params(HOST)), "");
        world.write(MANIFEST);
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.path("folder/.agent/manifest.yaml")
    }

    pub(crate) fn write(&self, text: &str) {
        fs::write(self.manifest(), text).unwrap();
    }

    pub(crate) fn read(&self) -> String {
        fs::read_to_string(self.manifest()).unwrap()
    }

    /// Puts the owner's certificate (with what stands above it) and key in place.
    pub(crate) fn owner(&self, owner: &Minted, above: &str) {
        fs::write(self.path("owner.pem"), format!("{}{above}", owner.pem)).unwrap();
        fs::write(self.path("owner.key"), owner.key.serialize_pem()).unwrap();
    }

    pub(crate) fn gate(&self) -> Gate {
        self.gate_with(Some(self.path("root.pem")), None)
    }

    pub(crate) fn gate_with(&self, ca_root: Option<PathBuf>, crl: Option<PathBuf>) -> Gate {
        Gate::new(GateSettings { ca_root, crl, state_dir: self.path("state") }, self.clock.clone())
    }

    pub(crate) fn sign(&self) -> sign::Signed {
        self.try_sign().unwrap()
    }

    pub(crate) fn try_sign(&self) -> Result<sign::Signed, sign::SignError> {
        sign::sign(&self.gate(), &self.manifest(), Path::new("../../owner.pem"), &self.path("owner.key"))
    }

    pub(crate) fn judge(&self) -> Result<Admitted, Refused> {
        self.gate().judge(&self.manifest(), false)
    }

    pub(crate) fn admitted(&self) -> Admitted {
        self.judge().unwrap()
    }

    #[track_caller]
    pub(crate) fn refused(&self, code: RefusalCode) -> Refused {
        let refused = self.judge().expect_err("the gate must refuse");
        assert_eq!(refused.code, code, "{refused}");
        refused
    }
}

/// Runs `openssl`, or answers nothing where it is not there.
pub(crate) fn openssl(dir: &Path, args: &[&str], input: &[u8]) -> Option<std::process::Output> {
    use std::io::Write as _;
    let spawned = Command::new("openssl")
        .args(args)
        .current_dir(dir)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        println!("SKIPPED: no openssl program here");
        return None;
    };
    child.stdin.take().unwrap().write_all(input).unwrap();
    Some(child.wait_with_output().unwrap())
}

/// As [`openssl`], and it must succeed.
pub(crate) fn openssl_ok(dir: &Path, args: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let output = openssl(dir, args, input)?;
    assert!(output.status.success(), "openssl {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Some(output.stdout)
}
