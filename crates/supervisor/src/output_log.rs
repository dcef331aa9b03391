//! The last 4 MiB of the output, on disk beside the state.
//!
//! What comes in is held in memory and written once a second, so that a babbling harness costs 4 MiB of writes a
//! second and not all it prints. The file may outgrow its size by a quarter before it is cut, and is cut to size
//! when a cycle ends; cutting on each write would rewrite it for every line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::files;
use crate::tail::Tail;

/// Bytes that are kept.
pub const KEPT: u64 = 4 << 20;
const KEPT_IN_MEMORY: usize = 4 << 20;
/// Bytes that the file may hold while a cycle runs.
const SLACK: u64 = KEPT + KEPT / 4;
/// How long output may wait in memory.
const DELAY: Duration = Duration::from_secs(1);

/// The log of what harness and supervisor print.
#[derive(Debug)]
pub struct OutputLog {
    path: PathBuf,
    waiting: Tail,
    since: Option<Instant>,
    failing: bool,
}

impl OutputLog {
    /// A log at `path`; the file is made with the first output.
    pub fn new(path: PathBuf) -> Self {
        Self { path, waiting: Tail::new(KEPT_IN_MEMORY), since: None, failing: false }
    }

    /// Takes in output.
    pub fn push(&mut self, chunk: &[u8]) {
        self.waiting.push(chunk);
        self.since.get_or_insert_with(Instant::now);
    }

    /// When it wants to be written next.
    pub fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + DELAY)
    }

    /// Writes what waits. `Err` once for a disk that won't take it, until it does again; what could not be written
    /// is let go.
    pub fn flush(&mut self, cut: bool) -> io::Result<()> {
        if self.since.take().is_none() && !cut {
            return Ok(());
        }
        let mut waiting = std::mem::replace(&mut self.waiting, Tail::new(KEPT_IN_MEMORY));
        let written = self.write(waiting.all(), if cut { KEPT } else { SLACK });
        let first = !std::mem::replace(&mut self.failing, written.is_err());
        if first { written } else { Ok(()) }
    }

    fn write(&self, bytes: &[u8], allowed: u64) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            files::create_private_dir(dir)?;
        }
        let mut file = files::open_append(&self.path)?;
        let length = file.metadata()?.len();
        if length + bytes.len() as u64 <= allowed {
            return file.write_all(bytes);
        }
        let room = KEPT - (bytes.len() as u64).min(KEPT);
        let (mut kept, _) = files::read_end(&self.path, room)?;
        kept.extend_from_slice(bytes);
        files::replace(&self.path, &kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_the_last_four_mebibytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let mut log = OutputLog::new(path.clone());
        let mut whole = Vec::new();
        for n in 0..40_u8 {
            let chunk = vec![n; 300_000];
            log.push(&chunk);
            whole.extend_from_slice(&chunk);
            log.flush(false).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() <= SLACK);
        }
        log.flush(true).unwrap();
        assert!(std::fs::read(&path).unwrap() == whole[whole.len() - KEPT_IN_MEMORY..]);
    }

    #[test]
    fn a_failure_is_told_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = OutputLog::new(dir.path().to_owned()); // a folder is no file
        log.push(b"x");
        assert!(log.flush(false).is_err());
        log.push(b"x");
        assert!(log.flush(false).is_ok());
    }
}
