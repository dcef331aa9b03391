//! Where is the harness on this machine, and what of it does the sandbox have to see?
//!
//! A program below `/usr` is there already. Any other is bound read-only at one place of the sandbox, so that no path
//! inside depends on where in a home folder it lies: a program alone, or the whole `node_modules` that an npm package lies in,
//! with `node`. A small script in the payload starts it.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::LaunchError;
use crate::paths::which;

/// Where harnesses are inside the sandbox.
pub(crate) const PLACE: &str = "/opt/bastion-harness";
const BIN: &str = "/opt/bastion-harness/bin";
/// Harnesses that are programs of their own, and how they are installed.
const PROGRAMS: &[(&str, &str)] =
    &[("codex", "@openai/codex"), ("claude", "@anthropic-ai/claude-code"), ("opencode", "opencode-ai")];

/// What a harness needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// What is bound: on this machine, and inside.
    pub(crate) binds: Vec<(PathBuf, PathBuf)>,
    /// The script that starts it, where it is not on the sandbox's `PATH` by itself.
    pub(crate) script: Option<String>,
}

/// Finds what `harness` needs: `given`, else the program of that name on `path`. Nothing, where the harness is none of
/// those that need a program.
///
/// # Errors
/// Where there is no such program, or it can't be told what it needs.
pub(crate) fn find(harness: &str, given: Option<&Path>, path: &str) -> Result<Found, LaunchError> {
    let package = PROGRAMS.iter().find(|(name, _)| *name == harness).map(|(_, package)| package);
    let program = match (given, package) {
        (Some(given), _) => given.to_owned(),
        (None, None) => return Ok(Found::default()),
        (None, Some(package)) => which(harness, path).ok_or_else(|| {
            let what =
                format!("is not on this machine; install it (npm install -g {package}) or name it with --harness-bin");
            LaunchError::refused(format!("the harness `{harness}`"), what)
        })?,
    };
    let refused = |why: String| LaunchError::refused(format!("the harness program {}", program.display()), why);
    let real = program.canonicalize().map_err(|error| refused(format!("can't be read: {error}")))?;
    let meta = fs::metadata(&real).map_err(|error| refused(format!("can't be read: {error}")))?;
    if !meta.is_file() || meta.permissions().mode() & 0o111 == 0 {
        return Err(refused("is no program".to_owned()));
    }
    needs(harness, &real, path).map_err(refused)
}

fn needs(harness: &str, real: &Path, path: &str) -> Result<Found, String> {
    let kind = Kind::of(real).map_err(|error| format!("can't be read: {error}"))?;
    let visible = real.starts_with("/usr");
    // npm packages call each other (a launcher in one, the program for this processor in another): all of them or none
    let modules = real.ancestors().filter(|above| above.file_name().is_some_and(|name| name == "node_modules")).last();
    let mut found = Found::default();
    let inside = match modules {
        _ if visible => real.to_owned(),
        Some(modules) => {
            let place = Path::new(PLACE).join("node_modules");
            found.binds.push((modules.to_owned(), place.clone()));
            place.join(real.strip_prefix(modules).unwrap_or(real))
        }
        None => {
            let place = Path::new(BIN).join(harness);
            found.binds.push((real.to_owned(), place.clone()));
            place
        }
    };
    let shell = |path: &Path| format!("'{}'", path.display().to_string().replace('\'', r"'\''"));
    let start = match kind {
        Kind::Binary => shell(&inside),
        Kind::Script(interpreter) if interpreter == "node" => {
            let node = which("node", path).and_then(|node| node.canonicalize().ok());
            let node = node.ok_or("is for Node, and there is no `node` on PATH")?;
            let place = if node.starts_with("/usr") {
                node
            } else {
                let place = Path::new(BIN).join("node");
                found.binds.push((node, place.clone()));
                place
            };
            format!("{} {}", shell(&place), shell(&inside))
        }
        Kind::Script(interpreter) if on_system(&interpreter) => shell(&inside),
        Kind::Script(interpreter) => {
            return Err(format!(
                "is a script for {interpreter}, which is not below /usr; give a program that stands alone"
            ));
        }
    };
    found.script = Some(format!("#!/bin/sh\nPATH={BIN}:$PATH\nexport PATH\nexec {start} \"$@\"\n"));
    Ok(found)
}

