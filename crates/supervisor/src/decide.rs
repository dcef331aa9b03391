//! What follows from a cycle: end with which status, or sleep how long? Pure: no clock, no process.

use crate::outcome::{LONGEST_SLEEP, Outcome, Status};
use crate::settings::{Mode, Settings};

/// Where the backoff starts, in seconds.
const BACKOFF_START: u64 = 30;

/// Exit status of a run whose cycle took or was silent too long.
pub const TIMED_OUT: u8 = 124;

/// What went wrong since it last went well.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Failures {
    /// Failures in a row, those that the agent declared included.
    pub count: u64,
    /// How often the backoff has been used.
    pub steps: u32,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// End with this exit status.
    End(u8),
    /// Sleep so many seconds, then the next cycle.
    Sleep(u64),
}

/// The step, and the line that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub step: Step,
    /// The log line, without its prefix.
    pub message: String,
}

/// The backoff's `steps`-th delay in seconds: 30, doubling, never above the poll interval or a day.
pub fn backoff(steps: u32, poll_interval: u64) -> u64 {
    let doubled = BACKOFF_START.saturating_mul(1_u64.checked_shl(steps.min(40)).unwrap_or(u64::MAX));
    doubled.min(poll_interval).min(LONGEST_SLEEP)
}

/// Decides, and counts the failure or forgets the earlier ones.
pub fn decide(outcome: &Outcome, failures: &mut Failures, settings: &Settings) -> Decision {
    let reason = outcome.reason();
    let watch = settings.mode == Mode::Watch;
    let poll = settings.poll_interval.min(LONGEST_SLEEP);
    match outcome {
        Outcome::Result(result) => match result.status {
            Status::Complete => end(0, format!("complete ({reason})")),
            Status::TerminalFailure => end(1, format!("terminal failure ({reason})")),
            Status::Waiting | Status::Blocked if watch => {
                *failures = Failures::default();
                let seconds = result.next_poll.unwrap_or(poll);
                sleep(seconds, format!("waiting ({reason}); sleeping {seconds}s outside harness"))
            }
            Status::Waiting | Status::Blocked => end(0, format!("waiting ({reason})")),
            Status::TransientFailure => retry(1, result.next_poll.unwrap_or(poll), &reason, failures, settings),
        },
        Outcome::Exit(0) => end(0, format!("complete ({reason})")),
        Outcome::Exit(exit) => end(exit_status(*exit), format!("terminal failure ({reason})")),
        Outcome::Invalid { .. } | Outcome::Malformed | Outcome::Missing { .. } | Outcome::Overran(..) => {
            let code = match outcome {
                Outcome::Missing { exit, .. } if *exit != 0 => exit_status(*exit),
                Outcome::Overran(..) => TIMED_OUT,
                _ => 1,
            };
            let seconds = backoff(failures.steps, settings.poll_interval);
            failures.steps = failures.steps.saturating_add(1);
            retry(code, seconds, &reason, failures, settings)
        }
    }
}

fn retry(code: u8, seconds: u64, reason: &str, failures: &mut Failures, settings: &Settings) -> Decision {
    failures.count = failures.count.saturating_add(1);
    let message = format!("transient watch failure {} ({reason})", failures.count);
    if settings.mode == Mode::Once {
        return end(code, message);
    }
    let often = settings.max_transient_failures;
    let still = if often > 0 && failures.count.is_multiple_of(often) { "still " } else { "" };
    sleep(seconds, format!("{message}; {still}retrying in {seconds}s"))
}

fn end(code: u8, message: String) -> Decision {
    Decision { step: Step::End(code), message }
}

fn sleep(seconds: u64, message: String) -> Decision {
    Decision { step: Step::Sleep(seconds), message }
}

fn exit_status(exit: i32) -> u8 {
    u8::try_from(exit).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn settings(mode: Mode, poll_interval: u64) -> Settings {
        let get = |name: &str| (name == "OPENSHELL_AGENT_HARNESS").then(|| "command".into());
        Settings { mode, poll_interval, ..crate::settings::resolve(&get).unwrap() }
    }

    fn missing() -> Outcome {
        Outcome::Missing { exit: 0, transport: false }
    }

    #[test]
    fn the_backoff_doubles_up_to_the_poll_interval() {
        let delays: Vec<u64> = (0..7).map(|steps| backoff(steps, 900)).collect();
        assert_eq!(delays, [30, 60, 120, 240, 480, 900, 900]);
        assert_eq!(backoff(0, 10), 10);
        assert_eq!(backoff(u32::MAX, u64::MAX), 86_400);
    }

    #[test]
    fn a_declared_failure_counts_but_does_not_advance_the_backoff() {
        let (mut failures, settings) = (Failures::default(), settings(Mode::Watch, 900));
        let declared = Outcome::read(br#"{"status":"transient_failure","reason":"r","next_poll_seconds":7}"#);
        assert_eq!(decide(&declared, &mut failures, &settings).step, Step::Sleep(7));
        assert_eq!(decide(&missing(), &mut failures, &settings).step, Step::Sleep(30));
        assert_eq!(decide(&declared, &mut failures, &settings).step, Step::Sleep(7));
        let fourth = decide(&missing(), &mut failures, &settings);
        assert_eq!(fourth.step, Step::Sleep(60));
        assert_eq!(
            fourth.message,
            "transient watch failure 4 (missing OPENSHELL_AGENT_RESULT after harness exit 0); retrying in 60s"
        );
        let fifth = decide(&missing(), &mut failures, &settings);
        assert!(fifth.message.ends_with("; still retrying in 120s"), "{}", fifth.message);
    }

    #[test]
    fn waiting_forgets_failures_and_backoff() {
        let (mut failures, settings) = (Failures::default(), settings(Mode::Watch, 900));
        decide(&missing(), &mut failures, &settings);
        decide(&missing(), &mut failures, &settings);
        decide(&Outcome::read(br#"{"status":"blocked"}"#), &mut failures, &settings);
        assert_eq!(failures, Failures::default());
        assert_eq!(decide(&missing(), &mut failures, &settings).step, Step::Sleep(30));
    }

    proptest! {
        #[test]
        fn a_backoff_never_shrinks_and_is_always_capped(steps in 0u32..200, poll in 1u64..200_000) {
            let now = backoff(steps, poll);
            prop_assert!(now >= 1 && now <= poll && now <= 86_400);
            prop_assert!(backoff(steps + 1, poll) >= now);
        }
    }
}
