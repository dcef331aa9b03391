//! A CA of one's own: what it issues is accepted for what it is for, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bastion_trust::ca::{Ca, CaError, Purpose, needs_renewal, request};
use bastion_trust::{Gate, RefusalCode, Usage, identity, init, sign};

use crate::support::{World, after, now, openssl, openssl_ok};

fn der(pem: &str) -> rustls_pki_types::CertificateDer<'static> {
    pem::parse(pem).unwrap().into_contents().into()
}

fn world() -> (World, Ca, Gate) {
    let world = World::new();
    let ca = Ca::init(&world.path("state"), now()).unwrap();
    let gate = world.gate_with(None, None);
    (world, ca, gate)
}

fn code(gate: &Gate, pem: &str, usage: Usage) -> Result<(), RefusalCode> {
    gate.judge_peer(&[der(pem)], usage, now()).map(drop).map_err(|fault| fault.code)
}

#[test]
fn a_folder_goes_from_nothing_to_admitted() {
    let (world, ca, gate) = world();
    let folder = world.path("My Notes");
    fs::create_dir(&folder).unwrap();
    let (manifest, id) = init::init(&folder, "alice.example", |id| id == "my-notes").unwrap();
    assert_eq!(id.as_str(), "my-notes-2");
    assert!(matches!(init::init(&folder, "alice.example", |_| false), Err(init::InitError::AlreadyThere(_))));
    assert_eq!(fs::metadata(&manifest).unwrap().permissions().mode() & 0o777, 0o600);
    let state = world.path("state");
    let (signer, made) = identity::ensure(&ca, &state, identity::Kind::Sign, "alice.example", now()).unwrap();
    assert!(made);
    assert_eq!(gate.judge(&manifest, false).unwrap_err().code, RefusalCode::Unsigned);
    sign::sign(&gate, &manifest, &signer.cert, &signer.key).unwrap();
    assert_eq!(gate.judge(&manifest, false).unwrap().manifest().id, id);
    // with the root named, its revocation list beside it counts as well
    assert!(world.gate_with(Some(ca.root_path()), None).judge(&manifest, false).is_ok());
    ca.revoke("alice.example", now()).unwrap();
    assert_eq!(gate.judge(&manifest, false).unwrap_err().code, RefusalCode::Revoked);
    assert_eq!(
        world.gate_with(Some(ca.root_path()), None).judge(&manifest, false).unwrap_err().code,
        RefusalCode::Revoked
    );
}

#[test]
fn purposes_hold() {
    let (_world, ca, gate) = world();
    let issue = |purpose| ca.issue("bob.example", None, purpose, now()).unwrap().cert_pem;
    let (client, owner, tls, signer) =
        (issue(Purpose::Client), issue(Purpose::Owner), issue(Purpose::Tls), issue(Purpose::Sign));
    assert_eq!(code(&gate, &client, Usage::Client), Ok(()));
    assert_eq!(
        code(&gate, &client, Usage::Server),
        Err(RefusalCode::NotChained),
        "a grantee can't pose as an endpoint"
    );
    for pem in [&owner, &tls] {
        assert_eq!((code(&gate, pem, Usage::Client), code(&gate, pem, Usage::Server)), (Ok(()), Ok(())));
    }
    assert_eq!(code(&gate, &signer, Usage::Client), Err(RefusalCode::NotChained));
    assert_eq!(
        code(&gate, &tls, Usage::Sign),
        Err(RefusalCode::NotChained),
        "the endpoint's key can't sign a manifest"
    );
    assert_eq!((code(&gate, &signer, Usage::Sign), code(&gate, &owner, Usage::Sign)), (Ok(()), Ok(())));
    let peer = gate.judge_peer(&[der(&tls)], Usage::Server, now()).unwrap();
    assert!(peer.names("bob.example") && peer.dns == ["bob.example"]);
    // 90 days, the last second included
    let at = |seconds| gate.judge_peer(&[der(&client)], Usage::Client, after(seconds)).is_ok();
    assert!(at(90 * 86_400) && !at(90 * 86_400 + 1) && at(-3_600) && !at(-3_601));
}

