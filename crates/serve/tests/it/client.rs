//! The client against a real endpoint, and against what is none.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;

use bastion_serve::wire::v1::Ranking;
use bastion_serve::{Client, ClientError, Running};
use bastion_trust::ca::Purpose;

use crate::world::{Manifest, OWNER, READER, WordEmbedder, World, documents};

fn client(world: &World, endpoint: &Running, name: &str) -> Client {
    Client::new(&endpoint.address().to_string(), &world.files(name), world.gate(), OWNER).unwrap()
}

#[test]
fn every_route_has_a_typed_answer() {
    let world = World::swept();
    let endpoint = world.start();
    let owner = client(&world, &endpoint, OWNER);
    let found = owner.search("harbour", Some(3)).unwrap();
    assert_eq!((found.k, found.ranking, found.hits.len()), (3, Ranking::Words, 1));
    assert_eq!(found.hits[0].path.as_deref(), Some("notes/harbour.txt"));
    let range = owner.read_range(&found.hits[0].doc, 4, 11).unwrap();
    assert_eq!((range.text.as_str(), range.start, range.end), ("harbour", 4, 11));
    let cards = owner.cards("notes/", 1, Some(1)).unwrap();
    assert_eq!(
        (cards.total, cards.next_offset, cards.cards[0]["path"].as_str()),
        (2, None, Some("notes/lighthouse.txt"))
    );
    assert_eq!(owner.cards("a b/ü&=", 0, None).unwrap().prefix, "a b/ü&=");
    assert_eq!(owner.dirs("", 0, None).unwrap().total, 1);
    assert!(owner.status().unwrap().state.is_null());
    let health = owner.health().unwrap();
    assert!(health.ok && health.serving);
}

#[test]
fn every_refusal_has_its_own_error() {
    let world = World::swept();
    let embedder = Arc::new(WordEmbedder::new("words"));
    world.sweep_with(&documents(), Some(&*embedder));
    let endpoint = world.start_with(Arc::clone(&embedder) as _);
    let owner = client(&world, &endpoint, OWNER);
    let reader = client(&world, &endpoint, READER);
    assert!(matches!(reader.status(), Err(ClientError::Forbidden { .. })));
    assert!(matches!(owner.read_range(&"0".repeat(64), 0, 1), Err(ClientError::NotFound { .. })));
    assert!(matches!(owner.read_range("x", 0, 1), Err(ClientError::Refused { status: 400, .. })));
    *embedder.reachable.lock().unwrap() = false;
    assert!(matches!(owner.search("harbour", None), Err(ClientError::ModelUnreachable { .. })));
    let limited = (0..1000).find_map(|_| reader.health().err()).unwrap();
    assert!(matches!(limited, ClientError::Refused { status: 429, .. }));
    world.write_manifest(&world.unsigned(&Manifest::default()));
    let refused = owner.search("harbour", None).unwrap_err();
    assert!(matches!(&refused, ClientError::NotServing { code, .. } if code == "unsigned"), "{refused}");
    assert!(!owner.health().unwrap().serving);
}

#[test]
fn an_endpoint_that_is_not_the_owners_is_not_spoken_to() {
    let world = World::swept();
    let endpoint = world.start();
    let address = endpoint.address().to_string();
    let other_host = Client::new(&address, &world.files(OWNER), world.gate(), "another.example").unwrap();
    assert!(matches!(other_host.health(), Err(ClientError::WrongHost { .. })));
    let other_ca = World::new();
    let foreign = Client::new(&address, &other_ca.files(OWNER), other_ca.gate(), OWNER).unwrap();
    assert!(matches!(foreign.health(), Err(ClientError::Untrusted { .. })));

    let mut config = world.config();
    config.tls = world.files(READER);
    let posing = world.try_start(config).unwrap();
    let deceived = Client::new(&posing.address().to_string(), &world.files(OWNER), world.gate(), READER).unwrap();
    assert!(
        matches!(deceived.health(), Err(ClientError::Untrusted { .. })),
        "a grantee's certificate is for clients alone"
    );
    assert!(world.audit().is_empty());
}

#[test]
fn a_certificate_that_the_endpoint_does_not_accept_is_told() {
    let world = World::swept();
    let endpoint = world.start();
    world.issue(OWNER, "signer-only", Purpose::Sign);
    let refused = client(&world, &endpoint, "signer-only").health().unwrap_err();
    assert!(matches!(refused, ClientError::NotAccepted { .. }), "{refused}");
}

#[test]
fn nobody_there_and_somebody_else_there_are_told_apart() {
    let world = World::swept();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let client = Client::new(&address, &world.files(OWNER), world.gate(), OWNER).unwrap();
    let server = std::thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.read(&mut [0; 1024]);
        let _ = socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    });
    assert!(matches!(client.health(), Err(ClientError::Nonsense { .. })));
    server.join().unwrap();
    assert!(matches!(client.health(), Err(ClientError::Unreachable { .. })));
    assert!(matches!(
        Client::new("nowhere", &world.files(OWNER), world.gate(), OWNER),
        Err(ClientError::Address { .. })
    ));
}

#[test]
fn a_kept_connection_that_was_closed_is_made_anew() {
    let world = World::swept();
    let endpoint = world.start();
    let mut config = world.config();
    config.bind = endpoint.address().to_string().parse().unwrap();
    let owner = client(&world, &endpoint, OWNER);
    assert!(owner.health().is_ok());
    endpoint.stop();
    let _again = world.try_start(config).unwrap();
    assert!(owner.health().is_ok());
}
