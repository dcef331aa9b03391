//! A secret joins a request at its own endpoint, and is seen nowhere else.

use std::io::Write;

use base64::Engine as _;

use crate::world::{SECRET, Setup, Upstream, Web, field, read_answer, rest};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
const PLACEHOLDER: &str = "openshell:resolve:env:MODEL_KEY";

#[test]
fn the_placeholder_becomes_the_secret_at_its_own_endpoint() {
    let web = Web::new();
    let host = Upstream::answering(&web, "model.example", OK);
    let world = Setup::new(&web, &[]).with_model("model.example", host.port).start().named(&["model.example"]);
    let fields = format!("authorization: Bearer {PLACEHOLDER}\r\n");
    assert_eq!(world.get("model.example", host.port, "/v1/models", &fields).status, 200);
    assert_eq!(field(&host.seen()[0], "authorization"), Some(format!("Bearer {SECRET}").as_str()));
    world.logged(|row| row["bytes_down"] == 2);
    assert!(!world.log_text().contains(SECRET));
}

#[test]
fn nothing_goes_out_by_another_way() {
    let web = Web::new();
    let model = Upstream::answering(&web, "model.example", OK);
    let other = Upstream::answering(&web, "other.example", OK);
    let (port, other_port) = (model.port, other.port);
    let world = Setup::new(&web, &[rest("other.example", other_port)])
        .with_model("model.example", port)
        .start()
        .named(&["model.example", "other.example"]);
    let bearer = format!("authorization: Bearer {PLACEHOLDER}\r\n");
    let coded = base64::engine::general_purpose::STANDARD.encode(format!("user:{PLACEHOLDER}"));
    let refused = [
        (world.get("other.example", other_port, "/", &bearer), "another host"),
        (world.get("other.example", other_port, "/", &format!("authorization: Basic {coded}\r\n")), "in Basic"),
        (world.get("model.example", port, &format!("/v1?key={PLACEHOLDER}"), ""), "in the query"),
        (world.get("model.example", port, &format!("/{PLACEHOLDER}"), ""), "in the path"),
        (world.get("model.example", port, "/v1", &format!("x-other: {PLACEHOLDER}\r\n")), "in another header"),
        (world.get("model.example", port, "/v1", "authorization: Bearer sk-of-the-agents-own\r\n"), "an own key"),
        (world.get("model.example", port, "/v1", "x-api-key: sk-of-the-agents-own\r\n"), "an own key elsewhere"),
        (world.get("model.example", port, "/v1", &format!("{bearer}{bearer}")), "twice"),
        (world.get("model.example", port, "/v1", "authorization: Bearer openshell:resolve:env:OTHER\r\n"), "another"),
    ];
    for (answered, what) in refused {
        assert_eq!(answered.status, 403, "{what}: {answered:?}");
        assert!(!answered.error().is_empty(), "{what}");
    }
    assert_eq!(world.get("other.example", other_port, "/", &bearer).error(), "credential_endpoint_mismatch");
    assert_eq!((model.seen().len(), other.seen().len()), (0, 0));
    assert!(world.log().iter().all(|row| row["decision"] == "deny"));
    assert!(!world.log_text().contains(SECRET) && !world.log_text().contains("agents-own"));
}

#[test]
fn a_body_is_left_as_it_is() {
    let web = Web::new();
    let host = Upstream::answering(&web, "model.example", OK);
    let world = Setup::new(&web, &[]).with_model("model.example", host.port).start().named(&["model.example"]);
    let body = format!("{{\"said\":\"{PLACEHOLDER}\"}}");
    let mut client = world.tls("model.example", host.port);
    let request = format!(
        "POST /v1 HTTP/1.1\r\nhost: model.example:{}\r\nauthorization: Bearer {PLACEHOLDER}\r\ncontent-length: {}\r\n\r\n{body}",
        host.port,
        body.len()
    );
    client.write_all(request.as_bytes()).unwrap();
    assert_eq!(read_answer(&mut client).unwrap().status, 200);
    let seen = host.seen().remove(0);
    assert!(seen.ends_with(&body) && seen.contains(SECRET));
}

#[test]
fn naming_the_header_as_this_hops_does_not_send_an_own_key() {
    let web = Web::new();
    let host = Upstream::answering(&web, "model.example", OK);
    let world = Setup::new(&web, &[]).with_model("model.example", host.port).start().named(&["model.example"]);
    let fields = "connection: authorization\r\nauthorization: Bearer sk-of-the-agents-own\r\n";
    world.get("model.example", host.port, "/v1", fields);
    assert!(host.seen().iter().all(|seen| field(seen, "authorization").is_none()));
}
