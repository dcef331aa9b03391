//! Lines for the person who runs the endpoint: what is no request and so is in no audit.
//!
//! Anyone who reaches the port can cause some of them, so those are bounded in rate and in length, and hold no
//! character that a terminal would obey.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines that peers may cause in one [`WINDOW`].
const MOST: u32 = 10;
const WINDOW: Duration = Duration::from_secs(10);
/// Characters in one line.
const MOST_CHARS: usize = 300;

/// Where the lines go.
#[derive(Clone)]
pub struct NoticeSink(Arc<dyn Fn(&str) + Send + Sync>);

impl NoticeSink {
    /// Each line, without its end, is given to `write`.
    pub fn new(write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Arc::new(write))
    }

    /// Standard error.
    pub fn stderr() -> Self {
        Self::new(|line| {
            use std::io::Write as _;
            // a closed standard error is no reason to stop serving
            let _ = writeln!(std::io::stderr().lock(), "bastion: {line}");
        })
    }
}

impl fmt::Debug for NoticeSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeSink").finish_non_exhaustive()
    }
}

/// Writes notices to a sink.
#[derive(Debug, Clone)]
pub(crate) struct Notices {
    sink: NoticeSink,
    caused: Arc<Mutex<Caused>>,
}

#[derive(Debug)]
struct Caused {
    since: Instant,
    written: u32,
    held_back: u64,
}

impl Notices {
    pub(crate) fn new(sink: NoticeSink) -> Self {
        Self { sink, caused: Arc::new(Mutex::new(Caused { since: Instant::now(), written: 0, held_back: 0 })) }
    }

    /// Something that the owner should mend.
    pub(crate) fn say(&self, line: &str) {
        (self.sink.0)(&harmless(line));
    }

    /// Something that a peer did, or can cause as often as it likes.
    pub(crate) fn caused(&self, what: &str) {
        let held_back = {
            let mut caused = self.caused.lock().unwrap_or_else(PoisonError::into_inner);
            match caused.count(Instant::now()) {
                Some(held_back) => held_back,
                None => return,
            }
        };
        if held_back > 0 {
            self.say(&format!("{held_back} more lines like this were held back"));
        }
        self.say(what);
    }
}

impl Caused {
    /// Whether one more line may be written, and how many were held back before it.
    fn count(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= WINDOW {
            self.since = now;
            self.written = 0;
        }
        if self.written >= MOST {
            self.held_back += 1;
            return None;
        }
        self.written += 1;
        Some(std::mem::take(&mut self.held_back))
    }
}

fn harmless(line: &str) -> String {
    line.chars().take(MOST_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_bounded_in_rate_and_what_is_held_back_is_told() {
        let start = Instant::now();
        let mut caused = Caused { since: start, written: 0, held_back: 0 };
        let written = (0..1000).filter(|_| caused.count(start).is_some()).count();
        assert_eq!(written, 10);
        assert_eq!(caused.count(start + WINDOW), Some(990));
        assert_eq!(caused.count(start + WINDOW), Some(0));
    }

    #[test]
    fn a_line_can_not_speak_to_the_terminal() {
        assert_eq!(harmless("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(harmless(&"x".repeat(999)).len(), MOST_CHARS);
    }
}
