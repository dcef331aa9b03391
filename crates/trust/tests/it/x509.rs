//! The chain: what a certificate and those above it must be. Each known way around is refused.

use std::fs;

use bastion_trust::RefusalCode;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyUsagePurpose,
    string::PrintableString,
};

use crate::support::{HOST, Minted, World, after, ca_params, dn, offset, openssl_ok, params, self_signed};

/// Signs with this leaf (and what stands above it) and answers how the gate judges.
fn judged(root: Minted, leaf: &Minted, above: &str) -> Result<(), RefusalCode> {
    let world = World::with_root(root);
    world.owner(leaf, above);
    world.sign();
    world.judge().map(drop).map_err(|refused| refused.code)
}

fn with(mut params: CertificateParams, change: impl FnOnce(&mut CertificateParams)) -> CertificateParams {
    change(&mut params);
    params
}

#[test]
fn an_intermediate_must_be_a_ca_that_may_sign() {
    let intermediate = |change: fn(&mut CertificateParams)| {
        let root = self_signed(ca_params("root"));
        let middle = root.issue(with(ca_params("middle"), change));
        let leaf = middle.issue(params(HOST));
        judged(root, &leaf, &middle.pem)
    };
    assert_eq!(intermediate(|_| {}), Ok(()));
    assert_eq!(intermediate(|p| p.is_ca = IsCa::NoCa), Err(RefusalCode::NotChained));
    assert_eq!(intermediate(|p| p.is_ca = IsCa::ExplicitNoCa), Err(RefusalCode::NotChained));
    assert_eq!(intermediate(|p| p.key_usages = vec![KeyUsagePurpose::DigitalSignature]), Err(RefusalCode::NotChained));
    assert_eq!(intermediate(|p| p.key_usages = vec![]), Ok(()), "key usage that is absent allows");
    assert_eq!(intermediate(|p| p.not_after = offset(after(-1))), Err(RefusalCode::Expired));
    assert_eq!(intermediate(|p| p.not_after = offset(after(0))), Ok(()));
    assert_eq!(intermediate(|p| p.not_before = offset(after(1))), Err(RefusalCode::NotYetValid));
    assert_eq!(intermediate(|p| p.not_before = offset(after(0))), Ok(()));
    // without the intermediate in the file
    let root = self_signed(ca_params("root"));
    let leaf = root.issue(ca_params("middle")).issue(params(HOST));
    assert_eq!(judged(root, &leaf, ""), Err(RefusalCode::NotChained));
}

#[test]
fn path_length_is_kept() {
    let chain = |at_root: Option<u8>, at_middle: Option<u8>| {
        let length = |n: Option<u8>| IsCa::Ca(n.map_or(BasicConstraints::Unconstrained, BasicConstraints::Constrained));
        let root = self_signed(with(ca_params("root"), |p| p.is_ca = length(at_root)));
        let middle = root.issue(with(ca_params("middle"), |p| p.is_ca = length(at_middle)));
        let lower = middle.issue(ca_params("lower"));
        let leaf = lower.issue(params(HOST));
        judged(root, &leaf, &format!("{}{}", lower.pem, middle.pem))
    };
    assert_eq!(chain(None, None), Ok(()));
    assert_eq!(chain(Some(2), Some(1)), Ok(()));
    assert_eq!(chain(Some(1), None), Err(RefusalCode::NotChained), "the root's own is kept too");
    assert_eq!(chain(None, Some(0)), Err(RefusalCode::NotChained));
    assert_eq!(chain(Some(0), Some(0)), Err(RefusalCode::NotChained));
}

#[test]
fn the_root_itself_is_judged() {
    let root = |change: fn(&mut CertificateParams)| {
        let root = self_signed(with(ca_params("root"), change));
        let leaf = root.issue(params(HOST));
        judged(root, &leaf, "")
    };
    assert_eq!(root(|_| {}), Ok(()));
    assert_eq!(root(|p| p.is_ca = IsCa::NoCa), Err(RefusalCode::NotChained));
    assert_eq!(root(|p| p.is_ca = IsCa::ExplicitNoCa), Err(RefusalCode::NotChained));
    assert_eq!(root(|p| p.key_usages = vec![KeyUsagePurpose::CrlSign]), Err(RefusalCode::NotChained));
    assert_eq!(root(|p| p.not_after = offset(after(-1))), Err(RefusalCode::Expired));
    assert_eq!(root(|p| p.not_before = offset(after(1))), Err(RefusalCode::NotYetValid));
}

#[test]
fn a_second_decides_over_the_leaf() {
    let leaf = |change: fn(&mut CertificateParams)| {
        let root = self_signed(ca_params("root"));
        let leaf = root.issue(with(params(HOST), change));
        judged(root, &leaf, "")
    };
    assert_eq!(leaf(|p| p.not_after = offset(after(0))), Ok(()), "exactly notAfter is valid");
    assert_eq!(leaf(|p| p.not_after = offset(after(-1))), Err(RefusalCode::Expired), "a second later not");
    assert_eq!(leaf(|p| p.not_before = offset(after(0))), Ok(()));
    assert_eq!(leaf(|p| p.not_before = offset(after(1))), Err(RefusalCode::NotYetValid));
}

