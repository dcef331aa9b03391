//! How much and how long? The bounds of one proxy.

use std::time::Duration;

/// The bounds of one proxy. The defaults are meant for a harness that speaks to models: answers may take minutes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Limits {
    /// Connections from the sandbox at once; one more is closed. Fewer where the system allows fewer files.
    pub connections: usize,
    /// A request's first head, a ClientHello and a handshake may each take this long.
    pub head: Duration,
    /// A connection between two requests, a later request's head, and a tunnel whose one direction has ended.
    pub between: Duration,
    /// A name lookup, a connect to one address and a handshake upstream may each take this long.
    pub connect: Duration,
    /// Nothing moves in either direction: 504 while the answer is awaited, closed after that.
    pub idle: Duration,
    /// A connection from the sandbox may last this long in all.
    pub total: Duration,
    /// A request's head may be this many bytes long, and an answer's. At least 8 KiB.
    pub head_bytes: usize,
    /// The log may be this many bytes long before it is set aside.
    pub log_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            head: Duration::from_secs(10),
            between: Duration::from_secs(60),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(15 * 60),
            total: Duration::from_secs(12 * 3600),
            head_bytes: 64 << 10,
            log_bytes: 64 << 20,
        }
    }
}
