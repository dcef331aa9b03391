//! Runs one program to its end: passes its output on, keeps what is scanned later, and holds it to its limits.
//!
//! The invariant: whatever the program does (hang, ignore TERM, babble, leave children that hold its pipes), `run`
//! returns within its limits and a few seconds, with bounded memory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

use crate::console::{Console, timespec};
use crate::launch::Launch;
use crate::output_log::OutputLog;
use crate::signals::{Signals, reap};
use crate::tail::Tail;

/// Bytes of stdout that are kept for the scan.
const KEPT_STDOUT: usize = 1 << 20;
/// Bytes of stderr that are kept; what ended a harness stands at the end.
const KEPT_STDERR: usize = 64 << 10;
/// How long a background child may hold the pipes once the harness has ended.
const HELD_PIPES: Duration = Duration::from_secs(2);
/// How often a group that was told to end is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How a program is run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How long it may take.
    pub time: Option<Duration>,
    /// How long it may print nothing.
    pub silence: Option<Duration>,
    /// How long it has between TERM and KILL.
    pub grace: Duration,
    /// How often `beat` is told that it still runs.
    pub heartbeat: Option<Duration>,
    /// Whether its stdout and its stderr are passed on.
    pub pass: [bool; 2],
}

/// Which limit, if any, ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// None: it ended by itself, or because we were asked to stop.
    Own,
    /// It took too long.
    Time,
    /// It was silent too long.
    Silence,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    /// Which limit ended it.
    pub ending: Ending,
    /// Its exit status, 128 + the signal's number where one ended it.
    pub exit: i32,
    /// The end of its stdout.
    pub stdout: Tail,
    /// The end of its stderr.
    pub stderr: Tail,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    /// Told to end; killed at the instant.
    Ending(Instant),
    /// Killed; given up at the instant, should the kernel not let go of it.
    Killed(Instant),
}

/// Runs `launch` to its end. `beat` makes the line for so many seconds.
pub fn run(
    launch: &Launch,
    plan: &Plan,
    console: &mut Console,
    signals: &Signals,
    beat: &dyn Fn(u64) -> String,
) -> io::Result<Ran> {
    let mut child = launch.spawn()?;
    let pipes = [child.stdout.take().map(OwnedFd::from), child.stderr.take().map(OwnedFd::from)];
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::Other)?;
    let start = Instant::now();
    let mut running = Running {
        pid,
        pipes,
        exit: None,
        phase: Phase::Running,
        ran: Ran { ending: Ending::Own, exit: 0, stdout: Tail::new(KEPT_STDOUT), stderr: Tail::new(KEPT_STDERR) },
        start,
        last_output: start,
        next_beat: plan.heartbeat.map(|every| start + every),
        held: HELD_PIPES,
        tick: start,
        buffer: vec![0; 64 << 10],
    };
    while running.step(plan, console, signals, beat) {}
    if !matches!(running.phase, Phase::Running) {
        running.send(Signal::KILL);
        running.exit = running.exit.or_else(|| reap(Some(pid)));
    }
    Ok(Ran { exit: running.exit.unwrap_or(128 + Signal::KILL.as_raw()), ..running.ran })
}

struct Running {
    pid: Pid,
    pipes: [Option<OwnedFd>; 2],
    exit: Option<i32>,
    phase: Phase,
    ran: Ran,
    start: Instant,
    last_output: Instant,
    next_beat: Option<Instant>,
    held: Duration,
    tick: Instant,
    buffer: Vec<u8>,
}

impl Running {
    /// One turn of the loop; false when all is over.
    fn step(&mut self, plan: &Plan, console: &mut Console, signals: &Signals, beat: &dyn Fn(u64) -> String) -> bool {
        let now = Instant::now();
        let mut passed = now - std::mem::replace(&mut self.tick, now);
        if let Some(exit) = reap(Some(self.pid)) {
            self.exit = Some(exit);
            passed = Duration::ZERO; // what passed until now was the harness's own time
        }
        let blocked = console.out.blocked() || console.err.blocked();
        let patient = blocked && signals.stop().is_none() && matches!(self.phase, Phase::Running);
        if self.over(now, passed, patient) {
            return false;
        }
        self.limit(now, plan, signals);
        if let (Some(at), Some(every)) = (self.next_beat, plan.heartbeat)
            && self.exit.is_none()
            && at <= now
        {
            self.next_beat = Some(now + every);
            console.say(&beat((now - self.start).as_secs()));
        }
        console.flush_log(false);
        self.wait(plan, console, signals);
        true
    }

