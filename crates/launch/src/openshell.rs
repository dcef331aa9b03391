//! The OpenShell driver: the gateway is talked to through the `openshell` program, its public interface.
//!
//! The calls and their order are those of launch.md §4. Values travel in a child's environment and never on a command
//! line; what the program says is shown with secrets masked and control characters written out.

mod call;
mod create;
mod image;
mod probe;
mod profiles;
mod providers;
mod refresh;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use bastion_host::signals::Stop;

use crate::driver::{Driver, Launch, Launched, Notice, Session, Word};
use crate::error::LaunchError;
use crate::options::Machine;
use crate::paths;
use crate::payload::SUPERVISOR;
use crate::plan::LaunchPlan;
use crate::runs::Run;
use crate::secret::Masker;
use crate::settings::Target;
use call::Call;
use probe::Abilities;

/// How long a call may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most calls.
    pub call: Duration,
    /// Building the image.
    pub build: Duration,
    /// Creating a sandbox that is then left alone.
    pub create: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        Self { call: minutes(2), build: minutes(60), create: minutes(15) }
    }
}

/// A gateway behind the `openshell` program.
pub struct OpenShell {
    program: PathBuf,
    /// `PATH`, for the image builder.
    path: String,
    limits: Limits,
    abilities: OnceLock<Abilities>,
}

impl OpenShell {
    /// The driver with the program of `OPENSHELL_BIN`, else `openshell` of `PATH`. Nothing is started yet.
    ///
    /// # Errors
    /// Where there is no such program.
    pub fn new(machine: &Machine) -> Result<Self, LaunchError> {
        let path = machine.var("PATH").unwrap_or_default().to_owned();
        let program = match machine.var("OPENSHELL_BIN") {
            Some(program) if program.contains('/') => Some(machine.cwd.join(program)),
            Some(program) => paths::which(program, &path),
            None => paths::which("openshell", &path),
        };
        let program = program.filter(|program| program.is_file()).ok_or_else(|| {
            LaunchError::refused(
                "the program `openshell`",
                "is not there; install it, or set OPENSHELL_BIN to its path",
            )
        })?;
        Ok(Self { program, path, limits: Limits::default(), abilities: OnceLock::new() })
    }

    /// The same with other time limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// What the program can do: asked once.
    fn abilities(&self, stop: &Stop) -> Result<Abilities, LaunchError> {
        if let Some(known) = self.abilities.get() {
            return Ok(*known);
        }
        let found = probe::ask(&self.program, self.limits.call, stop)?;
        Ok(*self.abilities.get_or_init(|| found))
    }

    /// A sandbox that somebody else has by this name would be taken for ours, and be removed with our run.
    fn check_name(&self, gateway: &str, name: &str, session: &mut Session<'_>) -> Result<(), LaunchError> {
        let look = self.call(gateway, &["sandbox", "get", name]);
        let found = look.run(session)?;
        if found.status == 0 {
            return Err(LaunchError::usage("--name", format!("is taken: the gateway has a sandbox {name}")));
        }
        if !found.misses("sandbox") {
            return Err(session.failed(&look.shown(), found.message(session.masker)));
        }
        Ok(())
    }

    /// A call about `gateway`.
    fn call<'c>(&'c self, gateway: &str, words: &[&str]) -> Call<'c> {
        let mut call = Call::new(&self.program, self.limits.call);
        call.words.extend(["--gateway".to_owned(), gateway.to_owned()]);
        call.words.extend(words.iter().map(|word| (*word).to_owned()));
        call
    }
}

/// Asking changes nothing, so nothing is to be said of what was done before.
fn asked(error: LaunchError) -> LaunchError {
    match error {
        LaunchError::Step { step, what, .. } => LaunchError::Asked { step, what },
        other => other,
    }
}

