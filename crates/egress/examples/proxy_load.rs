//! `proxy_load [MEGABYTES]`: what the proxy costs, against the same host without it, on loopback, in the same run.
//!
//! For `cargo xtask bench proxy`. Client, proxy and host are processes of their own (this program, started again with
//! `host DIR` or `proxy DIR PORT`), and each lives until its input ends. Ways are taken in turns, so that what else
//! the machine does meets all of them.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bastion_egress::{Ca, Options, Policy, Proxy, Resolve, Source, UpstreamRoots};
use bastion_host::clock::SystemClock;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const TUNNELLED: &str = "tunnelled.example";
const INSPECTED: &str = "inspected.example";
const REQUESTS: usize = 5_000;
const CONNECTIONS: usize = 400;
const TUNNELS: usize = 1_000;
const ROUNDS: usize = 3;
const CHUNK_BYTES: usize = 64 << 10;

/// A connection on which TLS is agreed.
struct Client {
    stream: StreamOwned<ClientConnection, TcpStream>,
    host: String,
}

/// How a request gets to the host.
#[derive(Clone, Copy)]
enum Way {
    Direct,
    Tunnel,
    Inspected,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["host", dir] => host(Path::new(dir)),
        ["proxy", dir, port] => proxy(Path::new(dir), port),
        [] => measure(1_024),
        [megabytes] => measure(megabytes.parse().unwrap()),
        _ => panic!("see the head of this file"),
    }
}

fn measure(megabytes: u64) {
    let dir = tempfile::tempdir().unwrap();
    let host = Process::start(&["host", dir.path().to_str().unwrap()]);
    let world = World::start(&host);

    let mut kept = [Way::Direct, Way::Inspected].map(|way| world.open(way));
    let [direct, inspected] = in_turns(REQUESTS, |at| timed(|| kept[at].ask("GET", "/", 0)));
    added("a request on a kept connection, inspected", &direct, &inspected);

    let ways = [Way::Direct, Way::Tunnel, Way::Inspected];
    let [direct, tunnel, inspected] = in_turns(CONNECTIONS, |at| timed(|| world.open(ways[at]).ask("GET", "/", 0)));
    added("a new connection and a request, tunnel", &direct, &tunnel);
    added("a new connection and a request, inspected (to the host a kept one)", &direct, &inspected);

    let bytes = megabytes << 20;
    for (name, method, path, up) in [("down", "GET", format!("/{bytes}"), 0), ("up", "POST", "/".to_owned(), bytes)] {
        let mut clients = ways.map(|way| world.open(way));
        let [direct, tunnel, inspected] = in_turns(ROUNDS, |at| timed(|| clients[at].ask(method, &path, up)))
            .map(|millis| megabytes_a_second(bytes, at(&millis, 0.5)));
        for (way, rate) in [("tunnel", tunnel), ("inspected", inspected)] {
            println!(
                "{megabytes} MiB {name}, {way}: {rate:.0} MB/s, direct {direct:.0} MB/s: {:.2}x (aim 0.7)",
                rate / direct
            );
        }
    }
    drop((kept, world));
    memory("idle tunnels", &host, Way::Tunnel, false);
    memory("idle inspected connections", &host, Way::Inspected, false);
    memory("idle inspected connections after a request each", &host, Way::Inspected, true);
}

/// How much a new proxy grows.
fn memory(name: &str, host: &Process, way: Way, asks: bool) {
    let world = World::start(host);
    let open = || {
        let mut client = world.open(way);
        if asks {
            client.ask("GET", "/", 0);
        }
        client
    };
    drop(open());
    let before = world.proxy.resident_kib();
    let clients: Vec<Client> = (0..TUNNELS).map(|_| open()).collect();
    let grown = (world.proxy.resident_kib() - before) / 1024.0;
    println!("memory for {} {name}: {grown:.1} MiB, from {:.1} MiB (aim 50)", clients.len(), before / 1024.0);
}