#[test]
fn a_host_keeps_its_own_key() {
    let (world, ca, gate) = world();
    let asked = request("bob.example").unwrap();
    let issued = ca.issue("bob.example", Some(asked.csr_pem.as_bytes()), Purpose::Client, now()).unwrap();
    assert_eq!(issued.key_pem, None);
    assert_eq!(code(&gate, &issued.cert_pem, Usage::Client), Ok(()));
    let refused = |host: &str, csr: &[u8]| ca.issue(host, Some(csr), Purpose::Client, now()).map(drop).unwrap_err();
    assert!(matches!(refused("eve.example", asked.csr_pem.as_bytes()), CaError::Request("is for another name")));
    assert!(matches!(refused("bob.example", b"junk"), CaError::Request(_)));
    assert!(matches!(refused("Bob", asked.csr_pem.as_bytes()), CaError::Host { .. }));
    let mut forged = pem::parse(&asked.csr_pem).unwrap().into_contents();
    let last = forged.len() - 1;
    forged[last] ^= 1;
    assert!(matches!(refused("bob.example", &forged), CaError::Request(_)), "a request must hold its key");
    let dir = world.dir.path();
    let csr = [
        "req",
        "-new",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "rsa.key",
        "-out",
        "rsa.csr",
        "-subj",
        "/CN=bob.example",
    ];
    if openssl_ok(dir, &csr, b"").is_none() {
        return;
    }
    assert!(matches!(
        refused("bob.example", &fs::read(world.path("rsa.csr")).unwrap()),
        CaError::Request("is for a key that is not P-256")
    ));
    // what openssl asks for beyond its key is not given
    openssl_ok(
        dir,
        &[
            "req",
            "-new",
            "-key",
            "owner.key",
            "-out",
            "b.csr",
            "-subj",
            "/O=x/CN=bob.example",
            "-addext",
            "basicConstraints=CA:TRUE",
            "-addext",
            "extendedKeyUsage=serverAuth",
        ],
        b"",
    );
    let issued =
        ca.issue("bob.example", Some(&fs::read(world.path("b.csr")).unwrap()), Purpose::Client, now()).unwrap();
    assert_eq!(code(&gate, &issued.cert_pem, Usage::Server), Err(RefusalCode::NotChained));
}

#[test]
fn openssl_agrees() {
    let (world, ca, _) = world();
    let issued = ca.issue("bob.example", None, Purpose::Client, now()).unwrap();
    fs::write(world.path("bob.pem"), &issued.cert_pem).unwrap();
    let at = now().as_second().to_string();
    let verify = |purpose: &str| {
        openssl(
            world.dir.path(),
            &[
                "verify",
                "-x509_strict",
                "-crl_check",
                "-attime",
                &at,
                "-purpose",
                purpose,
                "-CAfile",
                "state/ca/root.pem",
                "-CRLfile",
                "state/ca/crl.pem",
                "bob.pem",
            ],
            b"",
        )
    };
    let Some(output) = verify("sslclient") else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!verify("sslserver").unwrap().status.success());
    ca.revoke("bob.example", now()).unwrap();
    let output = verify("sslclient").unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("revoked"));
}

#[test]
fn revoked_is_revoked_and_its_list_is_obeyed() {
    let (world, ca, gate) = world();
    let (bob, carol) = (
        ca.issue("bob.example", None, Purpose::Client, now()).unwrap(),
        ca.issue("carol.example", None, Purpose::Client, now()).unwrap(),
    );
    assert_eq!(ca.revoke(&bob.record.serial, now()).unwrap().len(), 1);
    assert_eq!(code(&gate, &bob.cert_pem, Usage::Client), Err(RefusalCode::Revoked));
    assert_eq!(code(&gate, &carol.cert_pem, Usage::Client), Ok(()));
    assert!(matches!(ca.revoke("bob.example", now()), Err(CaError::NotIssued(_))));
    assert!(matches!(ca.renew("bob.example", now()), Err(CaError::NotIssued(_))), "what was taken back is not renewed");
    assert_eq!(ca.list().unwrap().iter().filter(|record| record.revoked.is_some()).count(), 1);
    // a list that was deleted, damaged or is another CA's refuses all
    let crl = world.path("state/ca/crl.pem");
    let good = fs::read(&crl).unwrap();
    fs::remove_file(&crl).unwrap();
    assert_eq!(code(&gate, &carol.cert_pem, Usage::Client), Err(RefusalCode::NoRoot));
    fs::write(&crl, "junk").unwrap();
    assert_eq!(code(&gate, &carol.cert_pem, Usage::Client), Err(RefusalCode::NoRoot));
    let mut block = pem::parse(&good).unwrap().into_contents();
    let last = block.len() - 1;
    block[last] ^= 1;
    fs::write(&crl, pem::encode(&pem::Pem::new("X509 CRL", block))).unwrap();
    assert_eq!(code(&gate, &carol.cert_pem, Usage::Client), Err(RefusalCode::NotChained));
    // opening the CA writes it again
    fs::remove_file(&crl).unwrap();
    Ca::open(&world.path("state"), now()).unwrap();
    assert_eq!(code(&gate, &carol.cert_pem, Usage::Client), Ok(()));
    assert_eq!(code(&gate, &bob.cert_pem, Usage::Client), Err(RefusalCode::Revoked));
    // a list of somebody else's roots says nothing about ours
    let named = world.gate_with(Some(world.path("state/ca/root.pem")), Some(world.path("absent.pem")));
    assert_eq!(
        code(&named, &carol.cert_pem, Usage::Client),
        Err(RefusalCode::NoRoot),
        "a list that was named must be there"
    );
}

