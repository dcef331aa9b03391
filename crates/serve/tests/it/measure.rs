//! How fast is it beside nginx with a static file, same TLS, same client? Asked by hand, in a release build:
//! `cargo test --release -p bastion-serve --test it measure -- --ignored --nocapture`.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::peer::Peer;
use crate::world::{Document, OWNER, World};

const SECONDS: u64 = 5;

#[test]
#[ignore = "a measurement"]
fn measure() {
    let world = World::at(jiff::Timestamp::now());
    let document = Document::new("notes/long.txt", &"All work and no play. ".repeat(2_000));
    world.sweep(std::slice::from_ref(&document));
    let endpoint = world.start();
    let body = format!(r#"{{"doc":"{}","end":4000}}"#, document.doc());
    let read = format!(
        "POST /read_range HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = world.connect(&endpoint, OWNER).read_range(&document.doc(), 0, 4000).body;
    report("bastion", &world, endpoint.address(), &read);

    let Some((_nginx, address)) = nginx(&world, &answer) else {
        return println!("SKIPPED: nginx is not installed");
    };
    report("nginx", &world, address, "GET /answer.json HTTP/1.1\r\nHost: a\r\n\r\n");
}

/// A process that does not outlive the test, whatever comes of it.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        // its master ends the workers on TERM, which a kill would leave behind
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

fn report(name: &str, world: &World, address: SocketAddr, request: &str) {
    for threads in [1, 2, 16] {
        let kept = rate(threads, || {
            let mut peer = Peer::connect(address, Some(&world.files(OWNER))).unwrap();
            move || {
                peer.send(request);
                assert_eq!(peer.reply().unwrap().status, 200);
            }
        });
        println!("{name:8} {threads:2} connections: {kept:8.0} requests/s");
    }
    let files = world.files(OWNER);
    let config = crate::peer::config(Some(&files), &[&rustls::version::TLS13]);
    let shaken = rate(4, || {
        || {
            let mut peer = Peer::shake_hands(address, config.clone()).unwrap();
            peer.send(request);
            assert_eq!(peer.reply().unwrap().status, 200);
        }
    });
    println!("{name:8} {shaken:8.0} handshakes/s, one request each");
}

/// How often a second `threads` threads together do what `prepare` gives each of them.
fn rate<F: FnMut()>(threads: usize, prepare: impl Fn() -> F + Sync) -> f64 {
    let (done, count) = (AtomicBool::new(false), AtomicU64::new(0));
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut act = prepare();
                while !done.load(Ordering::Relaxed) {
                    act();
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(SECONDS));
        done.store(true, Ordering::Relaxed);
    });
    count.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64()
}

fn nginx(world: &World, answer: &[u8]) -> Option<(Guarded, SocketAddr)> {
    let dir = world.path("nginx");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("answer.json"), answer).unwrap();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let tls = world.files("endpoint");
    let show = |path: &Path| path.display().to_string();
    let settings = format!(
        "daemon off; worker_processes auto; pid {dir}/pid; error_log {dir}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log {dir}/access.log; sendfile on; keepalive_requests 100000000;\n\
         client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir}; scgi_temp_path {dir};\n\
         server {{ listen {address} ssl; ssl_certificate {cert}; ssl_certificate_key {key};\n\
         ssl_client_certificate {ca}; ssl_verify_client on; ssl_session_tickets off; ssl_protocols TLSv1.2 TLSv1.3; root {dir}; }} }}\n",
        dir = show(&dir),
        cert = show(&tls.cert),
        key = show(&tls.key),
        ca = show(&tls.ca),
    );
    fs::write(dir.join("nginx.conf"), settings).unwrap();
    let child = Command::new("nginx")
        .args(["-c", &show(&dir.join("nginx.conf")), "-p", &show(&dir), "-e", &show(&dir.join("error.log"))])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let child = Guarded(child.ok()?);
    for _ in 0..500 {
        if TcpStream::connect(address).is_ok() {
            return Some((child, address));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nginx does not listen: {}", fs::read_to_string(dir.join("error.log")).unwrap_or_default());
}
