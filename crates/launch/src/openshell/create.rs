//! Creating the sandbox: left alone where the launch is detached, accompanied to its end where it is attached.
//!
//! A program without `--detach` always stays with the sandbox. For a detached launch it is then left running by
//! itself, its output in a file beside the run's record, once the gateway knows the sandbox.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::{Duration, Instant};

use bastion_host::child;
use bastion_host::clock::UtcMillis;
use bastion_host::files::PRIVATE_FILE;

use super::OpenShell;
use super::call::{Answer, Call};
use super::probe::Abilities;
use crate::driver::{Driver as _, Launch, Launched, Notice, Session};
use crate::error::LaunchError;
use crate::payload::ENTRYPOINT;
use crate::plan::LaunchPlan;
use crate::runs::{self, Heard, Report, Run};

/// A variable that would put another policy into the place of the agent's.
const POLICY_VARIABLE: &str = "OPENSHELL_SANDBOX_POLICY";
/// How often the gateway is asked for a sandbox that is being made.
const ASK: Duration = Duration::from_secs(1);

/// How the program is to behave.
#[derive(Clone, Copy)]
struct Manner {
    detach: bool,
    ephemeral: bool,
}

/// Creates the sandbox of a launch.
pub(super) fn run(
    driver: &OpenShell,
    gateway: &str,
    abilities: Abilities,
    launch: &mut Launch<'_, '_>,
    image: &str,
) -> Result<Launched, LaunchError> {
    let plan = launch.plan;
    let state = &launch.machine.state_dir;
    let mut run = Run::new(plan, driver.name(), launch.machine.clock.now());
    // before the call: a sandbox that nobody has written down could not be stopped, and a name is one launch's alone
    runs::begin(state, &run).map_err(|error| launch.session.failed("writing the run down", error.to_string()))?;
    let mut manner = Manner { detach: !plan.attach && abilities.detach, ephemeral: !plan.keep };
    if !plan.attach && !manner.detach {
        return leave(driver, gateway, launch, image, run, manner);
    }
    let mut call = create(driver, gateway, plan, image, manner);
    call.pass = plan.attach;
    let mut answer = made(&call, plan, launch.session)?;
    if manner.detach && manner.ephemeral && answer.status == 2 && answer.says("--no-keep") {
        let text = "this program can't detach a sandbox that removes itself: it stays until `bastion runs rm`";
        launch.session.tell(Notice::Warning(text));
        manner.ephemeral = false;
        run.keep = true;
        call = create(driver, gateway, plan, image, manner);
        answer = made(&call, plan, launch.session)?;
    }
    if !plan.attach && answer.status != 0 {
        return Err(launch.session.failed(&call.shown(), answer.message(launch.session.masker)));
    }
    let exit = plan.attach.then(|| u8::try_from(answer.status).unwrap_or(1));
    run.exit = exit;
    if plan.attach {
        let said = Report::of_output(&answer.stdout, launch.machine.clock.now());
        run.last = Some(Heard { at: UtcMillis(launch.machine.clock.now()), gone: !plan.keep, record: said.record });
    }
    if let Some(status) = exit.filter(|status| *status != 0) {
        // whether the sandbox could not be made or its agent failed, the program alone knows
        let done = launch.session.so_far().join("; ");
        let text = format!("{} ended with status {status}; done before: {done}", call.shown());
        launch.session.tell(Notice::Warning(&text));
    }
    if let Err(error) = runs::save(state, &run) {
        launch.session.tell(Notice::Warning(&format!("the run's record is not up to date: {error}")));
    }
    Ok(Launched { run, exit })
}

