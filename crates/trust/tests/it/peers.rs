//! Who is at the other end: the gate's own chain check, for TLS peers.

use std::fs;

use bastion_trust::{RefusalCode, Usage};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, SanType};

use crate::support::{World, after, ca_params, now, openssl_ok, params, self_signed};

fn with(change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    let mut params = params("bob.example");
    change(&mut params);
    params
}

#[test]
fn a_peer_is_its_only_common_name() {
    let world = World::new();
    let gate = world.gate();
    let peer = |params| gate.judge_peer(&[world.root.issue(params).der()], Usage::Client, now()).unwrap();
    assert_eq!(peer(with(|_| {})).cn.unwrap().as_str(), "bob.example");
    assert_eq!(peer(with(|p| p.distinguished_name = rcgen::DistinguishedName::new())).cn, None);
    assert_eq!(peer(with(|p| p.distinguished_name.push(DnType::CommonName, "bob\0"))).cn, None);
    let named = peer(with(|p| p.subject_alt_names = vec![SanType::DnsName("Alice.example".try_into().unwrap())]));
    assert!(named.names("alice.example") && named.names("bob.example") && !named.names("eve.example"));
    assert_eq!(named.not_after, after(86_400));
}

#[test]
fn several_common_names_are_anyone() {
    let world = World::new();
    let dir = world.dir.path();
    fs::write(world.path("root.key"), world.root.key.serialize_pem()).unwrap();
    let subject = "/CN=bob.example+CN=alice.example";
    if openssl_ok(dir, &["req", "-new", "-multivalue-rdn", "-key", "owner.key", "-out", "a.csr", "-subj", subject], b"")
        .is_none()
    {
        return;
    }
    openssl_ok(
        dir,
        &[
            "x509",
            "-req",
            "-in",
            "a.csr",
            "-CA",
            "root.pem",
            "-CAkey",
            "root.key",
            "-CAcreateserial",
            "-days",
            "36500",
            "-outform",
            "DER",
            "-out",
            "a.der",
        ],
        b"",
    );
    let der = fs::read(world.path("a.der")).unwrap().into();
    assert_eq!(world.gate().judge_peer(&[der], Usage::Client, now()).unwrap().cn, None);
}

#[test]
fn purposes_are_kept_apart() {
    let world = World::new();
    let gate = world.gate();
    let ok = |usages: &[ExtendedKeyUsagePurpose], usage| {
        let leaf = world.root.issue(with(|p| p.extended_key_usages = usages.to_vec()));
        gate.judge_peer(&[leaf.der()], usage, now()).is_ok()
    };
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, CodeSigning, ServerAuth};
    assert!(ok(&[], Usage::Client) && ok(&[], Usage::Server), "purposes that are absent allow");
    assert!(
        ok(&[ClientAuth], Usage::Client) && !ok(&[ClientAuth], Usage::Server),
        "a grantee can't pose as an endpoint"
    );
    assert!(ok(&[ServerAuth], Usage::Server) && !ok(&[ServerAuth], Usage::Client));
    assert!(ok(&[Any], Usage::Client) && !ok(&[CodeSigning], Usage::Client));
}

#[test]
fn dates_and_roots_are_judged_now() {
    let world = World::new();
    let gate = world.gate();
    let chain = [world.root.issue(with(|_| {})).der()];
    let code = |seconds| gate.judge_peer(&chain, Usage::Client, after(seconds)).map(drop).map_err(|fault| fault.code);
    assert_eq!(code(86_400), Ok(()));
    assert_eq!(code(86_401), Err(RefusalCode::Expired));
    assert_eq!(code(-86_400), Ok(()));
    assert_eq!(code(-86_401), Err(RefusalCode::NotYetValid));
    assert_eq!(gate.judge_peer(&[], Usage::Client, now()).unwrap_err().code, RefusalCode::NotChained);
    assert_eq!(
        gate.judge_peer(&[vec![0x30, 0].into()], Usage::Client, now()).unwrap_err().code,
        RefusalCode::NotChained
    );
    fs::write(world.path("root.pem"), self_signed(ca_params("root")).pem).unwrap();
    assert_eq!(code(0), Err(RefusalCode::NotChained));
    fs::remove_file(world.path("root.pem")).unwrap();
    assert_eq!(code(0), Err(RefusalCode::NoRoot));
}

#[test]
fn the_roots_are_there_for_a_verifier() {
    let world = World::new();
    let roots = world.gate().roots().unwrap();
    assert_eq!(roots.roots(), [world.root.der()]);
    assert_eq!(roots.subjects().len(), 1);
    assert_eq!(roots.subjects()[0][0], 0x30);
}
