//! A TLS client that sends exactly the bytes it is given. Not the client under test.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use bastion_serve::TlsFiles;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;

use crate::world::OWNER;

pub(crate) struct Peer {
    stream: StreamOwned<ClientConnection, TcpStream>,
    received: Vec<u8>,
}

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn closes(&self) -> bool {
        self.head.to_lowercase().contains("connection: close")
    }
}

impl Peer {
    /// Connects and shakes hands. In TLS 1.3 a refusal of our certificate shows only when something is read.
    pub(crate) fn connect(address: SocketAddr, files: Option<&TlsFiles>) -> io::Result<Self> {
        Self::connect_with(address, files, &[&rustls::version::TLS13, &rustls::version::TLS12])
    }

    pub(crate) fn connect_with(
        address: SocketAddr,
        files: Option<&TlsFiles>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> io::Result<Self> {
        Self::shake_hands(address, config(files, versions))
    }

    pub(crate) fn shake_hands(address: SocketAddr, config: Arc<ClientConfig>) -> io::Result<Self> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(Duration::from_secs(20)))?;
        let name = ServerName::try_from(OWNER).unwrap();
        let mut connection = ClientConnection::new(config, name).unwrap();
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(Self { stream: StreamOwned::new(connection, socket), received: Vec::new() })
    }

    /// The endpoint's certificate.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        self.stream.conn.peer_certificates().unwrap()[0].to_vec()
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        // an endpoint that has enough may close early: what it said is still to be read
        let _ = self.stream.write_all(bytes.as_ref()).and_then(|()| self.stream.flush());
    }

    pub(crate) fn get(&mut self, target: &str) -> Reply {
        self.send(format!("GET {target} HTTP/1.1\r\nHost: {OWNER}\r\n\r\n"));
        self.reply().unwrap()
    }

    pub(crate) fn post(&mut self, target: &str, body: &str) -> Reply {
        self.send(format!(
            "POST {target} HTTP/1.1\r\nHost: {OWNER}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        self.reply().unwrap()
    }

    pub(crate) fn search(&mut self, query: &str) -> Reply {
        self.post("/search", &serde_json::json!({"query": query}).to_string())
    }

    pub(crate) fn read_range(&mut self, doc: &str, start: u64, end: u64) -> Reply {
        self.post("/read_range", &serde_json::json!({"doc": doc, "start": start, "end": end}).to_string())
    }

    /// Reads one answer.
    pub(crate) fn reply(&mut self) -> io::Result<Reply> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break at + 4;
            }
            self.more()?;
        };
        let head = String::from_utf8(self.received[..end].to_vec()).unwrap();
        let length: usize = head
            .lines()
            .find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned))
            .map_or(0, |length| length.parse().unwrap());
        while self.received.len() < end + length {
            self.more()?;
        }
        let body = self.received[end..end + length].to_vec();
        self.received.drain(..end + length);
        let status = head[9..12].parse().unwrap();
        Ok(Reply { status, head, body })
    }

    fn more(&mut self) -> io::Result<()> {
        let mut piece = [0; 65536];
        match self.stream.read(&mut piece)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.received.extend_from_slice(&piece[..read]);
                Ok(())
            }
        }
    }

    /// Whether the endpoint ends the connection without saying anything more.
    pub(crate) fn is_closed(&mut self) -> bool {
        let _ = self.stream.flush();
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(read) => read == 0,
            Err(error) => !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut),
        }
    }
}

pub(crate) fn config(
    files: Option<&TlsFiles>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = TimelessVerifier(Arc::clone(&provider));
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    Arc::new(match files {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let chain = CertificateDer::pem_file_iter(&files.cert).unwrap().collect::<Result<_, _>>().unwrap();
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&files.key).unwrap()).unwrap()
        }
    })
}

/// Tests run on a clock of their own, and who the endpoint is, is the client's tests to ask.
#[derive(Debug)]
struct TimelessVerifier(Arc<rustls::crypto::CryptoProvider>);

impl rustls::client::danger::ServerCertVerifier for TimelessVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls_pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a second connection of one client resumes the session of the first.
pub(crate) fn is_resumed_by_the_second(
    world: &crate::world::World,
    endpoint: &bastion_serve::Running,
    version: &'static rustls::SupportedProtocolVersion,
) -> bool {
    let files = world.files(OWNER);
    let config = config(Some(&files), &[version]);
    let mut resumed = false;
    for _ in 0..2 {
        let mut peer = Peer::shake_hands(endpoint.address(), Arc::clone(&config)).unwrap();
        assert_eq!(peer.get("/health").status, 200);
        resumed = peer.stream.conn.handshake_kind() == Some(rustls::HandshakeKind::Resumed);
    }
    resumed
}