enum Kind {
    Binary,
    /// By its interpreter's path, or its name where `env` looks for it.
    Script(String),
}

impl Kind {
    fn of(program: &Path) -> std::io::Result<Self> {
        let mut start = Vec::new();
        fs::File::open(program)?.take(256).read_to_end(&mut start)?;
        let Some(line) = start.strip_prefix(b"#!") else { return Ok(Self::Binary) };
        let line = String::from_utf8_lossy(line.split(|byte| *byte == b'\n').next().unwrap_or_default()).into_owned();
        let mut words = line.split_whitespace();
        let interpreter = words.next().unwrap_or_default();
        let is_env = Path::new(interpreter).file_name().is_some_and(|name| name == "env");
        let named = words.find(|word| !word.starts_with('-') && !word.contains('='));
        Ok(Self::Script(match named {
            Some(name) if is_env => name.to_owned(),
            _ if interpreter.ends_with("/node") => "node".to_owned(),
            _ => interpreter.to_owned(),
        }))
    }
}

/// Whether the sandbox has this interpreter.
fn on_system(interpreter: &str) -> bool {
    let there = |path: &Path| path.canonicalize().is_ok_and(|real| real.starts_with("/usr"));
    if interpreter.starts_with('/') {
        return there(Path::new(interpreter));
    }
    ["/usr/bin", "/usr/local/bin"].iter().any(|dir| there(&Path::new(dir).join(interpreter)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_program_alone_is_bound_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        program(&root.join("bin/codex"), "\x7fELF");
        let found = find("codex", None, root.join("bin").to_str().unwrap()).unwrap();
        assert_eq!(found.binds, [(root.join("bin/codex"), PathBuf::from("/opt/bastion-harness/bin/codex"))]);
        assert!(found.script.unwrap().ends_with("exec '/opt/bastion-harness/bin/codex' \"$@\"\n"));
        assert_eq!(find("command", None, "/usr/bin").unwrap(), Found::default());
        let error = find("codex", None, "/nowhere").unwrap_err().to_string();
        assert!(error.contains("npm install -g @openai/codex"), "{error}");
    }

    #[test]
    fn a_node_program_comes_with_its_packages_and_node() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let modules = root.join("it's/node_modules");
        program(&modules.join("@openai/codex/bin/codex.js"), "#!/usr/bin/env -S node --foo\n");
        program(&root.join("bin/node"), "\x7fELF");
        std::os::unix::fs::symlink(modules.join("@openai/codex/bin/codex.js"), root.join("bin/codex")).unwrap();
        let found = find("codex", None, root.join("bin").to_str().unwrap()).unwrap();
        assert_eq!(
            found.binds,
            [
                (modules, PathBuf::from("/opt/bastion-harness/node_modules")),
                (root.join("bin/node"), PathBuf::from("/opt/bastion-harness/bin/node")),
            ]
        );
        let script = found.script.unwrap();
        let start = "exec '/opt/bastion-harness/bin/node' '/opt/bastion-harness/node_modules/@openai/codex/bin/codex.js' \"$@\"";
        assert!(script.contains(start), "{script}");
        assert!(
            find("codex", Some(&root.join("bin/codex")), "/nowhere").unwrap_err().to_string().contains("no `node`")
        );
    }

    #[test]
    fn what_can_not_be_told_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("codex");
        for (text, said) in
            [("#!/opt/special/python\n", "is a script for /opt/special"), ("#!/usr/bin/env nonesuch\n", "nonesuch")]
        {
            program(&file, text);
            assert!(find("codex", Some(&file), "").unwrap_err().to_string().contains(said));
        }
        program(&file, "#!/bin/sh\n");
        assert!(find("codex", Some(&file), "").is_ok());
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(find("codex", Some(&file), "").unwrap_err().to_string().contains("no program"));
    }
}
