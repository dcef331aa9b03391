//! May this manifest be obeyed? The one place that says so: bytes in, [`Admitted`] or [`Refused`] out.
//!
//! The checks are those of manifest.md §4, in that order; the first that fails is the refusal. The manifest's bytes
//! are read once, and what was verified is what is handed on. Nothing else in the program makes an [`Admitted`], so
//! code that takes one can't run without the gate:
//!
//! ```compile_fail,E0451
//! // the fields are private and there is no constructor
//! fn forge(genuine: bastion_trust::Admitted) -> bastion_trust::Admitted {
//!     bastion_trust::Admitted { path: "/etc".into(), ..genuine }
//! }
//! ```
//! ```compile_fail,E0277
//! fn forge() -> bastion_trust::Admitted { Default::default() }
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bastion_host::clock::Clock;
use bastion_host::files::read_capped;
use bastion_host::seen::SeenFile;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::anchors::{AnchorFiles, Anchors};
use crate::cert;
use crate::chain::{self, Trust, Usage, Window};
use crate::ecdsa;
use crate::error::{Fault, RefusalCode, Refused};
use crate::floor::{Floor, FloorKey, FloorState};
use crate::manifest::{self, MAX_MANIFEST_BYTES, Manifest, ParsedManifest, Signature};
use crate::roots::{self, ResolvedRoot};
use crate::scope::{AGENT_DIR, Scope};

/// The one kind of signature there is: ECDSA on P-256 with SHA-256, DER, base64.
pub const SIGNATURE_ALG: &str = "ecdsa-p256-sha256";

/// Where the gate finds what it judges by.
#[derive(Debug, Clone)]
pub struct GateSettings {
    /// PEM file of the CA roots; where there is none the CA that `bastion ca init` made in the state directory.
    pub ca_root: Option<PathBuf>,
    /// PEM file of the revocation list; where there is none `crl.pem` beside the root, if it is there.
    pub crl: Option<PathBuf>,
    /// This machine's own state.
    pub state_dir: PathBuf,
}

/// Judges manifests and peers. It alone holds the roots, the floor and the clock.
pub struct Gate {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) anchors: AnchorFiles,
    pub(crate) floor: Floor,
    pub(crate) state_dir: PathBuf,
}

/// A manifest that passed the gate. Only [`Gate::judge`] makes one.
#[derive(Debug)]
pub struct Admitted {
    parsed: ParsedManifest,
    path: PathBuf,
    standing: Standing,
    roots: Vec<ResolvedRoot>,
    scope: Scope,
    pub(crate) evidence: Evidence,
}

/// What a signature is over, whichever kind of file says it: a folder's manifest or an agent's.
#[derive(Debug, Clone)]
pub struct Claim {
    /// What the file calls itself.
    pub id: String,
    /// Who must have signed.
    pub owner_host: String,
    /// Rises with every signing.
    pub serial: Option<u64>,
    /// The signature, where there is one.
    pub signature: Option<Signature>,
    /// The signed bytes.
    pub payload: Vec<u8>,
}

impl Claim {
    /// Lower-case hex SHA-256 of the payload.
    pub fn digest(&self) -> String {
        manifest::hex(&Sha256::digest(&self.payload))
    }
}

impl From<&ParsedManifest> for Claim {
    fn from(parsed: &ParsedManifest) -> Self {
        let fields = parsed.manifest();
        Self {
            id: fields.id.to_string(),
            owner_host: fields.owner_host.clone(),
            serial: fields.serial,
            signature: fields.signature.clone(),
            payload: parsed.payload(),
        }
    }
}

/// What was read to come to the judgement, so that it can be seen cheaply whether anything changed.
#[derive(Debug)]
pub(crate) struct Evidence {
    pub(crate) manifest: Vec<u8>,
    pub(crate) floor: FloorState,
    /// Of a signed manifest.
    pub(crate) signer: Option<SignerEvidence>,
}

#[derive(Debug)]
pub(crate) struct SignerEvidence {
    pub(crate) cert: SeenFile,
    pub(crate) anchors: Arc<Anchors>,
    pub(crate) window: Window,
}

/// Why an admitted manifest was admitted. Goes into every record of what is done under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The owner's signature verifies.
    Signed {
        /// The signer's common name, equal to `owner.host`.
        cn: String,
        /// The certificate's path as the manifest records it.
        cert: String,
        /// The certificate chains to a root; always true of what the gate lets pass.
        chained: bool,
        /// The manifest's serial; without one an older signed file can't be told from this one.
        serial: Option<u64>,
        /// When the first certificate of the chain ends.
        not_after: Timestamp,
    },
    /// Nothing was verified: the manifest is unsigned and that was allowed, for development.
    Bypassed {
        /// Why it was let pass.
        reason: String,
    },
}

impl Gate {
    /// A gate that judges by these files and this clock. Nothing is read yet.
    pub fn new(settings: GateSettings, clock: Arc<dyn Clock>) -> Self {
        let GateSettings { ca_root, crl, state_dir } = settings;
        Self {
            clock,
            anchors: AnchorFiles::new(ca_root.as_deref(), crl.as_deref(), &state_dir),
            floor: Floor::in_state_dir(&state_dir),
            state_dir,
        }
    }

