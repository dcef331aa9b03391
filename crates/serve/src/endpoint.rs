//! The endpoint's life: listening, handshakes, connections, and an orderly end.
//!
//! Before a peer has shown a certificate it costs one task and ten seconds at the most, and when there are too many
//! of those the oldest gives way: a handshake that is meant takes milliseconds. The accept loop itself waits for nobody.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bastion_host::clock::Clock;
use bastion_host::files::{self, PRIVATE_FILE};
use bastion_retrieval::Embedder;
use bastion_store::Layout;
use bastion_trust::LivePolicy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::answer::{Answer, Denial};
use crate::audit::{AuditError, AuditLog, audit_path};
use crate::bind::BindAddr;
use crate::corpus::Corpus;
use crate::http::{Connection, Timers};
use crate::notice::{NoticeSink, Notices};
use crate::operation::Operations;
use crate::seats::{Seats, make_room, most_connections};
use crate::service::Service;
use crate::session::Session;
use crate::tls::{ServerTls, TlsError, TlsFiles};

/// How long a handshake may take (serve.md).
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a peer whose handshake failed may take to hear why.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long requests that run may take to end when the endpoint stops.
const GRACE: Duration = Duration::from_secs(10);
/// How often the audit is synced; serve.md promises a second.
const SYNC: Duration = Duration::from_millis(500);
const TIMERS: Timers = Timers {
    idle: Duration::from_secs(60),
    head: Duration::from_secs(10),
    body: Duration::from_secs(10),
    write: Duration::from_secs(30),
};
/// Threads for what waits for the disk or a model: more than searches may run at once.
const WAITING_THREADS: usize = 64;

/// What an endpoint needs to know, all of it resolved.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// The agent's output folder; its `serve.audit.jsonl` is written, its store is read.
    pub out: PathBuf,
    /// Where to listen.
    pub bind: BindAddr,
    /// Gets the port in use once listening; removed at the end.
    pub port_file: Option<PathBuf>,
    /// This endpoint's certificate and key, and the roots (the same file that the policy's gate judges by).
    pub tls: TlsFiles,
    /// Where lines for the person who runs it go: failed handshakes, an audit that can't be written.
    pub notices: NoticeSink,
}

/// Why the endpoint could not start. Nothing is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The TLS files.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The audit can't be written, and without it nothing is served.
    #[error("the audit can't be written: {}: {source}", path.display())]
    Audit {
        /// The audit's file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The address can't be listened at.
    #[error("can't listen at {bind}: {source}")]
    Listen {
        /// The address.
        bind: BindAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The port file can't be written.
    #[error("the port file {}: {source}", path.display())]
    PortFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system has no thread or poll to give.
    #[error("the system gives no threads: {source}")]
    Threads {
        /// What it said.
        source: io::Error,
    },
}

/// The query endpoint of one agent.
#[derive(Debug)]
pub struct Endpoint;

/// An endpoint that runs, on threads of its own. Dropped it stops, as [`Running::stop`] does.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: StopHandle,
    thread: Option<JoinHandle<()>>,
    port_file: Option<PathBuf>,
}

/// Tells an endpoint to stop; may be kept, cloned and used from anywhere.
#[derive(Debug, Clone)]
pub struct StopHandle(Arc<watch::Sender<bool>>);

impl StopHandle {
    /// No more connections and requests; those that run may end. Does not wait for it.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Endpoint {
    /// Starts listening and serving what `policy` allows. Returns once connections are taken.
    ///
    /// The manifest need not verify yet: until it does everything but `/health` is 503. The embedder is asked where it
    /// is of the model that the index is of. `clock` is the gate's.
    ///
    /// # Errors
    /// [`ServeError`].
    pub fn start(
        config: ServeConfig,
        policy: LivePolicy,
        embedder: Option<Arc<dyn Embedder>>,
        clock: Arc<dyn Clock>,
    ) -> Result<Running, ServeError> {
        let ServeConfig { out, bind, port_file, tls, notices } = config;
        let notices = Notices::new(notices);
        let tls = Arc::new(ServerTls::load(tls, Arc::clone(policy.gate()), notices.clone())?);
        files::create_private_dir(&out).map_err(|source| ServeError::Audit { path: out.clone(), source })?;
        let audit = AuditLog::open(audit_path(&out)).map_err(|error| match error {
            AuditError::Unwritable { path, source } => ServeError::Audit { path, source },
            AuditError::Lost { path } => ServeError::Audit { path, source: io::ErrorKind::NotFound.into() },
        })?;
        let operations = Operations { corpus: Corpus::new(Layout::new(out)), embedder, notices: notices.clone() };
        let service = Arc::new(Service::new(policy, clock, audit, operations, notices.clone()));

        let listener = bind.listen().map_err(|source| ServeError::Listen { bind: bind.clone(), source })?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen { bind, source })?;
        let runtime = runtime().map_err(|source| ServeError::Threads { source })?;
        let (sender, stopped) = watch::channel(false);
        let stop = StopHandle(Arc::new(sender));
        let host = Host { service, tls, notices, seats: Seats::new(most_connections()), stopped };
        let thread = std::thread::Builder::new()
            .name("bastion-serve".to_owned())
            .spawn(move || host.run(runtime, listener))
            .map_err(|source| ServeError::Threads { source })?;
        let mut running = Running { address, stop, thread: Some(thread), port_file: None };
        if let Some(path) = port_file {
            // dropping `running` takes the endpoint down again
            write_port_file(&path, address.port())
                .map_err(|source| ServeError::PortFile { path: path.clone(), source })?;
            running.port_file = Some(path);
        }
        Ok(running)
    }
}

