//! A sealed bundle: for the owner alone, signed, the same for the same content, and readable by the tools of others.

use std::path::{Path, PathBuf};
use std::process::Command;

use age::secrecy::ExposeSecret;

use crate::support::{Machine, Ran, files, holds};

struct Sealed {
    machine: Machine,
    folder: PathBuf,
    recipient: String,
}

impl Sealed {
    fn new() -> Self {
        let machine = Machine::new();
        let folder = machine.folder("Documents", &[("a.md", "The heron fishes. Ask heron.keeper@example.org.")]);
        let identity = age::x25519::Identity::generate();
        let recipient = identity.to_public().to_string();
        std::fs::write(machine.path("key.txt"), identity.to_string().expose_secret()).unwrap();
        machine.swept(&folder).ok(); // makes the CA
        machine.run(&["ca", "issue", "sealer.example", "--owner", "--to", "."]).ok();
        Self { machine, folder, recipient }
    }

    fn sweep(&self, signed: bool) -> Ran {
        let mut command = self.machine.command(&["up", "--once", self.folder.to_str().unwrap()]);
        command.env("FREEAGENT_OWNER_RECIPIENT", &self.recipient);
        if signed {
            command.env("SEAL_SIGN_KEY", self.machine.path("sealer.example.key"));
        }
        command.output().unwrap().into()
    }

    /// The one bundle that there is.
    fn bundle(&self) -> PathBuf {
        let bundles: Vec<_> = files(&self.folder.join(".agent/seal"))
            .into_iter()
            .filter(|path| path.extension().is_some_and(|e| e == "age"))
            .collect();
        assert_eq!(bundles.len(), 1, "{bundles:?}");
        bundles.into_iter().next().unwrap()
    }

    fn open(&self, bundle: &Path, certificate: &str, to: &str) -> Ran {
        self.machine.run(&[
            "open",
            bundle.to_str().unwrap(),
            "--identity",
            "key.txt",
            "--verify",
            certificate,
            "--to",
            to,
        ])
    }
}

#[test]
fn a_bundle_holds_the_sanitized_text_and_opens_for_its_owner() {
    let sealed = Sealed::new();
    sealed.sweep(true).ok();
    let bundle = sealed.bundle();
    let digest = bundle.file_stem().unwrap().to_str().unwrap();
    assert!(digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
    sealed.open(&bundle, "sealer.example.pem", "opened").ok();
    let opened = sealed.machine.path("opened");
    let text = files(&opened.join("text")).pop().unwrap();
    let text = std::fs::read(text).unwrap();
    assert!(holds(&text, "heron fishes") && !holds(&text, "heron.keeper@"), "{}", String::from_utf8_lossy(&text));
    for name in ["manifest.digest", "chunks.jsonl", "catalog/files.jsonl", "catalog/dirs.jsonl"] {
        assert!(opened.join(name).is_file(), "{name}");
    }

    // The same content is not sealed again; a grant is another manifest, so another bundle, and the old one goes.
    let made = std::fs::metadata(&bundle).unwrap().modified().unwrap();
    sealed.sweep(true).ok();
    assert_eq!(std::fs::metadata(sealed.bundle()).unwrap().modified().unwrap(), made);
    let folder = sealed.folder.to_str().unwrap();
    sealed.machine.run(&["grant", folder, "other.example", "--until", "2999-01-01"]).ok();
    sealed.sweep(true).ok();
    assert_ne!(sealed.bundle(), bundle);

    // What leaves the folder is in no bundle that is kept, even where nobody seals any more.
    std::fs::write(sealed.folder.join("b.md"), "stays").unwrap();
    std::fs::remove_file(sealed.folder.join("a.md")).unwrap();
    sealed.machine.swept(&sealed.folder).ok();
    assert_eq!(files(&sealed.folder.join(".agent/seal")).len(), 0);

    // Who seals again, with nothing else changed, has a bundle again.
    for _ in 0..2 {
        sealed.sweep(true).ok();
        sealed.bundle();
    }
}

#[test]
fn a_forged_bundle_and_a_missing_signer_are_refused() {
    let sealed = Sealed::new();
    let refused = sealed.sweep(false).fails(1);
    assert!(refused.err.contains("SEAL_SIGN_KEY"), "{}", refused.err);
    sealed.sweep(true).ok();
    let bundle = sealed.bundle();
    sealed.machine.run(&["ca", "issue", "other.example", "--owner", "--to", "."]).ok();
    let refused = sealed.open(&bundle, "other.example.pem", "opened").fails(1);
    assert!(refused.err.contains("does not verify"), "{}", refused.err);
    let mut bytes = std::fs::read(&bundle).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&bundle, bytes).unwrap();
    sealed.open(&bundle, "sealer.example.pem", "opened").fails(1);
    sealed.machine.run(&["open", bundle.to_str().unwrap(), "--identity", "key.txt", "--to", "opened"]).fails(1);
    assert!(!sealed.machine.path("opened").exists(), "something was written before all was checked");
}

#[test]
fn openssl_and_age_read_what_we_seal() {
    let sealed = Sealed::new();
    sealed.sweep(true).ok();
    let bundle = sealed.bundle();
    let run = |program: &str, args: &[&str]| match Command::new(program)
        .args(args)
        .current_dir(sealed.machine.home.path())
        .output()
    {
        Ok(output) => Some(output),
        Err(error) => {
            println!("SKIPPED: {program}: {error}");
            None
        }
    };
    let (bundle, signature) = (bundle.to_str().unwrap().to_owned(), bundle.with_extension("sig"));
    if let Some(key) = run("openssl", &["x509", "-in", "sealer.example.pem", "-noout", "-pubkey"]) {
        std::fs::write(sealed.machine.path("key.pub"), key.stdout).unwrap();
        let checked = run(
            "openssl",
            &["dgst", "-sha256", "-verify", "key.pub", "-signature", signature.to_str().unwrap(), &bundle],
        )
        .unwrap();
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
    if let Some(opened) = run("age", &["-d", "-i", "key.txt", &bundle]) {
        assert!(opened.status.success(), "{}", String::from_utf8_lossy(&opened.stderr));
        assert_eq!(&opened.stdout[..4], [0x28, 0xb5, 0x2f, 0xfd], "not zstd (RFC 8878)");
    }
}