#[test]
fn the_leaf_must_be_one_that_may_sign() {
    let leaf = |change: fn(&mut CertificateParams)| {
        let root = self_signed(ca_params("root"));
        let leaf = root.issue(with(params(HOST), change));
        judged(root, &leaf, "")
    };
    assert_eq!(leaf(|p| p.key_usages = vec![KeyUsagePurpose::DigitalSignature]), Ok(()));
    assert_eq!(leaf(|p| p.key_usages = vec![KeyUsagePurpose::KeyAgreement]), Err(RefusalCode::NotChained));
    assert_eq!(leaf(|p| p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth]), Ok(()));
    let critical = |critical: bool| {
        let root = self_signed(ca_params("root"));
        let leaf = root.issue(with(params(HOST), |p| {
            let mut extension = rcgen::CustomExtension::from_oid_content(&[1, 2, 3, 4], vec![5, 0]);
            extension.set_criticality(critical);
            p.custom_extensions = vec![extension];
        }));
        judged(root, &leaf, "")
    };
    assert_eq!(critical(false), Ok(()));
    assert_eq!(critical(true), Err(RefusalCode::NotChained));
}

#[test]
fn name_constraints_hold_for_the_common_name() {
    use rcgen::{GeneralSubtree, NameConstraints};
    let constrained = |permitted: &[&str], excluded: &[&str]| {
        let trees = |names: &[&str]| names.iter().map(|name| GeneralSubtree::DnsName((*name).into())).collect();
        let constraints = NameConstraints { permitted_subtrees: trees(permitted), excluded_subtrees: trees(excluded) };
        let root = self_signed(ca_params("root"));
        let middle = root.issue(with(ca_params("middle"), |p| p.name_constraints = Some(constraints)));
        let leaf = middle.issue(params(HOST));
        judged(root, &leaf, &middle.pem)
    };
    assert_eq!(constrained(&["example"], &[]), Ok(()));
    assert_eq!(constrained(&["other", "alice.example"], &[]), Ok(()));
    assert_eq!(constrained(&["lice.example"], &[]), Err(RefusalCode::NotChained));
    assert_eq!(constrained(&["other"], &[]), Err(RefusalCode::NotChained));
    assert_eq!(constrained(&[], &["example"]), Err(RefusalCode::NotChained));
    assert_eq!(constrained(&[], &["bob.example"]), Ok(()));
}

#[test]
fn an_expired_path_does_not_hide_a_good_one() {
    // the same intermediate key, certified twice by the root: one expired, one good
    let root = self_signed(ca_params("root"));
    let key = crate::support::key();
    let pem = key.serialize_pem();
    let again = || rcgen::KeyPair::from_pem(&pem).unwrap();
    let expired = root.issue_for(with(ca_params("middle"), |p| p.not_after = offset(after(-5))), again());
    let good = root.issue_for(ca_params("middle"), again());
    let leaf = good.issue(params(HOST));
    assert_eq!(judged(root, &leaf, &format!("{}{}", expired.pem, good.pem)), Ok(()));
}

#[test]
fn circles_and_long_files_end() {
    let root = self_signed(ca_params("root"));
    let (a, b) = (self_signed(ca_params("a")), self_signed(ca_params("b")));
    let a_by_b = b.issue_for(ca_params("a"), rcgen::KeyPair::from_pem(&a.key.serialize_pem()).unwrap());
    let b_by_a = a.issue_for(ca_params("b"), rcgen::KeyPair::from_pem(&b.key.serialize_pem()).unwrap());
    let leaf = a.issue(params(HOST));
    assert_eq!(
        judged(root, &leaf, &format!("{}{}{}{}", a_by_b.pem, b_by_a.pem, a.pem, b.pem)),
        Err(RefusalCode::NotChained)
    );
    let root = self_signed(ca_params("root"));
    let leaf = root.issue(params(HOST));
    assert_eq!(judged(root, &leaf, &leaf.pem.repeat(20)), Err(RefusalCode::NotChained));
}

