//! `load keep|new HOST:PORT PATH BODY SECONDS CERT KEY CA`: requests (kept connections) or connections a second.
//!
//! For `cargo xtask bench`: the same client against our endpoint and its peer. Bounded in time and threads, and it
//! does not check who answers: that is no part of the measurement.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic, missing_docs)]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

#[derive(Debug)]
struct Anyone;

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

type Stream = StreamOwned<ClientConnection, TcpStream>;

fn connect(address: &str, config: &Arc<ClientConfig>) -> Stream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_nodelay(true).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::clone(config), name).unwrap(), socket)
}

/// One request and its whole answer.
fn ask(stream: &mut Stream, request: &[u8], buffer: &mut Vec<u8>) {
    stream.write_all(request).unwrap();
    stream.flush().unwrap();
    buffer.clear();
    let mut chunk = [0; 16 << 10];
    loop {
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "closed: {}", String::from_utf8_lossy(buffer));
        buffer.extend_from_slice(&chunk[..read]);
        let Some(head) = buffer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        assert!(text.starts_with("http/1.1 200"), "{}", String::from_utf8_lossy(buffer));
        let length: usize = text.split("content-length: ").nth(1).unwrap().lines().next().unwrap().parse().unwrap();
        if buffer.len() >= head + 4 + length {
            return;
        }
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [mode, address, path, body, seconds, cert, key, _ca] = args.as_slice() else {
        panic!("see the head of this file")
    };
    let certs: Vec<_> = CertificateDer::pem_file_iter(cert).unwrap().map(Result::unwrap).collect();
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone))
        .with_client_auth_cert(certs, PrivateKeyDer::from_pem_file(key).unwrap())
        .unwrap();
    config.resumption = rustls::client::Resumption::disabled();
    let config = Arc::new(config);
    let method = if body.is_empty() { "GET" } else { "POST" };
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{kind}Content-Length: {}\r\n\r\n{body}", body.len());
    let (done, end) = (AtomicU64::new(0), Duration::from_secs(seconds.parse().unwrap()));
    let start = Instant::now();
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                let mut buffer = Vec::new();
                let mut kept = connect(address, &config);
                while start.elapsed() < end {
                    if mode == "new" {
                        kept = connect(address, &config);
                    }
                    ask(&mut kept, request.as_bytes(), &mut buffer);
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    #[allow(clippy::cast_precision_loss)]
    let rate = done.load(Ordering::Relaxed) as f64 / start.elapsed().as_secs_f64();
    println!("{rate:.1}");
}
