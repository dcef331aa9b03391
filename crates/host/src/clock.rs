//! What time it is, and waiting for it. A trait, so that a loop can be tested over days in microseconds.

use std::sync::Mutex;
use std::time::Duration;

use jiff::Timestamp;

/// The wall clock and the ability to wait on it.
pub trait Clock: Send + Sync {
    /// The wall-clock time now (UTC). It may go backwards when the machine's clock is set.
    fn now(&self) -> Timestamp;
    /// Waits about `duration`. May return early (a signal); callers look at [`Clock::now`] again.
    fn nap(&self, duration: Duration);
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Not woken by a signal; a loop that must end soon naps on [`crate::signals::WakingClock`].
    fn nap(&self, duration: Duration) {
        std::thread::park_timeout(duration);
    }
}

/// A clock that moves only when it is told to or napped on; it records every nap. For tests of loops.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<(Timestamp, Vec<Duration>)>,
}

impl ManualClock {
    /// A clock that stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self { state: Mutex::new((start, Vec::new())) }
    }

    /// Sets the time, forwards or backwards.
    pub fn set(&self, now: Timestamp) {
        self.lock().0 = now;
    }

    /// Moves the time on by `duration`.
    pub fn advance(&self, duration: Duration) {
        let mut state = self.lock();
        state.0 = state
            .0
            .saturating_add(jiff::SignedDuration::try_from(duration).unwrap_or(jiff::SignedDuration::MAX))
            .unwrap_or(Timestamp::MAX);
    }

    /// Every nap taken so far, in order.
    pub fn naps(&self) -> Vec<Duration> {
        self.lock().1.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, (Timestamp, Vec<Duration>)> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        self.lock().0
    }

    fn nap(&self, duration: Duration) {
        self.lock().1.push(duration);
        self.advance(duration);
    }
}

/// `t` as RFC 3339 in UTC with exactly three digits of fraction, the form of every record we write.
pub fn rfc3339_millis(t: Timestamp) -> String {
    format!("{t:.3}")
}

/// A time as records hold it: written by [`rfc3339_millis`], read from any RFC 3339 time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct UtcMillis(pub Timestamp);

impl serde::Serialize for UtcMillis {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339_millis(self.0))
    }
}

impl<'de> serde::Deserialize<'de> for UtcMillis {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_exactly_three_digits() {
        let whole: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        assert_eq!(rfc3339_millis(whole), "2026-01-02T03:04:05.000Z");
        let fine: Timestamp = "2026-01-02T03:04:05.123456Z".parse().unwrap();
        assert_eq!(rfc3339_millis(fine), "2026-01-02T03:04:05.123Z");
    }

    #[test]
    fn a_recorded_time_reads_back_to_the_millisecond() {
        let time = UtcMillis("2026-01-02T03:04:05.123Z".parse().unwrap());
        let text = serde_json::to_string(&time).unwrap();
        assert_eq!(text, r#""2026-01-02T03:04:05.123Z""#);
        assert_eq!(serde_json::from_str::<UtcMillis>(&text).unwrap(), time);
    }

    #[test]
    fn a_manual_clock_moves_only_by_naps() {
        let clock = ManualClock::at("2026-01-01T00:00:00Z".parse().unwrap());
        clock.nap(Duration::from_secs(30));
        assert_eq!(clock.now().to_string(), "2026-01-01T00:00:30Z");
        assert_eq!(clock.naps(), [Duration::from_secs(30)]);
    }
}
