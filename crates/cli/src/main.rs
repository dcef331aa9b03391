//! `bastion`: arguments, wiring, words and exit codes. Everything it does is done by the other crates.
#![allow(clippy::disallowed_methods)] // this crate and `host` are where the process meets the machine
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod args;
mod commands;
mod registry;
mod settings;
mod terminal;
mod words;

use std::process::ExitCode;

fn main() -> ExitCode {
    // The reader of untrusted files cages itself before anything else happens in the process.
    if std::env::args_os().nth(1).is_some_and(|arg| arg == settings::WORKER_ARG) {
        return bastion_extract::worker_main();
    }
    // The launcher of a detached run gets its job through a pipe and has nobody to talk to.
    if std::env::args_os().nth(1).is_some_and(|arg| arg == bastion_launch::local::LAUNCHER) {
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        return commands::launch::launcher();
    }
    // A panic's own message can quote the text at hand, which may be private: only the place is told.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        eprintln!("bastion: a fault of the program at {place}; please report it");
    }));
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    words::exit_code(commands::run(args::parse()))
}
