//! What was asked, what was decided, how much went through? `egress.jsonl`, one line a decision (docs/egress.md).
//!
//! A line stands in the file before anything goes out; a line that can't be written is a refusal. What is known
//! only at the end (status, bytes) has its room in the line from the start and is filled in there. Never a header, a
//! body or a query; what the client chose is cut to a bound. A file that was deleted under us is not passed over:
//! the decision at hand is refused and a new file begun.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bastion_host::clock::{Clock, rfc3339_millis};
use bastion_host::files::PRIVATE_FILE;
use serde::Serialize;

/// What a client chose (host, method, path) may take this many bytes of a line.
const MAX_FIELD_BYTES: usize = 2 << 10;
/// Room for what is filled in at the end: three numbers and a code.
const TAIL_BYTES: usize = 160;

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decision {
    Allow,
    Deny,
    /// Would have been denied; the endpoint's `enforcement: audit` let it go on.
    Audit,
}

/// What of a line is known when it is decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'l> {
    pub(crate) host: Option<&'l str>,
    pub(crate) port: Option<u16>,
    pub(crate) method: Option<&'l str>,
    /// Without the query.
    pub(crate) path: Option<&'l str>,
    pub(crate) decision: Decision,
    pub(crate) rule: Option<&'l str>,
    pub(crate) reason: &'l str,
}

#[derive(Serialize)]
struct Head<'l> {
    ts: String,
    host: Option<&'l str>,
    port: Option<u16>,
    method: Option<&'l str>,
    path: Option<&'l str>,
    decision: Decision,
    rule: Option<&'l str>,
    reason: &'l str,
}

/// The file.
pub(crate) struct Log {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    most_bytes: u64,
    open: Mutex<Open>,
}

struct Open {
    append: File,
    /// The same file without `O_APPEND`, with which Linux puts even positioned writes at the end.
    fill: Arc<File>,
}

/// An exchange that goes on. Its line is completed when the last holder lets go.
pub(crate) struct Entry {
    place: Place,
    /// Bytes of the request's body, or from the sandbox.
    pub(crate) up: AtomicU64,
    /// Bytes of the answer's body, or to the sandbox.
    pub(crate) down: AtomicU64,
    status: AtomicU16,
    fault: OnceLock<&'static str>,
}

struct Place {
    file: Arc<File>,
    offset: u64,
}

impl Log {
    /// Opens the file, which need not exist. Past `most_bytes` it is renamed to `<path>.1`, over an older one.
    pub(crate) fn open(path: PathBuf, most_bytes: u64, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let open = Open::at(&path)?;
        Ok(Self { path, clock, most_bytes, open: Mutex::new(open) })
    }

    /// Writes down something that was refused with `status`; 0 where the connection was closed without an answer.
    pub(crate) fn refused(&self, line: Line<'_>, status: u16) -> io::Result<()> {
        let tail = tail(Some(status), 0, 0, None);
        self.write(line, &tail).map(drop)
    }

    /// Writes down something that will go out now.
    pub(crate) fn begin(&self, line: Line<'_>) -> io::Result<Arc<Entry>> {
        let tail = r#""status":null,"bytes_up":null,"bytes_down":null"#;
        let place = self.write(line, tail)?;
        Ok(Arc::new(Entry {
            place,
            up: AtomicU64::new(0),
            down: AtomicU64::new(0),
            status: AtomicU16::new(0),
            fault: OnceLock::new(),
        }))
    }

    fn write(&self, line: Line<'_>, tail: &str) -> io::Result<Place> {
        let head = Head {
            ts: rfc3339_millis(self.clock.now()),
            host: line.host.map(cut),
            port: line.port,
            method: line.method.map(cut),
            path: line.path.map(cut),
            decision: line.decision,
            rule: line.rule.filter(|rule| !rule.is_empty()).map(cut),
            reason: line.reason,
        };
        let mut text = serde_json::to_string(&head)?;
        text.pop(); // the brace
        text.push(',');
        let tail_at = text.len() as u64;
        text.push_str(&padded(tail));
        text.push_str("}\n");

        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut meta = open.append.metadata()?;
        if meta.nlink() == 0 {
            *open = Open::at(&self.path)?;
            return Err(io::ErrorKind::NotFound.into());
        }
        if meta.len() > 0 && meta.len() + text.len() as u64 > self.most_bytes {
            fs::rename(&self.path, rotated(&self.path))?;
            *open = Open::at(&self.path)?;
            meta = open.append.metadata()?;
        }
        if let Err(error) = open.append.write_all(text.as_bytes()) {
            // half a line would swallow the next one
            let _ = open.append.set_len(meta.len());
            return Err(error);
        }
        Ok(Place { file: Arc::clone(&open.fill), offset: meta.len() + tail_at })
    }
}

impl Open {
    fn at(path: &Path) -> io::Result<Self> {
        let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let no_wait = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        let mut append = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(PRIVATE_FILE)
            .custom_flags(no_follow | no_wait)
            .open(path)?;
        let fill = OpenOptions::new().write(true).custom_flags(no_follow | no_wait).open(path)?;
        let (meta, other) = (append.metadata()?, fill.metadata()?);
        if !meta.is_file() || (meta.dev(), meta.ino()) != (other.dev(), other.ino()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        append.set_permissions(Permissions::from_mode(PRIVATE_FILE))?;
        if bastion_host::jsonl::ends_torn(&mut append)? {
            append.write_all(b"\n")?;
        }
        Ok(Self { append, fill: Arc::new(fill) })
    }
}

impl Entry {
    /// The status that the client got.
    pub(crate) fn answered(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }

