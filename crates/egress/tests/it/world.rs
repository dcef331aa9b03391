//! A proxy, hosts of the world behind it, and a client in the sandbox's place. All of it blocks, and nothing for long.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bastion_egress::{Ca, Credential, Limits, Options, Policy, Proxy, Resolve, Source, UpstreamRoots};
use bastion_host::clock::SystemClock;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use serde_json::Value;
use tempfile::TempDir;
use zeroize::Zeroizing;

/// Nothing here waits longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const SECRET: &str = "sk-the-real-secret-5f1e";
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

pub(crate) trait Duplex: Read + Write + Send {}
impl<T: Read + Write + Send> Duplex for T {}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The world's CA.
pub(crate) struct Web {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) root: CertificateDer<'static>,
}

impl Web {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap().der().clone();
        Self { issuer: Issuer::new(params, key), root }
    }

    fn server(&self, name: &str) -> Arc<ServerConfig> {
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &self.issuer).unwrap();
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
            .unwrap();
        Arc::new(config)
    }
}

/// A host of the world. Each connection gets a thread, which ends with it.
pub(crate) struct Upstream {
    pub(crate) port: u16,
    /// Everything that was asked, head and body.
    pub(crate) seen: Arc<Mutex<Vec<String>>>,
    pub(crate) connections: Arc<Mutex<usize>>,
}

/// One request as a host of the world sees it.
pub(crate) struct Asked {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Upstream {
    /// Over TLS as `name`; `talk` has the connection.
    pub(crate) fn tls(web: &Web, name: &str, talk: impl Fn(&mut dyn Duplex) + Send + Sync + 'static) -> Self {
        let config = web.server(name);
        Self::start(move |tcp| {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, tcp);
            talk(&mut stream);
            stream.conn.send_close_notify();
            let _ = stream.flush();
        })
    }

    /// Over TCP.
    pub(crate) fn tcp(talk: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> Self {
        Self::start(move |mut tcp| talk(&mut tcp))
    }

    /// Over TLS; each request gets `answer`.
    pub(crate) fn answering(web: &Web, name: &str, answer: &'static str) -> Self {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&seen);
        let upstream = Self::tls(web, name, move |stream| {
            while let Some(asked) = read_request(stream) {
                keep.lock().unwrap().push(format!("{}{}", asked.head, String::from_utf8_lossy(&asked.body)));
                if stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).is_err() {
                    break;
                }
            }
        });
        Self { seen, ..upstream }
    }

    /// As [`Upstream::answering`], without TLS.
    pub(crate) fn answering_plain(answer: &'static str) -> Self {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let keep = Arc::clone(&seen);
        let upstream = Self::tcp(move |stream| {
            while let Some(asked) = read_request(stream) {
                keep.lock().unwrap().push(asked.head);
                if stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        });
        Self { seen, ..upstream }
    }

    fn start(talk: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections: Arc<Mutex<usize>> = Arc::default();
        let (talk, count) = (Arc::new(talk), Arc::clone(&connections));
        std::thread::spawn(move || {
            for tcp in listener.incoming() {
                let Ok(tcp) = tcp else { break };
                *count.lock().unwrap() += 1;
                let _ = (tcp.set_read_timeout(Some(PATIENCE)), tcp.set_write_timeout(Some(PATIENCE)));
                let _ = tcp.set_nodelay(true);
                let talk = Arc::clone(&talk);
                std::thread::spawn(move || talk(tcp));
            }
        });
        Self { port, seen: Arc::default(), connections }
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock().unwrap()
    }
}

/// Reads up to and with the blank line.
pub(crate) fn read_head<S: Read + ?Sized>(stream: &mut S) -> Option<String> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8_lossy(&head).into_owned())
}

pub(crate) fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

pub(crate) fn read_body<S: Read + ?Sized>(stream: &mut S, head: &str) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    if field(head, "transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        loop {
            let chunk = read_chunk(stream)?;
            if chunk.is_empty() {
                return Some(body);
            }
            body.extend(chunk);
        }
    }
    let length = field(head, "content-length").map_or(0, |value| value.parse().unwrap());
    body.resize(length, 0);
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

/// One chunk; the last one is empty, with the blank line after it.
pub(crate) fn read_chunk<S: Read + ?Sized>(stream: &mut S) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).ok()?;
        line.push(byte[0]);
    }
    let size = usize::from_str_radix(std::str::from_utf8(&line).ok()?.trim(), 16).ok()?;
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).ok()?;
    chunk.truncate(size);
    Some(chunk)
}

