//! How is each harness run headless, and where does it put its final message?
//!
//! An open set: an adapter is one file here and one line in `BUILT_IN`, or a folder in the payload that needs
//! neither. All pass one contract suite (`tests/it/contract.rs`): the prompt arrives whole, a result in the final
//! message counts, one in the middle of a cycle does not, a failing harness's exit status is kept, a subagent runs.

mod claude;
mod codex;
mod command;
mod credential;
mod opencode;
mod script;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::console::Console;
use crate::launch::Launch;
use crate::payload::Payload;
use crate::runner::{self, Plan};
use crate::signals::Signals;
use crate::tail::Tail;

/// How long a harness may take to say which flags it has.
const PROBE: Duration = Duration::from_secs(30);

/// One bounded execution.
#[derive(Debug)]
pub struct Task<'a> {
    /// The whole prompt.
    pub prompt: &'a Path,
    /// A folder that only this execution uses, and that is gone after it.
    pub scratch: &'a Path,
    /// For a subagent: its id, and the task without its definition.
    pub subagent: Option<(&'a str, &'a Path)>,
}

/// Why an adapter can't be used; told before the first cycle.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Neither built in nor in the payload.
    #[error("unknown harness {0}: neither built in ({known}) nor in the payload's runtime/harnesses", known = names())]
    Unknown(String),
    /// What the launcher resolved can't be read.
    #[error("cannot read the payload's agent.json: {0}")]
    Agent(#[from] io::Error),
    /// The `command` harness was not told what to run.
    #[error("harness command: harness.supported.command.argv in agent.json must be a list of words")]
    NoArgv,
}

/// A harness.
pub trait Adapter {
    /// What can be refused before the first cycle.
    fn check(&self) -> Result<(), Unusable> {
        Ok(())
    }

    /// How to run `task`. May write what the harness needs and ask it for its flags.
    fn launch(&mut self, task: &Task<'_>, tools: &mut Tools<'_>) -> io::Result<Launch>;

    /// The final message: the only text in which a result is looked for.
    fn message(&self, task: &Task<'_>, stdout: &mut Tail) -> Vec<u8> {
        let _ = task;
        stdout.lines().to_vec()
    }

    /// Whether in once mode the exit status alone is a result.
    fn exit_is_result(&self) -> bool {
        false
    }
}

type Make = fn(&Payload) -> Box<dyn Adapter>;

/// The adapters that need nothing in the payload.
const BUILT_IN: [(&str, Make); 4] = [
    ("claude", claude::adapter),
    ("codex", codex::adapter),
    ("command", command::adapter),
    ("opencode", opencode::adapter),
];

fn names() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

/// The adapter called `name`; one in the payload wins over one of ours.
pub fn find(name: &str, payload: &Payload) -> Result<Box<dyn Adapter>, Unusable> {
    payload.agent()?;
    let adapter = match payload.harness_file(name, "exec.sh") {
        Some(exec) => script::adapter(exec, payload.harness_file(name, "subagent.sh")),
        None => {
            let made = BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, make)| make(payload));
            made.ok_or_else(|| Unusable::Unknown(name.escape_debug().to_string()))?
        }
    };
    adapter.check()?;
    Ok(adapter)
}

/// What an adapter may use of the world.
pub struct Tools<'a> {
    /// Where output goes.
    pub console: &'a mut Console,
    /// What interrupts a probe.
    pub signals: &'a Signals,
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<OsString>,
    /// The `PATH` to find the harness by, where it is not that of the environment.
    pub path: Option<OsString>,
}

impl Tools<'_> {
    /// A variable that holds text.
    pub fn text(&self, name: &str) -> Option<String> {
        (self.env)(name)?.into_string().ok().filter(|value| !value.is_empty())
    }

    /// The folder that a program keeps its settings in: the variable, else `under` in the home folder.
    pub fn home(&self, variable: &str, under: &str) -> PathBuf {
        let named = (self.env)(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        named.unwrap_or_else(|| {
            let home = (self.env)("HOME").filter(|value| !value.is_empty());
            home.map_or_else(|| "/sandbox".into(), PathBuf::from).join(under)
        })
    }

    /// What a program says about its flags. `None` where it does not answer.
    pub fn help(&mut self, program: &OsStr, args: &[&str]) -> Option<Help> {
        let plan = Plan { time: Some(PROBE), silence: None, grace: PROBE, heartbeat: None, pass: [false; 2] };
        let mut launch = Launch::new(program, args);
        launch.env.extend(self.path.clone().map(|path| ("PATH".into(), path)));
        let mut ran = runner::run(&launch, &plan, self.console, self.signals, &|_| String::new()).ok()?;
        let text = String::from_utf8_lossy(ran.stdout.all()).into_owned() + &String::from_utf8_lossy(ran.stderr.all());
        (ran.exit == 0 && !text.trim().is_empty()).then_some(Help(text))
    }
}

/// A program's help text.
#[derive(Debug, Clone)]
pub struct Help(String);

impl Help {
    /// Whether it names this flag.
    pub fn has(&self, flag: &str) -> bool {
        self.0.match_indices(flag).any(|(at, _)| {
            let edge = |c: Option<char>| !c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '-');
            edge(self.0[..at].chars().next_back()) && edge(self.0[at + flag.len()..].chars().next())
        })
    }
}

/// Whether a flag may be used: one that the help names, or any where there is no help to ask (a program that is
/// missing or broken fails by itself, and says why).
fn allowed(help: Option<&Help>, flag: &str) -> bool {
    help.is_none_or(|help| help.has(flag))
}

/// A setting of the harness that is text.
fn setting(payload: &Payload, harness: &str, key: &str) -> Option<String> {
    let settings = payload.harness_settings(harness);
    settings.get(key).and_then(Value::as_str).filter(|value| !value.is_empty()).map(str::to_owned)
}

/// The JSON objects among the lines, the last one first.
fn events_backwards(lines: &[u8]) -> impl Iterator<Item = Value> + '_ {
    let lines = lines.split(|byte| *byte == b'\n').rev().filter(|line| line.starts_with(b"{"));
    lines.filter_map(|line| serde_json::from_slice(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_a_whole_word_of_the_help() {
        let help = Help("  --json-schema FILE\n  -o, --output-last-message <FILE>".into());
        assert!(help.has("--output-last-message") && help.has("-o") && help.has("--json-schema"));
        assert!(!help.has("--json") && !help.has("--output") && !help.has("--schema"));
        assert!(allowed(None, "--json"));
    }
}
