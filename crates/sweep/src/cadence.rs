//! When is the next run due? Pure functions of times, with no clock and no waiting.

use std::time::Duration;

use bastion_trust::manifest::Cadence;
use jiff::{SignedDuration, Timestamp};

/// The wait after the first failure; it doubles with each further one.
pub const FIRST_BACKOFF: Duration = Duration::from_secs(60);

/// The longest nap: after each the wall clock is looked at again.
pub const LONGEST_NAP: Duration = Duration::from_secs(30);

/// How long to wait after the `failures`-th failure in a row (from 1): 60, 120, 240 … s, at most `period`.
pub fn backoff(failures: u32, period: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    FIRST_BACKOFF.saturating_mul(1 << doublings).min(period)
}

/// When the next run is due: one period after the last one's start, or at its end where it took longer; after a
/// failure a backoff after its end. Never for `manual`.
pub fn next_due(cadence: Cadence, started: Timestamp, finished: Timestamp, failures: u32) -> Option<Timestamp> {
    let period = cadence.period()?;
    Some(match failures {
        0 => later(started, period).max(finished),
        _ => later(finished, backoff(failures, period)),
    })
}

/// `due`, but never further away than one period: so a clock that was set back does not stall the loop.
pub fn clipped(due: Timestamp, now: Timestamp, period: Duration) -> Timestamp {
    due.min(later(now, period))
}

/// The next nap on the way to `due`; `None` when it is there.
pub fn nap(due: Timestamp, now: Timestamp) -> Option<Duration> {
    let rest = Duration::try_from(due.duration_since(now)).ok()?;
    (!rest.is_zero()).then(|| rest.min(LONGEST_NAP))
}

/// `time` + `duration`, at most the last time there is.
fn later(time: Timestamp, duration: Duration) -> Timestamp {
    let duration = SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX);
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    const QUARTER: Duration = Duration::from_secs(900);
    const HOUR: Duration = Duration::from_secs(3600);
    const DAY: Duration = Duration::from_secs(86_400);

    #[test]
    fn the_backoff_doubles_up_to_the_period() {
        let waits = |period, n: u32| (1..=n).map(|k| backoff(k, period).as_secs()).collect::<Vec<_>>();
        assert_eq!(waits(QUARTER, 6), [60, 120, 240, 480, 900, 900]);
        assert_eq!(waits(HOUR, 8), [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(backoff(11, DAY).as_secs(), 61_440);
        assert_eq!(backoff(12, DAY), DAY);
        assert_eq!(backoff(u32::MAX, DAY), DAY);
    }

    #[test]
    fn a_success_is_followed_a_period_after_its_start() {
        let (started, finished) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:10:00Z"));
        let due = |cadence| next_due(cadence, started, finished, 0);
        assert_eq!(due(Cadence::QuarterHour), Some(at("2026-01-01T00:15:00Z")));
        assert_eq!(due(Cadence::Hourly), Some(at("2026-01-01T01:00:00Z")));
        assert_eq!(due(Cadence::Daily), Some(at("2026-01-02T00:00:00Z")));
        assert_eq!(due(Cadence::Manual), None);
    }

    #[test]
    fn a_run_that_outlasts_its_period_is_followed_at_once() {
        let (started, finished) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T05:00:00Z"));
        assert_eq!(next_due(Cadence::QuarterHour, started, finished, 0), Some(finished));
    }

    #[test]
    fn a_failure_is_followed_a_backoff_after_its_end() {
        let (started, finished) = (at("2026-01-01T00:00:00Z"), at("2026-01-01T00:50:00Z"));
        let due = |failures| next_due(Cadence::Hourly, started, finished, failures);
        assert_eq!(due(1), Some(at("2026-01-01T00:51:00Z")));
        assert_eq!(due(2), Some(at("2026-01-01T00:52:00Z")));
        assert_eq!(due(100), Some(at("2026-01-01T01:50:00Z")));
        assert_eq!(next_due(Cadence::Manual, started, finished, 3), None);
    }

    #[test]
    fn a_due_time_far_ahead_is_clipped_to_a_period() {
        let now = at("2026-01-01T00:00:00Z");
        assert_eq!(clipped(at("2031-01-01T00:00:00Z"), now, HOUR), at("2026-01-01T01:00:00Z"));
        assert_eq!(clipped(at("2026-01-01T00:30:00Z"), now, HOUR), at("2026-01-01T00:30:00Z"));
        assert_eq!(clipped(at("2020-01-01T00:00:00Z"), now, HOUR), at("2020-01-01T00:00:00Z"));
    }

    #[test]
    fn naps_are_short_and_end_exactly() {
        let due = at("2026-01-01T00:01:10Z");
        assert_eq!(nap(due, at("2026-01-01T00:00:00Z")), Some(LONGEST_NAP));
        assert_eq!(nap(due, at("2026-01-01T00:01:00Z")), Some(Duration::from_secs(10)));
        assert_eq!(nap(due, due), None);
        assert_eq!(nap(due, at("2026-02-01T00:00:00Z")), None);
    }

    fn cadence() -> impl Strategy<Value = Cadence> {
        prop_oneof![Just(Cadence::QuarterHour), Just(Cadence::Hourly), Just(Cadence::Daily)]
    }

    proptest! {
        #[test]
        fn the_backoff_never_shrinks_and_stays_in_bounds(n in 1_u32..=u32::MAX - 1, period in 60_u64..=86_400) {
            let period = Duration::from_secs(period);
            prop_assert!(backoff(n, period) <= backoff(n + 1, period));
            prop_assert!(backoff(n, period) >= FIRST_BACKOFF && backoff(n, period) <= period);
        }

        #[test]
        fn whatever_the_clock_did_the_wait_is_at_most_a_period(
            cadence in cadence(),
            started in any::<i32>(),
            finished in any::<i32>(),
            now in any::<i32>(),
            failures in any::<u32>(),
        ) {
            let time = |second: i32| Timestamp::from_second(i64::from(second)).unwrap();
            let due = next_due(cadence, time(started), time(finished), failures).unwrap();
            let period = cadence.period().unwrap();
            let wait = clipped(due, time(now), period).duration_since(time(now));
            prop_assert!(wait <= SignedDuration::try_from(period).unwrap());
        }
    }
}
