//! One file per command, or per family of commands.

mod agents;
mod ca;
mod client;
mod doctor;
pub(crate) mod launch;
mod manifest;
mod models;
mod open;
mod reveal;
mod runs;
mod scan;
mod serve;
mod service;
mod sweep;
mod up;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use bastion_trust::manifest::Stage;

use crate::args::{Args, Command, command};

/// Runs what was typed.
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    match args.command {
        Command::Up(args) => up::up(&args),
        Command::Grant(args) => agents::grant(&args),
        Command::Revoke(args) => agents::revoke(&args),
        Command::Agents(args) => agents::agents(&args),
        Command::Search(args) => client::search(&args),
        Command::Read(args) => client::read(&args),
        Command::Cards(args) => client::cards(&args),
        Command::Status(args) => client::status(&args),
        Command::Health(args) => client::health(&args),
        Command::Launch(args) => launch::launch(&args),
        Command::Runs(args) => runs::runs(&args),
        Command::Init(args) => manifest::init(&args),
        Command::Sign(args) => manifest::sign(&args),
        Command::Payload(args) => manifest::payload(&args),
        Command::Verify(args) => manifest::verify(&args),
        Command::Ca(args) => ca::ca(args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Audit(args) => serve::audit(&args),
        Command::Service(args) => service::service(args),
        Command::Walk(args) => sweep::stage(Stage::Walk, &args),
        Command::Extract(args) => sweep::stage(Stage::Extract, &args),
        Command::Sanitize(args) => sweep::stage(Stage::Sanitize, &args),
        Command::Chunk(args) => sweep::stage(Stage::Chunk, &args),
        Command::Embed(args) => sweep::stage(Stage::Embed, &args),
        Command::Catalog(args) => sweep::stage(Stage::Catalog, &args),
        Command::Seal(args) => sweep::stage(Stage::Seal, &args),
        Command::Scan(args) => scan::scan(&args),
        Command::Reveal(args) => reveal::reveal(&args),
        Command::Open(args) => open::open(&args),
        Command::Models(args) => models::models(args),
        Command::Eval(args) => models::eval(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(), "bastion", &mut script);
            std::io::stdout().write_all(&script)?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
