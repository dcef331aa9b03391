//! CONNECT: judged before any lookup, and after it only TLS to the host that was named.

use std::io::{Read, Write};

use crate::world::{Setup, Upstream, Web, closes, read_answer, rest};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[test]
fn an_allowed_request_goes_through_and_stands_in_the_log() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let answered = world.get("api.example", host.port, "/v1/x?q=hidden", "x-mine: 1\r\n");
    assert_eq!((answered.status, answered.body.as_slice()), (200, &b"hi"[..]), "{answered:?}");
    assert!(host.seen()[0].starts_with("GET /v1/x?q=hidden HTTP/1.1\r\n"), "{:?}", host.seen());
    let row = world.logged(|row| row["bytes_down"] == 2);
    assert_eq!((&row["host"], &row["port"], &row["path"]), (&"api.example".into(), &host.port.into(), &"/v1/x".into()));
    assert_eq!((&row["decision"], &row["status"], &row["method"]), (&"allow".into(), &200.into(), &"GET".into()));
    assert!(!world.log_text().contains("hidden"));
}

#[test]
fn a_denied_name_is_never_looked_up() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example", "evil.example"]);
    let other_port = if host.port == 1234 { 1235 } else { 1234 };
    for target in ["evil.example:443", "sub.api.example:443", &format!("api.example:{other_port}")] {
        let (_, answered) = world.connect(target);
        assert_eq!((answered.status, answered.error().as_str()), (403, "policy_denied"), "{target}");
    }
    assert!(world.asked().is_empty());
    assert_eq!(world.log().len(), 3);
    assert!(world.log().iter().all(|row| row["decision"] == "deny" && row["status"] == 403));
}

#[test]
fn a_host_has_one_spelling() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let world = Setup::new(&web, &[rest("api.example", port), rest("127.0.0.1", port)]).start();
    let tricks = [
        format!("api.example\0.evil.example:{port}"),
        format!("user@api.example:{port}"),
        format!("api.example%00:{port}"),
        format!("2130706433:{port}"),
        format!("0177.0.0.1:{port}"),
        format!("127.1:{port}"),
        format!("0x7f000001:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::127.0.0.1]:{port}"),
        format!("[64:ff9b::7f00:1]:{port}"),
        format!("[fe80::1%eth0]:{port}"),
        format!("api.example:0{port}"),
        format!("api.example:+{port}"),
        "api.example".to_owned(),
        "api.example:0".to_owned(),
        "api.example:65537".to_owned(),
        format!("https://api.example:{port}/"),
        format!("api.example:{port}/x"),
        format!("api..example:{port}"),
        format!("\u{e4}pi.example:{port}"),
    ];
    for target in tricks {
        let answered = world.raw(format!("CONNECT {target} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes());
        let answered = answered.unwrap_or_else(|| panic!("no answer to {target:?}"));
        assert!(matches!(answered.status, 400 | 403), "{target:?}: {answered:?}");
    }
    assert!(world.asked().is_empty());
    assert_eq!(host.connections(), 0);
}

#[test]
fn upper_case_is_the_same_host() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let world = Setup::new(&web, &[rest("api.example", port)]).start().named(&["api.example"]);
    let mut client = world.tls_with(&format!("API.Example:{port}"), "api.example", &world.ca, &[]);
    client.write_all(format!("GET / HTTP/1.1\r\nhost: Api.EXAMPLE:{port}\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut client).unwrap().status, 200);
    assert!(host.seen()[0].contains(&format!("host: api.example:{port}\r\n")), "{:?}", host.seen());
}

#[test]
fn what_is_not_tls_to_that_host_is_closed() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let endpoints = [rest("api.example", port), rest("other.example", port)];
    let world = Setup::new(&web, &endpoints).start().named(&["api.example", "other.example"]);
    for bytes in ["SSH-2.0-x\r\n", "GET / HTTP/1.1\r\nhost: api.example\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let (mut tcp, _) = world.connect(&format!("api.example:{port}"));
        tcp.write_all(bytes.as_bytes()).unwrap();
        assert!(closes(&mut tcp), "{bytes}");
        world.logged(|row| row["reason"] == "not_tls" && row["decision"] == "deny");
    }
    // a name that is listed, but not the one of the CONNECT
    let mut fronting = world.tls_with(&format!("api.example:{port}"), "other.example", &world.ca, &[]);
    assert!(
        fronting.write_all(b"GET / HTTP/1.1\r\n\r\n").and_then(|()| fronting.flush()).is_err() || closes(&mut fronting)
    );
    world.logged(|row| row["reason"] == "sni_mismatch");
    // an address as its name: no SNI is sent
    let mut nameless = world.tls_with(&format!("api.example:{port}"), "127.0.0.1", &world.ca, &[]);
    assert!(nameless.write_all(b"x").and_then(|()| nameless.flush()).is_err() || closes(&mut nameless));
    world.logged(|row| row["reason"] == "sni_missing");
    assert_eq!(host.connections(), 0);
}

#[test]
fn http_2_is_not_spoken() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let target = format!("api.example:{}", host.port);
    let mut only = world.tls_with(&target, "api.example", &world.ca, &[b"h2"]);
    assert!(only.write_all(b"x").is_err(), "the handshake fails");
    let mut both = world.tls_with(&target, "api.example", &world.ca, &[b"h2", b"http/1.1"]);
    both.write_all(format!("GET / HTTP/1.1\r\nhost: {target}\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut both).unwrap().status, 200);
    assert_eq!(both.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    let mut prior = world.tls_with(&target, "api.example", &world.ca, &[]);
    prior.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    let mut rest = Vec::new();
    let _ = prior.read_to_end(&mut rest);
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 400"), "{rest:?}");
    assert_eq!(host.seen().len(), 1);
}

#[test]
fn a_literal_address_has_no_name_in_tls() {
    let web = Web::new();
    let host = Upstream::answering(&web, "127.0.0.1", OK);
    let world = Setup::new(&web, &[rest("127.0.0.1", host.port)]).start();
    assert_eq!(world.get("127.0.0.1", host.port, "/", "").status, 200);
    let mut named = world.tls_with(&format!("127.0.0.1:{}", host.port), "api.example", &world.ca, &[]);
    assert!(named.write_all(b"x").and_then(|()| named.flush()).is_err() || closes(&mut named));
    world.logged(|row| row["reason"] == "sni_mismatch");
    assert!(world.asked().is_empty());
}