    /// Judges the manifest at `path`. `allow_unsigned` lets one pass that has no signature, and nothing else.
    ///
    /// # Errors
    /// The first check that failed.
    pub fn judge(&self, path: &Path, allow_unsigned: bool) -> Result<Admitted, Refused> {
        let unread = |fault: Fault| refused(path, None, fault);
        let (canonical, bytes) = read_manifest(path).map_err(unread)?;
        let parsed = manifest::parse(&bytes)
            .map_err(|error| unread(Fault::new(RefusalCode::Malformed, format!("{}: {error}", path.display()))))?;
        let judged = self.judge_parsed(&parsed, &canonical, allow_unsigned);
        match judged {
            Ok((standing, roots, floor, signer)) => Ok(Admitted {
                scope: Scope::of(parsed.manifest()),
                evidence: Evidence { manifest: bytes, floor, signer },
                parsed,
                path: canonical,
                standing,
                roots,
            }),
            Err(fault) => Err(refused(path, Some(&parsed), fault)),
        }
    }

    #[allow(clippy::type_complexity)] // four parts of the one value that judge() puts together
    fn judge_parsed(
        &self,
        parsed: &ParsedManifest,
        path: &Path,
        allow_unsigned: bool,
    ) -> Result<(Standing, Vec<ResolvedRoot>, FloorState, Option<SignerEvidence>), Fault> {
        let manifest = parsed.manifest();
        let now = self.clock.now();
        let roots = roots::resolve(manifest, path)
            .map_err(|error| Fault::new(RefusalCode::Malformed, format!("{}: {error}", path.display())))?;
        let Some(signature) = &manifest.signature else {
            if !allow_unsigned {
                return Err(Fault::new(
                    RefusalCode::Unsigned,
                    "the manifest has no signature; `bastion sign` makes one",
                ));
            }
            let floor = self.floor.admit_unsigned(now)?;
            let reason = "--allow-unsigned: the manifest has no signature".to_owned();
            return Ok((Standing::Bypassed { reason }, roots, floor, None));
        };
        let (standing, floor, signer) = self.judge_signed(&Claim::from(parsed), signature, path, now)?;
        Ok((standing, roots, floor, Some(signer)))
    }

    /// Judges a signed file of another kind, at its canonical path. What [`Gate::judge`] does with a manifest's
    /// signature, the floor included, and nothing of what the file says.
    ///
    /// # Errors
    /// The first check that failed.
    pub fn judge_claim(&self, claim: &Claim, path: &Path) -> Result<Standing, Fault> {
        let Some(signature) = &claim.signature else {
            return Err(Fault::new(RefusalCode::Unsigned, "it has no signature; `bastion sign` makes one"));
        };
        self.judge_signed(claim, signature, path, self.clock.now()).map(|(standing, ..)| standing)
    }

    /// As [`Gate::judge_claim`], for a look that is to leave no trace: the floor is asked and not raised.
    ///
    /// # Errors
    /// The first check that failed.
    pub fn check_claim(&self, claim: &Claim, path: &Path) -> Result<Standing, Fault> {
        let Some(signature) = &claim.signature else {
            return Err(Fault::new(RefusalCode::Unsigned, "it has no signature; `bastion sign` makes one"));
        };
        let signer = self.judge_signature(claim, signature, path, self.clock.now())?;
        let key = FloorKey::new(&claim.owner_host, &claim.id, path);
        self.floor.check(&key, claim.serial, &claim.digest())?;
        Ok(standing_of(claim, signature, &signer))
    }

    fn judge_signed(
        &self,
        claim: &Claim,
        signature: &Signature,
        path: &Path,
        now: Timestamp,
    ) -> Result<(Standing, FloorState, SignerEvidence), Fault> {
        let signer = self.judge_signature(claim, signature, path, now)?;
        let key = FloorKey::new(&claim.owner_host, &claim.id, path);
        let floor = self.floor.admit(&key, claim.serial, &claim.digest(), now)?;
        Ok((standing_of(claim, signature, &signer), floor, signer))
    }

    fn judge_signature(
        &self,
        claim: &Claim,
        signature: &Signature,
        path: &Path,
        now: Timestamp,
    ) -> Result<SignerEvidence, Fault> {
        if signature.alg != SIGNATURE_ALG {
            let alg: String = signature.alg.chars().take(64).flat_map(char::escape_debug).collect();
            return Err(Fault::new(RefusalCode::UnknownAlg, format!("`{alg}` is no `{SIGNATURE_ALG}`")));
        }
        let anchors = self.anchors.load()?;
        let cert_path = beside(path, &signature.cert);
        let (cert, chain) = read_cert(&cert_path)?;
        let leaf = cert::parse(&chain[0]).map_err(|why| cert_unreadable(&cert_path, &why))?;
        let cn = cert::common_name(leaf.subject())?;
        let owner = &claim.owner_host;
        if cn.as_str() != owner {
            return Err(Fault::new(
                RefusalCode::CnMismatch,
                format!("the certificate is `{cn}`'s, and the manifest's owner.host is `{owner}`"),
            ));
        }
        let trust = Trust { roots: anchors.roots(), lists: &anchors.lists };
        let window = chain::judge(&chain, &trust, Usage::Sign, now)?;
        verify_signature(&leaf, &claim.payload, &signature.value)?;
        Ok(SignerEvidence { cert, anchors, window })
    }

