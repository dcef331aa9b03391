//! `bastion launch`: an agent's folder becomes a supervised run in a sandbox.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use bastion_host::child::Stream;
use bastion_host::clock::SystemClock;
use bastion_host::signals::Stop;
use bastion_launch::{
    Answer, Driver, LaunchError, LaunchOptions, Launched, Machine, Notice, OpenShell, Question, Supervisor, Target,
    local::{self, Local},
    prepare,
};

use crate::args;
use crate::settings;
use crate::terminal::{print_line, printable_text, styled};

/// The sandbox's main process, as the build made it (`build.rs`).
static SUPERVISOR: &[u8] = include_bytes!(env!("BASTION_SUPERVISOR"));

/// `bastion launch`.
pub(crate) fn launch(args: &args::Launch) -> Result<ExitCode> {
    let machine = machine()?;
    let prepared = prepare(&options(args), &machine)?;
    if args.dry_run {
        if args.json {
            print_line(&prepared.plan().json().to_string());
        } else {
            std::io::stdout().write_all(prepared.plan().to_string().as_bytes())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    for warning in &prepared.plan().warnings {
        warn(warning);
    }
    let driver = driver(&prepared.plan().target, &machine)?;
    let cleared = prepared.clear(&mut ask)?;
    let stop = Stop::on_signals(|signal, _| eprintln!("bastion: {}: stopping", signal.name()))?;
    let Launched { run, exit } = cleared.launch(&*driver, &stop, &mut tell)?;
    if args.json {
        print_line(&serde_json::to_string(&run)?);
    } else {
        eprintln!("bastion: {} {}", styled("32", "run"), run.name);
        run.commands().iter().for_each(|command| eprintln!("  {command}"));
    }
    Ok(exit.map_or(ExitCode::SUCCESS, ExitCode::from))
}

fn options(args: &args::Launch) -> LaunchOptions {
    LaunchOptions {
        agent: args.agent.clone(),
        prompt: args.prompt.join(" "),
        gateway: args.gateway.clone(),
        name: args.name.clone(),
        from: args.from.clone(),
        harness: args.harness.clone(),
        harness_bin: args.harness_bin.clone(),
        harness_dir: args.harness_dir.clone(),
        once: args.once,
        watch: args.watch,
        poll_interval: args.poll_interval,
        reset_refresh: args.reset_refresh,
        keep: args.keep,
        providers: args.providers.clone(),
        repo: args.repo.clone(),
        attach: args.attach,
        detach: args.detach,
        binds: args.binds.clone(),
        env: args.env.clone(),
        trust: args.trust,
        require_signature: args.require_signature,
    }
}

/// This machine, as far as launches and runs look at it.
pub(crate) fn machine() -> Result<Machine> {
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let config_dir = match std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute()) {
        Some(dir) => dir,
        None => home.as_ref().context("HOME is not set")?.join(".config"),
    };
    // what is not UTF-8 can be no setting of ours, and no credential's source
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    Ok(Machine {
        env,
        home,
        cwd: std::env::current_dir().context("the current folder")?,
        config_dir: config_dir.join("bastion"),
        state_dir: settings::state_dir()?,
        temp_dir: std::env::temp_dir(),
        supervisor: Supervisor::Bytes(SUPERVISOR),
        gate: Arc::new(settings::gate(None)?),
        clock: Arc::new(SystemClock),
    })
}

/// What runs the sandbox of this target.
pub(crate) fn driver(target: &Target, machine: &Machine) -> Result<Box<dyn Driver>, LaunchError> {
    match target {
        Target::Gateway(_) => Ok(Box::new(OpenShell::new(machine)?)),
        Target::Local => Ok(Box::new(Local::new(machine, program()?))),
    }
}

/// This program's own file, as the kernel has it: also where a newer one was installed over it meanwhile.
fn program() -> Result<PathBuf, LaunchError> {
    let own = PathBuf::from("/proc/self/exe");
    match own.symlink_metadata() {
        Ok(_) => Ok(own),
        Err(source) => Err(LaunchError::File { path: own, source }),
    }
}

/// The launcher of a detached run: this program again, started by the one that the user called.
pub(crate) fn launcher() -> ExitCode {
    let Ok(stop) = Stop::on_signals(|_, _| {}) else { return ExitCode::FAILURE };
    ExitCode::from(local::launcher(&stop, Arc::new(SystemClock)))
}

fn ask(question: &Question) -> Answer {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        eprintln!("{question}");
        return Answer::NoTerminal;
    }
    eprint!("{question}\nLaunch it, and this version from now on? [y/N] ");
    let _ = std::io::stderr().flush();
    let mut line = String::new();
    match std::io::stdin().read_line(&mut line) {
        Ok(_) if matches!(line.trim(), "y" | "Y" | "yes") => Answer::Yes,
        _ => Answer::No,
    }
}

fn tell(notice: Notice<'_>) {
    match notice {
        Notice::Step(step) => eprintln!("bastion: {}", printable_text(step)),
        Notice::Warning(text) => warn(text),
        // a reader that has seen enough does not end the run
        Notice::Output(Stream::Stdout, text) => {
            let mut stdout = std::io::stdout().lock();
            let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        }
        Notice::Output(Stream::Stderr, text) => {
            let _ = std::io::stderr().write_all(text.as_bytes());
        }
    }
}

fn warn(text: &str) {
    eprintln!("bastion: {} {}", styled("33", "warning:"), printable_text(text));
}
