//! Names and addresses: looked up only if allowed, dialled only if admitted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::world::{LOOPBACK, Setup, Upstream, Web, rest};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

fn unlisted(host: &str, port: u16) -> String {
    format!("{{host: {host}, port: {port}, protocol: rest, access: full, enforcement: enforce}}")
}

#[test]
fn a_listed_name_that_is_at_an_address_of_ours_is_refused() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let tunnel = format!("{{host: tunnel.example, port: {}}}", host.port);
    let world = Setup::new(&web, &[unlisted("api.example", host.port), tunnel]).start();
    let v4 = |a, b, c, d| IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    for address in [
        v4(169, 254, 169, 254),
        v4(10, 0, 0, 1),
        v4(127, 0, 0, 1),
        v4(192, 168, 1, 1),
        v4(100, 64, 0, 1),
        v4(0, 0, 0, 0),
        v4(224, 0, 0, 1),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
        "::ffff:127.0.0.1".parse().unwrap(),
        "64:ff9b::a00:1".parse().unwrap(),
        "fe80::1".parse().unwrap(),
        "fd00::1".parse().unwrap(),
    ] {
        world.at("api.example", &[address]);
        world.at("tunnel.example", &[address]);
        let answered = world.get("api.example", host.port, "/", "");
        assert_eq!((answered.status, answered.error().as_str()), (403, "policy_denied"), "{address}");
        let (_, answered) = world.connect(&format!("tunnel.example:{}", host.port));
        assert_eq!(answered.status, 403, "{address}");
    }
    assert_eq!(host.connections(), 0);
}

#[test]
fn of_several_addresses_those_that_may_be_dialled_are_in_order() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start();
    world.at("api.example", &["10.1.2.3".parse().unwrap(), LOOPBACK]);
    assert_eq!(world.get("api.example", host.port, "/", "").status, 200);
}

#[test]
fn a_name_without_an_address_and_a_resolver_that_fails_are_502() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let endpoints = [rest("api.example", host.port), rest("panic.example", host.port), rest("none.example", host.port)];
    let world = Setup::new(&web, &endpoints).start().named(&["api.example"]);
    world.at("none.example", &[]);
    for name in ["panic.example", "none.example"] {
        let answered = world.get(name, host.port, "/", "");
        assert_eq!((answered.status, answered.error().as_str()), (502, "upstream_unreachable"), "{name}");
        world.logged(|row| row["host"] == name && row["fault"] == "upstream_unreachable" && row["status"] == 502);
    }
    // and the proxy is still there
    assert_eq!(world.get("api.example", host.port, "/", "").status, 200);
}
