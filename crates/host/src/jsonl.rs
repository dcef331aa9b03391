//! Append-only JSON lines: one record, one `write`, synced; a torn last line never swallows the next record.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::files::{PRIVATE_FILE, sync_parent};

/// Appends `record` (one line of JSON without its newline) in one write and makes it durable.
///
/// Where the file ends without a newline (power was lost in the middle of a write) the torn rest is closed with a
/// newline first, in the same write, so that it stands alone as a line no reader can parse, and nothing is lost.
pub fn append(path: &Path, record: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().read(true).append(true).create(true).mode(PRIVATE_FILE).open(path)?;
    let new = file.metadata()?.len() == 0;
    let mut line = Vec::with_capacity(record.len() + 2);
    if ends_torn(&mut file)? {
        line.push(b'\n');
    }
    line.extend_from_slice(record.as_bytes());
    line.push(b'\n');
    file.write_all(&line)?;
    file.sync_data()?;
    if new { sync_parent(path) } else { Ok(()) }
}

/// Whether the file's last byte is there and no newline.
pub fn ends_torn(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last[0] != b'\n')
}

/// Every line that parses as a `T`, in order; torn or foreign lines are passed over. A missing file has none.
pub fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    Ok(bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_is_set_aside_and_the_next_record_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append(&path, r#"{"n":1}"#).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(br#"{"n":2,"to"#).unwrap();
        append(&path, r#"{"n":3}"#).unwrap();
        let rows: Vec<serde_json::Value> = read(&path).unwrap();
        assert_eq!(rows.iter().map(|row| row["n"].as_i64().unwrap()).collect::<Vec<_>>(), [1, 3]);
    }
}
