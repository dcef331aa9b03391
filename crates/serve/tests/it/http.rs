//! Bytes that are no request, and requests that are too much.

use crate::peer::Peer;
use crate::world::{OWNER, READER, World};

const HOST: &str = "Host: owner.example\r\n";

#[test]
fn a_message_with_two_readings_is_400_and_the_end() {
    let world = World::swept();
    let endpoint = world.start();
    let body = r#"{"query":"harbour"}"#;
    let smuggled = "GET /status HTTP/1.1\r\nHost: a\r\n\r\n";
    let rows = [
        format!("Content-Length: {}\r\nTransfer-Encoding: chunked\r\n", body.len()),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {}\r\n", body.len()),
        "Transfer-Encoding : chunked\r\n".into(),
        "Transfer-Encoding: identity, chunked\r\n".into(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n".into(),
        format!("Content-Length: {}\r\nContent-Length: {}\r\n", body.len(), body.len()),
        format!("Content-Length: {}\r\nContent-Length: 0\r\n", body.len()),
        format!("Content-Length: {}, {}\r\n", body.len(), body.len()),
        format!("Content-Length: +{}\r\n", body.len()),
        format!("Content-Length: {}\n", body.len()),
        "Host: other\r\n".into(),
    ];
    for fields in rows {
        let mut owner = world.connect(&endpoint, OWNER);
        owner.send(format!(
            "POST /search HTTP/1.1\r\n{HOST}Content-Type: application/json\r\n{fields}\r\n{body}{smuggled}"
        ));
        let answer = owner.reply().unwrap();
        assert_eq!((answer.status, answer.error().as_str()), (400, "malformed_request"), "{fields:?}");
        assert!(answer.closes());
        assert!(owner.is_closed(), "{fields:?}");
    }
    let rows = world.audit();
    assert!(rows.iter().all(|row| row["status"] == 400 && row["cn"] == OWNER && row["op"].is_null()), "{rows:?}");
    assert_eq!(rows.len(), 11);
}

#[test]
fn what_is_no_http_is_400_and_the_end() {
    let world = World::swept();
    let endpoint = world.start();
    for bytes in [
        "GET /health\r\n\r\n".to_owned(),
        "GET /health HTTP/1.1\r\n\r\n".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        format!("GET https://owner.example/health HTTP/1.1\r\n{HOST}\r\n"),
        format!("GET /{} HTTP/1.1\r\n{HOST}\r\n", "x".repeat(20_000)),
        format!("GET /health HTTP/1.1\r\n{HOST}{}\r\n", "X: y\r\n".repeat(100)),
        "\u{16}\u{3}\u{1}\n\n".to_owned(),
    ] {
        let mut owner = world.connect(&endpoint, OWNER);
        owner.send(&bytes);
        assert_eq!(owner.reply().unwrap().status, 400, "{:?}", &bytes[..bytes.len().min(60)]);
        assert!(owner.is_closed());
    }
}

#[test]
fn more_than_64_kib_is_413_another_type_415_another_method_405() {
    let world = World::swept();
    let endpoint = world.start();
    let post = |fields: &str, body: &str| format!("POST /search HTTP/1.1\r\n{HOST}{fields}\r\n{body}");
    let json = "Content-Type: application/json\r\n";
    let large = format!("{{\"query\":\"{}\"}}", "x".repeat(64 << 10));
    let chunked = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let rows = [
        (post(&format!("{json}Content-Length: {}\r\n", large.len()), &large), 413, "too_large"),
        (post(&format!("{json}Content-Length: 99999999999\r\n"), ""), 413, "too_large"),
        (post(&format!("{json}Transfer-Encoding: chunked\r\n"), &chunked), 413, "too_large"),
        (post("Content-Type: text/plain\r\nContent-Length: 2\r\n", "{}"), 415, "unsupported_media_type"),
        (post("Content-Length: 2\r\n", "{}"), 415, "unsupported_media_type"),
        (post(&format!("{json}Content-Encoding: gzip\r\nContent-Length: 2\r\n"), "{}"), 415, "unsupported_media_type"),
        (format!("GET /search HTTP/1.1\r\n{HOST}\r\n"), 405, "method_not_allowed"),
        (format!("DELETE /catalog HTTP/1.1\r\n{HOST}\r\n"), 405, "method_not_allowed"),
        (format!("HEAD /status HTTP/1.1\r\n{HOST}\r\n"), 405, "method_not_allowed"),
        (format!("POST /health HTTP/1.1\r\n{HOST}Content-Length: 0\r\n\r\n"), 405, "method_not_allowed"),
        (format!("GET /status HTTP/1.1\r\n{HOST}Content-Length: 2\r\n\r\nxx"), 400, "bad_request"),
    ];
    for (bytes, status, code) in rows {
        let mut owner = world.connect(&endpoint, OWNER);
        owner.send(&bytes);
        let answer = owner.reply().unwrap();
        let shown = &bytes[..bytes.len().min(90)];
        assert_eq!((answer.status, answer.error().as_str()), (status, code), "{shown:?}");
        if status == 405 {
            assert!(answer.head.contains("allow: "), "{shown:?}");
        }
    }
}

#[test]
fn a_body_that_was_not_read_is_never_the_next_request() {
    let world = World::swept();
    let endpoint = world.start();
    let smuggled = format!("GET /status HTTP/1.1\r\n{HOST}\r\n");
    for line in ["GET /health", "POST /health", "DELETE /search", "POST /nothing", "POST /status"] {
        let mut owner = world.connect(&endpoint, OWNER);
        owner.send(format!("{line} HTTP/1.1\r\n{HOST}Content-Length: {}\r\n\r\n{smuggled}", smuggled.len()));
        owner.reply().unwrap();
        owner.send(format!("GET /catalog?limit=1 HTTP/1.1\r\n{HOST}\r\n"));
        if let Ok(next) = owner.reply() {
            assert_eq!(next.json()["kind"], "files", "{line}");
        }
    }
    assert!(world.audit().iter().all(|row| !(row["op"] == "status" && row["status"] == 200)), "{:?}", world.audit());
}

#[test]
fn requests_sent_together_are_answered_in_order_and_the_connection_goes_on_after_an_error() {
    let world = World::swept();
    let endpoint = world.start();
    let mut owner = world.connect(&endpoint, OWNER);
    let wrong = "{\"query\":5}";
    owner.send(format!(
        "GET /health HTTP/1.1\r\n{HOST}\r\nPOST /search HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{wrong}GET /nothing HTTP/1.1\r\n{HOST}\r\nGET /status HTTP/1.1\r\n{HOST}\r\n",
        wrong.len()
    ));
    let statuses: Vec<_> = (0..4).map(|_| owner.reply().unwrap().status).collect();
    assert_eq!(statuses, [200, 400, 404, 200]);
    let chunked =
        "POST /search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    owner.send(format!("{chunked}a\r\n{{\"query\":\"\r\n9\r\nharbour\"}}\r\n0\r\n\r\n"));
    assert_eq!(owner.reply().unwrap().status, 200);
    owner.send(format!("GET /health HTTP/1.1\r\n{HOST}Connection: close\r\n\r\n"));
    assert!(owner.reply().unwrap().closes());
    assert!(owner.is_closed());
}

#[test]
fn a_grant_that_ends_while_the_body_is_on_its_way_ends_the_request() {
    let world = World::swept();
    let endpoint = world.start();
    let mut reader = world.connect(&endpoint, READER);
    let body = r#"{"query":"harbour"}"#;
    reader.send(format!(
        "POST /search HTTP/1.1\r\n{HOST}Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    assert_eq!(reader.reply().unwrap().status, 100);
    world.clock.set("2027-01-01T00:00:00Z".parse().unwrap());
    reader.send(body);
    assert_ne!(reader.reply().unwrap().status, 200);
}

#[test]
fn random_bytes_break_nothing() {
    let world = World::swept();
    let endpoint = world.start();
    // xorshift64: the same bytes in each run
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let pieces: [&[u8]; 12] = [
        b"GET ",
        b"/health",
        b" HTTP/1.1\r\n",
        b"Host: a\r\n",
        b"\r\n",
        b"POST /search",
        b"Content-Length: ",
        b"5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"0\r\n\r\n",
        b"{\"query\":\"a\"}",
        b"\xff\0\n",
    ];
    for _ in 0..60 {
        let mut owner = world.connect(&endpoint, OWNER);
        let mut bytes = Vec::new();
        for _ in 0..random() % 40 {
            if random() % 4 == 0 {
                bytes.extend((0..random() % 20).map(|_| random().to_le_bytes()[0]));
            } else {
                bytes.extend_from_slice(pieces[(random() % 12) as usize]);
            }
        }
        owner.send(&bytes);
    }
    // the same below TLS, where nobody has a name yet
    for _ in 0..40 {
        use std::io::Write;
        let mut socket = std::net::TcpStream::connect(endpoint.address()).unwrap();
        let bytes: Vec<u8> = (0..random() % 2000).map(|_| random().to_le_bytes()[0]).collect();
        let _ = socket.write_all(&bytes);
    }
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.search("harbour").status, 200);
    assert_eq!(world.audit_text().lines().count(), world.audit().len(), "every line is whole");
}

#[test]
fn a_silent_connection_stalls_nobody() {
    let world = World::swept();
    let endpoint = world.start();
    let silent: Vec<_> = (0..64).map(|_| std::net::TcpStream::connect(endpoint.address()).unwrap()).collect();
    let mut quiet: Vec<Peer> = (0..8).map(|_| world.connect(&endpoint, READER)).collect();
    let mut owner = world.connect(&endpoint, OWNER);
    assert_eq!(owner.search("harbour").status, 200);
    assert_eq!(quiet[7].search("harbour").status, 200);
    drop(silent);
}
