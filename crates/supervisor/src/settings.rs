//! What does the environment ask for? All of it is judged before the first cycle.
//!
//! An empty variable counts as unset. Numbers are ASCII digits; a sign, a blank or a unit makes one no integer.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Where the payload lies unless `OPENSHELL_AGENT_PAYLOAD_DIR` says otherwise.
pub const PAYLOAD_DIR: &str = "/etc/openshell/agent-payload";
/// Where the state lies unless `OPENSHELL_AGENT_STATE_DIR` says otherwise.
pub const STATE_DIR: &str = "/sandbox/.openshell-agent";
/// No limit is longer than this (ten years), so that adding one to a clock can't overflow.
const LONGEST: u64 = 10 * 365 * 86_400;

/// One cycle, or cycles until the agent says that it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One cycle.
    Once,
    /// Cycle, sleep, cycle …
    Watch,
}

impl Mode {
    /// Its name in the environment, in messages and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Watch => "watch",
        }
    }
}

/// The environment, resolved.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The harness's name.
    pub harness: String,
    /// The agent's id, for records.
    pub agent_id: String,
    /// Once or watch.
    pub mode: Mode,
    /// Seconds between cycles where the agent does not say.
    pub poll_interval: u64,
    /// Every so many failures the log line says `still retrying`; 0 = never.
    pub max_transient_failures: u64,
    /// A watch ends after so many cycles; 0 = no limit.
    pub max_cycles: u64,
    /// How often a line says that all is well.
    pub heartbeat: Option<Duration>,
    /// How long a cycle may take.
    pub cycle_timeout: Option<Duration>,
    /// How long a harness may print nothing.
    pub silence_timeout: Option<Duration>,
    /// Where status, history and output are kept.
    pub state_dir: PathBuf,
    /// How many transitions the history keeps.
    pub history_limit: usize,
    /// How many characters of notes a record keeps.
    pub notes_limit: usize,
    /// The payload's folder.
    pub payload_dir: PathBuf,
    /// Where short-lived files go.
    pub tmp_dir: PathBuf,
}

/// A value that can't be obeyed. The supervisor exits 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Not only digits.
    #[error("{0} must be an integer")]
    NotAnInteger(&'static str),
    /// Zero where that makes no sense.
    #[error("{0} must be greater than zero")]
    NotPositive(&'static str),
    /// Neither once nor watch.
    #[error("OPENSHELL_AGENT_RUN_MODE must be once or watch")]
    Mode,
    /// No harness is named, or its name is not text.
    #[error("OPENSHELL_AGENT_HARNESS is required")]
    NoHarness,
}

/// Judges every variable; `get` answers what one holds.
pub fn resolve(get: &dyn Fn(&str) -> Option<OsString>) -> Result<Settings, SettingsError> {
    let get = |name: &str| get(name).filter(|value| !value.is_empty());
    let text = |name: &str| get(name).and_then(|value| value.into_string().ok());
    let integer = |name: &'static str, default: u64| match get(name) {
        None => Ok(default),
        Some(value) => digits(value.to_str()).ok_or(SettingsError::NotAnInteger(name)),
    };
    let positive = |name: &'static str, default: u64| match integer(name, default)? {
        0 => Err(SettingsError::NotPositive(name)),
        value => Ok(value),
    };
    let limit = |name, default| {
        integer(name, default).map(|seconds| (seconds > 0).then(|| Duration::from_secs(seconds.min(LONGEST))))
    };
    let size = |name, default| positive(name, default).map(|value| usize::try_from(value).unwrap_or(usize::MAX));
    let path = |name: &str, default: &str| get(name).map_or_else(|| default.into(), PathBuf::from);

    Ok(Settings {
        harness: text("OPENSHELL_AGENT_HARNESS").ok_or(SettingsError::NoHarness)?,
        agent_id: get("OPENSHELL_AGENT_ID").map_or("unknown".into(), |id| id.to_string_lossy().into_owned()),
        mode: match get("OPENSHELL_AGENT_RUN_MODE").as_ref().map(|mode| mode.to_str()) {
            None | Some(Some("once")) => Mode::Once,
            Some(Some("watch")) => Mode::Watch,
            Some(_) => return Err(SettingsError::Mode),
        },
        poll_interval: positive("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", 900)?,
        max_transient_failures: integer("OPENSHELL_AGENT_MAX_TRANSIENT_FAILURES", 5)?,
        max_cycles: integer("OPENSHELL_AGENT_MAX_CYCLES", 0)?,
        heartbeat: limit("OPENSHELL_AGENT_HEARTBEAT_SECONDS", 60)?,
        cycle_timeout: limit("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", 3600)?,
        silence_timeout: limit("OPENSHELL_AGENT_SILENCE_TIMEOUT_SECONDS", 0)?,
        state_dir: path("OPENSHELL_AGENT_STATE_DIR", STATE_DIR),
        history_limit: size("OPENSHELL_AGENT_STATE_HISTORY_LIMIT", 100)?,
        notes_limit: size("OPENSHELL_AGENT_MAX_NOTES_LENGTH", 2048)?,
        payload_dir: path("OPENSHELL_AGENT_PAYLOAD_DIR", PAYLOAD_DIR),
        tmp_dir: path("TMPDIR", "/tmp"),
    })
}

/// The state folder alone, for a report: it needs no harness.
pub fn state_dir(get: &dyn Fn(&str) -> Option<OsString>) -> PathBuf {
    get("OPENSHELL_AGENT_STATE_DIR").filter(|value| !value.is_empty()).map_or_else(|| STATE_DIR.into(), PathBuf::from)
}

/// The number that only digits make; one that is too large counts as the largest.
fn digits(text: Option<&str>) -> Option<u64> {
    let text = text.filter(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Result<Settings, SettingsError> {
        resolve(&|name| {
            let given = pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| OsString::from(value));
            given.or_else(|| (name == "OPENSHELL_AGENT_HARNESS").then(|| "command".into()))
        })
    }

    #[test]
    fn the_defaults_are_those_of_the_contract() {
        let settings = with(&[]).unwrap();
        assert_eq!((settings.mode, settings.agent_id.as_str()), (Mode::Once, "unknown"));
        assert_eq!((settings.poll_interval, settings.max_transient_failures, settings.max_cycles), (900, 5, 0));
        assert_eq!(settings.heartbeat, Some(Duration::from_secs(60)));
        assert_eq!(settings.cycle_timeout, Some(Duration::from_secs(3600)));
        assert_eq!(settings.silence_timeout, None);
        assert_eq!((settings.history_limit, settings.notes_limit), (100, 2048));
        assert_eq!(settings.state_dir, PathBuf::from("/sandbox/.openshell-agent"));
        assert_eq!(settings.payload_dir, PathBuf::from("/etc/openshell/agent-payload"));
    }

    #[test]
    fn an_empty_value_is_an_unset_one_and_a_huge_one_does_not_overflow() {
        let settings = with(&[
            ("OPENSHELL_AGENT_POLL_INTERVAL_SECONDS", ""),
            ("OPENSHELL_AGENT_CYCLE_TIMEOUT_SECONDS", "99999999999999999999999999"),
            ("OPENSHELL_AGENT_MAX_CYCLES", "007"),
        ])
        .unwrap();
        assert_eq!((settings.poll_interval, settings.max_cycles), (900, 7));
        assert_eq!(settings.cycle_timeout, Some(Duration::from_secs(LONGEST)));
    }

    #[test]
    fn no_harness_is_refused() {
        assert_eq!(resolve(&|_| None).unwrap_err(), SettingsError::NoHarness);
    }
}
