//! One TLS connection of the client: a request out, an answer in, before a deadline.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConfig, ClientConnection, StreamOwned};
use rustls_pki_types::ServerName;

use crate::bind::BindAddr;
use crate::http::MAX_HEADERS;

/// To reach one address.
const CONNECT: Duration = Duration::from_secs(10);
/// For the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// An answer's head and body may be this many bytes long; a page of cards is the largest.
const MAX_HEAD: usize = 16 << 10;
const MAX_BODY: usize = 64 << 20;

/// A connection, handshake done.
pub(super) struct Wire {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

/// An answer as it came.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) keep_alive: bool,
}

/// Why there is no answer.
pub(super) enum Failure {
    /// The connection was closed before a byte of the answer came.
    Stale,
    Io(io::Error),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Wire {
    pub(super) fn connect(endpoint: &BindAddr, host: &str, tls: &Arc<ClientConfig>) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (endpoint.host(), endpoint.port()).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => return Self::shake_hands(stream, host, tls),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn shake_hands(mut stream: TcpStream, host: &str, tls: &Arc<ClientConfig>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        // The verifier compares with the owner's host itself; a host that is no DNS name is just not sent along.
        let name = ServerName::try_from(host.to_owned()).unwrap_or(ServerName::IpAddress(Ipv4Addr::LOCALHOST.into()));
        let mut connection = ClientConnection::new(Arc::clone(tls), name).map_err(io::Error::other)?;
        let deadline = Instant::now() + HANDSHAKE;
        while connection.is_handshaking() {
            limit(&stream, deadline)?;
            connection.complete_io(&mut stream)?;
        }
        Ok(Self { stream: StreamOwned::new(connection, stream) })
    }

    pub(super) fn exchange(&mut self, message: &[u8], patience: Duration) -> Result<Reply, Failure> {
        let deadline = Instant::now() + patience;
        limit(&self.stream.sock, deadline)?;
        let sent = self.stream.write_all(message).and_then(|()| self.stream.flush());
        // an endpoint that closes may have said why: look before complaining
        let mut received = Vec::new();
        match self.read(&mut received, deadline) {
            Ok(0) => return Err(Failure::Stale),
            Ok(_) => {}
            Err(error) if is_closed(&error) => return Err(Failure::Stale),
            // what TLS says is the better reason than a write that failed for it
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Err(error.into()),
            Err(error) => return Err(sent.err().unwrap_or(error).into()),
        }
        let (reply, length, body) = loop {
            if let Some(head) = reply_head(&received)? {
                break head;
            }
            self.read_some(&mut received, deadline)?;
        };
        while received.len() < length + body {
            self.read_some(&mut received, deadline)?;
        }
        let keep_alive = reply.keep_alive && received.len() == length + body;
        received.truncate(length + body);
        Ok(Reply { body: received.split_off(length), keep_alive, ..reply })
    }

    fn read_some(&mut self, received: &mut Vec<u8>, deadline: Instant) -> io::Result<()> {
        match self.read(received, deadline)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn read(&mut self, received: &mut Vec<u8>, deadline: Instant) -> io::Result<usize> {
        limit(&self.stream.sock, deadline)?;
        let mut piece = [0; 16 << 10];
        let read = self.stream.read(&mut piece)?;
        received.extend_from_slice(&piece[..read]);
        Ok(read)
    }
}

/// Holds the next read and write to what is left of the time.
fn limit(stream: &TcpStream, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    stream.set_read_timeout(Some(left))?;
    stream.set_write_timeout(Some(left))
}

fn is_closed(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

/// The answer's head, its length and its body's length; `None` where its end is not there yet.
fn reply_head(received: &[u8]) -> io::Result<Option<(Reply, usize, usize)>> {
    let nonsense = |why: &'static str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(received) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if received.len() < MAX_HEAD => return Ok(None),
        _ => return Err(nonsense("the answer is not HTTP/1.1")),
    };
    let field = |name: &str| {
        let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
        found.and_then(|field| std::str::from_utf8(field.value).ok())
    };
    let body = field("content-length").and_then(|length| length.parse().ok()).filter(|length| *length <= MAX_BODY);
    let body = body.ok_or_else(|| nonsense("the answer has no length, or more than 64 MiB"))?;
    let keep_alive = field("connection").is_none_or(|option| !option.eq_ignore_ascii_case("close"));
    let status = response.code.unwrap_or_default();
    Ok(Some((Reply { status, body: Vec::new(), keep_alive }, length, body)))
}
