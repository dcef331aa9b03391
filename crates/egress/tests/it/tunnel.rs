//! Plain tunnels: TLS to the host that was named, its bytes as they are.

use std::io::{Read, Write};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use crate::world::{PATIENCE, Setup, Upstream, Web, closes, endpoint, read_answer, rest, until};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

#[test]
fn tls_passes_unopened_and_is_counted() {
    let web = Web::new();
    let host = Upstream::answering(&web, "git.example", OK);
    let world = Setup::new(&web, &[endpoint("git.example", host.port, "")]).start().named(&["git.example"]);
    let target = format!("git.example:{}", host.port);
    // it is the host's own certificate that the client sees
    let mut client = world.tls_with(&target, "git.example", &web.root, &[]);
    client.write_all(b"GET /any HTTP/1.1\r\nhost: whatever\r\n\r\n").unwrap();
    assert_eq!(read_answer(&mut client).unwrap().body, b"hi");
    client.conn.send_close_notify();
    client.flush().unwrap();
    drop(client);
    let row = world.logged(|row| row["bytes_up"].as_u64().is_some_and(|bytes| bytes > 0));
    assert_eq!((&row["method"], &row["decision"], &row["status"]), (&"CONNECT".into(), &"allow".into(), &200.into()));
    assert!(row["bytes_down"].as_u64().unwrap() > 500 && row["path"].is_null());
}

#[test]
fn a_tunnel_takes_no_other_name_and_nothing_but_tls() {
    let web = Web::new();
    let host = Upstream::tcp(|stream| {
        let mut bytes = [0; 100];
        let length = stream.read(&mut bytes).unwrap_or(0);
        assert_eq!(length, 0, "nothing may arrive");
    });
    let endpoints = [endpoint("git.example", host.port, ""), endpoint("other.example", host.port, "")];
    let world = Setup::new(&web, &endpoints).start().named(&["git.example", "other.example"]);
    let target = format!("git.example:{}", host.port);
    let (mut ssh, _) = world.connect(&target);
    ssh.write_all(b"SSH-2.0-OpenSSH\r\n").unwrap();
    assert!(closes(&mut ssh));
    for sni in ["other.example", "evil.example", "127.0.0.1"] {
        let mut client = world.tls_with(&target, sni, &web.root, &[]);
        assert!(client.write_all(b"x").and_then(|()| client.flush()).is_err() || closes(&mut client), "{sni}");
    }
    assert_eq!(world.log().iter().filter(|row| row["decision"] == "deny").count(), 4);
}

#[test]
fn an_encrypted_name_is_closed() {
    let web = Web::new();
    let host = Upstream::answering(&web, "git.example", OK);
    for endpoint in [endpoint("git.example", host.port, ""), rest("git.example", host.port)] {
        let world = Setup::new(&web, &[endpoint]).start().named(&["git.example"]);
        let (mut tcp, _) = world.connect(&format!("git.example:{}", host.port));
        tcp.write_all(&hello("git.example", true)).unwrap();
        assert!(closes(&mut tcp));
        world.logged(|row| row["reason"] == "sni_encrypted");
    }
    assert_eq!(host.seen().len(), 0);
}

