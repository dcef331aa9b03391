//! One run from its launcher's side: sandbox, proxy, output, bounds, and what is written down when it has ended.
//!
//! Until the sandbox is up a fault is an error and leaves nothing. From then on a run *ends*, in whatever way, and how it
//! ended is on the disk before anything of it is removed.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use bastion_cage::sandbox::{self, Running};
use bastion_host::child::Stream;
use bastion_host::clock::Clock;
use bastion_host::signals::Stop;

use super::job::Job;
use super::layout::{Ending, Layout};
use super::output::Output;
use super::watch::Watch;
use super::{back, outside, world};
use crate::error::LaunchError;
use crate::text::plain;

/// How often the sandbox, the stop request and the disk are looked at.
const TICK: Duration = Duration::from_millis(50);
/// How long a supervisor that was asked to end may take; it gives its harness 10 s.
const GRACE: Duration = Duration::from_secs(15);
/// How long output is read after the sandbox has ended.
const LINGER: Duration = Duration::from_secs(2);

/// What the one who started the run is told.
pub(crate) enum Event<'e> {
    /// The sandbox is up; what about it the user should know.
    Up(&'e [String]),
    /// It printed something.
    Output(Stream, &'e [u8]),
    /// Something went wrong that does not end the run.
    Warning(&'e str),
}

/// Runs `job` to its end.
///
/// # Errors
/// Where the sandbox can't be started as it has to be; nothing of the agent ran then.
pub(crate) fn run(
    job: &Job,
    stop: &Stop,
    clock: Arc<dyn Clock>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Ending, LaunchError> {
    let layout = job.layout();
    let _held = layout.hold()?;
    harden()?;
    let mut output = Output::open(&layout.output()).map_err(LaunchError::file(&layout.output()))?;
    let mut watch = Watch::new(&layout.sandbox()).map_err(LaunchError::file(&layout.sandbox()))?;
    let (ca, policy) = (outside::ca(&*clock)?, outside::policy(job)?);
    let loopback = outside::lists_loopback(&policy);
    let plan = world::plan(job, &layout, &ca, loopback);
    let mut running = plan.prepare().and_then(sandbox::Prepared::start).map_err(world::refused)?;
    let listener = running.listener().ok_or_else(|| LaunchError::refused("the sandbox", "gave no way out"))?;
    let (rotated, unwritten) = back::writer(&job.credentials);
    let proxy = match outside::proxy(job, &layout, listener, ca, policy, rotated) {
        Ok(proxy) => proxy,
        Err(error) => {
            running.kill();
            return Err(error);
        }
    };
    tell(Event::Up(&running.enforced().notes));
    let (send, receive) = sync_channel(64);
    let over = Arc::new(AtomicBool::new(false));
    pump(running.stdout(), Stream::Stdout, &send);
    pump(running.stderr(), Stream::Stderr, &send);
    let watcher = {
        let (send, over) = (send.clone(), over.clone());
        std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                if let Some(fault) = watch.fault() {
                    let _ = send.send(Came::Fault(fault));
                    return;
                }
                let asked = Instant::now();
                while asked.elapsed() < Duration::from_secs(1) && !over.load(Ordering::Relaxed) {
                    std::thread::sleep(TICK);
                }
            }
        })
    };
    drop(send);
    let ended = accompany(&mut running, &receive, stop, &mut |stream, bytes| {
        // a log that can't be written is no reason to lose the run's work; what is printed still passes through
        let _ = output.push(bytes);
        tell(Event::Output(stream, bytes));
    });
    over.store(true, Ordering::Relaxed);
    running.kill();
    drop(running);
    proxy.stop();
    drop(receive);
    let _ = watcher.join();
    let ending = Ending { report: layout.report(job.supervisor_state.as_deref(), true), ..ended };
    // of a detached run nobody listens any more: what there is to say stands behind what it printed too
    let mut warn = |text: &str| {
        let _ = output.push(format!("bastion: {}\n", plain(text)).as_bytes());
        tell(Event::Warning(text));
    };
    if let Some(why) = &ending.why {
        warn(why);
    }
    for text in back::told(&unwritten) {
        warn(&text);
    }
    for repository in super::binds::new_repositories(&job.mounts) {
        let place = repository.display();
        warn(&format!("the run left a repository at {place}: look at its configuration before you use Git there"));
    }
    // the record of how it ended stands before anything is removed
    layout.end(&ending)?;
    if !job.keep
        && let Err(error) = layout.clear()
    {
        warn(&format!("a part of the sandbox is left: {error}; bastion runs rm {}", job.name));
    }
    Ok(ending)
}

