//! The proxy's life: a listening socket taken over, connections up to a bound, and a bounded end.
//!
//! It has threads of its own, and what happens on them is nobody else's: a task that panics takes its connection
//! with it and nothing more.

mod activity;
mod answer;
mod body;
mod connection;
mod exchange;
mod head;
mod headers;
mod pipes;
mod relay;
mod stream;
mod upstream;

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bastion_host::clock::{Clock, SystemClock};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::ca::Ca;
use crate::credential::{Credential, Vault};
use crate::error::ProxyError;
use crate::limits::Limits;
use crate::log::Log;
use crate::policy::Policy;
use crate::refresh::{self, Rotated};
use crate::resolve::{Resolve, SystemResolver};
use crate::tls::{self, Leaves, UpstreamRoots};
use pipes::Pipes;
use upstream::Upstream;

/// How long what runs may take to end when the proxy stops.
const GRACE: Duration = Duration::from_millis(500);
/// How long a refresh that was begun is waited for: a little longer than it may take.
const REFRESH: Duration = Duration::from_secs(40);
/// How long threads are waited for after that; a name lookup can't be interrupted.
const LAST: Duration = Duration::from_millis(500);
const SWEEP: Duration = Duration::from_secs(10);
/// Threads for name lookups.
const WAITING_THREADS: usize = 16;
/// Files of a connection: its own socket and one upstream, and two pipes while bytes flow both ways.
const FILES_PER_CONNECTION: u64 = 6;
/// Files that are something else's.
const OTHER_FILES: u64 = 128;