    /// Why it did not end well. The first reason stays.
    pub(crate) fn failed(&self, code: &'static str) {
        let _ = self.fault.set(code);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let status = Some(*self.status.get_mut()).filter(|status| *status != 0);
        let tail = tail(status, *self.up.get_mut(), *self.down.get_mut(), self.fault.get().copied());
        // its room is there; a disk that fails now shows in the next line
        let _ = self.place.file.write_all_at(padded(&tail).as_bytes(), self.place.offset);
    }
}

fn tail(status: Option<u16>, up: u64, down: u64, fault: Option<&str>) -> String {
    let status = status.map_or("null".to_owned(), |status| status.to_string());
    let fault = fault.map(|code| format!(r#","fault":"{code}""#)).unwrap_or_default();
    format!(r#""status":{status},"bytes_up":{up},"bytes_down":{down}{fault}"#)
}

/// All of the room, so that nothing of what stood there is left.
fn padded(tail: &str) -> String {
    debug_assert!(tail.len() <= TAIL_BYTES);
    format!("{tail:<TAIL_BYTES$}")
}

fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_FIELD_BYTES)).unwrap_or("")
}

/// Where the log goes when it is full.
pub(crate) fn rotated(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

#[cfg(test)]
mod tests {
    use bastion_host::clock::SystemClock;
    use serde_json::Value;

    use super::*;

    const LINE: Line<'static> = Line {
        host: Some("a.example"),
        port: Some(443),
        method: Some("GET"),
        path: Some("/"),
        decision: Decision::Allow,
        rule: Some("r"),
        reason: "allowed",
    };

    fn open(dir: &Path, most: u64) -> Log {
        Log::open(dir.join("egress.jsonl"), most, Arc::new(SystemClock)).unwrap()
    }

    fn rows(dir: &Path, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(dir.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_line_stands_before_and_is_filled_in_after() {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path(), 1 << 20);
        let first = log.begin(LINE).unwrap();
        log.refused(Line { decision: Decision::Deny, ..LINE }, 403).unwrap();
        let before = rows(dir.path(), "egress.jsonl");
        assert_eq!((&before[0]["status"], &before[1]["status"]), (&Value::Null, &Value::from(403)));
        first.up.store(u64::MAX, Ordering::Relaxed);
        first.down.store(u64::MAX, Ordering::Relaxed);
        first.answered(502);
        first.failed("upstream_answer_too_large");
        drop(first);
        let after = rows(dir.path(), "egress.jsonl");
        assert_eq!(after[0]["bytes_up"], u64::MAX);
        assert_eq!(after[0]["fault"], "upstream_answer_too_large");
        assert_eq!(after[1], before[1]);
        let mode = fs::metadata(dir.path().join("egress.jsonl")).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn what_the_client_chose_is_escaped_and_cut() {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path(), 1 << 20);
        let hostile = format!("/\"\n\u{1b}[2J\u{0}{}", "ä".repeat(5000));
        log.refused(Line { path: Some(&hostile), ..LINE }, 403).unwrap();
        let text = fs::read_to_string(dir.path().join("egress.jsonl")).unwrap();
        assert_eq!(text.lines().count(), 1);
        assert!(!text.trim_end().contains(|c: char| c.is_control()));
        let row: Value = serde_json::from_str(&text).unwrap();
        let path = row["path"].as_str().unwrap();
        assert!(hostile.starts_with(path) && path.len() <= MAX_FIELD_BYTES && path.len() > 2000);
    }

    #[test]
    fn a_full_log_is_set_aside_once_and_open_lines_find_their_place() {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path(), 700);
        let entries: Vec<_> = (0..3).map(|_| log.begin(LINE).unwrap()).collect();
        for (n, entry) in entries.iter().enumerate() {
            entry.answered(200 + u16::try_from(n).unwrap());
        }
        drop(entries);
        let status =
            |name| rows(dir.path(), name).iter().map(|row| row["status"].as_u64().unwrap()).collect::<Vec<_>>();
        assert_eq!([status("egress.jsonl.1"), status("egress.jsonl")].concat(), [200, 201, 202]);
    }

    #[test]
    fn a_deleted_log_is_a_refusal_and_then_a_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path(), 1 << 20);
        fs::remove_file(dir.path().join("egress.jsonl")).unwrap();
        assert!(log.begin(LINE).is_err());
        assert!(log.begin(LINE).is_ok());
        assert_eq!(rows(dir.path(), "egress.jsonl").len(), 1);
    }

    #[test]
    fn a_torn_line_stands_alone_and_other_things_than_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("egress.jsonl");
        fs::File::create(&path).unwrap().write_all(b"{\"to").unwrap();
        open(dir.path(), 1 << 20).refused(LINE, 403).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2);
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(Log::open(path, 1, Arc::new(SystemClock)).is_err());
        assert!(Log::open("/dev/full".into(), 1, Arc::new(SystemClock)).is_err());
    }
}
