//! Was this process asked to stop, and by which signal?
//!
//! SIGTERM and SIGINT raise a flag and wake whoever waits on it; they end nothing by themselves, so that what is
//! half done is finished by its owner. A second signal is counted and changes nothing.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::clock::Clock;

/// A signal that asks a process to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager, `kill`.
    Terminate,
}

impl StopSignal {
    /// The exit status of a process that this signal stopped: 128 + its number.
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }
}

/// A request to stop that anyone may make, look at or wait for. Clones are one and the same request.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    first: Option<StopSignal>,
    count: u32,
}

impl Stop {
    /// A request that only [`Stop::request`] makes.
    pub fn new() -> Self {
        Self::default()
    }

    /// A request that SIGTERM and SIGINT make from now on, in place of ending the process. `heard` is called for each
    /// of them with its count from 1, on a thread of its own (not in a signal handler: it may print).
    ///
    /// The handlers stay for the life of the process.
    pub fn on_signals(heard: impl Fn(StopSignal, u32) + Send + 'static) -> io::Result<Self> {
        let stop = Self::new();
        let mut signals = Signals::new([SIGTERM, SIGINT])?;
        let requests = stop.clone();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            for number in signals.forever() {
                let signal = if number == SIGINT { StopSignal::Interrupt } else { StopSignal::Terminate };
                heard(signal, requests.request(signal));
            }
        })?;
        Ok(stop)
    }

    /// Asks to stop, wakes all who wait, and gives how often that was asked so far.
    pub fn request(&self, signal: StopSignal) -> u32 {
        let mut state = self.lock();
        state.first.get_or_insert(signal);
        state.count = state.count.saturating_add(1);
        self.shared.changed.notify_all();
        state.count
    }

    /// The first signal that asked, if any did.
    pub fn requested(&self) -> Option<StopSignal> {
        self.lock().first
    }

    /// How often it was asked.
    pub fn count(&self) -> u32 {
        self.lock().count
    }

    /// Waits for a request, at most `limit`; at once where there was one. Says whether there is one.
    pub fn wait(&self, limit: Duration) -> bool {
        let started = Instant::now();
        let mut state = self.lock();
        while state.first.is_none() {
            let Some(rest) = limit.checked_sub(started.elapsed()).filter(|rest| !rest.is_zero()) else { return false };
            state = self.shared.changed.wait_timeout(state, rest).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The machine's clock, whose naps end at once when a stop is requested.
#[derive(Debug, Clone)]
pub struct WakingClock {
    stop: Stop,
}

impl WakingClock {
    /// A clock that `stop` wakes.
    pub fn new(stop: &Stop) -> Self {
        Self { stop: stop.clone() }
    }
}

impl Clock for WakingClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn nap(&self, duration: Duration) {
        self.stop.wait(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_decides_and_later_ones_are_counted() {
        let stop = Stop::new();
        assert_eq!((stop.requested(), stop.count()), (None, 0));
        assert_eq!(stop.request(StopSignal::Terminate), 1);
        assert_eq!(stop.request(StopSignal::Interrupt), 2);
        assert_eq!(stop.requested(), Some(StopSignal::Terminate));
        assert_eq!(stop.requested().unwrap().exit_status(), 143);
        assert_eq!(StopSignal::Interrupt.exit_status(), 130);
    }

    #[test]
    fn a_nap_ends_when_a_stop_is_requested() {
        let stop = Stop::new();
        let napper = {
            let clock = WakingClock::new(&stop);
            std::thread::spawn(move || clock.nap(Duration::from_secs(86_400)))
        };
        stop.request(StopSignal::Terminate);
        napper.join().unwrap(); // would take a day
        WakingClock::new(&stop).nap(Duration::from_secs(86_400));
    }

    #[test]
    fn a_nap_without_a_request_ends_by_itself() {
        assert!(!Stop::new().wait(Duration::from_millis(2)));
        assert!(!Stop::new().wait(Duration::ZERO));
    }
}
