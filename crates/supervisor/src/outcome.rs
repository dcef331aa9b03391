//! What came of a cycle: an agent's result that can be obeyed, or why there is none.

use serde_json::{Map, Value};

/// No sleep is longer, in seconds.
pub const LONGEST_SLEEP: u64 = 86_400;
/// Written where an agent leaves no notes.
pub const NO_NOTES: &str = "No cycle notes were provided by the agent.";
/// An agent's object that is larger, in bytes of JSON, is recorded without its unknown keys.
const LARGEST_RESULT: usize = 64 * 1024;
/// Characters of a word of the agent's that a log line shows.
const LONGEST_WORD: usize = 2048;

/// What an agent can say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Done for good.
    Complete,
    /// Nothing to do until later.
    Waiting,
    /// Somebody else has to act first; looked at again later.
    Blocked,
    /// Failed, and worth another try.
    TransientFailure,
    /// Failed for good.
    TerminalFailure,
}

impl Status {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "complete" => Self::Complete,
            "waiting" => Self::Waiting,
            "blocked" => Self::Blocked,
            "transient_failure" => Self::TransientFailure,
            "terminal_failure" => Self::TerminalFailure,
            _ => return None,
        })
    }
}

/// A result that can be obeyed.
#[derive(Debug, Clone)]
pub struct AgentResult {
    /// What to do.
    pub status: Status,
    /// Why, one line.
    pub reason: String,
    /// Seconds until the next cycle, where the agent gave a usable number.
    pub next_poll: Option<u64>,
    object: Map<String, Value>,
}

/// Which limit a cycle ran into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// It took too long.
    Time,
    /// It printed nothing for too long.
    Silence,
}

/// What came of a cycle.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// A result that can be obeyed.
    Result(AgentResult),
    /// An object whose status is none of ours.
    Invalid {
        /// The status, one line.
        status: String,
        /// The agent's notes, where there are any.
        notes: Option<String>,
    },
    /// No JSON object.
    Malformed,
    /// Nothing was said. Holds the harness's exit status.
    Missing {
        /// The harness's exit status.
        exit: i32,
        /// It lost its model server.
        transport: bool,
    },
    /// The harness was ended by a limit of so many seconds.
    Overran(Limit, u64),
    /// A harness that needs no result in once mode ended with this status.
    Exit(i32),
}

impl Outcome {
    /// Reads what follows the tag, or a result file.
    pub fn read(json: &[u8]) -> Self {
        let Ok(Value::Object(object)) = serde_json::from_slice(json) else { return Self::Malformed };
        let status = word(object.get("status"));
        let Some(known) = object.get("status").and_then(Value::as_str).and_then(Status::named) else {
            return Self::Invalid { status: status.unwrap_or("<missing>".into()), notes: notes(&object) };
        };
        Self::Result(AgentResult {
            status: known,
            reason: word(object.get("reason")).unwrap_or("unspecified".into()),
            next_poll: object.get("next_poll_seconds").and_then(seconds),
            object,
        })
    }

    /// The reason that messages show.
    pub fn reason(&self) -> String {
        match self {
            Self::Result(result) => result.reason.clone(),
            Self::Invalid { status, .. } => format!("invalid OPENSHELL_AGENT_RESULT status: {status}"),
            Self::Malformed => "malformed OPENSHELL_AGENT_RESULT JSON".into(),
            Self::Missing { exit, transport } => {
                let suffix = if *transport { "; upstream transport failure detected" } else { "" };
                format!("missing OPENSHELL_AGENT_RESULT after harness exit {exit}{suffix}")
            }
            Self::Overran(Limit::Time, seconds) => format!("cycle timed out after {seconds}s"),
            Self::Overran(Limit::Silence, seconds) => format!("cycle silent for {seconds}s"),
            Self::Exit(exit) => format!("harness exit {exit}"),
        }
    }