fn gateway_of(plan: &LaunchPlan) -> Result<&str, LaunchError> {
    match &plan.target {
        Target::Gateway(name) => Ok(name),
        Target::Local => Err(LaunchError::refused("this launch", "is for this machine and not for a gateway")),
    }
}

impl Driver for OpenShell {
    fn name(&self) -> &'static str {
        "openshell"
    }

    fn check(&self, plan: &LaunchPlan, stop: &Stop) -> Result<(), LaunchError> {
        gateway_of(plan)?;
        self.abilities(stop).map(|_| ())
    }

    fn start(&self, mut launch: Launch<'_, '_>) -> Result<Launched, LaunchError> {
        let gateway = gateway_of(launch.plan)?.to_owned();
        let abilities = self.abilities(launch.session.stop)?;
        if launch.plan.is_named {
            self.check_name(&gateway, &launch.plan.sandbox, launch.session)?;
        }
        let context = launch.temp.path().join("context");
        image::lay_out(&launch, &context)?;
        let files = profiles::lay_out(&launch)?;
        let image = image::build(self, &gateway, &mut launch, &context)?;
        for setting in &launch.plan.settings {
            let words = ["settings", "set", "--global", "--key", &setting.key, "--value", &setting.value, "--yes"];
            self.call(&gateway, &words).ok(launch.session)?;
            launch.session.done(format!("the setting {} is {}", setting.key, setting.value));
        }
        for (profile, file) in launch.profiles.iter().zip(&files) {
            profiles::bring_in(self, &gateway, abilities, profile, file, launch.session)?;
        }
        for (provider, secrets) in launch.providers.iter().zip(launch.secrets) {
            providers::bring_in(self, &gateway, provider, secrets, launch.profiles, launch.session)?;
        }
        for (provider, secrets) in launch.providers.iter().zip(launch.secrets) {
            refresh::run(self, &gateway, provider, secrets, launch.plan.reset_refresh, launch.session)?;
        }
        launch.temp.close(); // the image has the payload now, and an attached run can take days
        create::run(self, &gateway, abilities, &mut launch, &image)
    }

    fn report(&self, run: &Run, log: bool, stop: &Stop) -> Result<Option<Word>, LaunchError> {
        let masker = Masker::default();
        let mut quiet = |_: Notice<'_>| {};
        let mut session = Session::new(stop, &masker, &mut quiet);
        let mut words = vec!["sandbox", "exec", "-n", &run.name, "--no-tty", "--"];
        let state = run.state_dir.as_ref().map(|dir| format!("OPENSHELL_AGENT_STATE_DIR={dir}"));
        if let Some(state) = &state {
            words.extend(["env", state]);
        }
        words.extend([SUPERVISOR, "report"]);
        if log {
            words.push("--log");
        }
        let mut call = self.call(run.gateway.as_deref().unwrap_or_default(), &words);
        call.keep = crate::runs::MAX_REPORT;
        let answer = call.run(&mut session).map_err(asked)?;
        match answer.status {
            0 if answer.truncated => Err(asked(session.failed(&call.shown(), "the report is larger than 8 MiB"))),
            0 => Ok(Some(Word { report: answer.stdout, exit: None, why: None })),
            _ if answer.misses("sandbox") => Ok(None),
            _ => Err(asked(session.failed(&call.shown(), answer.message(&masker)))),
        }
    }

    fn remove(&self, run: &Run, stop: &Stop) -> Result<bool, LaunchError> {
        let masker = Masker::default();
        let mut quiet = |_: Notice<'_>| {};
        let mut session = Session::new(stop, &masker, &mut quiet);
        let call = self.call(run.gateway.as_deref().unwrap_or_default(), &["sandbox", "delete", &run.name]);
        let answer = call.run(&mut session).map_err(asked)?;
        match answer.status {
            0 => Ok(true),
            _ if answer.misses("sandbox") => Ok(false),
            _ => Err(asked(session.failed(&call.shown(), answer.message(&masker)))),
        }
    }
}
