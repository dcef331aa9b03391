//! Sanitized texts on disk: immutable files, named by document and content.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;

use bastion_host::files::{self, PRIVATE_FILE};
use sha2::{Digest, Sha256};

use crate::{DocId, StoreError};

/// The folder of sanitized texts. Any number of threads may write into it.
#[derive(Debug, Clone)]
pub struct Pieces {
    dir: PathBuf,
}

impl Pieces {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Writes a document's text and gives the piece's name. Writing the same text again is free.
    pub fn write(&self, doc: &DocId, text: &str) -> Result<String, StoreError> {
        let name = format!("{doc}-{}.txt", print(text));
        let path = self.dir.join(&name);
        // A power loss can leave the name with less than its text; the same name always means the same bytes.
        if fs::metadata(&path).is_ok_and(|meta| meta.len() == text.len() as u64) {
            return Ok(name);
        }
        let temporary = files::temporary_beside(&path);
        let written =
            files::write_new(&temporary, text.as_bytes(), PRIVATE_FILE).and_then(|()| fs::rename(&temporary, &path));
        written.map_err(|error| {
            let _ = fs::remove_file(&temporary);
            StoreError::Io { path, source: error }
        })?;
        Ok(name)
    }

    /// Reads a piece whole.
    pub fn read(&self, name: &str) -> Result<String, StoreError> {
        let path = self.dir.join(name);
        fs::read_to_string(&path).map_err(StoreError::io(&path))
    }

    /// Reads the beginning of a piece: at most `bytes` bytes, never half a character.
    pub fn read_head(&self, name: &str, bytes: usize) -> Result<String, StoreError> {
        let path = self.dir.join(name);
        let mut head = Vec::with_capacity(bytes);
        let read = File::open(&path).and_then(|file| file.take(bytes as u64).read_to_end(&mut head));
        read.map_err(StoreError::io(&path))?;
        let valid = match std::str::from_utf8(&head) {
            Ok(_) => head.len(),
            Err(error) => error.valid_up_to(),
        };
        head.truncate(valid);
        String::from_utf8(head).map_err(|_| StoreError::Damaged { path })
    }
}

/// 16 hexadecimal digits that tell one sanitized text of a document from another.
fn print(text: &str) -> String {
    Sha256::digest(text.as_bytes())[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_whole_characters_and_a_short_file_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let pieces = Pieces::new(dir.path().to_owned());
        let doc = DocId::from_bytes([1; 32]);
        let name = pieces.write(&doc, "aéé").unwrap();
        assert_eq!(pieces.read_head(&name, 4).unwrap(), "aé");
        assert_eq!(pieces.read_head(&name, 99).unwrap(), "aéé");
        fs::write(dir.path().join(&name), "a").unwrap();
        assert_eq!(pieces.write(&doc, "aéé").unwrap(), name);
        assert_eq!(pieces.read(&name).unwrap(), "aéé");
        assert_ne!(pieces.write(&doc, "other").unwrap(), name);
    }
}
