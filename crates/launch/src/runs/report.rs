//! What a supervisor says of its run, read as the hostile text that it is.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use bastion_host::clock::rfc3339_millis;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Record;
use crate::text::{plain, plain_lines};

/// A field of a record is shown so far, in characters.
const MAX_FIELD: usize = 4_096;
/// So many transitions are taken over.
const MAX_HISTORY: usize = 1_000;
const MAX_STATUS: u64 = 1 << 20;
const MAX_HISTORY_BYTES: u64 = 4 << 20;
const MAX_OUTPUT: u64 = 4 << 20;
const SHORT_OUTPUT: u64 = 16 << 10;

/// A report, fit for a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// The current record.
    pub record: Option<Record>,
    /// The latest transitions, the oldest first.
    pub history: Vec<Record>,
    /// The end of the output.
    pub output: String,
}

impl Report {
    /// Reads what `bastion-supervisor report` printed. What is not as it should be is left out.
    pub fn read(bytes: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_default();
        let history = value["history"].as_array().map(Vec::as_slice).unwrap_or_default();
        Self {
            record: record(&value["status"]),
            history: history[history.len().saturating_sub(MAX_HISTORY)..].iter().filter_map(record).collect(),
            output: plain_lines(value["output"].as_str().unwrap_or_default()),
        }
    }

    /// The last word of a run whose output passed through here: the result line that ends it.
    pub fn of_output(stdout: &[u8], now: Timestamp) -> Self {
        let text = String::from_utf8_lossy(stdout);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        let said = last.and_then(|line| line.strip_prefix("OPENSHELL_AGENT_RESULT"));
        let result: Option<Value> = said.and_then(|said| serde_json::from_str(said.trim()).ok());
        let status = result.map(
            |result| json!({ "supervisor_state": "terminal", "recorded_at": rfc3339_millis(now), "result": result }),
        );
        Self { record: status.as_ref().and_then(record), ..Self::default() }
    }
}

fn record(value: &Value) -> Option<Record> {
    let object = value.as_object()?;
    let text = |value: Option<&Value>| {
        value.and_then(Value::as_str).map(|text| plain(&text.chars().take(MAX_FIELD).collect::<String>()))
    };
    let result = object.get("result");
    let of_result = |key: &str| text(result.and_then(|result| result.get(key)));
    Some(Record {
        recorded_at: text(object.get("recorded_at")),
        cycle: object.get("cycle").and_then(Value::as_u64),
        state: text(object.get("supervisor_state")),
        harness_exit_code: object.get("harness_exit_code").and_then(Value::as_i64),
        status: of_result("status"),
        reason: of_result("reason"),
        notes: of_result("notes"),
        next_cycle_at: text(object.get("next_cycle_at")),
    })
}

/// The report on a state folder of this machine that a sandbox could write to, in the same form as the supervisor
/// prints it. Links are not followed, a FIFO is not waited for, and of anything large only a part is read.
pub fn read_folder(dir: &Path, log: bool) -> Vec<u8> {
    let object = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).ok().filter(Value::is_object);
    let status = end(&dir.join("status.json"), MAX_STATUS).ok().and_then(|bytes| object(&bytes));
    let history = end(&dir.join("history.jsonl"), MAX_HISTORY_BYTES).unwrap_or_default();
    let output = end(&dir.join("output.log"), if log { MAX_OUTPUT } else { SHORT_OUTPUT }).unwrap_or_default();
    let history: Vec<Value> = history.split(|byte| *byte == b'\n').filter_map(object).collect();
    json!({ "status": status, "history": history, "output": String::from_utf8_lossy(&output) }).to_string().into_bytes()
}

/// At most `max` bytes of the end of a regular file.
fn end(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    file.seek(SeekFrom::Start(meta.len().saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_loses_what_a_terminal_acts_on() {
        let said = json!({
            "status": {"cycle": 3, "supervisor_state": "sleeping", "result": {"status": "waiting", "notes": "a\u{1b}]0;x\u{7}\nb"}},
            "history": [{"cycle": 2}, 7, "x"],
            "output": "one\u{1b}[31m\ntwo\n",
        });
        let report = Report::read(said.to_string().as_bytes());
        let record = report.record.unwrap();
        assert_eq!((record.cycle, record.state.as_deref()), (Some(3), Some("sleeping")));
        assert_eq!(record.notes.unwrap(), "a\\u{1b}]0;x\\u{7}\\nb");
        assert_eq!((report.history.len(), report.output.as_str()), (1, "one\\u{1b}[31m\ntwo\n"));
    }

    #[test]
    fn garbage_is_an_empty_report() {
        for bytes in [&b""[..], b"{", b"[]", b"null", b"\xff\xfe", br#"{"status":7,"history":{},"output":[]}"#] {
            assert_eq!(Report::read(bytes), Report::default());
        }
        let long = json!({ "status": { "result": { "notes": "x".repeat(1 << 20) } } }).to_string();
        assert_eq!(Report::read(long.as_bytes()).record.unwrap().notes.unwrap().len(), MAX_FIELD);
    }
}
