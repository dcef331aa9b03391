//! One connection from the sandbox: what it asks for, whether it may, and then a tunnel or requests.
//!
//! A CONNECT is judged before any name is looked up. After it only TLS is spoken, to the host that was named.

use std::sync::Arc;

use http::StatusCode;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::Shared;
use super::activity::Activity;
use super::answer::Denial;
use super::exchange::Front;
use super::head::{self, Ask, NoAsk};
use super::relay::{self, Patience};
use super::stream::Stream;
use crate::host::{Authority, Host};
use crate::log::{Decision, Line};
use crate::policy::{Connect, Origin};
use crate::tls::{Hello, MAX_HELLO_BYTES};

const CONNECTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// How much longer than the idle limit a connection is left alone, so that a 504 still gets out.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(1);

/// Serves `tcp` to its end.
pub(crate) async fn serve(shared: Arc<Shared>, mut tcp: TcpStream, seat: Arc<OwnedSemaphorePermit>) {
    let _ = tcp.set_nodelay(true);
    match head::read(&mut tcp, shared.limits.head_bytes, shared.limits.head).await {
        Ok(Ask::Connect { target, early }) => connect(shared, tcp, &target, early, seat).await,
        Ok(Ask::Absolute { bytes }) => {
            let activity = Activity::new();
            let stream = Stream::new(tcp, bytes, activity.clone());
            requests(shared, stream, None, activity, seat).await;
        }
        Err(NoAsk::Gone) => {}
        Err(NoAsk::Denied(denial)) => {
            let denial = record(&shared, None, None, denial);
            farewell(tcp, denial).await;
        }
    }
}

async fn connect(
    shared: Arc<Shared>,
    mut tcp: TcpStream,
    target: &str,
    early: Vec<u8>,
    seat: Arc<OwnedSemaphorePermit>,
) {
    let Ok(to) = Authority::connect(target) else {
        let denial = Denial::malformed("bad_target", "the target of CONNECT must be one host and one port");
        let denial = record(&shared, None, Some(target), denial);
        return farewell(tcp, denial).await;
    };
    match shared.policy.connect(&to) {
        Connect::Denied { reason } => {
            let denial = record(&shared, Some(&to), None, Denial::policy(reason));
            farewell(tcp, denial).await;
        }
        Connect::Tunnel(endpoint) => {
            let rule = match &endpoint.origin {
                Origin::Profile(id) => format!("profile {id}: tunnel"),
                Origin::Rule(name) => format!("policy {name}: tunnel"),
            };
            tunnel(&shared, tcp, &to, early, &rule).await;
        }
        Connect::Inspect => {
            if tcp.write_all(CONNECTED).await.is_ok() {
                inspect(shared, tcp, to, early, seat).await;
            }
        }
    }
}

/// Bytes of TLS to and fro, unread but for the first message.
async fn tunnel(shared: &Shared, mut tcp: TcpStream, to: &Authority, mut early: Vec<u8>, rule: &str) {
    let admits = |ip| shared.policy.admits_address(to, ip);
    let far = match shared.upstream.dial(to, &admits).await {
        Ok((far, _)) => far,
        Err(denial) => {
            let denial = record(shared, Some(to), None, denial);
            return farewell(tcp, denial).await;
        }
    };
    if tcp.write_all(CONNECTED).await.is_err() {
        return;
    }
    if let Err(denial) = check_hello(shared, &mut tcp, &mut early, &to.host).await {
        record(shared, Some(to), None, denial);
        return;
    }
    let line = Line {
        host: Some(to.host.as_str()),
        port: Some(to.port),
        method: Some("CONNECT"),
        path: None,
        decision: Decision::Allow,
        rule: Some(rule),
        reason: "tunnel",
    };
    let Ok(entry) = shared.log.begin(line) else { return };
    entry.answered(200);
    relay::sockets(tcp, far, early, &shared.pipes, Patience::of(&shared.limits), &entry).await;
}

