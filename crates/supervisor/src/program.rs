//! The arguments, and which exit status each way out has.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use bastion_cage::sandbox;
use bastion_supervisor::console::Console;
use bastion_supervisor::launch::{self, IN_SESSION};
use bastion_supervisor::settings::{self, Settings};
use bastion_supervisor::signals::Signals;
use bastion_supervisor::{PREFIX, report, subagent, supervise};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

const USAGE: &str = "\
usage: bastion-supervisor                  run the agent that the environment names
       bastion-supervisor subagent ID      run a subagent, its task on stdin
       bastion-supervisor report [--log]   print status, history and the output's end as JSON
       bastion-supervisor --version
";

/// Does what the arguments ask for.
pub(crate) fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or("\0")).collect();
    match words[..] {
        [] => start(supervise::supervise),
        ["subagent", id] => {
            start(|settings, console, signals, env| subagent::subagent(id, settings, console, signals, env))
        }
        ["report"] => print(&format!("{}\n", report::report(&state_dir(), false))),
        ["report", "--log"] => print(&format!("{}\n", report::report(&state_dir(), true))),
        // Both are called by the launcher of a local sandbox and not by people: `bastion_cage::sandbox`.
        [sandbox::STAGE, ..] => sandbox::stage(),
        [sandbox::INIT_ARGUMENT] => sandbox::init(),
        [IN_SESSION, ..] => {
            let error = launch::in_session(args.into_iter().skip(1));
            fail(&format!("{PREFIX}cannot start harness: {error}"), launch::exit_of(&error))
        }
        ["--version" | "-V"] => print(concat!("bastion-supervisor ", env!("CARGO_PKG_VERSION"), "\n")),
        ["--help" | "-h"] => print(USAGE),
        _ => fail(USAGE.trim_end(), 2),
    }
}

/// Judges the environment, then runs the agent or a subagent.
fn start(run: impl FnOnce(&Settings, &mut Console, &Signals, &dyn Fn(&str) -> Option<OsString>) -> u8) -> ExitCode {
    let env = |name: &str| std::env::var_os(name);
    let mut console = Console::new();
    // Neither core dumps nor debuggers, and no look into our memory by what we start.
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        return fail(&format!("{PREFIX}cannot forbid debugging: {error}"), 1);
    }
    let settings = match settings::resolve(&env) {
        Ok(settings) => settings,
        Err(error) => return fail(&error.to_string(), 2),
    };
    match Signals::listen() {
        Ok(signals) => ExitCode::from(run(&settings, &mut console, &signals, &env)),
        Err(error) => fail(&format!("{PREFIX}cannot listen to signals: {error}"), 1),
    }
}

fn state_dir() -> std::path::PathBuf {
    settings::state_dir(&|name| std::env::var_os(name))
}

fn print(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn fail(line: &str, code: i32) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{line}");
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