/// Takes `rounds` measurements of each of `N` ways, in turns, and sorts them.
fn in_turns<const N: usize>(rounds: usize, mut measured: impl FnMut(usize) -> f64) -> [Vec<f64>; N] {
    for at in 0..N {
        measured(at); // what is only done once
    }
    let mut found = [(); N].map(|()| Vec::with_capacity(rounds));
    for _ in 0..rounds {
        found.iter_mut().enumerate().for_each(|(at, found)| found.push(measured(at)));
    }
    found.iter_mut().for_each(|found| found.sort_by(f64::total_cmp));
    found
}

/// Milliseconds.
fn timed(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e3
}

#[allow(clippy::cast_precision_loss)]
fn megabytes_a_second(bytes: u64, millis: f64) -> f64 {
    bytes as f64 / millis / 1e3
}

/// A quantile of sorted figures.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn at(sorted: &[f64], quantile: f64) -> f64 {
    sorted[(sorted.len() as f64 * quantile) as usize]
}

fn added(name: &str, direct: &[f64], through: &[f64]) {
    let [(p50, direct_p50), (p99, direct_p99)] =
        [0.5, 0.99].map(|quantile| (at(through, quantile), at(direct, quantile)));
    println!(
        "{name}: median {p50:.3} ms, direct {direct_p50:.3} ms: +{:.3} ms (aim 0.3); p99 {p99:.3} ms, direct {direct_p99:.3} ms: +{:.3} ms",
        p50 - direct_p50,
        p99 - direct_p99
    );
}

/// This program, started again. It ends when its input does.
struct Process {
    child: Child,
    /// The port it listens on.
    port: u16,
    dir: String,
}

impl Process {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, port: line.trim().parse().unwrap(), dir: args[1].to_owned() }
    }

    fn resident_kib(&self) -> f64 {
        std::thread::sleep(Duration::from_millis(500)); // what was begun comes to rest
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim_end_matches("kB").trim().parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Says where it listens, and lives until the input ends.
fn tell(port: u16) {
    println!("{port}");
    io::stdout().flush().unwrap();
}

fn until_input_ends() {
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// A proxy in front of the host, and a client that believes both.
struct World {
    proxy: Process,
    host_port: u16,
    config: Arc<ClientConfig>,
}

impl World {
    fn start(host: &Process) -> Self {
        let proxy = Process::start(&["proxy", &host.dir, &host.port.to_string()]);
        let mut roots = RootCertStore::empty();
        for name in ["host-root.pem", "proxy-root.pem"] {
            roots.add(CertificateDer::from_pem_file(Path::new(&host.dir).join(name)).unwrap()).unwrap();
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        // the proxy resumes no session, so nobody does
        config.resumption = rustls::client::Resumption::disabled();
        Self { proxy, host_port: host.port, config: Arc::new(config) }
    }

    fn open(&self, way: Way) -> Client {
        let (name, port) = match way {
            Way::Direct => (TUNNELLED, self.host_port),
            Way::Tunnel => (TUNNELLED, self.proxy.port),
            Way::Inspected => (INSPECTED, self.proxy.port),
        };
        let mut tcp = TcpStream::connect((LOOPBACK, port)).unwrap();
        tcp.set_nodelay(true).unwrap();
        let host = format!("{name}:{}", self.host_port);
        if !matches!(way, Way::Direct) {
            tcp.write_all(format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
            let (mut answer, mut byte) = (Vec::new(), [0]);
            while !answer.ends_with(b"\r\n\r\n") {
                tcp.read_exact(&mut byte).unwrap();
                answer.push(byte[0]);
            }
            assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        }
        let name = ServerName::try_from(name).unwrap();
        let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(&self.config), name).unwrap(), tcp);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).unwrap();
        }
        Client { stream, host }
    }
}

