//! Requests inside TLS: one host, one reading of the target, one framing, one hop.

use std::io::Write;

use crate::world::{Setup, Upstream, Web, endpoint, field, read_answer, read_head, read_request, rest, status};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[test]
fn a_host_that_is_not_the_connections_is_refused() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let endpoints = [rest("api.example", port), rest("other.example", port)];
    let world = Setup::new(&web, &endpoints).start().named(&["api.example", "other.example"]);
    let ask =
        |fields: &str, path: &str| world.ask("api.example", port, &format!("GET {path} HTTP/1.1\r\n{fields}\r\n"));
    for fields in [
        format!("host: other.example:{port}\r\n"),
        "host: api.example\r\n".to_owned(),
        format!("host: api.example:{}\r\n", port.wrapping_add(1).max(1)),
    ] {
        let answered = ask(&fields, "/");
        assert_eq!((answered.status, answered.error().as_str()), (403, "host_mismatch"), "{fields}");
    }
    for fields in [
        format!("host: api.example:{port}\r\nhost: other.example:{port}\r\n"),
        format!("host: api.example:{port}\r\nhost: api.example:{port}\r\n"),
        String::new(),
        format!("host: user@api.example:{port}\r\n"),
    ] {
        assert_eq!(ask(&fields, "/").status, 400, "{fields}");
    }
    let fields = format!("host: api.example:{port}\r\n");
    assert_eq!(ask(&fields, &format!("https://other.example:{port}/")).status, 400);
    assert_eq!(ask(&fields, &format!("http://api.example:{port}/")).status, 400);
    assert_eq!(ask(&fields, "*").status, 400);
    assert_eq!(host.seen(), Vec::<String>::new());
}

#[test]
fn a_target_has_one_reading_and_the_policy_judges_that() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let listed = endpoint(
        "api.example",
        port,
        r#"protocol: rest, enforcement: enforce, rules: [{allow: {method: GET, path: "/v1/**"}}]"#,
    );
    let world = Setup::new(&web, &[listed]).start().named(&["api.example"]);
    assert_eq!(world.get("api.example", port, "/v1/models", "").status, 200);
    for path in ["/v2", "/", "/v1x", "/V1/models"] {
        let answered = world.get("api.example", port, path, "");
        assert_eq!((answered.status, answered.error().as_str()), (403, "policy_denied"), "{path}");
    }
    for path in [
        "/v1/../v2",
        "/v1/%2e%2e/v2",
        "/v1/.%2E/v2",
        "/v1//x",
        "//v1/x",
        "/v1/%2fx",
        "/v1/%5c..%5cv2",
        "/v1/\\..\\v2",
        "/v1/%00",
        "/v1/%252e%252e/v2",
        "/v1/..;/v2",
        "/v1/%zz",
        "/v1/./x",
    ] {
        let answered = world.get("api.example", port, path, "");
        assert!(matches!(answered.status, 400 | 403), "{path}: {answered:?}");
    }
    assert_eq!(host.seen().len(), 1);
    let methods = ["POST", "TRACE", "CONNECT", "get", "DELETE"];
    for method in methods {
        let request = format!("{method} /v1/models HTTP/1.1\r\nhost: api.example:{port}\r\n\r\n");
        let answered = world.ask("api.example", port, &request);
        assert!(matches!(answered.status, 400 | 403), "{method}: {answered:?}");
    }
    for field in [
        "X-HTTP-Method-Override: DELETE\r\n",
        "x-http-method: PUT\r\n",
        "X-Method-Override: GET\r\n",
        "X_HTTP_Method_Override: PUT\r\n",
        "x-original-url: /admin\r\n",
    ] {
        let answered = world.get("api.example", port, "/v1/models", field);
        assert_eq!((answered.status, answered.error().as_str()), (403, "policy_denied"), "{field}");
    }
    assert_eq!(host.seen().len(), 1);
}

