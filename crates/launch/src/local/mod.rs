//! The local driver: a sandbox on this machine with nothing to install but bubblewrap.
//!
//! The process that launches a run (or, of a detached one, a process of its own) holds its secrets, its policy, its proxy
//! and its log, and the sandbox dies with it. Nothing runs unsandboxed: what is missing is a refusal with its mend.

mod back;
pub(crate) mod binds;
mod daemon;
mod environment;
pub(crate) mod harness;
mod job;
mod judge;
mod layout;
mod output;
mod outside;
mod run;
mod size;
mod tree;
mod watch;
mod world;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bastion_cage::sandbox::Identity;
use bastion_host::clock::{Clock, UtcMillis};
use bastion_host::signals::{Stop, StopSignal};

use crate::driver::{Driver, Launch, Launched, Notice, Word};
use crate::error::LaunchError;
use crate::options::Machine;
use crate::passing::Passing;
use crate::plan::LaunchPlan;
use crate::runs::{self, Heard, Report, Run};
use crate::settings::Target;
use crate::text::plain;
use job::Job;
use layout::{Launcher, Layout};
use run::Event;

pub use daemon::{LAUNCHER, launcher};
pub(crate) use judge::judge;
pub(crate) use layout::Layout as RunFolder;

/// How long a launcher may take to end its run: its supervisor gives the harness 10 s.
const GRACE: Duration = Duration::from_secs(20);
/// A run whose launcher has not come up after this never will.
const STARTING: Duration = Duration::from_secs(90);

/// Sandboxes on this machine.
pub struct Local {
    /// This program, which becomes the launcher of a detached run.
    program: PathBuf,
    state_dir: PathBuf,
    clock: Arc<dyn Clock>,
}

impl Local {
    /// The driver. `program` is started with [`LAUNCHER`] for detached runs.
    pub fn new(machine: &Machine, program: PathBuf) -> Self {
        Self { program, state_dir: machine.state_dir.clone(), clock: machine.clock.clone() }
    }

    fn layout(&self, run: &Run) -> Layout {
        Layout::of(&self.state_dir, &run.name)
    }

    /// Whether its launcher may still be coming up.
    fn is_young(&self, run: &Run) -> bool {
        let limit = jiff::SignedDuration::try_from(STARTING).unwrap_or_default();
        self.clock.now().duration_since(run.started.0) < limit
    }