    /// The object that records hold: the agent's own with its notes held to `limit` characters, or one that says
    /// why there is none.
    pub fn recorded(&self, limit: usize) -> Map<String, Value> {
        let said = match self {
            Self::Result(result) => return held(&result.object, limit),
            Self::Invalid { notes: Some(notes), .. } => format!("{}; {notes}", self.reason()),
            _ => self.reason(),
        };
        let (status, reason) = match self {
            Self::Missing { .. } => ("transient_failure", "missing_agent_result"),
            Self::Overran(..) => ("transient_failure", "cycle_timeout"),
            Self::Exit(0) => ("complete", "harness_exit"),
            Self::Exit(_) => ("terminal_failure", "harness_exit"),
            _ => ("transient_failure", "malformed_agent_result"),
        };
        diagnostic(status, reason, &first(&said, limit))
    }
}

/// A result that the supervisor itself speaks.
pub fn diagnostic(status: &str, reason: &str, notes: &str) -> Map<String, Value> {
    [("status", status), ("reason", reason), ("notes", notes)]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), Value::from(value)))
        .collect()
}

/// The agent's object, bounded.
fn held(object: &Map<String, Value>, limit: usize) -> Map<String, Value> {
    let mut held = object.clone();
    if serde_json::to_vec(&held).map_or(true, |json| json.len() > LARGEST_RESULT) {
        held.retain(|key, _| matches!(key.as_str(), "status" | "next_poll_seconds"));
        held.extend(word(object.get("reason")).map(|reason| ("reason".to_owned(), Value::from(reason))));
    }
    let notes = notes(object).map_or(NO_NOTES.to_owned(), |notes| first(&notes, limit));
    held.insert("notes".into(), notes.into());
    held
}

/// The first `limit` characters.
fn first(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

fn notes(object: &Map<String, Value>) -> Option<String> {
    match object.get("notes")? {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// A value as one short line without control characters; `None` where there is nothing to show.
fn word(value: Option<&Value>) -> Option<String> {
    let text = match value? {
        Value::Null => return None,
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut line = String::new();
    for c in text.chars().take(LONGEST_WORD) {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    Some(line)
}

/// A positive whole number of seconds, at most a day. 900.0 and 9e2 are whole, too.
fn seconds(value: &Value) -> Option<u64> {
    let number = value.as_f64().filter(|number| *number >= 1.0 && number.fract() == 0.0)?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    Some(number.min(LONGEST_SLEEP as f64) as u64) // between 1 and 86,400: exact
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn next_poll_seconds_is_a_positive_integer_or_nothing() {
        for (value, expected) in [
            (json!(1), Some(1)),
            (json!(900.0), Some(900)),
            (json!(86_401), Some(86_400)),
            (json!(1e300), Some(86_400)),
            (json!(u64::MAX), Some(86_400)),
            (json!(0), None),
            (json!(-5), None),
            (json!(0.5), None),
            (json!("5"), None),
            (json!(null), None),
            (json!([5]), None),
        ] {
            assert_eq!(seconds(&value), expected, "{value}");
        }
    }

    #[test]
    fn a_reason_is_one_line_and_notes_end_at_a_character() {
        let Outcome::Result(result) =
            Outcome::read(br#"{"status":"waiting","reason":"a\nb\u001b[31m","notes":"h\u00e9\ud83d\ude00llo"}"#)
        else {
            panic!("a result")
        };
        assert_eq!(result.reason, "a\\nb\\u{1b}[31m");
        let recorded = Outcome::Result(result).recorded(3);
        assert_eq!(recorded["notes"], "hé😀");
        assert_eq!(recorded["reason"], "a\nb\u{1b}[31m", "the record keeps the agent's own words");
    }

    #[test]
    fn a_huge_object_is_recorded_without_what_nobody_knows() {
        let object = json!({"status": "complete", "reason": "r", "x": "y".repeat(LARGEST_RESULT)});
        let recorded = Outcome::read(object.to_string().as_bytes()).recorded(10);
        assert_eq!(Value::Object(recorded), json!({"status": "complete", "reason": "r", "notes": NO_NOTES}));
    }
}
