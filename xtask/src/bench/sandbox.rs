//! A sandbox's start against a plain program, bare bubblewrap, and Anthropic's `srt`: each runs `true` to its end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::tools::{is_there, median, release};

/// An account without rights: `nobody` of Debian.
const NOBODY: &str = "65534";

/// The static program that the build put into `bastion`: the newest one, of whichever C library it was built for.
fn built_supervisor(program: &Path) -> Result<PathBuf> {
    let target = program.ancestors().nth(2).context("bastion lies in no target folder")?;
    let found = std::fs::read_dir(target.join("supervisor"))?.flatten();
    let found = found.map(|entry| entry.path().join("supervisor/bastion-supervisor")).filter(|path| path.is_file());
    found.max_by_key(|path| path.metadata().and_then(|meta| meta.modified()).ok()).context("there is no supervisor")
}

/// The median start, as root where this is root, and as an ordinary user.
pub(crate) fn start(program: &Path, runs: usize) -> Result<()> {
    if !is_there("bwrap") {
        println!("sandbox: left out, bwrap is not there");
        return Ok(());
    }
    let example = release("examples", "sandbox_start")?;
    // where an ordinary user can reach them
    let dir = tempfile::Builder::new().permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755)).tempdir()?;
    let ours = dir.path().join("sandbox_start");
    std::fs::copy(&example, &ours)?;
    let supervisor = dir.path().join("bastion-supervisor");
    std::fs::copy(built_supervisor(program)?, &supervisor)?;
    let root = Command::new("id").arg("-u").output()?.stdout == b"0\n";
    let users: &[(&str, &[&str])] = if root {
        &[("root", &[]), ("user", &["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])]
    } else {
        &[("user", &[])]
    };
    for (user, wrapper) in users {
        let command = |words: &[&str]| {
            let words: Vec<&str> = wrapper.iter().chain(words).copied().collect();
            let mut command = Command::new(words[0]);
            command.args(&words[1..]).env("HOME", dir.path()).current_dir(dir.path());
            command
        };
        let setpriv = if wrapper.is_empty() { Duration::ZERO } else { median(runs, || command(&["true"]))? };
        let timed = |words: &[&str]| median(runs, || command(words)).map(|time| time.saturating_sub(setpriv));
        let plain = if wrapper.is_empty() { timed(&["true"])? } else { Duration::ZERO };
        let bare = timed(&["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"])?;
        let output =
            command(&[&ours.display().to_string(), &supervisor.display().to_string(), &runs.to_string()]).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let own: f64 =
            text.trim().parse().with_context(|| format!("{text}{}", String::from_utf8_lossy(&output.stderr)))?;
        let bare_ms = bare.as_secs_f64() * 1e3;
        println!(
            "sandbox, as {user}: {own:.1} ms (aim 60); plain {:.1} ms, bwrap --unshare-all {bare_ms:.1} ms: {:.1}x (aim 4)",
            plain.as_secs_f64() * 1e3,
            own / bare_ms
        );
        match std::env::var("BASTION_BENCH_SRT") {
            Ok(srt) => {
                let srt = timed(&[&srt, "true"])?.as_secs_f64() * 1e3;
                println!("sandbox, as {user}: srt {srt:.1} ms: {:.2}x of it", own / srt);
            }
            Err(_) => println!("sandbox: srt left out, name its program in BASTION_BENCH_SRT"),
        }
    }
    Ok(())
}