/// A ClientHello by hand.
fn hello(name: &str, encrypted: bool) -> Vec<u8> {
    let u16 = |n: usize| u16::try_from(n).unwrap().to_be_bytes();
    let mut extensions = Vec::new();
    extensions.extend([0, 0]);
    extensions.extend(u16(name.len() + 5));
    extensions.extend(u16(name.len() + 3));
    extensions.push(0);
    extensions.extend(u16(name.len()));
    extensions.extend(name.as_bytes());
    if encrypted {
        extensions.extend([0xfe, 0x0d, 0, 4, 1, 2, 3, 4]);
    }
    let mut body = vec![3, 3];
    body.extend([9; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(u16(extensions.len()));
    body.extend(extensions);
    let mut message = vec![22, 3, 1];
    message.extend(u16(body.len() + 4));
    message.extend([1, 0]);
    message.extend(u16(body.len()));
    message.extend(body);
    message
}

#[test]
fn a_hello_in_pieces_or_right_behind_the_connect_goes_on_whole() {
    let web = Web::new();
    let (arrived, confirmed) = channel::<Vec<u8>>();
    let arrived = Mutex::new(arrived);
    let host = Upstream::tcp(move |stream| {
        let mut bytes = vec![0; hello("git.example", false).len() + 3];
        stream.read_exact(&mut bytes).unwrap();
        arrived.lock().unwrap().send(bytes).unwrap();
        stream.write_all(b"answer").unwrap();
    });
    let world = Setup::new(&web, &[endpoint("git.example", host.port, "")]).start().named(&["git.example"]);
    let target = format!("git.example:{}", host.port);
    let expected = [hello("git.example", false), b"abc".to_vec()].concat();

    let (mut pieces, _) = world.connect(&target);
    for piece in expected.chunks(7) {
        pieces.write_all(piece).unwrap();
    }
    assert_eq!(confirmed.recv_timeout(PATIENCE).unwrap(), expected);
    let mut answer = [0; 6];
    pieces.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"answer");

    let mut at_once = world.tcp();
    at_once.write_all(&[format!("CONNECT {target} HTTP/1.1\r\n\r\n").into_bytes(), expected.clone()].concat()).unwrap();
    assert_eq!(confirmed.recv_timeout(PATIENCE).unwrap(), expected);
}

#[test]
fn each_direction_ends_by_itself() {
    let web = Web::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&told);
    let host = Upstream::tcp(move |stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        keep.lock().unwrap().push(all.len());
        stream.write_all(b"after your end").unwrap();
    });
    let world = Setup::new(&web, &[endpoint("git.example", host.port, "")]).start().named(&["git.example"]);
    let (mut tcp, _) = world.connect(&format!("git.example:{}", host.port));
    let hello = hello("git.example", false);
    tcp.write_all(&hello).unwrap();
    tcp.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    tcp.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"after your end");
    until(|| told.lock().unwrap().first().copied(), || "no end".to_owned());
    assert_eq!(told.lock().unwrap()[0], hello.len());
}

#[test]
fn many_tunnels_at_once_never_mix_their_bytes() {
    const SIZE: usize = 4 << 20;
    let web = Web::new();
    // sends back what comes, and breaks off in the middle where the bytes say so
    let host = Upstream::tcp(|stream| {
        let mut bytes = vec![0; hello("git.example", false).len()];
        stream.read_exact(&mut bytes).unwrap();
        let mut part = vec![0; 50_000];
        let mut left = SIZE;
        while left > 0 {
            let Ok(length @ 1..) = stream.read(&mut part) else { return };
            if part[0].is_multiple_of(3) && left < SIZE / 2 {
                return;
            }
            if stream.write_all(&part[..length]).is_err() {
                return;
            }
            left = left.saturating_sub(length);
        }
    });
    let world = Setup::new(&web, &[endpoint("git.example", host.port, "")]).start().named(&["git.example"]);
    let target = format!("git.example:{}", host.port);
    std::thread::scope(|scope| {
        for mark in 1..=24_u8 {
            let (world, target) = (&world, &target);
            scope.spawn(move || {
                let (mut tcp, answered) = world.connect(target);
                assert_eq!(answered.status, 200);
                tcp.write_all(&hello("git.example", false)).unwrap();
                let mut writing = tcp.try_clone().unwrap();
                let sender = std::thread::spawn(move || {
                    let _ = writing.write_all(&vec![mark; SIZE]);
                });
                let mut back = vec![0; 64 << 10];
                let mut total = 0;
                while let Ok(length @ 1..) = tcp.read(&mut back) {
                    assert!(back[..length].iter().all(|byte| *byte == mark), "another tunnel's bytes");
                    total += length;
                    if total == SIZE {
                        break;
                    }
                }
                assert!(total == SIZE || mark.is_multiple_of(3), "{mark}: {total}");
                drop(tcp);
                sender.join().unwrap();
            });
        }
    });
}
