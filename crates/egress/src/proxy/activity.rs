//! Does anything still move? A connection's last byte, and who waits for there being none for too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// When a byte last went through, either way. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    began: Instant,
    last_millis: Arc<AtomicU64>,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), last_millis: Arc::default() }
    }

    pub(crate) fn touch(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_millis.store(now, Ordering::Relaxed);
    }

    /// Returns once nothing has moved for `limit`.
    pub(crate) async fn ceased(&self, limit: Duration) {
        loop {
            let last = Duration::from_millis(self.last_millis.load(Ordering::Relaxed));
            let until = self.began + last + limit;
            if Instant::now() >= until {
                return;
            }
            sleep_until(until).await;
        }
    }
}
