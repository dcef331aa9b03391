//! Bounds: heads, connections, time, and a stop that ends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::world::{Setup, Upstream, Web, closes, endpoint, read_answer, rest};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[test]
fn a_head_that_is_too_large_is_431_in_and_out_of_a_tunnel() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let world = Setup::new(&web, &[rest("api.example", port)]).start().named(&["api.example"]);
    let field = format!("x: {}\r\n", "a".repeat(1000));
    let large = field.repeat(70);
    let connect = format!("CONNECT api.example:{port} HTTP/1.1\r\n{large}\r\n");
    assert_eq!(world.raw(connect.as_bytes()).unwrap().status, 431);
    let request = format!("GET / HTTP/1.1\r\nhost: api.example:{port}\r\n{large}\r\n");
    let answered = world.try_ask("api.example", port, &request);
    assert!(answered.is_none_or(|answered| answered.status == 431));
    let fits = format!("GET / HTTP/1.1\r\nhost: api.example:{port}\r\n{}\r\n", field.repeat(50));
    assert_eq!(world.ask("api.example", port, &fits).status, 200);
    assert_eq!(host.seen().len(), 1);
}

#[test]
fn who_is_slow_is_closed() {
    let web = Web::new();
    let host = Upstream::answering(&web, "api.example", OK);
    let port = host.port;
    let mut setup = Setup::new(&web, &[rest("api.example", port), endpoint("tunnel.example", port, "")]);
    setup.limits.head = Duration::from_millis(200);
    setup.limits.between = Duration::from_millis(200);
    let world = setup.start().named(&["api.example", "tunnel.example"]);

    let mut silent = world.tcp();
    assert!(closes(&mut silent));
    let mut slow = world.tcp();
    slow.write_all(b"CONNECT api.example:443 HTTP/1.1\r\nx: ").unwrap();
    assert_eq!(read_answer(&mut slow).unwrap().status, 408);
    for target in ["api.example", "tunnel.example"] {
        let (mut no_hello, answered) = world.connect(&format!("{target}:{port}"));
        assert_eq!(answered.status, 200);
        no_hello.write_all(&[22, 3, 1]).unwrap();
        assert!(closes(&mut no_hello), "{target}");
    }
    let mut between = world.tls("api.example", port);
    between.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{port}\r\n\r\n").as_bytes()).unwrap();
    assert_eq!(read_answer(&mut between).unwrap().status, 200);
    let mut rest = Vec::new();
    let _ = between.read_to_end(&mut rest);
    assert!(rest.is_empty(), "closed without a word: {rest:?}");
}

#[test]
fn a_tunnel_that_idles_or_lasts_too_long_is_closed() {
    let web = Web::new();
    for (idle, total) in [(200, 60_000), (60_000, 200)] {
        let host = Upstream::tls(&web, "tunnel.example", |stream| {
            let _ = stream.read(&mut [0; 10]);
        });
        let mut setup = Setup::new(&web, &[endpoint("tunnel.example", host.port, "")]);
        setup.limits.idle = Duration::from_millis(idle);
        setup.limits.total = Duration::from_millis(total);
        let world = setup.start().named(&["tunnel.example"]);
        let mut client = world.tls_with(&format!("tunnel.example:{}", host.port), "tunnel.example", &web.root, &[]);
        let _ = client.flush();
        assert!(client.read(&mut [0]).map_or(true, |length| length == 0));
    }
}

#[test]
fn a_thousand_idle_tunnels_are_cheap_and_one_more_than_the_cap_is_closed() {
    const TUNNELS: usize = 1000;
    let needed = TUNNELS as u64 * 10 + 500;
    let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if files.maximum.is_some_and(|most| most < needed) {
        eprintln!("SKIPPED a_thousand_idle_tunnels_are_cheap: {needed} open files are not to be had");
        return;
    }
    let raised = rustix::process::Rlimit { current: files.maximum, maximum: files.maximum };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();

    let web = Web::new();
    // takes connections and leaves them as they are, without a thread for each
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let held: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
    let keep = Arc::clone(&held);
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            keep.lock().unwrap().push(tcp);
        }
    });
    let mut setup = Setup::new(&web, &[endpoint("tunnel.example", port, "")]);
    setup.limits.connections = TUNNELS;
    // the far side never ends a tunnel; a client that is gone must not hold its seat
    setup.limits.between = Duration::from_millis(500);
    let world = setup.start().named(&["tunnel.example"]);
    let hello = hello("tunnel.example");
    let target = format!("tunnel.example:{port}");
    let open = || {
        let (mut tcp, answered) = world.connect(&target);
        assert_eq!(answered.status, 200);
        tcp.write_all(&hello).unwrap();
        tcp
    };
    let mut tunnels: Vec<_> = (0..10).map(|_| open()).collect();
    let before = resident_kib();
    tunnels.extend((10..TUNNELS).map(|_| open()));
    world.logged(|_| world.log().len() == TUNNELS);
    // each has carried something, and gives back what it took for that
    for tcp in &mut tunnels {
        tcp.write_all(b"something").unwrap();
    }
    for far in held.lock().unwrap().iter_mut() {
        far.set_read_timeout(Some(crate::world::PATIENCE)).unwrap();
        far.read_exact(&mut vec![0; hello.len() + 9]).unwrap();
    }
    let grown = resident_kib().saturating_sub(before);
    // the clients' side is in this process too
    assert!(grown < 50 << 10, "{grown} KiB for {TUNNELS} idle tunnels");

    let mut refused = world.tcp();
    let _ = refused.write_all(b"CONNECT x:443 HTTP/1.1\r\n\r\n");
    assert!(closes(&mut refused));
    tunnels.clear();
    crate::world::until(
        || {
            let mut tcp = world.tcp();
            tcp.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).ok()?;
            crate::world::read_head(&mut tcp)
        },
        || "no seat became free".to_owned(),
    );
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn hello(name: &str) -> Vec<u8> {
    let mut config =
        rustls::ClientConfig::builder_with_provider(std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
    config.enable_sni = true;
    let name = rustls_pki_types::ServerName::try_from(name.to_owned()).unwrap();
    let mut connection = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

#[test]
fn a_stop_ends_what_runs_within_two_seconds() {
    let web = Web::new();
    let host = Upstream::tls(&web, "api.example", |stream| {
        let _ = std::io::copy(stream, &mut std::io::sink());
    });
    let endpoints = [rest("api.example", host.port), endpoint("tunnel.example", host.port, "")];
    let mut world = Setup::new(&web, &endpoints).start().named(&["api.example", "tunnel.example"]);
    let mut request = world.tls("api.example", host.port);
    request.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port).as_bytes()).unwrap();
    let (mut waiting, _) = world.connect(&format!("tunnel.example:{}", host.port));
    let idle = world.tcp();
    world.logged(|row| row["method"] == "GET");
    let began = Instant::now();
    world.proxy.take().unwrap().stop();
    assert!(began.elapsed() < Duration::from_secs(5), "the promise is two; this only says that it ends");
    assert!(request.read(&mut [0]).map_or(true, |length| length == 0));
    assert!(closes(&mut waiting));
    drop(idle);
    assert!(TcpStream::connect(world.address).map_or(true, |mut tcp| closes(&mut tcp)));
}
