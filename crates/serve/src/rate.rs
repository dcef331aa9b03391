//! How often may one grantee ask? A token bucket per common name: 50 a second, 200 at once (serve.md).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PER_SECOND: u32 = 50;
const BURST: u32 = 200;
/// What one request costs: the time in which the bucket gains one.
const COST: Duration = Duration::from_nanos(1_000_000_000 / PER_SECOND as u64);
/// Buckets that are kept before the full ones are dropped.
const PRUNE_AT: usize = 1024;

/// Counts requests by common name.
#[derive(Debug, Default)]
pub(crate) struct RateLimiter {
    /// When each bucket will be full again.
    full_at: Mutex<HashMap<String, Instant>>,
}

impl RateLimiter {
    /// Whether `who` may ask once more at `now`.
    pub(crate) fn admits(&self, who: &str, now: Instant) -> bool {
        let mut buckets = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(full_at) = buckets.get_mut(who) {
            let after = (*full_at).max(now) + COST;
            let admitted = after <= now + COST * BURST;
            if admitted {
                *full_at = after;
            }
            return admitted;
        }
        if buckets.len() >= PRUNE_AT {
            buckets.retain(|_, full_at| *full_at > now);
        }
        buckets.insert(who.to_owned(), now + COST);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hundred_at_once_and_then_fifty_a_second() {
        let limiter = RateLimiter::default();
        let start = Instant::now();
        let admitted = |n: usize, at: Instant| (0..n).filter(|_| limiter.admits("a", at)).count();
        assert_eq!(admitted(500, start), 200);
        assert_eq!(admitted(500, start + Duration::from_secs(1)), 50);
        assert_eq!(admitted(500, start + Duration::from_millis(1010)), 0);
        assert_eq!(admitted(500, start + Duration::from_secs(60)), 200);
        assert!(limiter.admits("b", start), "another name has its own bucket");
    }

    #[test]
    fn names_that_are_done_are_forgotten() {
        let limiter = RateLimiter::default();
        let start = Instant::now();
        for n in 0..PRUNE_AT {
            limiter.admits(&n.to_string(), start);
        }
        limiter.admits("late", start + Duration::from_secs(1));
        assert_eq!(limiter.full_at.lock().unwrap().len(), 1);
    }
}
