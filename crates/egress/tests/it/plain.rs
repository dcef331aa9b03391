//! Plain HTTP through the proxy: the same rules, and no secret leaves this machine that way.

use std::net::IpAddr;

use crate::world::{SECRET, Setup, Upstream, Web, endpoint, field, model_credential};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
const BEARER: &str = "authorization: Bearer openshell:resolve:env:MODEL_KEY\r\n";

fn plain(host: &str, port: u16) -> String {
    endpoint(host, port, "protocol: rest, access: read-only, enforcement: enforce, tls: skip")
}

fn get(host: &str, path: &str, fields: &str) -> Vec<u8> {
    format!("GET http://{host}{path} HTTP/1.1\r\nhost: {host}\r\n{fields}\r\n").into_bytes()
}

#[test]
fn it_is_judged_like_everything_else() {
    let web = Web::new();
    let host = Upstream::answering_plain(OK);
    let port = host.port;
    let tls_only = endpoint("tls.example", port, "protocol: rest, access: full, enforcement: enforce");
    let tunnel = endpoint("tunnel.example", port, "");
    let world = Setup::new(&web, &[plain("api.example", port), tls_only, tunnel]).start().named(&["api.example"]);
    let at = format!("api.example:{port}");
    let answered = world.raw(&get(&at, "/x?q=1", "proxy-connection: keep-alive\r\n")).unwrap();
    assert_eq!((answered.status, answered.body.as_slice()), (200, &b"hi"[..]), "{answered:?}");
    assert!(host.seen()[0].starts_with("GET /x?q=1 HTTP/1.1\r\n"), "{:?}", host.seen());
    assert_eq!(field(&host.seen()[0], "host"), Some(at.as_str()));
    let looked_up = world.asked().len();

    let post = format!("POST http://{at}/ HTTP/1.1\r\nhost: {at}\r\ncontent-length: 0\r\n\r\n");
    for (request, status) in [
        (post.into_bytes(), 403),
        (get("evil.example", "/", ""), 403),
        (get(&format!("tls.example:{port}"), "/", ""), 403),
        (get(&format!("tunnel.example:{port}"), "/", ""), 403),
        (format!("GET http://{at}/ HTTP/1.1\r\nhost: evil.example\r\n\r\n").into_bytes(), 403),
        (format!("GET http://u@{at}/ HTTP/1.1\r\nhost: {at}\r\n\r\n").into_bytes(), 400),
        (get(&at, "/a/../b", ""), 400),
        (b"GET http://evil.example/ HTTP/1.0\r\n\r\n".to_vec(), 400),
        (b"GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n".to_vec(), 400),
        (format!("GET https://{at}/ HTTP/1.1\r\nhost: {at}\r\n\r\n").into_bytes(), 400),
    ] {
        let answered = world.raw(&request).unwrap();
        assert_eq!(answered.status, status, "{}: {answered:?}", String::from_utf8_lossy(&request));
    }
    assert_eq!(world.asked().len(), looked_up);
    assert_eq!(host.seen().len(), 1);
}

#[test]
fn requests_after_the_first_are_judged_too() {
    use std::io::Write;
    let web = Web::new();
    let host = Upstream::answering_plain(OK);
    let world = Setup::new(&web, &[plain("api.example", host.port)]).start().named(&["api.example"]);
    let at = format!("api.example:{}", host.port);
    let mut tcp = world.tcp();
    let mut ask = |request: &[u8]| {
        tcp.write_all(request).unwrap();
        crate::world::read_answer(&mut tcp)
    };
    assert_eq!(ask(&get(&at, "/1", "")).unwrap().status, 200);
    assert_eq!(ask(&get("evil.example", "/", "")).unwrap().status, 403);
    assert_eq!(ask(&get(&at, "/2", "")).unwrap().status, 200);
    assert_eq!(ask(format!("GET /3 HTTP/1.1\r\nhost: {at}\r\n\r\n").as_bytes()).unwrap().status, 400);
    let relay = ask(format!("CONNECT {at} HTTP/1.1\r\nhost: {at}\r\n\r\n").as_bytes());
    assert!(relay.is_none_or(|answered| matches!(answered.status, 400 | 403)));
    assert_eq!(host.seen().len(), 2);
}

#[test]
fn a_secret_goes_out_in_the_clear_on_this_machine_alone() {
    let web = Web::new();
    let host = Upstream::answering_plain(OK);
    // an address of this machine that is not loopback, if it has one; loopback under another name if not
    let own = own_address();
    let mut setup = Setup::new(&web, &[]);
    let address = own.map_or("127.0.0.1".to_owned(), |ip| ip.to_string());
    setup.profiles.push((
        "model.yaml",
        format!(
            "id: model\ncredentials:\n  - {{name: key, env_vars: [MODEL_KEY], auth_style: bearer}}\nendpoints:\n  \
             - {{host: near.example, port: {port}, protocol: rest, access: full, enforcement: enforce, tls: skip, allowed_ips: [127.0.0.1]}}\n  \
             - {{host: far.example, port: {port}, protocol: rest, access: full, enforcement: enforce, tls: skip, allowed_ips: [\"{address}\"]}}\n",
            port = host.port
        ),
    ));
    setup.credentials.push(model_credential());
    let world = setup.start().named(&["near.example"]);
    assert_eq!(world.raw(&get(&format!("near.example:{}", host.port), "/", BEARER)).unwrap().status, 200);
    assert_eq!(field(&host.seen()[0], "authorization"), Some(format!("Bearer {SECRET}").as_str()));
    let Some(own) = own else {
        eprintln!("SKIPPED a_secret_goes_out_in_the_clear_on_this_machine_alone, second half: only loopback here");
        return;
    };
    let listener = std::net::TcpListener::bind((own, host.port)).unwrap();
    world.at("far.example", &[own]);
    let answered = world.raw(&get(&format!("far.example:{}", host.port), "/", BEARER)).unwrap();
    assert_eq!((answered.status, answered.error().as_str()), (403, "credential_over_plain_http"));
    let (mut taken, _) = listener.accept().unwrap();
    assert!(crate::world::closes(&mut taken), "not a byte");
}

/// Our address on a network, without sending anything.
fn own_address() -> Option<IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}
