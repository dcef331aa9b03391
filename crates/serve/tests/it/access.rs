//! Who gets what: the table of serve.md, and certificates that are nobody's.

use std::fs;
use std::time::Duration;

use bastion_trust::ca::{Ca, Purpose};
use rcgen::{CertificateParams, DnType, Issuer, KeyPair};

use crate::peer::Peer;
use crate::world::{Manifest, OWNER, READER, World, documents, grant};

/// The status of each route, asked with a request that is right.
fn statuses(peer: &mut Peer) -> Vec<(&'static str, u16)> {
    let doc = documents()[0].doc();
    vec![
        ("search", peer.search("lighthouse").status),
        ("read_range", peer.read_range(&doc, 0, 10).status),
        ("catalog", peer.get("/catalog").status),
        ("dirs", peer.get("/catalog/dirs").status),
        ("status", peer.get("/status").status),
        ("health", peer.get("/health").status),
        ("nothing", peer.get("/extract").status),
    ]
}

#[test]
fn each_role_gets_what_the_table_says() {
    let world = World::swept();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(
        statuses(&mut owner),
        [
            ("search", 200),
            ("read_range", 200),
            ("catalog", 200),
            ("dirs", 200),
            ("status", 200),
            ("health", 200),
            ("nothing", 404)
        ]
    );
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(
        statuses(&mut reader),
        [
            ("search", 200),
            ("read_range", 403),
            ("catalog", 403),
            ("dirs", 403),
            ("status", 403),
            ("health", 200),
            ("nothing", 404)
        ]
    );
    let mut stranger = world.connect(&endpoint, "stranger.example");
    assert_eq!(
        statuses(&mut stranger),
        [
            ("search", 403),
            ("read_range", 403),
            ("catalog", 403),
            ("dirs", 403),
            ("status", 403),
            ("health", 200),
            ("nothing", 403)
        ]
    );
    let refused: Vec<_> =
        world.audit().into_iter().filter(|row| row["cn"] == "stranger.example" && row["status"] == 403).collect();
    assert_eq!(refused.len(), 6);
}

#[test]
fn the_mask_holds_for_the_owner_and_over_every_grant() {
    let world = World::swept();
    let endpoint = world.start();
    world.sign(&Manifest {
        ops: "[read_range]",
        grants: grant(READER, "[search, read_range]", "2026-12-31"),
        more: "",
    });
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(statuses(&mut owner)[..3], [("search", 403), ("read_range", 200), ("catalog", 200)]);
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(statuses(&mut reader)[..3], [("search", 403), ("read_range", 200), ("catalog", 403)]);
}

#[test]
fn a_grant_holds_on_its_last_day_and_no_longer_also_on_an_open_connection() {
    let world = World::swept();
    world.sign(&Manifest { grants: grant(READER, "[search]", "2026-06-02"), ..Manifest::default() });
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(reader.search("harbour").status, 200);
    world.clock.set("2026-06-02T23:59:59Z".parse().unwrap());
    assert_eq!(reader.search("harbour").status, 200);
    world.clock.set("2026-06-03T00:00:00Z".parse().unwrap());
    let refused = reader.search("harbour");
    assert_eq!((refused.status, refused.error().as_str()), (403, "forbidden"));
    assert_eq!(reader.get("/health").status, 200);
}

#[test]
fn a_certificate_that_ends_while_its_connection_is_open_ends_there() {
    let world = World::swept();
    world.sign(&Manifest { grants: grant(READER, "[search]", "2027-12-31"), ..Manifest::default() });
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(reader.search("harbour").status, 200);
    let not_after = world.ca.list().unwrap().into_iter().find(|record| record.host == READER).unwrap().not_after;
    // the signer must outlive the reader for this test: it is issued and the manifest signed again later
    world.clock.set(not_after);
    world.issue(OWNER, "signer", Purpose::Sign);
    world.sign(&Manifest { grants: grant(READER, "[search]", "2027-12-31"), ..Manifest::default() });
    assert_eq!(reader.search("harbour").status, 200, "exactly notAfter is valid");
    world.clock.advance(Duration::from_secs(1));
    let refused = reader.search("harbour");
    assert_eq!((refused.status, refused.error().as_str()), (403, "certificate"));
    assert_eq!(world.audit().last().unwrap()["cn"], READER);
    assert_eq!(reader.get("/health").status, 403, "it does not chain any more");
}

#[test]
fn a_certificate_that_is_taken_back_ends_on_an_open_connection_and_gets_no_new_one() {
    let world = World::swept();
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(reader.search("harbour").status, 200);
    world.ca.revoke(READER, world.now()).unwrap();
    assert_eq!(reader.search("harbour").error(), "certificate");
    assert!(fails(Peer::connect(endpoint.address(), Some(&world.files(READER)))));
}

