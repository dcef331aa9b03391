//! The log: a line a decision, and nothing goes out without one.

use crate::world::{Setup, Upstream, Web, endpoint, rest};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[test]
fn without_a_log_nothing_goes_out() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let tunnelled = Upstream::answering(&web, "tunnel.example", OK);
    let endpoints = [rest("api.example", host.port), endpoint("tunnel.example", tunnelled.port, "")];
    let world = Setup::new(&web, &endpoints).start().named(&["api.example", "tunnel.example"]);
    assert_eq!(world.get("api.example", host.port, "/", "").status, 200);
    // the file and its folder are gone, so no new one can be made
    std::fs::remove_dir_all(world.dir.path()).unwrap();
    for _ in 0..3 {
        let answered = world.get("api.example", host.port, "/", "");
        assert_eq!((answered.status, answered.error().as_str()), (503, "log_unavailable"));
        assert_eq!(world.connect("evil.example:443").1.status, 503);
        use std::io::{Read, Write};
        let target = format!("tunnel.example:{}", tunnelled.port);
        let mut client = world.tls_with(&target, "tunnel.example", &web.root, &[]);
        assert!(client.write_all(b"x").and_then(|()| client.flush()).is_err() || client.read(&mut [0]).is_err());
    }
    assert_eq!((host.seen().len(), tunnelled.seen().len()), (1, 0));
    // and goes out again once it can be written
    std::fs::create_dir_all(world.dir.path()).unwrap();
    crate::world::until(
        || (world.get("api.example", host.port, "/", "").status == 200).then_some(()),
        || "it stays refused".to_owned(),
    );
}

#[test]
fn an_audited_request_goes_on_and_says_so() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let listed = endpoint("api.example", host.port, "protocol: rest, access: read-only, enforcement: audit");
    let world = Setup::new(&web, &[listed]).start().named(&["api.example"]);
    let request = format!("DELETE /x HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port);
    assert_eq!(world.ask("api.example", host.port, &request).status, 200);
    let row = world.logged(|row| row["method"] == "DELETE" && row["status"] == 200);
    assert_eq!(row["decision"], "audit");
}

#[test]
fn a_request_that_is_refused_for_its_form_has_a_line_too() {
    let web = Web::new();
    let world = Setup::new(&web, &[]).start();
    assert_eq!(world.raw(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap().status, 400);
    assert_eq!(world.raw(b"CONNECT a\"b\x1b[2J:443 HTTP/1.1\r\n\r\n").unwrap().status, 400);
    let rows = world.log();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["decision"] == "deny" && row["status"] == 400 && row["bytes_up"] == 0));
    assert!(!world.log_text().contains('\u{1b}'));
}

#[test]
fn it_is_set_aside_when_it_is_full() {
    let web = Web::new();
    let mut setup = Setup::new(&web, &[]);
    setup.limits.log_bytes = 4000;
    let world = setup.start();
    for _ in 0..30 {
        world.connect("evil.example:443");
    }
    let size = |name: &str| std::fs::metadata(world.dir.path().join(name)).unwrap().len();
    assert!(size("egress.jsonl") <= 4000 && size("egress.jsonl.1") <= 4000);
    assert_eq!(std::fs::read_dir(world.dir.path()).unwrap().count(), 2);
}
