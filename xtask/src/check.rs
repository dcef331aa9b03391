//! `cargo xtask check`: the same as CI.

use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs every check and stops at the first that fails.
pub(crate) fn check(no_test: bool) -> Result<()> {
    cargo(&["fmt", "--all", "--check"], &[])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[])?;
    if !no_test {
        cargo(&["test", "--workspace"], &[])?;
    }
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let fuzz = [("RUSTFLAGS", "--cfg fuzzing"), ("CARGO_TARGET_DIR", &format!("{target}/fuzz"))];
    cargo(&["check", "--quiet", "--manifest-path", "fuzz/Cargo.toml"], &fuzz)?;
    cargo(&["doc", "--workspace", "--no-deps", "--document-private-items"], &[("RUSTDOCFLAGS", "-D warnings")])?;
    // No advisories: the database is fetched from the network, and a check must give the same answer twice.
    cargo(&["deny", "check", "licenses", "bans", "sources"], &[])
}

fn cargo(args: &[&str], env: &[(&str, &str)]) -> Result<()> {
    println!("$ cargo {}", args.join(" "));
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status =
        Command::new(program).args(args).envs(env.iter().copied()).status().context("cargo can't be started")?;
    if !status.success() {
        bail!("cargo {} failed", args.join(" "));
    }
    Ok(())
}