    /// The roots that are trusted now.
    ///
    /// # Errors
    /// `no_root`.
    pub fn roots(&self) -> Result<Arc<Anchors>, Fault> {
        self.anchors.load()
    }

    /// The roots that are trusted now, where `admitted` was just found to hold: the ones that it holds by.
    ///
    /// # Errors
    /// `no_root`.
    pub fn roots_of(&self, admitted: &Admitted) -> Result<Arc<Anchors>, Fault> {
        match &admitted.evidence.signer {
            Some(signer) => Ok(Arc::clone(&signer.anchors)),
            None => self.roots(),
        }
    }

    /// The time that the gate judges by.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

impl Admitted {
    /// The fields that were verified.
    pub fn manifest(&self) -> &Manifest {
        self.parsed.manifest()
    }

    /// Lower-case hex SHA-256 of the verified payload.
    pub fn digest(&self) -> String {
        self.parsed.digest()
    }

    /// The manifest's canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it was admitted.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// The folders in scope, in the manifest's order.
    pub fn roots(&self) -> &[ResolvedRoot] {
        &self.roots
    }

    /// Which paths of them are in scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Where this agent's output goes unless `--out` says otherwise (manifest.md §5): `<root>/.agent` of an agent of
    /// one root, else `build/freeagent/<id>` below the current directory (a relative path).
    pub fn default_out(&self) -> PathBuf {
        match self.roots.as_slice() {
            [root] => root.path.join(AGENT_DIR),
            _ => Path::new("build/freeagent").join(self.manifest().id.as_str()),
        }
    }
}

fn standing_of(claim: &Claim, signature: &Signature, signer: &SignerEvidence) -> Standing {
    Standing::Signed {
        cn: claim.owner_host.clone(),
        cert: signature.cert.clone(),
        chained: true,
        serial: claim.serial,
        not_after: signer.window.not_after,
    }
}

/// The manifest's canonical path and its bytes, read once.
pub(crate) fn read_manifest(path: &Path) -> Result<(PathBuf, Vec<u8>), Fault> {
    let unreadable = |error: std::io::Error| {
        Fault::new(RefusalCode::Malformed, format!("{}: the manifest can't be read: {error}", path.display()))
    };
    let canonical = path.canonicalize().map_err(unreadable)?;
    let bytes = read_capped(&canonical, MAX_MANIFEST_BYTES as u64).map_err(unreadable)?;
    Ok((canonical, bytes))
}

/// A path that the manifest names, read relative to the manifest's folder.
pub(crate) fn beside(manifest: &Path, path: &str) -> PathBuf {
    manifest.parent().unwrap_or_else(|| Path::new("/")).join(path)
}

/// A certificate file, read once, and its certificates, leaf first.
pub(crate) fn read_cert(path: &Path) -> Result<(SeenFile, Vec<rustls_pki_types::CertificateDer<'static>>), Fault> {
    let file = SeenFile::read(path, cert::MAX_CERT_BYTES).map_err(|error| cert_unreadable(path, &error.to_string()))?;
    let absent = || cert_unreadable(path, &std::io::Error::from(std::io::ErrorKind::NotFound).to_string());
    let chain = cert::from_pem(file.bytes().ok_or_else(absent)?).map_err(|why| cert_unreadable(path, &why))?;
    Ok((file, chain))
}

fn cert_unreadable(path: &Path, why: &str) -> Fault {
    Fault::new(RefusalCode::CertUnreadable, format!("{}: {why}", path.display()))
}

/// Whether the base64 of a DER signature is one of the payload under the certificate's key.
pub(crate) fn verify_signature(
    leaf: &x509_parser::certificate::X509Certificate<'_>,
    payload: &[u8],
    value: &str,
) -> Result<(), Fault> {
    let point = cert::p256_point(leaf.public_key())
        .filter(|point| ecdsa::is_point(point))
        .ok_or_else(|| Fault::new(RefusalCode::WrongKey, "the certificate's key is not an EC key on P-256"))?;
    let bad = |why: &str| Fault::new(RefusalCode::BadSignature, why);
    let signature = BASE64.decode(value).map_err(|_| bad("the signature's value is not base64"))?;
    if !ecdsa::verifies(point, payload, &signature) {
        return Err(bad(
            "the signature is not one of this manifest under this certificate; was it edited after signing?",
        ));
    }
    Ok(())
}

pub(crate) fn refused(path: &Path, parsed: Option<&ParsedManifest>, fault: Fault) -> Refused {
    Refused {
        code: fault.code,
        detail: fault.detail,
        path: path.to_owned(),
        manifest_id: parsed.map(|parsed| parsed.manifest().id.to_string()),
        manifest_digest: parsed.map(ParsedManifest::digest),
    }
}