/// What came from the sandbox or its watch.
enum Came {
    Output(Stream, Vec<u8>),
    /// One of its two outputs has ended.
    Closed,
    Fault(String),
}

/// Stays with the sandbox to its end.
fn accompany(
    running: &mut Running,
    receive: &Receiver<Came>,
    stop: &Stop,
    heard: &mut dyn FnMut(Stream, &[u8]),
) -> Ending {
    let mut why: Option<(String, Option<u8>)> = None;
    let mut asked: Option<Instant> = None;
    let mut status = None;
    let mut open = 2;
    while status.is_none() {
        match receive.recv_timeout(TICK) {
            Ok(Came::Output(stream, bytes)) => heard(stream, &bytes),
            Ok(Came::Closed) => open -= 1,
            Ok(Came::Fault(fault)) => {
                why.get_or_insert((format!("the run was ended: {fault}"), Some(1)));
                running.kill();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(TICK),
        }
        if let Some(signal) = stop.requested() {
            if asked.is_none() {
                why.get_or_insert((format!("the run was ended by {}", signal.name()), Some(signal.exit_status())));
                let _ = running.terminate(); // one that can't be asked is killed after the grace
                asked = Some(Instant::now());
            }
            // a second signal is impatience
            if stop.count() > 1 || asked.is_some_and(|asked| asked.elapsed() > GRACE) {
                running.kill();
            }
        }
        status = match running.try_wait() {
            Ok(status) => status,
            Err(error) => {
                why.get_or_insert((format!("the sandbox can't be waited for: {error}"), Some(1)));
                running.kill();
                Some(ExitStatus::from_raw(1 << 8))
            }
        };
    }
    let last = Instant::now();
    while open > 0 && last.elapsed() < LINGER {
        match receive.recv_timeout(TICK) {
            Ok(Came::Output(stream, bytes)) => heard(stream, &bytes),
            Ok(Came::Closed) => open -= 1,
            Ok(Came::Fault(_)) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let own = status.map_or(1, |status| status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)));
    let (why, exit) = match why {
        Some((why, exit)) => (Some(why), exit),
        None => (None, None),
    };
    Ending { exit: exit.unwrap_or_else(|| u8::try_from(own).unwrap_or(1)), why, report: serde_json::Value::Null }
}

fn pump(pipe: Option<OwnedFd>, stream: Stream, send: &SyncSender<Came>) {
    let (Some(pipe), send) = (pipe, send.clone()) else { return };
    std::thread::spawn(move || {
        let (mut pipe, mut buffer) = (File::from(pipe), vec![0; 64 << 10]);
        while let Ok(n) = pipe.read(&mut buffer) {
            if n == 0 || send.send(Came::Output(stream, buffer[..n].to_vec())).is_err() {
                break;
            }
        }
        let _ = send.send(Came::Closed);
    });
}

/// This process holds secrets from here on: no core dump of it, and no other process of the user looks into it.
pub(crate) fn harden() -> Result<(), LaunchError> {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| LaunchError::refused("the launcher", format!("can't keep others out of its memory: {error}")))
}

/// Where a run's launcher was killed nobody wrote down how it ended: that is made up for by whoever looks next.
pub(crate) fn settle(layout: &Layout, supervisor_state: Option<&str>, keep: bool) -> Result<(), LaunchError> {
    if layout.ending(false).is_none() {
        let why = Some("its launcher was killed, and the sandbox with it".to_owned());
        layout.end(&Ending { exit: 137, why, report: layout.report(supervisor_state, true) })?;
    }
    if keep { Ok(()) } else { layout.clear() }
}

/// A rotated value, handed to whoever keeps it.
pub(crate) type Rotated = Box<dyn Fn(&str, &[(String, zeroize::Zeroizing<String>)]) + Send + Sync>;
