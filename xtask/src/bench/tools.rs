//! Starting what is measured.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// A program or example of the workspace, built for release. All are built as one, so that each crate is built once and not
/// once for each choice of features.
pub(crate) fn release(below: &str, name: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = ["build", "--release", "--quiet", "--workspace", "--bins", "--examples"];
    if !Command::new(&cargo).args(build).status()?.success() {
        bail!("the workspace does not build");
    }
    let metadata =
        Command::new(&cargo).args(["metadata", "--format-version", "1", "--no-deps", "--offline"]).output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(Path::new(target).join("release").join(below).join(name))
}

/// Whether a program is on the search path.
pub(crate) fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The median wall time of `runs` runs of a command whose output is thrown away.
pub(crate) fn median(runs: usize, mut command: impl FnMut() -> Command) -> Result<Duration> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let mut command = command();
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
        let start = Instant::now();
        let status = command.status().with_context(|| format!("{command:?}"))?;
        times.push(start.elapsed());
        if !status.success() {
            bail!("{command:?} failed");
        }
    }
    times.sort();
    Ok(times[runs / 2])
}

/// Processor seconds (user and system, children included) of a shell command.
pub(crate) fn cpu_seconds(script: &str) -> Result<f64> {
    let output = Command::new("bash").args(["-c", &format!("( {script} ) >/dev/null 2>&1; times")]).output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let children = text.lines().nth(1).context("bash told no times")?;
    children.split_whitespace().map(seconds).sum()
}

/// Bash's `1m2.345s` in seconds.
fn seconds(text: &str) -> Result<f64> {
    let (minutes, seconds) = text.trim_end_matches('s').split_once('m').with_context(|| format!("no time: {text}"))?;
    Ok(minutes.parse::<f64>()? * 60.0 + seconds.parse::<f64>()?)
}

/// A machine with nothing: its own state, and a folder's agent made and swept by `bastion up --once`.
pub(crate) struct Bastion<'a> {
    pub(crate) program: &'a Path,
    pub(crate) home: &'a Path,
}

impl Bastion<'_> {
    /// A command of the program on this machine.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.program);
        command.args(args).env("BASTION_STATE_DIR", self.home.join("state")).env("FREEAGENT_NO_EXTERNAL", "1");
        command
    }

    /// Runs it to a good end.
    pub(crate) fn run(&self, args: &[&str]) -> Result<String> {
        let output = self.command(args).output()?;
        if !output.status.success() {
            bail!("bastion {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