impl Running {
    /// The address that is listened at, with the port in use.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// An address at which this machine reaches it.
    pub fn reachable_address(&self) -> SocketAddr {
        crate::bind::reachable(self.address)
    }

    /// What stops it from elsewhere.
    pub fn stop_handle(&self) -> StopHandle {
        self.stop.clone()
    }

    /// Stops: no new connections, requests that run may end within ten seconds, the audit is synced, the port file
    /// removed. Returns when all that is done.
    pub fn stop(self) {
        self.stop.stop();
        self.join();
    }

    /// Waits until it was stopped by its [`StopHandle`].
    pub fn join(mut self) {
        self.finish();
    }

    fn finish(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        if let Some(path) = self.port_file.take() {
            // only our own: another endpoint may have taken the file over
            if std::fs::read_to_string(&path).is_ok_and(|text| text == port_line(self.address.port())) {
                let _ = std::fs::remove_file(&path);
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.stop();
        self.finish();
    }
}

fn write_port_file(path: &Path, port: u16) -> io::Result<()> {
    files::replace(path, port_line(port).as_bytes(), PRIVATE_FILE)
}

fn port_line(port: u16) -> String {
    format!("{port}\n")
}

fn runtime() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.clamp(2, 8))
        .max_blocking_threads(WAITING_THREADS)
        .thread_name("bastion-serve")
        .enable_io()
        .enable_time()
        .build()
}

/// Everything a connection needs.
#[derive(Clone)]
struct Host {
    service: Arc<Service>,
    tls: Arc<ServerTls>,
    notices: Notices,
    seats: Seats,
    stopped: watch::Receiver<bool>,
}

impl Host {
    fn run(self, runtime: Runtime, listener: TcpListener) {
        let service = Arc::clone(&self.service);
        runtime.block_on(async {
            let syncing = tokio::spawn(sync_regularly(Arc::clone(&service)));
            // each connection holds a clone; when the last one is dropped, all have ended
            let (alive, mut ended) = mpsc::channel::<()>(1);
            self.accept(listener, alive).await;
            let _ = timeout(GRACE, ended.recv()).await;
            syncing.abort();
        });
        // a model that does not answer must not keep the process
        runtime.shutdown_background();
        service.sync_audit();
    }

    async fn accept(self, listener: TcpListener, alive: mpsc::Sender<()>) {
        let listener = match tokio::net::TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => return self.notices.say(&format!("the listening socket can't be used: {error}")),
        };
        let mut handshakes: VecDeque<AbortHandle> = VecDeque::new();
        let mut stopped = self.stopped.clone();
        loop {
            let accepted = tokio::select! {
                biased;
                _ = stopped.wait_for(|stopped| *stopped) => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    make_room(&mut handshakes, self.seats.most);
                    let host = self.clone();
                    handshakes.push_back(tokio::spawn(host.shake_hands(stream, peer, alive.clone())).abort_handle());
                }
                Err(error) => {
                    // no file to be had, most likely: taking breath beats spinning
                    self.notices.caused(&format!("a connection could not be taken: {error}"));
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
        handshakes.iter().for_each(AbortHandle::abort);
    }

    async fn shake_hands(self, stream: TcpStream, peer: SocketAddr, alive: mpsc::Sender<()>) {
        let _ = stream.set_nodelay(true);
        let acceptor = TlsAcceptor::from(self.tls.current());
        let why = match timeout(HANDSHAKE, acceptor.accept(stream).into_fallible()).await {
            Ok(Ok(stream)) => {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default().to_vec();
                tokio::spawn(async move {
                    self.serve(stream, chain, peer).await;
                    drop(alive);
                });
                return;
            }
            Ok(Err((error, stream))) => {
                // a client in TLS 1.3 is in the middle of its request by now, and the alert that says why would be
                // lost if the socket was closed on what it sent
                let _ = timeout(FAREWELL, see_off(stream)).await;
                error.to_string()
            }
            Err(_) => "it took more than 10 s".to_owned(),
        };
        self.notices.caused(&format!("{}: the TLS handshake failed: {why}", peer.ip().to_canonical()));
    }

    async fn serve(
        self,
        stream: tokio_rustls::server::TlsStream<TcpStream>,
        chain: Vec<rustls_pki_types::CertificateDer<'static>>,
        peer: SocketAddr,
    ) {
        let mut connection = Connection::new(stream, TIMERS, self.stopped);
        // a certificate is a name's for as long as the connection lasts, so it tells peers apart here
        let leaf = chain.first().map(|leaf| leaf.to_vec()).unwrap_or_default();
        let Some(_seat) = self.seats.take(leaf) else {
            self.notices.caused(&format!("{}: turned away, too many connections", peer.ip().to_canonical()));
            let _ = connection.write(&Answer::from(Denial::Busy).message("", false)).await;
            return connection.end().await;
        };
        self.service.converse(connection, Session::new(chain)).await;
    }
}

/// Says that nothing more will come, and takes what still does, up to a bound.
async fn see_off(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut taken = [0; 4096];
    for _ in 0..16 {
        if stream.read(&mut taken).await? == 0 {
            break;
        }
    }
    Ok(())
}

async fn sync_regularly(service: Arc<Service>) {
    let mut ticks = interval(SYNC);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let service = Arc::clone(&service);
        let _ = tokio::task::spawn_blocking(move || service.sync_audit()).await;
    }
}
