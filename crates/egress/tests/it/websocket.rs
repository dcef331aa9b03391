//! WebSockets: relayed where the endpoint is for them, 426 where it is not.

use std::io::{Read, Write};

use crate::world::{
    SECRET, Setup, Upstream, Web, endpoint, field, model_credential, read_head, read_request, rest, status,
};

const UPGRADE: &str = "connection: keep-alive, Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                       sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

fn echo(web: &Web) -> Upstream {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let keep = std::sync::Arc::clone(&seen);
    let upstream = Upstream::tls(web, "socket.example", move |stream| {
        let asked = read_request(stream).unwrap();
        keep.lock().unwrap().push(asked.head);
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\nfirst";
        stream.write_all(head.as_bytes()).and_then(|()| stream.flush()).unwrap();
        let mut bytes = [0; 1000];
        while let Ok(length) = stream.read(&mut bytes) {
            if length == 0 || stream.write_all(&bytes[..length]).and_then(|()| stream.flush()).is_err() {
                break;
            }
        }
    });
    Upstream { seen, ..upstream }
}

#[test]
fn it_is_relayed_where_it_is_meant() {
    let web = Web::new();
    let host = echo(&web);
    let mut setup = Setup::new(&web, &[]);
    setup.profiles.push((
        "model.yaml",
        format!(
            "id: model\ncredentials:\n  - {{name: key, env_vars: [MODEL_KEY], auth_style: bearer}}\nendpoints:\n  - {}\n",
            endpoint("socket.example", host.port, "protocol: websocket, access: full, enforcement: enforce")
        ),
    ));
    setup.credentials.push(model_credential());
    let world = setup.start().named(&["socket.example"]);
    let mut client = world.tls("socket.example", host.port);
    let head = format!(
        "GET /chat HTTP/1.1\r\nhost: socket.example:{}\r\nauthorization: Bearer openshell:resolve:env:MODEL_KEY\r\n{UPGRADE}\r\n",
        host.port
    );
    client.write_all(head.as_bytes()).unwrap();
    let head = read_head(&mut client).unwrap();
    assert_eq!((status(&head), field(&head, "upgrade")), (101, Some("websocket")), "{head}");
    assert_eq!(field(&head, "sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    let mut first = [0; 5];
    client.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"first");
    for n in 0..20 {
        let message = format!("\u{1}message {n:02}");
        client.write_all(message.as_bytes()).unwrap();
        let mut back = vec![0; message.len()];
        client.read_exact(&mut back).unwrap();
        assert_eq!(back, message.as_bytes());
    }
    let seen = host.seen().remove(0);
    assert_eq!(field(&seen, "authorization"), Some(format!("Bearer {SECRET}").as_str()));
    assert_eq!((field(&seen, "upgrade"), field(&seen, "connection")), (Some("websocket"), Some("Upgrade")));
    drop(client);
    let row = world.logged(|row| row["status"] == 101 && !row["bytes_up"].is_null());
    assert_eq!((&row["bytes_up"], &row["bytes_down"]), (&220.into(), &225.into()));
}

#[test]
fn a_rest_endpoint_says_426_at_once() {
    let web = Web::new();
    let host = echo(&web);
    let world = Setup::new(&web, &[rest("socket.example", host.port)]).start().named(&["socket.example"]);
    let answered = world.get("socket.example", host.port, "/chat", UPGRADE);
    assert_eq!((answered.status, answered.error().as_str()), (426, "websocket_not_allowed"));
    assert_eq!(host.connections(), 0);
    world.logged(|row| row["status"] == 426 && row["decision"] == "deny");
}

#[test]
fn another_protocol_is_not_asked_for() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let listed = endpoint("api.example", host.port, "protocol: websocket, access: full, enforcement: enforce");
    let world = Setup::new(&web, &[listed]).start().named(&["api.example"]);
    let fields = "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n";
    assert_eq!(world.get("api.example", host.port, "/", fields).status, 200);
    let seen = host.seen().remove(0);
    assert!(field(&seen, "upgrade").is_none() && field(&seen, "http2-settings").is_none());
}