#[test]
fn renewal_keeps_key_name_and_purpose() {
    let (_world, ca, gate) = world();
    let old = ca.issue("bob.example", None, Purpose::Client, now()).unwrap();
    let new = ca.renew("bob.example", after(86_400 * 60)).unwrap();
    let key = |pem: &str| {
        let der = der(pem);
        let (_, certificate) = x509_parser::parse_x509_certificate(&der).unwrap();
        certificate.public_key().raw.to_vec()
    };
    assert_eq!(key(&old.cert_pem), key(&new.cert_pem));
    assert_eq!((new.record.purpose, new.record.host.as_str()), (Purpose::Client, "bob.example"));
    assert!(new.record.serial != old.record.serial && new.record.not_after > old.record.not_after);
    assert!(gate.judge_peer(&[der(&new.cert_pem)], Usage::Client, after(86_400 * 120)).is_ok());
    assert!(needs_renewal(after(0), after(90), after(60)) && !needs_renewal(after(0), after(90), after(59)));
}

#[test]
fn identities_are_made_once_and_renewed_in_time() {
    let (world, ca, gate) = world();
    let state = world.path("state");
    let ensure =
        |host: &str, seconds| identity::ensure(&ca, &state, identity::Kind::Tls, host, after(seconds)).unwrap();
    let (first, made) = ensure("alice.example", 0);
    assert!(made && identity::find(&state, identity::Kind::Sign).is_none());
    let key = fs::read(&first.key).unwrap();
    assert_eq!(fs::metadata(&first.key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(ensure("alice.example", 86_400 * 59), (first.clone(), false));
    let (renewed, made) = ensure("alice.example", 86_400 * 61);
    assert!(made && renewed.not_after > first.not_after);
    assert_eq!(fs::read(&first.key).unwrap(), key, "the key stays");
    assert!(ensure("other.example", 86_400 * 61).1, "another name is another certificate");
    let pem = fs::read_to_string(&renewed.cert).unwrap();
    let at = |seconds| gate.judge_peer(&[der(&pem)], Usage::Server, after(seconds)).is_ok();
    assert!(!at(0) && at(86_400 * 61));
}

#[test]
fn a_ca_is_made_once_and_its_files_are_private() {
    let (world, ca, _) = world();
    let state = world.path("state");
    assert!(matches!(Ca::init(&state, now()), Err(CaError::AlreadyThere(_))));
    assert_eq!(fs::metadata(state.join("ca/root.key")).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(state.join("ca")).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(Ca::open(&state, now()).unwrap().root(), ca.root());
    assert!(matches!(Ca::open(Path::new("/nonexistent"), now()), Err(CaError::NotThere(_))));
    fs::write(state.join("ca/root.key"), crate::support::key().serialize_pem()).unwrap();
    assert!(matches!(Ca::open(&state, now()), Err(CaError::Broken { .. })), "another CA's key");
    fs::write(state.join("ca/root.key"), "junk").unwrap();
    assert!(matches!(Ca::open(&state, now()), Err(CaError::Broken { .. })));
}
