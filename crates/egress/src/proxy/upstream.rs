//! The world's side: which address, a verified connection, and connections that are used again.
//!
//! An address is checked, and that address is the one that is dialled; a connection that is used again is to an
//! address that was checked for the same host and port.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::answer::Denial;
use super::body::Counted;
use crate::credential::Refused;
use crate::host::{Authority, Host};
use crate::limits::Limits;
use crate::resolve::Resolve;

/// A kept connection is closed after this long; servers close theirs after a minute or so, and the one that closes
/// first loses no request.
const KEPT: Duration = Duration::from_secs(30);
/// Kept connections to one host and port, and in all.
const KEPT_PER_HOST: usize = 8;
const KEPT_IN_ALL: usize = 64;
/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 8;

/// What is sent upstream.
pub(crate) type Sender = SendRequest<Counted<Incoming>>;
/// Whether an address may be spoken to.
pub(crate) type Admits<'a> = &'a (dyn Fn(IpAddr) -> Result<(), Refused> + Sync);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    host: Host,
    port: u16,
    tls: bool,
}

struct Kept {
    sender: Sender,
    loopback: bool,
    since: Instant,
}

/// Dials, and keeps what can be used again.
pub(crate) struct Upstream {
    tls: TlsConnector,
    resolver: Arc<dyn Resolve>,
    limits: Limits,
    kept: Arc<Mutex<HashMap<Key, Vec<Kept>>>>,
}

/// A connection that one exchange has to itself.
pub(crate) struct Lease {
    pub(crate) sender: Sender,
    /// It never leaves this machine.
    pub(crate) loopback: bool,
    /// It has been used before.
    pub(crate) reused: bool,
    key: Key,
    kept: Arc<Mutex<HashMap<Key, Vec<Kept>>>>,
}

impl Upstream {
    pub(crate) fn new(tls: Arc<rustls::ClientConfig>, resolver: Arc<dyn Resolve>, limits: Limits) -> Self {
        Self { tls: TlsConnector::from(tls), resolver, limits, kept: Arc::default() }
    }

    /// A connection for HTTP to `to`; `fresh`: none that was used before.
    pub(crate) async fn lease(
        &self,
        to: &Authority,
        tls: bool,
        fresh: bool,
        admits: Admits<'_>,
    ) -> Result<Lease, Denial> {
        let key = Key { host: to.host.clone(), port: to.port, tls };
        let lease =
            |sender, loopback, reused, key| Lease { sender, loopback, reused, key, kept: Arc::clone(&self.kept) };
        if !fresh && let Some(Kept { sender, loopback, .. }) = self.take(&key) {
            return Ok(lease(sender, loopback, true, key));
        }
        let (tcp, loopback) = self.dial(to, admits).await?;
        let sender = if tls {
            let stream = self.secure(to, tcp).await?;
            self.speak(stream).await?
        } else {
            self.speak(tcp).await?
        };
        Ok(lease(sender, loopback, false, key))
    }

    /// TLS over `tcp`, verified for the host of `to`.
    pub(crate) async fn secure(&self, to: &Authority, tcp: TcpStream) -> Result<TlsStream<TcpStream>, Denial> {
        let name = server_name(&to.host)?;
        match timeout(self.limits.connect, self.tls.connect(name, tcp)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) if error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) => {
                Err(Denial::UPSTREAM_TLS)
            }
            Ok(Err(_)) | Err(_) => Err(Denial::UNREACHABLE),
        }
    }

    /// A connected socket to one of the addresses of `to` that may be spoken to, and whether it is of this machine.
    pub(crate) async fn dial(&self, to: &Authority, admits: Admits<'_>) -> Result<(TcpStream, bool), Denial> {
        let addresses = match to.host.ip() {
            Some(ip) => vec![ip],
            None => self.look_up(&to.host).await?,
        };
        let mut refused = None;
        let mut admitted = Vec::new();
        for ip in addresses {
            match admits(ip) {
                Ok(()) => admitted.push(ip),
                Err(why) => refused = Some(why),
            }
        }
        if let (true, Some(why)) = (admitted.is_empty(), refused) {
            return Err(why.into());
        }
        for ip in admitted.into_iter().take(MOST_ADDRESSES) {
            let connecting = TcpStream::connect(SocketAddr::new(ip, to.port));
            if let Ok(Ok(tcp)) = timeout(self.limits.connect, connecting).await {
                let _ = tcp.set_nodelay(true);
                return Ok((tcp, ip.is_loopback()));
            }
        }
        Err(Denial::UNREACHABLE)
    }

    async fn look_up(&self, host: &Host) -> Result<Vec<IpAddr>, Denial> {
        let (resolver, name) = (Arc::clone(&self.resolver), host.as_str().to_owned());
        let found = tokio::task::spawn_blocking(move || resolver.resolve(&name));
        match timeout(self.limits.connect, found).await {
            Ok(Ok(Ok(addresses))) if !addresses.is_empty() => Ok(addresses),
            _ => Err(Denial::UNREACHABLE),
        }
    }

    async fn speak<S>(&self, stream: S) -> Result<Sender, Denial>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let handshake = http1::Builder::new().max_buf_size(self.limits.head_bytes).handshake(TokioIo::new(stream));
        let (sender, connection) = handshake.await.map_err(|_| Denial::UNREACHABLE)?;
        // ends when the sender is dropped, or with the runtime
        tokio::spawn(connection.with_upgrades());
        Ok(sender)
    }

    fn take(&self, key: &Key) -> Option<Kept> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mine = kept.get_mut(key)?;
        let mut found = None;
        while let Some(one) = mine.pop() {
            if one.sender.is_ready() && one.since.elapsed() < KEPT {
                found = Some(one);
                break;
            }
        }
        if mine.is_empty() {
            kept.remove(key);
        }
        found
    }

    /// Closes what nobody has used for a while.
    pub(crate) fn sweep(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, mine| {
            mine.retain(|one| one.sender.is_ready() && one.since.elapsed() < KEPT);
            !mine.is_empty()
        });
    }
}

impl Lease {
    /// Keeps the connection for the next one, once it is ready for that and where there is room.
    pub(crate) fn give_back(mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if !matches!(timeout(KEPT, self.sender.ready()).await, Ok(Ok(()))) {
                return;
            }
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.values().map(Vec::len).sum::<usize>() >= KEPT_IN_ALL {
                return;
            }
            let mine = kept.entry(self.key).or_default();
            if mine.len() < KEPT_PER_HOST {
                mine.push(Kept { sender: self.sender, loopback: self.loopback, since: Instant::now() });
            }
        });
    }
}

fn server_name(host: &Host) -> Result<ServerName<'static>, Denial> {
    match host.ip() {
        Some(ip) => Ok(ServerName::IpAddress(ip.into())),
        None => ServerName::try_from(host.as_str().to_owned()).map_err(|_| Denial::UPSTREAM_TLS),
    }
}