/// What a proxy needs to know, all of it resolved.
#[non_exhaustive]
pub struct Options {
    /// What may go out.
    pub policy: Policy,
    /// The secrets that are swapped in.
    pub credentials: Vec<Credential>,
    /// The run's CA.
    pub ca: Ca,
    /// The run's `egress.jsonl`.
    pub log: PathBuf,
    /// How much and how long.
    pub limits: Limits,
    /// Whose certificates are believed upstream.
    pub upstream_roots: UpstreamRoots,
    /// Gets the materials of a credential when the token endpoint replaced one, before the new one is used.
    pub rotated: Option<Rotated>,
    /// Looks names up.
    pub resolver: Arc<dyn Resolve>,
    /// What time it is, for the log and for refreshes.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// Options with nothing but what must be given; the rest is the machine's own and the defaults.
    pub fn new(policy: Policy, ca: Ca, log: PathBuf) -> Self {
        Self {
            policy,
            credentials: Vec::new(),
            ca,
            log,
            limits: Limits::default(),
            upstream_roots: UpstreamRoots::default(),
            rotated: None,
            resolver: Arc::new(SystemResolver),
            clock: Arc::new(SystemClock),
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options").field("log", &self.log).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A proxy that runs. Dropped it stops, as [`Proxy::stop`] does.
#[derive(Debug)]
pub struct Proxy {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// What all connections share.
pub(crate) struct Shared {
    pub(crate) policy: Policy,
    pub(crate) vault: Vault,
    pub(crate) leaves: Leaves,
    pub(crate) log: Log,
    pub(crate) limits: Limits,
    pub(crate) upstream: Upstream,
    pub(crate) pipes: Pipes,
    pub(crate) stopped: watch::Receiver<bool>,
    /// Refreshes that were begun: a token that was asked for is taken, and kept, before the proxy goes.
    pub(crate) refreshing: AtomicUsize,
}

impl Proxy {
    /// Takes over a listening socket, which may live in another network namespace, on threads of its own.
    ///
    /// Raises this process's soft limit on open files as far as the connections of [`Limits`] need it.
    ///
    /// # Errors
    /// [`ProxyError`]; nothing is left behind then.
    pub fn start(listener: TcpListener, options: Options) -> Result<Self, ProxyError> {
        let Options { policy, credentials, ca, log, mut limits, upstream_roots, rotated, resolver, clock } = options;
        limits.head_bytes = limits.head_bytes.max(8 << 10); // hyper's least
        limits.connections = files_for(limits.connections);
        let system = |source| ProxyError::System { source };

        let tls = tls::upstream(&upstream_roots)?;
        let vault = Vault::new(&policy, credentials)?;
        let log = Log::open(log.clone(), limits.log_bytes, Arc::clone(&clock))
            .map_err(|source| ProxyError::Log { path: log, source })?;
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(Shared {
            policy,
            vault,
            leaves: Leaves::new(ca),
            log,
            upstream: Upstream::new(tls, resolver, limits.clone()),
            limits,
            pipes: Pipes::default(),
            stopped,
            refreshing: AtomicUsize::new(0),
        });
        listener.set_nonblocking(true).map_err(system)?;
        let runtime = runtime().map_err(system)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(system)?
        };
        runtime.spawn(refresh::run(Arc::clone(&shared), clock, rotated));
        let thread = std::thread::Builder::new()
            .name("bastion-egress".to_owned())
            .spawn(move || run(runtime, listener, shared))
            .map_err(system)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops: no new connections; those that run are closed. Returns within two seconds, unless a token was asked for just
    /// then: that answer is waited for, since the token before it may be used up (at most 40 s).
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns once the proxy is to stop.
pub(crate) async fn stop_of(mut stopped: watch::Receiver<bool>) {
    // a sender that is gone means the same
    let _ = stopped.wait_for(|stopped| *stopped).await;
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(WAITING_THREADS)
        .thread_name("bastion-egress")
        .enable_io()
        .enable_time()
        .build()
}

fn run(runtime: Runtime, listener: tokio::net::TcpListener, shared: Arc<Shared>) {
    runtime.block_on(async {
        let mut connections = accept(listener, Arc::clone(&shared)).await;
        let all = async { while connections.join_next().await.is_some() {} };
        if timeout(GRACE, all).await.is_err() {
            connections.abort_all();
        }
        let idle = async {
            while shared.refreshing.load(Ordering::SeqCst) > 0 {
                sleep(Duration::from_millis(10)).await;
            }
        };
        let _ = timeout(REFRESH, idle).await;
    });
    runtime.shutdown_timeout(LAST);
}

async fn accept(listener: tokio::net::TcpListener, shared: Arc<Shared>) -> JoinSet<()> {
    let seats = Arc::new(Semaphore::new(shared.limits.connections));
    let mut connections = JoinSet::new();
    let mut sweep = interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stop = stop_of(shared.stopped.clone());
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => return connections,
            Some(_) = connections.join_next() => continue,
            _ = sweep.tick() => {
                shared.upstream.sweep();
                continue;
            }
            accepted = listener.accept() => accepted,
        };
        match accepted {
            // where there is no seat the socket is closed here
            Ok((tcp, _)) => {
                if let Ok(seat) = Arc::clone(&seats).try_acquire_owned() {
                    let (shared, stopped) = (Arc::clone(&shared), shared.stopped.clone());
                    let total = shared.limits.total;
                    connections.spawn(async move {
                        tokio::select! {
                            _ = timeout(total, connection::serve(shared, tcp, Arc::new(seat))) => {}
                            () = stop_of(stopped) => {}
                        }
                    });
                }
            }
            // no file to be had, most likely: taking breath beats spinning
            Err(_) => sleep(Duration::from_millis(20)).await,
        }
    }
}

/// How many connections there are files for, after raising the soft limit as far as it goes.
fn files_for(connections: usize) -> usize {
    let wanted = FILES_PER_CONNECTION * connections as u64 + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let mut has = current.unwrap_or(u64::MAX);
    if has < wanted {
        let most = wanted.min(maximum.unwrap_or(u64::MAX));
        if setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum }).is_ok() {
            has = most;
        }
    }
    let room = has.saturating_sub(OTHER_FILES).max(OTHER_FILES) / FILES_PER_CONNECTION;
    connections.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1)
}
