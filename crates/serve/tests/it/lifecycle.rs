//! Starting, stopping, and files that are replaced while it runs.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use bastion_serve::{ServeError, TlsError};
use bastion_trust::ca::Purpose;

use crate::world::{OWNER, World, read};

#[test]
fn the_port_file_has_the_port_while_it_listens() {
    let world = World::swept();
    let mut config = world.config();
    let path = world.path("port");
    config.port_file = Some(path.clone());
    let endpoint = world.try_start(config).unwrap();
    let port: u16 = read(&path).trim().parse().unwrap();
    assert_eq!(port, endpoint.address().port());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok());
    endpoint.stop();
    assert!(!path.exists());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[test]
fn a_port_file_that_can_not_be_written_stops_the_start() {
    let world = World::swept();
    let mut config = world.config();
    config.port_file = Some(world.path("absent/port"));
    assert!(matches!(world.try_start(config), Err(ServeError::PortFile { .. })));
}

#[test]
fn tls_files_that_can_not_be_used_are_named() {
    let world = World::swept();
    let started = |change: &dyn Fn(&mut bastion_serve::TlsFiles)| {
        let mut config = world.config();
        change(&mut config.tls);
        world.try_start(config).unwrap_err()
    };
    fs::write(world.path("empty"), "").unwrap();
    for (error, name) in [
        (started(&|tls| tls.cert = world.path("absent")), "FREEAGENT_TLS_CERT"),
        (started(&|tls| tls.key = world.path("absent")), "FREEAGENT_TLS_KEY"),
        (started(&|tls| tls.ca = world.path("absent")), "FREEAGENT_CA_ROOT"),
        (started(&|tls| tls.cert = world.path("empty")), "FREEAGENT_TLS_CERT"),
        (started(&|tls| tls.key = world.path("empty")), "FREEAGENT_TLS_KEY"),
        (started(&|tls| tls.ca = world.path("empty")), "FREEAGENT_CA_ROOT"),
    ] {
        assert!(error.to_string().contains(name), "{error}");
    }
    let pair = started(&|tls| tls.key = world.path(&format!("{OWNER}.key")));
    assert!(matches!(pair, ServeError::Tls(TlsError::Pair { .. })), "{pair}");
}

#[test]
fn a_key_that_others_may_read_is_warned_of() {
    let world = World::swept();
    fs::set_permissions(world.path("endpoint.key"), fs::Permissions::from_mode(0o644)).unwrap();
    let _endpoint = world.start();
    world.await_notice("others may read this key");
}

#[test]
fn a_replaced_certificate_is_picked_up_and_a_half_replaced_one_is_not() {
    let world = World::swept();
    let endpoint = world.start();
    let served = |world: &World| world.connect(&endpoint, OWNER).certificate();
    let first = served(&world);
    let (old_key, old_cert) = (read(&world.path("endpoint.key")), read(&world.path("endpoint.pem")));
    world.issue(OWNER, "next", Purpose::Tls);
    fs::copy(world.path("next.pem"), world.path("endpoint.pem")).unwrap();
    assert_eq!(served(&world), first, "the key does not fit yet");
    world.await_notice("goes on being used");
    fs::copy(world.path("next.key"), world.path("endpoint.key")).unwrap();
    assert_ne!(served(&world), first);
    world.keep("endpoint", &old_cert, &old_key);
    assert_eq!(served(&world), first);
}

#[test]
fn no_session_is_resumed() {
    let world = World::swept();
    let endpoint = world.start();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        assert!(!crate::peer::is_resumed_by_the_second(&world, &endpoint, version));
    }
}

#[test]
fn stopping_lets_a_request_that_runs_end_and_closes_the_rest() {
    let world = World::swept();
    let endpoint = world.start();
    let mut idle = world.connect(&endpoint, OWNER);
    assert_eq!(idle.get("/health").status, 200);
    let mut busy = world.connect(&endpoint, OWNER);
    let body = r#"{"query":"harbour"}"#;
    busy.send(format!(
        "POST /search HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    assert_eq!(busy.reply().unwrap().status, 100, "its head was read");
    endpoint.stop_handle().stop();
    assert!(idle.is_closed());
    busy.send(body);
    let answer = busy.reply().unwrap();
    assert_eq!(answer.status, 200);
    assert!(answer.closes());
    endpoint.join();
    assert_eq!(world.audit().len(), 2);
}

#[test]
fn several_endpoints_run_in_one_process() {
    let (one, two) = (World::swept(), World::swept());
    let (first, second) = (one.start(), two.start());
    assert_eq!(one.connect(&first, OWNER).search("harbour").status, 200);
    assert_eq!(two.connect(&second, OWNER).search("harbour").status, 200);
    first.stop();
    assert_eq!(two.connect(&second, OWNER).search("harbour").status, 200);
    assert_eq!((one.audit().len(), two.audit().len()), (1, 2));
}

#[test]
fn an_address_in_use_is_told() {
    let world = World::swept();
    let endpoint = world.start();
    let mut config = world.config();
    config.bind = endpoint.address().to_string().parse().unwrap();
    let error = world.try_start(config).unwrap_err();
    assert!(matches!(error, ServeError::Listen { .. }));
    assert!(error.to_string().contains(&endpoint.address().to_string()));
}
