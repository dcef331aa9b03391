//! `bastion sweep` and the single stages.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use bastion_host::clock::{Clock, SystemClock};
use bastion_host::lock::LockError;
use bastion_host::signals::{Stop, WakingClock};
use bastion_stages::Pipeline;
use bastion_sweep::{Ended, Event, Sweep, SweepSettings, exit_status};
use bastion_trust::manifest::Stage;
use bastion_trust::{Admitted, BUILTIN_EXCLUDES, Standing};

use crate::args;
use crate::registry;
use crate::settings;
use crate::terminal::{Bars, Style, Teller, print_line};
use crate::words::Exit;

/// `bastion sweep MANIFEST`.
pub(crate) fn sweep(args: &args::Sweep) -> Result<ExitCode> {
    run(&args.manifest, &args.run, args.once, None)
}

/// `bastion walk MANIFEST` and its like.
pub(crate) fn stage(stage: Stage, args: &args::Stage) -> Result<ExitCode> {
    if args.list_excludes {
        BUILTIN_EXCLUDES.iter().for_each(|glob| print_line(glob));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(manifest) = &args.manifest else { return Err(Exit::Usage("name the manifest".into()).into()) };
    run(manifest, &args.run, true, Some(stage))
}

fn run(manifest: &Path, args: &args::Run, once: bool, only: Option<Stage>) -> Result<ExitCode> {
    let style = Style::from(&args.output);
    let wanted = SweepSettings {
        manifest: registry::manifest_of(manifest),
        out: args.out.clone(),
        once,
        allow_unsigned: args.allow_unsigned,
    };
    let runner = settings::stages(args.accept_empty, args.uncaged)?;
    let gate = settings::gate(args.ca.as_deref())?;
    let stop = stop_on_signals()?;
    let clock = WakingClock::new(&stop);
    let sweep = Sweep { gate: &gate, clock: &clock, stop: &stop, settings: &wanted };
    let progress = Arc::new(Bars::new(style));
    let mut pipeline = Pipeline::new(runner, progress, Arc::new(SystemClock) as Arc<dyn Clock>);
    let mut teller = Teller::new(style, None);
    let mut warned = false;
    let mut events = |event: &Event<'_>| {
        if let Event::Started { job } = event
            && !std::mem::replace(&mut warned, true)
        {
            warn(job.admitted);
        }
        teller.tell(event);
    };
    let ended = match only {
        Some(stage) => sweep.run_single_stage(stage, &mut pipeline, &mut events),
        None => sweep.run(&mut pipeline, &mut events),
    };
    finish(&wanted.manifest, ended)
}

/// The exit of a sweep; what failed was told by the teller already.
fn finish(manifest: &Path, ended: Result<Ended, LockError>) -> Result<ExitCode> {
    let status = exit_status(&ended);
    match ended {
        Ok(Ended::Refused { code, detail }) => Err(Exit::refused(manifest, code, &detail).into()),
        Err(held @ LockError::Held { .. }) => Err(Exit::Held(held.to_string()).into()),
        Err(error) => Err(error.into()),
        Ok(_) if status != 0 => Err(Exit::Silent(status).into()),
        Ok(_) => Ok(ExitCode::SUCCESS),
    }
}

/// What an owner should know of a manifest that was let pass.
pub(crate) fn warn(admitted: &Admitted) {
    match admitted.standing() {
        Standing::Bypassed { reason } => eprintln!("bastion: WARNING: FOR DEVELOPMENT ONLY: {reason}"),
        Standing::Signed { serial: None, .. } => {
            eprintln!(
                "bastion: the manifest has no `serial`: an older signed copy of it could not be told from this one"
            );
        }
        Standing::Signed { .. } => {}
    }
}

/// SIGINT and SIGTERM end the loop after the run; the terminal is told so.
pub(crate) fn stop_on_signals() -> Result<Stop> {
    Ok(Stop::on_signals(|signal, count| {
        if count == 1 {
            eprintln!("bastion: {}: stopping after what is being done now; nothing is lost", signal.name());
        } else {
            eprintln!("bastion: {}: still finishing what is being done", signal.name());
        }
    })?)
}
