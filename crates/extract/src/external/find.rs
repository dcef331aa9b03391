//! Which programs does this machine have?

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Tool;

/// Name of each program and the argument that makes it tell its version.
const TOOLS: [(&str, &str); 3] = [("pdftotext", "-v"), ("tesseract", "--version"), ("soffice", "--version")];

/// Looks for every program on the search path and asks it for its version. Starts each that is found.
pub fn probe_external() -> Vec<Tool> {
    TOOLS
        .iter()
        .map(|(name, ask)| {
            let path = on_search_path(name);
            let version = path.as_deref().and_then(|path| version(path, ask));
            Tool { name, path, version }
        })
        .collect()
}

fn on_search_path(name: &str) -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the search path is what 'found' means")]
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok() && file.is_file())
}

/// The first line that a program says, on whichever of its two pipes.
fn version(program: &Path, ask: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the pool's crate is one of the three places that start processes")]
    let mut command = Command::new(program);
    command.arg(ask).env_clear().env("LC_ALL", "C.UTF-8").current_dir("/");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().ok()?;
    let mut said = String::new();
    if let Some(pipe) = child.stdout.take() {
        let _ = pipe.take(4096).read_to_string(&mut said);
    }
    if let Some(pipe) = child.stderr.take() {
        let _ = pipe.take(4096).read_to_string(&mut said);
    }
    let _ = child.wait();
    crate::tidy::title(said.lines().find(|line| !line.trim().is_empty())?)
}
