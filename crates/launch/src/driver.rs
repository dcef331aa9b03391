//! What does something that runs sandboxes have to do? Five methods, and the session that they report to.
//!
//! A driver gets a launch whose every part is judged, and refuses in [`Driver::check`] what it can't run. What it
//! does is told to the [`Session`], so that a failure or a signal can say what was done before.

use bastion_host::child::Stream;
use bastion_host::signals::Stop;

use crate::agent::Provider;
use crate::credentials::ProviderSecrets;
use crate::error::LaunchError;
use crate::image::Context;
use crate::options::Machine;
use crate::paths::Bases;
use crate::payload::Payload;
use crate::plan::LaunchPlan;
use crate::profiles::Profile;
use crate::runs::Run;
use crate::secret::Masker;
use crate::temp::Temp;

/// Runs agents somewhere.
pub trait Driver {
    /// Its name in records: `openshell`.
    fn name(&self) -> &'static str;

    /// Whether it can run this, as far as that is known without doing anything.
    ///
    /// # Errors
    /// What it can't run, or what it lacks on this machine.
    fn check(&self, plan: &LaunchPlan, stop: &Stop) -> Result<(), LaunchError>;

    /// Starts it; where the launch is attached, runs it to its end.
    ///
    /// # Errors
    /// The step that failed.
    fn start(&self, launch: Launch<'_, '_>) -> Result<Launched, LaunchError>;

    /// What is known of the run now; none where the sandbox is gone and nothing was kept.
    ///
    /// # Errors
    /// Where it can't be asked.
    fn report(&self, run: &Run, log: bool, stop: &Stop) -> Result<Option<Word>, LaunchError>;

    /// Ends the run and removes its sandbox. Says whether it was there.
    ///
    /// # Errors
    /// Where it can't be ended.
    fn remove(&self, run: &Run, stop: &Stop) -> Result<bool, LaunchError>;
}

/// What goes on, for the user.
#[derive(Debug, Clone, Copy)]
pub enum Notice<'n> {
    /// A step begins.
    Step(&'n str),
    /// Something the user should know.
    Warning(&'n str),
    /// Output of an attached run, fit for a terminal.
    Output(Stream, &'n str),
}

/// What a driver can say of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The report of its supervisor, as it was printed (hostile, at most 8 MiB).
    pub report: Vec<u8>,
    /// Its exit status, where it is known to have ended.
    pub exit: Option<u8>,
    /// Why it was ended, where it did not end by itself.
    pub why: Option<String>,
}

/// A started run.
#[derive(Debug)]
pub struct Launched {
    /// Its record.
    pub run: Run,
    /// Its exit status, where it has ended.
    pub exit: Option<u8>,
}

/// A judged launch with everything that a driver needs.
pub struct Launch<'l, 's> {
    /// What was decided.
    pub plan: &'l LaunchPlan,
    /// This machine.
    pub machine: &'l Machine,
    /// Where paths of the manifest lead.
    pub(crate) bases: &'l Bases,
    /// A private folder that is gone when this is dropped.
    pub(crate) temp: Temp,
    /// The payload, not yet on disk.
    pub payload: &'l Payload,
    /// The policy file's bytes.
    pub policy: Option<&'l [u8]>,
    pub(crate) context: Option<&'l Context>,
    /// The profiles that win.
    pub profiles: &'l [Profile],
    /// The provider instances.
    pub providers: &'l [Provider],
    /// Their values, in the same order.
    pub secrets: &'l [ProviderSecrets],
    /// Where to say what was done.
    pub session: &'l mut Session<'s>,
}

/// What was done so far, and whether to go on.
pub struct Session<'s> {
    /// The request to stop.
    pub stop: &'s Stop,
    /// Takes secrets out of texts.
    pub masker: &'s Masker,
    tell: &'s mut dyn FnMut(Notice<'_>),
    done: Vec<String>,
}

impl<'s> Session<'s> {
    /// A session in which nothing was done yet.
    pub fn new(stop: &'s Stop, masker: &'s Masker, tell: &'s mut dyn FnMut(Notice<'_>)) -> Self {
        Self { stop, masker, tell, done: Vec::new() }
    }

    /// Goes on, unless a stop was requested.
    ///
    /// # Errors
    /// The stop, with what was done.
    pub fn check(&self, during: &str) -> Result<(), LaunchError> {
        match self.stop.requested() {
            None => Ok(()),
            Some(signal) => {
                Err(LaunchError::Interrupted { signal, during: during.to_owned(), done: self.done.clone() })
            }
        }
    }

    /// Tells the user.
    pub fn tell(&mut self, notice: Notice<'_>) {
        (self.tell)(notice);
    }

    /// Notes something that is now so on the gateway.
    pub fn done(&mut self, what: impl Into<String>) {
        self.done.push(what.into());
    }

    /// What was done so far.
    pub fn so_far(&self) -> Vec<String> {
        self.done.clone()
    }

    /// A step that failed.
    pub fn failed(&self, step: &str, what: impl Into<String>) -> LaunchError {
        LaunchError::Step { step: step.to_owned(), what: what.into(), done: self.done.clone() }
    }
}