/// TLS ends here, and each request in it is judged.
async fn inspect(
    shared: Arc<Shared>,
    mut tcp: TcpStream,
    to: Authority,
    mut early: Vec<u8>,
    seat: Arc<OwnedSemaphorePermit>,
) {
    if let Err(denial) = check_hello(&shared, &mut tcp, &mut early, &to.host).await {
        record(&shared, Some(&to), None, denial);
        return;
    }
    let Ok(config) = shared.leaves.of(&to.host) else {
        let denial = Denial::new(StatusCode::BAD_GATEWAY, "leaf", "no certificate could be made for this host");
        record(&shared, Some(&to), None, denial);
        return;
    };
    let activity = Activity::new();
    let stream = Stream::new(tcp, early, activity.clone());
    // a client that does not believe our CA ends here; that is no decision of ours, and no line
    if let Ok(Ok(tls)) = timeout(shared.limits.head, TlsAcceptor::from(config).accept(stream)).await {
        requests(shared, tls, Some(to), activity, seat).await;
    }
}

/// Serves requests until the client has no more.
async fn requests<S>(
    shared: Arc<Shared>,
    stream: S,
    to: Option<Authority>,
    activity: Activity,
    seat: Arc<OwnedSemaphorePermit>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let limits = shared.limits.clone();
    let front = Arc::new(Front { shared, to, activity: activity.clone(), seat });
    let service = service_fn(move |request| {
        let front = Arc::clone(&front);
        async move { front.answer(request).await }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.between)
        .max_buf_size(limits.head_bytes)
        .max_header_size(limits.head_bytes)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::select! {
        _ = serving => {}
        () = activity.ceased(limits.idle + FAREWELL) => {}
    }
}

/// Reads the ClientHello into `early` and holds its name against `host`.
///
/// A name is said to be the host's own, or not at all where the host is an address: those have no names in TLS.
async fn check_hello(shared: &Shared, tcp: &mut TcpStream, early: &mut Vec<u8>, host: &Host) -> Result<(), Denial> {
    const NOT_TLS: Denial = Denial::malformed("not_tls", "only TLS goes through a tunnel");
    let reading = async {
        loop {
            if let Some(hello) = Hello::parse(early).map_err(|_| NOT_TLS)? {
                return Ok(hello);
            }
            if early.len() > MAX_HELLO_BYTES {
                return Err(NOT_TLS);
            }
            match tcp.read_buf(early).await {
                Ok(0) | Err(_) => return Err(NOT_TLS),
                Ok(_) => {}
            }
        }
    };
    let hello = timeout(shared.limits.head, reading).await.map_err(|_| NOT_TLS)??;
    if hello.encrypted {
        return Err(Denial::policy("the ClientHello hides a name (ECH)").with_code("sni_encrypted"));
    }
    match (hello.name, host.ip()) {
        (None, Some(_)) => Ok(()),
        (None, None) => Err(Denial::policy("the ClientHello names no host").with_code("sni_missing")),
        (Some(name), None) if Host::parse(&name).is_ok_and(|name| name == *host) => Ok(()),
        (Some(_), _) => Err(Denial::policy("the ClientHello names another host").with_code("sni_mismatch")),
    }
}

/// Writes a refusal down; where that fails, that is what is answered.
fn record(shared: &Shared, to: Option<&Authority>, target: Option<&str>, denial: Denial) -> Denial {
    let line = Line {
        host: to.map(|to| to.host.as_str()).or(target),
        port: to.map(|to| to.port),
        method: (to.is_some() || target.is_some()).then_some("CONNECT"),
        path: None,
        decision: Decision::Deny,
        rule: None,
        reason: denial.code,
    };
    match shared.log.refused(line, denial.status.as_u16()) {
        Ok(()) => denial,
        Err(_) => Denial::LOG,
    }
}

/// Says why, and closes in a way that lets it arrive.
async fn farewell(mut tcp: TcpStream, denial: Denial) {
    let parting = async {
        tcp.write_all(&denial.bytes()).await?;
        tcp.shutdown().await?;
        let mut taken = [0; 1024];
        for _ in 0..64 {
            if tcp.read(&mut taken).await? == 0 {
                break;
            }
        }
        std::io::Result::Ok(())
    };
    let _ = timeout(FAREWELL, parting).await;
}