impl Client {
    /// One request, with a body of `up` bytes, and its whole answer.
    fn ask(&mut self, method: &str, path: &str, up: u64) {
        let length = if up > 0 { format!("Content-Length: {up}\r\n") } else { String::new() };
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{length}\r\n", self.host);
        self.stream.write_all(head.as_bytes()).unwrap();
        send(&mut self.stream, up).unwrap();
        self.stream.flush().unwrap();
        let head = take_message(&mut self.stream).unwrap();
        assert!(head.starts_with("http/1.1 200"), "{head}");
    }
}

/// `bytes` of nothing in particular.
fn send(stream: &mut impl Write, mut bytes: u64) -> io::Result<()> {
    let chunk = vec![b'x'; CHUNK_BYTES];
    while bytes > 0 {
        let length = chunk.len().min(usize::try_from(bytes).unwrap());
        stream.write_all(&chunk[..length])?;
        bytes -= length as u64;
    }
    Ok(())
}

/// Reads a head and its body; the head, in lower case.
fn take_message(stream: &mut impl Read) -> io::Result<String> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut filled = 0;
    let head = loop {
        let length = stream.read(&mut buffer[filled..])?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled += length;
        if let Some(head) = buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n") {
            break head + 4;
        }
    };
    let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
    let field = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut left = field.map_or(0, |length| length.parse::<u64>().unwrap()) - (filled - head) as u64;
    while left > 0 {
        let length = stream.read(&mut buffer)? as u64;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        left -= length;
    }
    Ok(text)
}

/// A host of the world, under both names: `/N` is answered with N bytes, a body is taken.
fn host(dir: &Path) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    fs::write(dir.join("host-root.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    let leaf_key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![TUNNELLED.to_owned(), INSPECTED.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&leaf_key, &Issuer::new(params, key)).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::try_from(leaf_key.serialize_der()).unwrap())
        .unwrap();
    config.send_tls13_tickets = 0;
    let config = Arc::new(config);
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    tell(listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // one that is gone is no fault
            std::thread::spawn(move || drop(answer(StreamOwned::new(connection, tcp))));
        }
    });
    until_input_ends();
}

fn answer(mut stream: StreamOwned<ServerConnection, TcpStream>) -> io::Result<()> {
    stream.sock.set_nodelay(true)?;
    loop {
        let head = take_message(&mut stream)?;
        let path = head.split(' ').nth(1).unwrap_or_default();
        let down = path.trim_start_matches('/').parse().unwrap_or(2);
        stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {down}\r\n\r\n").as_bytes())?;
        send(&mut stream, down)?;
        stream.flush()?;
    }
}

/// Every name is this machine.
struct Here;

impl Resolve for Here {
    fn resolve(&self, _: &str) -> io::Result<Vec<IpAddr>> {
        Ok(vec![LOOPBACK])
    }
}

fn proxy(dir: &Path, port: &str) {
    let policy = format!(
        "version: 1\nnetwork_policies:\n  load:\n    name: load\n    endpoints:\n\
        \x20     - {{host: {TUNNELLED}, port: {port}, allowed_ips: [127.0.0.1]}}\n\
        \x20     - {{host: {INSPECTED}, port: {port}, allowed_ips: [127.0.0.1], protocol: rest, access: full, enforcement: enforce}}\n"
    );
    let policy = Policy::read(&[], Some(&Source { shown: "policy.yaml".to_owned(), bytes: policy.as_bytes() }));
    let ca = Ca::new(&SystemClock).unwrap();
    fs::write(dir.join("proxy-root.pem"), ca.pem()).unwrap();
    let mut options = Options::new(policy.unwrap(), ca, dir.join("egress.jsonl"));
    options.resolver = Arc::new(Here);
    let root = CertificateDer::from_pem_file(dir.join("host-root.pem")).unwrap();
    options.upstream_roots = UpstreamRoots::WebPkiAnd(vec![root]);
    let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
    let own_port = listener.local_addr().unwrap().port();
    let _proxy = Proxy::start(listener, options).unwrap();
    tell(own_port);
    until_input_ends();
}
