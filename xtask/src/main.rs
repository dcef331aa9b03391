//! The project's own checks and benchmarks: `cargo xtask check`, `cargo xtask bench`.
#![allow(clippy::disallowed_methods)] // starts cargo and the peers of the benchmarks

mod bench;
mod check;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Checks and benchmarks of the workspace.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Everything that must hold: fmt, clippy, tests, docs, licences
    Check {
        /// Leave the tests out, where they ran already
        #[arg(long)]
        no_test: bool,
    },
    /// Speed, as ratios against named peers on the same work in the same run
    Bench(bench::Args),
}

fn main() -> Result<()> {
    match Args::parse().task {
        Task::Check { no_test } => check::check(no_test),
        Task::Bench(args) => bench::bench(&args),
    }
}
