//! Where does the supervisor write down what it does? `status.json` and `history.jsonl`.
//!
//! The agent owns the same folder and may do with it what it likes: no link is followed, no size trusted, and a
//! folder that is gone is made again. Failing to write is for the caller to log, never a reason to end.

use std::io;
use std::path::{Path, PathBuf};

use crate::files;

/// The latest record.
pub const STATUS: &str = "status.json";
/// The latest records, one a line.
pub const HISTORY: &str = "history.jsonl";
/// The end of the output.
pub const OUTPUT: &str = "output.log";
/// A history that is larger than this was not written by us; it is begun anew.
pub const LARGEST_HISTORY: u64 = 64 << 20;

/// The state folder.
#[derive(Debug)]
pub struct StateDir {
    dir: PathBuf,
    limit: usize,
}

impl StateDir {
    /// The folder at `dir`, whose history holds the latest `limit` records.
    pub fn new(dir: &Path, limit: usize) -> Self {
        Self { dir: dir.to_owned(), limit }
    }

    /// Where the output is kept.
    pub fn output(&self) -> PathBuf {
        self.dir.join(OUTPUT)
    }

    /// Writes one transition down: the status first, so that a disk with room for one of the two has the latest.
    pub fn write(&self, record: &[u8]) -> io::Result<()> {
        files::create_private_dir(&self.dir)?;
        let mut line = record.to_vec();
        line.push(b'\n');
        files::replace(&self.dir.join(STATUS), &line)?;
        let path = self.dir.join(HISTORY);
        let earlier = files::read_whole(&path, LARGEST_HISTORY).unwrap_or_default();
        let mut history = latest(&earlier, self.limit - 1).to_vec();
        if history.last().is_some_and(|byte| *byte != b'\n') {
            history.push(b'\n'); // a torn line must not swallow the next one
        }
        history.extend_from_slice(&line);
        files::replace(&path, &history)
    }
}

/// The last `count` lines.
fn latest(text: &[u8], count: usize) -> &[u8] {
    let end = text.strip_suffix(b"\n").map_or(text.len(), <[u8]>::len);
    if count == 0 {
        return &[];
    }
    let mut newlines = text[..end].iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    newlines.nth(count - 1).map_or(text, |(at, _)| &text[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_lines_are_kept() {
        let text = b"1\n2\n3\n";
        for (count, expected) in [(0, ""), (1, "3\n"), (2, "2\n3\n"), (3, "1\n2\n3\n"), (4, "1\n2\n3\n")] {
            assert_eq!(latest(text, count), expected.as_bytes());
        }
        assert_eq!(latest(b"1\n2", 1), b"2");
    }

    #[test]
    fn a_torn_line_does_not_swallow_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::new(dir.path(), 3);
        std::fs::write(dir.path().join(HISTORY), "{\"torn").unwrap();
        state.write(b"{}").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(HISTORY)).unwrap(), "{\"torn\n{}\n");
    }
}
