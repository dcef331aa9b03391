//! The supervisor's variables (supervisor.md): judged here, before anything is done, and passed on.

use crate::error::LaunchError;
use crate::options::Machine;

/// Numbers that only the environment sets; the supervisor has their defaults.
const PASSED_ON: &[(&str, u64)] = &[
    ("OPENSHELL_AGENT_HEARTBEAT_SECONDS", 0),
    ("OPENSHELL_AGENT_STATE_HISTORY_LIMIT", 1),
    ("OPENSHELL_AGENT_MAX_NOTES_LENGTH", 1),
];
const STATE_DIR: &str = "OPENSHELL_AGENT_STATE_DIR";

/// The number that the environment gives `name`, at least `least`, if it gives one.
pub(crate) fn number(machine: &Machine, name: &str, least: u64) -> Result<Option<u64>, LaunchError> {
    let Some(text) = machine.var(name) else { return Ok(None) };
    let number: u64 = match text.parse() {
        Ok(number) if text.bytes().all(|b| b.is_ascii_digit()) => number,
        _ if text.strip_prefix('-').is_some_and(|rest| rest.parse::<u64>().is_ok()) && least > 0 => {
            return Err(LaunchError::usage(name, "must be greater than zero"));
        }
        _ => return Err(LaunchError::usage(name, "must be an integer")),
    };
    if number < least {
        return Err(LaunchError::usage(name, "must be greater than zero"));
    }
    Ok(Some(number))
}

/// Whether the environment switches `name` on.
pub(crate) fn switch(machine: &Machine, name: &str) -> Result<bool, LaunchError> {
    match machine.var(name) {
        None | Some("0" | "false" | "no") => Ok(false),
        Some("1" | "true" | "yes") => Ok(true),
        Some(_) => Err(LaunchError::usage(name, "must be 1 or 0")),
    }
}

/// What the environment sets for the supervisor and nothing else does.
pub(crate) fn passed_on(machine: &Machine) -> Result<Vec<(String, String)>, LaunchError> {
    let mut passed = Vec::new();
    for (name, least) in PASSED_ON {
        if let Some(value) = number(machine, name, *least)? {
            passed.push(((*name).to_owned(), value.to_string()));
        }
    }
    if let Some(dir) = machine.var(STATE_DIR) {
        if !dir.starts_with('/') || dir.chars().any(char::is_control) {
            return Err(LaunchError::usage(STATE_DIR, "must be an absolute path inside the sandbox"));
        }
        passed.push((STATE_DIR.to_owned(), dir.to_owned()));
    }
    Ok(passed)
}
