//! What a run printed, kept on the host's side: the last 4 to 8 MiB, in two files of which the older one is let go.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use bastion_host::files::{PRIVATE_FILE, read_capped};

/// Bytes of one file.
const FILE: u64 = 4 << 20;
/// Bytes that are shown where not all is asked for.
const SHORT: usize = 16 << 10;

/// The log that is being written.
pub(crate) struct Output {
    path: PathBuf,
    file: File,
    length: u64,
}

impl Output {
    /// Opens it, going on where an earlier one ended.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(PRIVATE_FILE).open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, length })
    }

    /// Takes in what was printed.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + bytes.len() as u64 > FILE {
            std::fs::rename(&self.path, older(&self.path))?;
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

/// The end of what was printed.
pub(crate) fn kept(path: &Path, all: bool) -> String {
    let mut bytes = read_capped(&older(path), 2 * FILE).unwrap_or_default();
    bytes.extend(read_capped(path, 2 * FILE).unwrap_or_default());
    let from = if all { 0 } else { bytes.len().saturating_sub(SHORT) };
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

fn older(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_the_size_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("output.log");
        let mut log = Output::open(&path).unwrap();
        for n in 0..20_u8 {
            log.push(&vec![b'a' + n; 1 << 20]).unwrap();
        }
        drop(log);
        Output::open(&path).unwrap().push(b"the end\n").unwrap();
        let text = kept(&path, true);
        assert!(text.ends_with("the end\n") && text.len() as u64 > FILE && text.len() as u64 <= 2 * FILE + 8);
        assert_eq!(kept(&path, false).len(), SHORT);
        assert_eq!(kept(&dir.path().join("none"), true), "");
    }
}