#[test]
fn common_names_are_counted_and_seen() {
    let world = World::new();
    let judged = |change: &dyn Fn(&mut CertificateParams)| {
        let mut leaf = params(HOST);
        change(&mut leaf);
        world.owner(&world.root.issue(leaf), "");
        world.sign();
        world.judge().map(drop).map_err(|refused| refused.code)
    };
    assert_eq!(judged(&|_| {}), Ok(()));
    let printable = PrintableString::try_from(HOST).unwrap();
    assert_eq!(
        judged(&|p| p.distinguished_name.push(DnType::CommonName, rcgen::DnValue::PrintableString(printable.clone()))),
        Ok(())
    );
    assert_eq!(judged(&|p| p.distinguished_name = rcgen::DistinguishedName::new()), Err(RefusalCode::CnCount));
    // a name that only looks like one, inside another attribute
    assert_eq!(
        judged(&|p| {
            p.distinguished_name = rcgen::DistinguishedName::new();
            p.distinguished_name.push(DnType::OrganizationName, "x, CN=alice.example");
        }),
        Err(RefusalCode::CnCount)
    );
    assert_eq!(
        judged(&|p| {
            p.distinguished_name = dn("mallory.example");
            p.distinguished_name.push(DnType::OrganizationalUnitName, "x/CN=alice.example\nCN=alice.example");
        }),
        Err(RefusalCode::CnMismatch)
    );
    for cn in ["alice.example\0.evil", "alice.example\n", "\u{202e}alice.example", "alice\u{200b}.example", ""] {
        assert_eq!(judged(&|p| p.distinguished_name = dn(cn)), Err(RefusalCode::CnInvalid), "{cn:?}");
    }
    // a subject alternative name is no common name
    assert_eq!(
        judged(&|p| {
            p.distinguished_name = dn("mallory.example");
            p.subject_alt_names = vec![rcgen::SanType::DnsName(HOST.try_into().unwrap())];
        }),
        Err(RefusalCode::CnMismatch)
    );
}

#[test]
fn two_common_names_of_any_kind_are_refused() {
    let world = World::new();
    fs::write(world.path("root.key"), world.root.key.serialize_pem()).unwrap();
    for subject in [
        "/CN=alice.example/CN=alice.example",
        "/CN=alice.example/CN=mallory.example",
        "/CN=alice.example+CN=mallory.example",
        "/CN=alice.example+OU=x+CN=alice.example",
    ] {
        let dir = world.dir.path();
        let made = openssl_ok(
            dir,
            &[
                "req",
                "-new",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-multivalue-rdn",
                "-keyout",
                "owner.key",
                "-out",
                "owner.csr",
                "-subj",
                subject,
            ],
            b"",
        );
        if made.is_none() {
            return;
        }
        // valid around the clock of these tests: 2030
        fs::write(world.path("index.txt"), "").unwrap();
        openssl_ok(
            dir,
            &[
                "x509",
                "-req",
                "-in",
                "owner.csr",
                "-CA",
                "root.pem",
                "-CAkey",
                "root.key",
                "-CAcreateserial",
                "-days",
                "36500",
                "-out",
                "owner.pem",
            ],
            b"",
        );
        world.sign();
        world.refused(RefusalCode::CnCount);
    }
    // the same way, with one name, passes: it is the names that were refused (and version 1 certificates do)
    let dir = world.dir.path();
    openssl_ok(dir, &["req", "-new", "-key", "owner.key", "-out", "owner.csr", "-subj", "/O=x/CN=alice.example"], b"");
    openssl_ok(
        dir,
        &[
            "x509",
            "-req",
            "-in",
            "owner.csr",
            "-CA",
            "root.pem",
            "-CAkey",
            "root.key",
            "-CAcreateserial",
            "-days",
            "36500",
            "-out",
            "owner.pem",
        ],
        b"",
    );
    world.sign();
    world.admitted();
}

#[test]
fn an_rsa_or_p384_ca_may_certify_a_p256_leaf() {
    let p384 = {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        let params = ca_params("root");
        let pem = params.self_signed(&key).unwrap().pem();
        Minted { params, key, pem }
    };
    let leaf = p384.issue(params(HOST));
    assert_eq!(judged(p384, &leaf, ""), Ok(()));
    let world = World::new();
    let dir = world.dir.path();
    let made = openssl_ok(
        dir,
        &[
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-keyout",
            "rsa.key",
            "-out",
            "root.pem",
            "-subj",
            "/CN=rsa root",
            "-days",
            "36500",
        ],
        b"",
    );
    if made.is_none() {
        return;
    }
    openssl_ok(dir, &["req", "-new", "-key", "owner.key", "-out", "owner.csr", "-subj", "/CN=alice.example"], b"");
    openssl_ok(
        dir,
        &[
            "x509",
            "-req",
            "-in",
            "owner.csr",
            "-CA",
            "root.pem",
            "-CAkey",
            "rsa.key",
            "-CAcreateserial",
            "-days",
            "36500",
            "-out",
            "owner.pem",
        ],
        b"",
    );
    world.sign();
    world.admitted();
    // and an RSA leaf signs nothing
    openssl_ok(dir, &["req", "-new", "-key", "rsa.key", "-out", "owner.csr", "-subj", "/CN=alice.example"], b"");
    openssl_ok(
        dir,
        &[
            "x509",
            "-req",
            "-in",
            "owner.csr",
            "-CA",
            "root.pem",
            "-CAkey",
            "rsa.key",
            "-CAcreateserial",
            "-days",
            "36500",
            "-out",
            "owner.pem",
        ],
        b"",
    );
    world.refused(RefusalCode::WrongKey);
}
