//! Bodies stream, in both directions: nothing is held back, nothing is held.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::world::{PATIENCE, Setup, Upstream, Web, read_chunk, read_head, read_request, rest, status, until};

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const MIB: u64 = 1 << 20;

#[test]
fn an_event_arrives_before_the_next_is_sent() {
    let web = Web::new();
    let (arrived, confirmed) = channel::<usize>();
    let confirmed = Mutex::new(confirmed);
    let host = Upstream::tls(&web, "api.example", move |stream| {
        read_request(stream).unwrap();
        stream.write_all(CHUNKED).unwrap();
        for n in 0..10 {
            let event = format!("data: {n}\n\n");
            stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes()).unwrap();
            stream.flush().unwrap();
            let seen = confirmed.lock().unwrap().recv_timeout(PATIENCE).expect("the event arrived");
            assert_eq!(seen, n);
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
        stream.flush().unwrap();
    });
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let mut client = world.tls("api.example", host.port);
    client.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port).as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut client).unwrap()), 200);
    for n in 0..10 {
        assert_eq!(read_chunk(&mut client).unwrap(), format!("data: {n}\n\n").as_bytes());
        arrived.send(n).unwrap();
    }
    assert_eq!(read_chunk(&mut client).unwrap(), b"");
}

#[test]
fn a_part_of_an_upload_arrives_before_the_next_is_sent() {
    let web = Web::new();
    let (arrived, confirmed) = channel::<Vec<u8>>();
    let arrived = Mutex::new(arrived);
    let host = Upstream::tls(&web, "api.example", move |stream| {
        read_head(stream).unwrap();
        while let Some(chunk) = read_chunk(stream).filter(|chunk| !chunk.is_empty()) {
            arrived.lock().unwrap().send(chunk).unwrap();
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").and_then(|()| stream.flush());
    });
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let mut client = world.tls("api.example", host.port);
    let head = format!("POST / HTTP/1.1\r\nhost: api.example:{}\r\ntransfer-encoding: chunked\r\n\r\n", host.port);
    client.write_all(head.as_bytes()).unwrap();
    for n in 0..5 {
        client.write_all(format!("2\r\n{n}x\r\n").as_bytes()).unwrap();
        assert_eq!(confirmed.recv_timeout(PATIENCE).expect("the part arrived"), format!("{n}x").as_bytes());
    }
    client.write_all(b"0\r\n\r\n").unwrap();
    assert_eq!(status(&read_head(&mut client).unwrap()), 200);
    world.logged(|row| row["bytes_up"] == 10 && row["status"] == 200);
}

#[test]
fn a_large_answer_waits_for_its_reader() {
    const SIZE: u64 = 64 * MIB;
    let web = Web::new();
    let sent = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let host = Upstream::tls(&web, "api.example", move |stream| {
        read_request(stream).unwrap();
        stream.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {SIZE}\r\n\r\n").as_bytes()).unwrap();
        let part = vec![b'x'; 64 << 10];
        for _ in 0..SIZE / part.len() as u64 {
            if stream.write_all(&part).is_err() {
                return;
            }
            count.fetch_add(part.len() as u64, Ordering::SeqCst);
        }
        let _ = stream.flush();
    });
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let mut client = world.tls("api.example", host.port);
    client.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port).as_bytes()).unwrap();
    read_head(&mut client).unwrap();

    // nobody reads: what was sent stands in the sockets' buffers and a bounded rest, and stays as it is
    let stood = settled(&sent);
    assert!(stood < 24 * MIB, "{stood} bytes were taken from the host while nobody read");
    let read = std::io::copy(&mut Read::by_ref(&mut client).take(SIZE), &mut std::io::sink()).unwrap();
    assert_eq!(read, SIZE);
    world.logged(|row| row["bytes_down"] == SIZE);
}

#[test]
fn a_large_upload_waits_for_its_reader() {
    const SIZE: u64 = 64 * MIB;
    let web = Web::new();
    let (go, may) = channel::<()>();
    let may = Mutex::new(may);
    let host = Upstream::tls(&web, "api.example", move |stream| {
        read_head(stream).unwrap();
        may.lock().unwrap().recv_timeout(PATIENCE).unwrap();
        let read = std::io::copy(&mut stream.take(SIZE), &mut std::io::sink()).unwrap();
        let answer = format!("HTTP/1.1 {} OK\r\ncontent-length: 0\r\n\r\n", if read == SIZE { 200 } else { 400 });
        let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.flush());
    });
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let sent = Arc::new(AtomicU64::new(0));
    let mut client = world.tls("api.example", host.port);
    let head = format!("POST / HTTP/1.1\r\nhost: api.example:{}\r\ncontent-length: {SIZE}\r\n\r\n", host.port);
    client.write_all(head.as_bytes()).unwrap();
    let count = Arc::clone(&sent);
    let uploading = std::thread::spawn(move || {
        let part = vec![b'x'; 64 << 10];
        for _ in 0..SIZE / part.len() as u64 {
            client.write_all(&part).unwrap();
            count.fetch_add(part.len() as u64, Ordering::SeqCst);
        }
        status(&read_head(&mut client).unwrap())
    });
    let stood = settled(&sent);
    assert!(stood < 24 * MIB, "{stood} bytes were taken from the client while nobody read");
    go.send(()).unwrap();
    assert_eq!(uploading.join().unwrap(), 200);
    world.logged(|row| row["bytes_up"] == SIZE);
}

/// The count once it has stood still for a while.
fn settled(count: &AtomicU64) -> u64 {
    let mut last = u64::MAX;
    let mut still = 0;
    until(
        || {
            let now = count.load(Ordering::SeqCst);
            still = if now == last && now > 0 { still + 1 } else { 0 };
            last = now;
            std::thread::sleep(Duration::from_millis(20));
            (still > 10).then_some(now)
        },
        || "it never stood still".to_owned(),
    )
}

#[test]
fn an_answer_before_the_upload_is_done_arrives() {
    let web = Web::new();
    let host = Upstream::tls(&web, "api.example", |stream| {
        read_head(stream).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\nno").and_then(|()| stream.flush());
        let _ = std::io::copy(stream, &mut std::io::sink());
    });
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let mut client = world.tls("api.example", host.port);
    let head = format!("POST / HTTP/1.1\r\nhost: api.example:{}\r\ncontent-length: 1000\r\n\r\nbegun", host.port);
    client.write_all(head.as_bytes()).unwrap();
    assert_eq!(status(&read_head(&mut client).unwrap()), 413);
}

#[test]
fn a_client_that_goes_away_ends_what_it_asked_for() {
    let web = Web::new();
    let (ended, over) = channel::<()>();
    let ended = Mutex::new(ended);
    let host = Upstream::tls(&web, "api.example", move |stream| {
        read_request(stream).unwrap();
        stream.write_all(CHUNKED).and_then(|()| stream.flush()).unwrap();
        while stream.write_all(b"5\r\nevent\r\n").and_then(|()| stream.flush()).is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        ended.lock().unwrap().send(()).unwrap();
    });
    let world = Setup::new(&web, &[rest("api.example", host.port)]).start().named(&["api.example"]);
    let mut client = world.tls("api.example", host.port);
    client.write_all(format!("GET / HTTP/1.1\r\nhost: api.example:{}\r\n\r\n", host.port).as_bytes()).unwrap();
    read_head(&mut client).unwrap();
    assert_eq!(read_chunk(&mut client).unwrap(), b"event");
    drop(client);
    over.recv_timeout(PATIENCE).expect("the host is let go");
    world.logged(|row| row["bytes_down"].as_u64().is_some_and(|bytes| bytes >= 5));
}