#[test]
fn a_request_has_one_framing() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let world = Setup::new(&web, &[rest("api.example", port)]).start().named(&["api.example"]);
    let inner = "GET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
    for fields in [
        "content-length: 5\r\ncontent-length: 6\r\n".to_owned(),
        "content-length: 5, 6\r\n".to_owned(),
        "content-length: +5\r\n".to_owned(),
        "transfer-encoding : chunked\r\n".to_owned(),
        "transfer-encoding: chunked, identity\r\n".to_owned(),
        "transfer-encoding: xchunked\r\n".to_owned(),
        "x: 1\r\n y: folded\r\n".to_owned(),
    ] {
        let request = format!("POST / HTTP/1.1\r\nhost: api.example:{port}\r\n{fields}\r\n0\r\n\r\n{inner}");
        let answered = world.try_ask("api.example", port, &request);
        assert!(answered.as_ref().is_none_or(|answered| answered.status == 400), "{fields}: {answered:?}");
    }
    assert_eq!(host.seen(), Vec::<String>::new());

    // both: read by its chunks, sent on by chunks alone, and then the connection is over
    for fields in
        ["content-length: 99\r\ntransfer-encoding: chunked\r\n", "transfer-encoding: chunked\r\ncontent-length: 4\r\n"]
    {
        let mut client = world.tls("api.example", port);
        let request = format!("POST / HTTP/1.1\r\nhost: api.example:{port}\r\n{fields}\r\n2\r\nab\r\n0\r\n\r\n{inner}");
        client.write_all(request.as_bytes()).unwrap();
        let answered = read_answer(&mut client);
        assert!(answered.is_none_or(|answered| matches!(answered.status, 200 | 400)));
        assert!(read_head(&mut client).is_none(), "the connection is closed");
    }
    for seen in host.seen() {
        assert!(!seen.contains("smuggled") && !seen.contains("content-length") && seen.ends_with("ab"), "{seen}");
    }
}

#[test]
fn what_is_for_the_proxy_stays_with_it_in_both_directions() {
    let web = Web::new();
    let host = Upstream::answering(
        &web,
        "api.example",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: x-hop\r\nx-hop: 1\r\nkeep-alive: timeout=5\r\nx-end: 1\r\n\r\nhi",
    );
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let fields = "connection: X-Mine, keep-alive\r\nx-mine: 1\r\nte: trailers\r\nproxy-authorization: Basic eA==\r\n\
                  proxy-connection: keep-alive\r\nupgrade: h2c\r\nx-end: 2\r\n";
    let answered = world.get("api.example", host.port, "/", fields);
    let seen = host.seen().remove(0);
    for name in ["connection", "x-mine", "te", "proxy-authorization", "proxy-connection", "upgrade"] {
        assert_eq!(field(&seen, name), None, "{name}: {seen}");
    }
    assert_eq!(field(&seen, "x-end"), Some("2"));
    assert_eq!((field(&answered.head, "x-hop"), field(&answered.head, "keep-alive")), (None, None));
    assert_eq!(field(&answered.head, "x-end"), Some("1"));
}

#[test]
fn a_client_that_waits_for_100_gets_it_once_it_may_and_not_before() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let listed = endpoint("api.example", port, "protocol: rest, access: read-write, enforcement: enforce");
    let world = Setup::new(&web, &[listed]).start().named(&["api.example"]);
    let head = |method: &str| {
        format!("{method} / HTTP/1.1\r\nhost: api.example:{port}\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n")
    };
    let mut client = world.tls("api.example", port);
    client.write_all(head("POST").as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut client).unwrap()), 100);
    client.write_all(b"body").unwrap();
    assert_eq!(read_answer(&mut client).unwrap().status, 200);
    assert!(host.seen()[0].ends_with("\r\n\r\nbody") && field(&host.seen()[0], "expect").is_none());

    let mut denied = world.tls("api.example", port);
    denied.write_all(head("DELETE").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut denied).unwrap().status, 403);
}

#[test]
fn connections_are_used_again_on_both_sides() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let world = Setup::new(&web, &[rest("api.example", port)]).start().named(&["api.example"]);
    let mut client = world.tls("api.example", port);
    for n in 0..20 {
        client.write_all(format!("GET /{n} HTTP/1.1\r\nhost: api.example:{port}\r\n\r\n").as_bytes()).unwrap();
        assert_eq!(read_answer(&mut client).unwrap().body, b"hi");
    }
    assert_eq!(host.seen().len(), 20);
    assert!(host.connections() <= 3, "{}", host.connections());
    assert!(world.asked().len() <= 3);
}

#[test]
fn a_connection_that_was_closed_while_it_was_kept_costs_nothing() {
    let web = Web::new();
    // says that it keeps the connection, and closes it
    let host = Upstream::tls(&web, "api.example", |stream| {
        if read_request(stream).is_some() {
            let _ = stream.write_all(OK.as_bytes()).and_then(|()| stream.flush());
        }
    });
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let mut client = world.tls("api.example", host.port);
    for _ in 0..5 {
        // once the end has reached the proxy; a request that meets it on its way can't be sent twice
        std::thread::sleep(std::time::Duration::from_millis(50));
        client.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port).as_bytes()).unwrap();
        assert_eq!(read_answer(&mut client).unwrap().status, 200);
    }
    assert_eq!(host.connections(), 5);
}