    /// Ends the run's launcher, politely at first. Says whether there was one.
    fn end(&self, layout: &Layout, run: &Run, stop: &Stop) -> Result<bool, LaunchError> {
        let failed = |what: &str| LaunchError::Asked { step: format!("ending {}", run.name), what: what.to_owned() };
        let asked = Instant::now();
        let mut signalled = 0;
        loop {
            let identity = match layout.launcher()? {
                Launcher::Gone => return Ok(signalled > 0),
                Launcher::Starting if !self.is_young(run) => return Ok(false),
                Launcher::Starting => None,
                Launcher::Alive(identity) => Some(identity),
            };
            if stop.requested().is_some_and(|signal| signal == StopSignal::Interrupt) && asked.elapsed() > GRACE {
                return Err(failed("its launcher does not end"));
            }
            if let Some(identity) = identity {
                let signal = match signalled {
                    0 => Some(rustix::process::Signal::TERM),
                    1 if asked.elapsed() > GRACE => Some(rustix::process::Signal::KILL),
                    _ => None,
                };
                if let Some(signal) = signal {
                    if !identity.signal(signal) {
                        return Err(failed("its launcher is a process of another machine or container; end it there"));
                    }
                    signalled += 1;
                }
            }
            if asked.elapsed() > GRACE * 2 {
                return Err(failed("its launcher does not end"));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Runs the job: here where the launch is attached, else in a launcher of its own.
    fn go(&self, launch: &mut Launch<'_, '_>, job: &Job, up: &mut bool) -> Result<Option<layout::Ending>, LaunchError> {
        let (attach, masker, stop) = (launch.plan.attach, launch.session.masker, launch.session.stop);
        let session = &mut *launch.session;
        if !attach {
            for note in daemon::start(&self.program, job, stop)? {
                session.tell(Notice::Warning(&note));
            }
            *up = true;
            return Ok(None);
        }
        let mut passing = Passing::default();
        let ended = run::run(job, stop, launch.machine.clock.clone(), &mut |event| match event {
            Event::Up(notes) => {
                *up = true;
                notes.iter().for_each(|note| session.tell(Notice::Warning(note)));
            }
            Event::Output(stream, bytes) => {
                passing.push(stream, bytes, masker, &mut |text| session.tell(Notice::Output(stream, text)));
            }
            Event::Warning(text) => session.tell(Notice::Warning(text)),
        });
        passing.finish(masker, &mut |stream, text| session.tell(Notice::Output(stream, text)));
        ended.map(Some)
    }
}

impl Driver for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn check(&self, plan: &LaunchPlan, _stop: &Stop) -> Result<(), LaunchError> {
        match plan.target {
            // credentials are fetched next
            Target::Local => run::harden(),
            Target::Gateway(_) => Err(LaunchError::refused("this launch", "is for a gateway and not for this machine")),
        }
    }

    fn start(&self, mut launch: Launch<'_, '_>) -> Result<Launched, LaunchError> {
        launch.temp.close(); // all of a run is in its own folder
        let (plan, clock) = (launch.plan, launch.machine.clock.clone());
        let identity = Identity::choose().map_err(world::refused)?;
        let layout = Layout::of(&self.state_dir, &plan.sandbox);
        if layout.is_held()? {
            let what = "is that of a run whose record is gone and whose launcher is alive; end that process";
            return Err(LaunchError::refused(format!("the name {}", plan.sandbox), what));
        }
        let job = judge::job(&launch, &layout, (identity.uid, identity.gid))?;
        let mut run = Run::new(plan, self.name(), clock.now());
        runs::begin(&self.state_dir, &run)?;
        let mut up = false;
        let prepared = layout
            .remove() // what an earlier run of this name left, whose record is gone
            .and_then(|()| layout.make((identity.uid, identity.gid)))
            .and_then(|()| launch.payload.write(&layout.payload()));
        let ended = prepared.and_then(|()| {
            for bind in &plan.harness_files {
                let (source, place) = (bind.source.display(), bind.destination.display());
                launch.session.tell(Notice::Step(&format!("the harness: {source} is at {place} inside")));
            }
            launch.session.tell(Notice::Step("starting the sandbox"));
            self.go(&mut launch, &job, &mut up)
        });
        match ended {
            Err(error) if !up => {
                // nothing ran, so nothing is to be remembered
                let _ = layout.remove();
                let _ = runs::forget(&self.state_dir, &run.name);
                return Err(error);
            }
            Err(error) => launch.session.tell(Notice::Warning(&format!("the run has ended, and {error}"))),
            Ok(None) => return Ok(Launched { run, exit: None }),
            Ok(Some(ending)) => {
                run.exit = Some(ending.exit);
                run.why = ending.why.as_deref().map(plain);
                let record = Report::read(ending.report.to_string().as_bytes()).record;
                run.last = Some(Heard { at: UtcMillis(clock.now()), gone: !plan.keep, record });
            }
        }
        if let Err(error) = runs::save(&self.state_dir, &run) {
            launch.session.tell(Notice::Warning(&format!("the run's record is not up to date: {error}")));
        }
        Ok(Launched { exit: Some(run.exit.unwrap_or(1)), run })
    }

    fn report(&self, run: &Run, log: bool, _stop: &Stop) -> Result<Option<Word>, LaunchError> {
        let layout = self.layout(run);
        if layout.root().symlink_metadata().is_err() {
            return Ok(None);
        }
        let state = run.state_dir.as_deref();
        let live = |layout: &Layout| Word {
            report: layout.report(state, log).to_string().into_bytes(),
            exit: None,
            why: None,
        };
        match layout.launcher()? {
            Launcher::Alive(_) => return Ok(Some(live(&layout))),
            Launcher::Starting if self.is_young(run) => return Ok(Some(live(&layout))),
            Launcher::Starting | Launcher::Gone => {}
        }
        run::settle(&layout, state, run.keep)?;
        Ok(layout.ending(log).map(|ending| Word {
            report: ending.report.to_string().into_bytes(),
            exit: Some(ending.exit),
            why: ending.why,
        }))
    }

    fn remove(&self, run: &Run, stop: &Stop) -> Result<bool, LaunchError> {
        let layout = self.layout(run);
        if layout.root().symlink_metadata().is_err() {
            return Ok(false);
        }
        let there = self.end(&layout, run, stop)? | layout.has_sandbox();
        run::settle(&layout, run.state_dir.as_deref(), false)?;
        Ok(there)
    }
}