/// Whether a connection is refused: at once, or (TLS 1.3) when the first answer is read.
fn fails(connected: std::io::Result<Peer>) -> bool {
    match connected {
        Err(_) => true,
        Ok(mut peer) => {
            peer.send("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
            peer.reply().is_err()
        }
    }
}

#[test]
fn no_certificate_or_one_of_another_ca_is_no_request() {
    let world = World::swept();
    let endpoint = world.start();
    let other = World::new();
    let address = endpoint.address();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        // the other CA made one for the owner's very name
        for files in [None, Some(other.files(OWNER))] {
            assert!(fails(Peer::connect_with(address, files.as_ref(), &[version])));
        }
        let mut owner = Peer::connect_with(address, Some(&world.files(OWNER)), &[version]).unwrap();
        assert_eq!(owner.search("harbour").status, 200);
    }
    // a certificate of ours that is not for clients
    assert!(fails(Peer::connect(address, Some(&world.files("signer")))));
    world.await_notice("the TLS handshake failed");
    assert_eq!(world.audit().len(), 2, "a failed handshake is no row");
}

#[test]
fn who_has_no_common_name_or_two_is_anyone() {
    let world = World::swept();
    let endpoint = world.start();
    for (name, cns) in [("none", vec![]), ("two", vec![OWNER, OWNER]), ("pair", vec![READER, OWNER])] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, format!("CN={OWNER}"));
        for (at, cn) in cns.iter().enumerate() {
            // rcgen keeps one value for a kind; the second is named by its OID
            let kind = if at == 0 { DnType::CommonName } else { DnType::CustomDnType(vec![2, 5, 4, 3]) };
            params.distinguished_name.push(kind, *cn);
        }
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2026, 1, 1), rcgen::date_time_ymd(2026, 12, 31));
        let ca_key = KeyPair::from_pem(&fs::read_to_string(world.state().join("ca/root.key")).unwrap()).unwrap();
        let issuer = Issuer::from_ca_cert_der(world.ca.root(), ca_key).unwrap();
        let cert = params.signed_by(&key, &issuer).unwrap();
        world.keep(name, &cert.pem(), &key.serialize_pem());
        let mut peer = world.connect(&endpoint, name);
        assert_eq!(peer.get("/health").status, 200, "{name}");
        assert_eq!(peer.search("harbour").status, 403, "{name}");
        assert!(world.audit().iter().rev().take(2).all(|row| row["cn"].is_null()), "{name}");
    }
}

#[test]
fn a_grantee_can_not_pose_as_an_endpoint() {
    let world = World::swept();
    let mut config = world.config();
    config.tls = world.files(READER);
    let _endpoint = world.try_start(config).unwrap();
    world.await_notice("clients will not accept this certificate");
}

#[test]
fn what_exists_is_told_to_nobody_who_may_not_read() {
    let world = World::swept();
    let endpoint = world.start();
    let doc = documents()[0].doc();
    let unknown = "0".repeat(64);
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(reader.read_range(&doc, 0, 1).body, reader.read_range(&unknown, 0, 1).body);
    let mut stranger = world.connect(&endpoint, "stranger.example");
    let answers = [
        stranger.search("harbour").body,
        stranger.get("/status").body,
        stranger.get("/nothing").body,
        stranger.post("/status", "{").body,
    ];
    assert!(answers.iter().all(|body| *body == answers[0]));
}

#[test]
fn fifty_a_second_are_for_a_grantee_and_not_for_the_owner() {
    let world = World::swept();
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    let mut answers = (0..1000).map(|_| reader.get("/health"));
    let refused = answers.find(|answer| answer.status != 200).unwrap();
    assert_eq!((refused.status, refused.error().as_str()), (429, "too_many_requests"));
    assert!(refused.head.contains("retry-after: 1"));
    assert!(world.audit().iter().any(|row| row["status"] == 429 && row["cn"] == READER));
    let mut owner = world.connect(&endpoint, OWNER);
    assert!((0..400).all(|_| owner.get("/health").status == 200));
}

#[test]
fn a_new_root_is_taken_up_and_the_old_one_forgotten() {
    let world = World::swept();
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    assert_eq!(reader.get("/health").status, 200);
    let other = tempfile::tempdir().unwrap();
    let ca = Ca::init(other.path(), world.now()).unwrap();
    fs::copy(ca.root_path(), world.ca.root_path()).unwrap();
    fs::copy(bastion_trust::ca::crl_path(other.path()), bastion_trust::ca::crl_path(&world.state())).unwrap();
    assert_eq!(reader.get("/health").status, 403, "not chained to a root of now");
    assert_eq!(reader.search("harbour").status, 503, "neither is the manifest's signer");
}