fn create<'d>(driver: &'d OpenShell, gateway: &str, plan: &LaunchPlan, image: &str, manner: Manner) -> Call<'d> {
    let mut call = driver.call(gateway, &["sandbox", "create", "--name", &plan.sandbox, "--from", image]);
    for provider in &plan.providers {
        call.words.extend(["--provider".to_owned(), provider.name.clone()]);
    }
    call.words.extend(["--no-auto-providers", "--no-tty"].map(str::to_owned));
    if manner.detach {
        call.words.push("--detach".to_owned());
    }
    if manner.ephemeral {
        call.words.push("--no-keep".to_owned());
    }
    call.words.extend(["--", "env"].map(str::to_owned));
    call.words.extend(plan.env.iter().map(|variable| format!("{}={}", variable.name, variable.value)));
    call.words.push(ENTRYPOINT.to_owned());
    call.unset.push(POLICY_VARIABLE);
    call.limit = if plan.attach { None } else { Some(driver.limits.create) };
    call
}

/// Makes the call; where it is cut short the user learns that there may be a sandbox.
fn made(call: &Call<'_>, plan: &LaunchPlan, session: &mut Session<'_>) -> Result<Answer, LaunchError> {
    call.run(session).map_err(|error| with_remains(error, plan))
}

fn with_remains(error: LaunchError, plan: &LaunchPlan) -> LaunchError {
    let remains = format!("the sandbox {} may be there: bastion runs rm {}", plan.sandbox, plan.sandbox);
    match error {
        LaunchError::Interrupted { signal, during, mut done } => {
            if during.starts_with("during") {
                done.push(remains);
            }
            LaunchError::Interrupted { signal, during, done }
        }
        LaunchError::Step { step, what, mut done } => {
            done.push(remains);
            LaunchError::Step { step, what, done }
        }
        other => other,
    }
}

/// Starts a program that stays, and leaves it once the gateway has the sandbox.
fn leave(
    driver: &OpenShell,
    gateway: &str,
    launch: &mut Launch<'_, '_>,
    image: &str,
    run: Run,
    manner: Manner,
) -> Result<Launched, LaunchError> {
    let plan = launch.plan;
    let session = &mut *launch.session;
    let call = create(driver, gateway, plan, image, manner);
    let step = call.shown();
    session.check(&format!("before {step}"))?;
    session.tell(Notice::Step(&step));
    let path = runs::output_file(&launch.machine.state_dir, &run.name);
    let unusable =
        |error: std::io::Error| session.failed(&step, format!("its output file {}: {error}", path.display()));
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(unusable(error)),
        _ => {} // an earlier run of the same name
    }
    let log = OpenOptions::new().write(true).create_new(true).mode(PRIVATE_FILE).open(&path).map_err(unusable)?;
    let mut child = child::start(&call.job(), log)
        .map_err(|error| session.failed(&step, format!("it can't be started: {error}")))?;
    let look = driver.call(gateway, &["sandbox", "get", &plan.sandbox]);
    let started = Instant::now();
    let failure = loop {
        if let Some(status) = child.try_wait().map_err(LaunchError::file(&path))? {
            if status.success() {
                return Ok(Launched { run, exit: None }); // a short run, already over
            }
            let stderr = bastion_host::files::read_capped(&path, 1 << 20).unwrap_or_default();
            let answer = Answer { status: status.code().unwrap_or(1), stdout: vec![], stderr, truncated: false };
            return Err(session.failed(&step, answer.message(session.masker)));
        }
        match look.run(session) {
            Ok(answer) if answer.status == 0 => return Ok(Launched { run, exit: None }),
            Ok(_) => {}
            Err(LaunchError::Interrupted { signal, done, .. }) => {
                let during = format!("during {step}, which may have been done");
                break LaunchError::Interrupted { signal, during, done };
            }
            Err(error) => break error,
        }
        if started.elapsed() >= driver.limits.create {
            let seconds = driver.limits.create.as_secs_f32();
            break session.failed(&step, format!("the gateway did not have the sandbox within {seconds} s"));
        }
        session.stop.wait(ASK);
    };
    // nothing is waited for any more: what is half made is the user's to remove
    let _ = child::end(&mut child);
    Err(with_remains(failure, plan))
}