pub(crate) fn read_request<S: Read + ?Sized>(stream: &mut S) -> Option<Asked> {
    let head = read_head(stream)?;
    let body = read_body(stream, &head)?;
    Some(Asked { head, body })
}

/// An answer as the sandbox sees it.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    pub(crate) fn error(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["error"].as_str().unwrap_or_default().to_owned()
    }
}

pub(crate) fn read_answer<S: Read + ?Sized>(stream: &mut S) -> Option<Answered> {
    let head = read_head(stream)?;
    let status = status(&head);
    let bodiless = status < 200 || status == 204;
    let body = if bodiless { Vec::new() } else { read_body(stream, &head)? };
    Some(Answered { status, head, body })
}

pub(crate) fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Names as a test has them, and which were asked for.
#[derive(Default)]
pub(crate) struct Names {
    pub(crate) addresses: Mutex<HashMap<String, Vec<IpAddr>>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl Resolve for Names {
    fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        assert!(host != "panic.example", "a resolver that panics");
        self.addresses.lock().unwrap().get(host).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A proxy that runs.
pub(crate) struct World {
    pub(crate) dir: TempDir,
    pub(crate) names: Arc<Names>,
    pub(crate) address: SocketAddr,
    pub(crate) ca: CertificateDer<'static>,
    pub(crate) proxy: Option<Proxy>,
}

/// What a proxy is to be like.
pub(crate) struct Setup<'s> {
    pub(crate) policy: String,
    pub(crate) profiles: Vec<(&'s str, String)>,
    pub(crate) credentials: Vec<Credential>,
    pub(crate) limits: Limits,
    pub(crate) web: Option<&'s Web>,
    pub(crate) change: Option<Box<dyn FnOnce(&mut Options) + 's>>,
}

impl<'s> Setup<'s> {
    /// With these endpoints in the agent's policy file.
    pub(crate) fn new(web: &'s Web, endpoints: &[String]) -> Self {
        Self {
            policy: policy(endpoints),
            profiles: Vec::new(),
            credentials: Vec::new(),
            limits: Limits::default(),
            web: Some(web),
            change: None,
        }
    }

    /// And a profile with a bearer token in `MODEL_KEY`, for `host`.
    pub(crate) fn with_model(mut self, host: &str, port: u16) -> Self {
        self.profiles.push(("model.yaml", model_profile(host, port)));
        self.credentials.push(model_credential());
        self
    }

    pub(crate) fn start(self) -> World {
        let dir = tempfile::tempdir().unwrap();
        let names = Arc::new(Names::default());
        let profiles: Vec<_> = self
            .profiles
            .iter()
            .map(|(shown, text)| Source { shown: (*shown).to_owned(), bytes: text.as_bytes() })
            .collect();
        let file = Source { shown: "policy.yaml".to_owned(), bytes: self.policy.as_bytes() };
        let policy = Policy::read(&profiles, Some(&file)).unwrap();
        let ca = Ca::new(&SystemClock).unwrap();
        let root = CertificateDer::from_pem_slice(ca.pem().as_bytes()).unwrap();
        let mut options = Options::new(policy, ca, dir.path().join("egress.jsonl"));
        options.credentials = self.credentials;
        options.limits = self.limits;
        options.resolver = Arc::clone(&names) as _;
        if let Some(web) = self.web {
            options.upstream_roots = UpstreamRoots::WebPkiAnd(vec![web.root.clone()]);
        }
        if let Some(change) = self.change {
            change(&mut options);
        }
        let listener = TcpListener::bind((LOOPBACK, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let proxy = Proxy::start(listener, options).unwrap();
        World { dir, names, address, ca: root, proxy: Some(proxy) }
    }
}

pub(crate) fn model_profile(host: &str, port: u16) -> String {
    format!(
        "id: model\ncredentials:\n  - {{name: key, env_vars: [MODEL_KEY], required: true, auth_style: bearer, header_name: authorization}}\nendpoints:\n  - {}\n",
        endpoint(host, port, "protocol: rest, access: read-write, enforcement: enforce")
    )
}

pub(crate) fn model_credential() -> Credential {
    Credential {
        env: "MODEL_KEY".to_owned(),
        profile: "model".to_owned(),
        value: Zeroizing::new(SECRET.to_owned()),
        materials: Vec::new(),
    }
}

/// An endpoint on loopback, listed as such.
pub(crate) fn endpoint(host: &str, port: u16, more: &str) -> String {
    let more = if more.is_empty() { String::new() } else { format!(", {more}") };
    format!("{{host: \"{host}\", port: {port}, allowed_ips: [\"127.0.0.1\"]{more}}}")
}

pub(crate) fn rest(host: &str, port: u16) -> String {
    endpoint(host, port, "protocol: rest, access: full, enforcement: enforce")
}

fn policy(endpoints: &[String]) -> String {
    if endpoints.is_empty() {
        return "version: 1\n".to_owned();
    }
    let list: String = endpoints.iter().map(|endpoint| format!("      - {endpoint}\n")).collect();
    format!("version: 1\nnetwork_policies:\n  test:\n    name: test\n    endpoints:\n{list}")
}

impl World {
    /// `name` is at 127.0.0.1.
    pub(crate) fn named(self, names: &[&str]) -> Self {
        for name in names {
            self.at(name, &[LOOPBACK]);
        }
        self
    }

    pub(crate) fn at(&self, name: &str, addresses: &[IpAddr]) {
        self.names.addresses.lock().unwrap().insert(name.to_owned(), addresses.to_vec());
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.names.asked.lock().unwrap().clone()
    }

    /// A connection to the proxy.
    pub(crate) fn tcp(&self) -> TcpStream {
        let tcp = TcpStream::connect(self.address).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        tcp.set_write_timeout(Some(PATIENCE)).unwrap();
        tcp.set_nodelay(true).unwrap();
        tcp
    }

    /// Sends bytes and reads one answer.
    pub(crate) fn raw(&self, bytes: &[u8]) -> Option<Answered> {
        let mut tcp = self.tcp();
        tcp.write_all(bytes).unwrap();
        read_answer(&mut tcp)
    }

    /// Asks for a tunnel. The status, and the answer of a refusal.
    pub(crate) fn connect(&self, target: &str) -> (TcpStream, Answered) {
        let mut tcp = self.tcp();
        tcp.write_all(format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n\r\n").as_bytes()).unwrap();
        let head = read_head(&mut tcp).expect("an answer to CONNECT");
        let status = status(&head);
        let body = if status == 200 { Vec::new() } else { read_body(&mut tcp, &head).unwrap() };
        (tcp, Answered { status, head, body })
    }

    /// TLS inside a tunnel to `host`, believing `root`. The handshake is done on the first use.
    pub(crate) fn tls_with(&self, target: &str, sni: &str, root: &CertificateDer<'static>, alpn: &[&[u8]]) -> Client {
        let (tcp, answered) = self.connect(target);
        assert_eq!(answered.status, 200, "{answered:?}");
        let mut roots = RootCertStore::empty();
        roots.add(root.clone()).unwrap();
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(sni.to_owned()).unwrap();
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), tcp)
    }

    /// TLS as a harness does it: believing the run's CA.
    pub(crate) fn tls(&self, host: &str, port: u16) -> Client {
        self.tls_with(&format!("{host}:{port}"), host, &self.ca, &[b"http/1.1"])
    }

    /// One request over TLS.
    pub(crate) fn ask(&self, host: &str, port: u16, request: &str) -> Answered {
        self.try_ask(host, port, request).expect("an answer")
    }

    pub(crate) fn try_ask(&self, host: &str, port: u16, request: &str) -> Option<Answered> {
        let mut client = self.tls(host, port);
        client.write_all(request.as_bytes()).ok()?;
        read_answer(&mut client)
    }

    /// `GET path` with these lines after `host`.
    pub(crate) fn get(&self, host: &str, port: u16, path: &str, fields: &str) -> Answered {
        self.ask(host, port, &format!("GET {path} HTTP/1.1\r\nhost: {host}:{port}\r\n{fields}\r\n"))
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.dir.path().join("egress.jsonl")
    }

    pub(crate) fn log_text(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap()
    }

    pub(crate) fn log(&self) -> Vec<Value> {
        self.log_text().lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// The log, once it has a line that `wanted` takes.
    pub(crate) fn logged(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        until(|| self.log().into_iter().find(&wanted), || self.log_text())
    }
}

pub(crate) type Client = StreamOwned<ClientConnection, TcpStream>;

/// Looks until there is something; then says what there was instead.
pub(crate) fn until<T>(mut look: impl FnMut() -> Option<T>, instead: impl Fn() -> String) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "{}", instead());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the other side closes without another byte.
pub(crate) fn closes(stream: &mut impl Read) -> bool {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(length) => length == 0,
        Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
    }
}
