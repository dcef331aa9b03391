//! Hosts that stall, break off or talk nonsense: an answer that says so, a line, and nothing of the inside.

use std::io::{Read, Write};
use std::time::Duration;

use bastion_egress::Limits;

use crate::world::{Setup, Upstream, Web, World, read_head, read_request, rest, status};

fn world(web: &Web, host: &Upstream) -> World {
    let mut setup = Setup::new(web, &[rest("api.example", host.port)]);
    setup.limits.idle = Duration::from_millis(300);
    setup.start().named(&["api.example"])
}

#[test]
fn each_fault_has_its_answer_and_its_line() {
    let web = Web::new();
    let silent = Upstream::tls(&web, "api.example", |stream| {
        read_request(stream);
        let _ = stream.read(&mut [0]);
    });
    let reset = Upstream::tls(&web, "api.example", |stream| {
        read_request(stream);
    });
    let garbage = Upstream::tls(&web, "api.example", |stream| {
        read_request(stream);
        let _ = stream.write_all(b"SSH-2.0-what\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").and_then(|()| stream.flush());
    });
    let endless = Upstream::tls(&web, "api.example", |stream| {
        read_request(stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n");
        while stream.write_all(&[b"x: ", &[b'a'; 1000][..], b"\r\n"].concat()).is_ok() {}
    });
    let switching = Upstream::tls(&web, "api.example", |stream| {
        read_request(stream);
        let switch = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
        let _ = stream.write_all(switch).and_then(|()| stream.flush());
        let _ = stream.read(&mut [0]);
    });
    let not_tls = Upstream::tcp(|stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let stranger = Upstream::answering(&Web::new(), "api.example", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let misnamed = Upstream::answering(&web, "other.example", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    for (host, wanted, code) in [
        (&silent, 504, "upstream_stalled"),
        (&reset, 502, "upstream_cut_off"),
        (&garbage, 502, "upstream_answer"),
        (&endless, 502, "upstream_answer"),
        (&switching, 502, "upstream_answer"),
        (&not_tls, 502, "upstream_tls"),
        (&stranger, 502, "upstream_tls"),
        (&misnamed, 502, "upstream_tls"),
    ] {
        let world = world(&web, host);
        let answered = world.get("api.example", host.port, "/", "");
        assert_eq!((answered.status, answered.error().as_str()), (wanted, code));
        let row = world.logged(|row| row["status"] == wanted);
        assert_eq!((&row["decision"], &row["fault"]), (&"allow".into(), &code.into()));
    }
}

#[test]
fn a_port_that_nobody_listens_at_is_502() {
    let web = Web::new();
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let world = Setup::new(&web, &[rest("api.example", port)]).start().named(&["api.example"]);
    let answered = world.get("api.example", port, "/", "");
    assert_eq!((answered.status, answered.error().as_str()), (502, "upstream_unreachable"));
}

#[test]
fn an_answer_that_breaks_off_breaks_off() {
    let web = Web::new();
    for (head, body) in [
        ("content-length: 100", &b"half"[..]),
        ("transfer-encoding: chunked", b"4\r\nhalf\r\n"),
        ("transfer-encoding: chunked", b"4\r\nhalf\r\nzz\r\n"),
    ] {
        let host = Upstream::tls(&web, "api.example", move |stream| {
            read_request(stream);
            let _ = stream.write_all(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes());
            let _ = stream.write_all(body).and_then(|()| stream.flush());
        });
        let world = world(&web, &host);
        let mut client = world.tls("api.example", host.port);
        client.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port).as_bytes()).unwrap();
        let head = read_head(&mut client).unwrap();
        assert_eq!(status(&head), 200);
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest);
        assert!(!rest.ends_with(b"0\r\n\r\n") && rest.len() < 100, "it must not look whole: {rest:?}");
        world.logged(|row| row["fault"] == "upstream_cut_off");
    }
}

#[test]
fn a_stream_that_stalls_is_closed() {
    let web = Web::new();
    let host = Upstream::tls(&web, "api.example", |stream| {
        read_request(stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf").and_then(|()| stream.flush());
        let _ = stream.read(&mut [0]);
    });
    let world = world(&web, &host);
    let mut client = world.tls("api.example", host.port);
    client.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port).as_bytes()).unwrap();
    read_head(&mut client).unwrap();
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    assert_eq!(rest, b"half");
    world.logged(|row| row["bytes_down"] == 4);
}

#[test]
fn the_defaults_leave_a_model_its_time() {
    assert!(Limits::default().idle >= Duration::from_secs(600));
}