    /// Whether nothing is left to wait for. `patient`: a slow reader of ours is waited for, since it must not cost
    /// the harness its last words, so only the time counts in which all that came was passed on.
    fn over(&mut self, now: Instant, passed: Duration, patient: bool) -> bool {
        if let Phase::Killed(give_up) = self.phase
            && give_up <= now
        {
            return true;
        }
        if self.exit.is_none() {
            return false;
        }
        if !patient {
            self.held = self.held.saturating_sub(passed);
        }
        let quiet = self.pipes.iter().all(Option::is_none) || self.held.is_zero();
        match self.phase {
            Phase::Running | Phase::Killed(_) => quiet,
            // The others of its group have their time to end, too.
            Phase::Ending(_) => quiet && test_kill_process_group(self.pid) == Err(Errno::SRCH),
        }
    }

    /// Holds the program to its limits, and to our own end.
    fn limit(&mut self, now: Instant, plan: &Plan, signals: &Signals) {
        let past = |since: Instant, limit: Option<Duration>| limit.is_some_and(|limit| now - since >= limit);
        match self.phase {
            Phase::Running if self.exit.is_some() => {}
            Phase::Running => {
                let signal = if let Some(stop) = signals.stop() {
                    stop.signal()
                } else if past(self.start, plan.time) {
                    self.ran.ending = Ending::Time;
                    Signal::TERM
                } else if past(self.last_output, plan.silence) {
                    self.ran.ending = Ending::Silence;
                    Signal::TERM
                } else {
                    return;
                };
                self.send(signal);
                self.phase = Phase::Ending(now + plan.grace);
            }
            Phase::Ending(at) if at <= now => {
                self.send(Signal::KILL);
                self.phase = Phase::Killed(now + plan.grace);
            }
            Phase::Ending(_) | Phase::Killed(_) => {}
        }
    }

    /// Signals the whole group. One that is just being started may not have its group yet.
    fn send(&self, signal: Signal) {
        if kill_process_group(self.pid, signal).is_err() && self.exit.is_none() {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Waits for output, room, signals or the next deadline, and moves what there is.
    fn wait(&mut self, plan: &Plan, console: &mut Console, signals: &Signals) {
        let timeout = self.timeout(plan, console.log.as_ref().and_then(OutputLog::due));
        let mut fds = vec![PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
        for outlet in [&console.out, &console.err].into_iter().filter(|outlet| outlet.blocked()) {
            fds.push(PollFd::from_borrowed_fd(outlet.fd(), PollFlags::OUT));
        }
        let first = fds.len();
        let mut which = Vec::with_capacity(2);
        for (n, outlet) in [&console.out, &console.err].into_iter().enumerate() {
            if let Some(pipe) = self.pipes[n].as_ref().filter(|_| !(plan.pass[n] && outlet.blocked())) {
                fds.push(PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN));
                which.push(n);
            }
        }
        if poll(&mut fds, Some(&timespec(timeout))).is_err() {
            return; // interrupted: the next turn looks again
        }
        let woken = !fds[0].revents().is_empty();
        let ready: Vec<usize> =
            which.iter().zip(&fds[first..]).filter(|(_, fd)| !fd.revents().is_empty()).map(|(n, _)| *n).collect();
        drop(fds);
        if woken {
            signals.drain();
        }
        if first > 1 {
            self.last_output = Instant::now(); // silent only because nobody read what it said
        }
        console.out.flush();
        console.err.flush();
        for n in ready {
            self.read(n, plan, console);
        }
    }

    fn read(&mut self, n: usize, plan: &Plan, console: &mut Console) {
        let Some(pipe) = &self.pipes[n] else { return };
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(0) => self.pipes[n] = None,
            Ok(count) => {
                self.last_output = Instant::now();
                let chunk = &self.buffer[..count];
                if plan.pass[n] {
                    console.pass(n == 1, chunk);
                }
                if n == 0 { self.ran.stdout.push(chunk) } else { self.ran.stderr.push(chunk) }
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.pipes[n] = None,
        }
    }

    /// How long nothing has to be done, as far as the clock goes.
    fn timeout(&self, plan: &Plan, log_due: Option<Instant>) -> Duration {
        let mut at: Vec<Instant> = log_due.into_iter().collect();
        match self.phase {
            Phase::Running if self.exit.is_none() => {
                at.extend(plan.time.map(|limit| self.start + limit));
                at.extend(plan.silence.map(|limit| self.last_output + limit));
                at.extend(self.next_beat);
            }
            Phase::Running => {}
            Phase::Ending(kill) => at.extend([kill, self.tick + LOOK]),
            Phase::Killed(give_up) => at.push(give_up),
        }
        if self.exit.is_some() && !self.held.is_zero() {
            at.push(self.tick + self.held);
        }
        let now = Instant::now();
        at.into_iter().map(|at| at.saturating_duration_since(now)).min().unwrap_or(Duration::from_secs(3600))
    }
}
