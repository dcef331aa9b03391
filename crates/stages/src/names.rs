//! Paths as text: relative to their root, `/`-separated, and lossless where a name is not UTF-8.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A relative path as text. A byte that is not part of UTF-8 is written `\xNN`, and a backslash `\\`, so that two
/// names never become one. Case and normal form stay as they are.
pub fn escape(path: &Path) -> String {
    let mut text = String::with_capacity(path.as_os_str().len());
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            if char == '\\' {
                text.push('\\');
            }
            text.push(char);
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The path that [`escape`] made `text` of. `None`: it made no such text.
pub fn unescape(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest {
            [b'\\', tail @ ..] => {
                bytes.push(b'\\');
                rest = tail;
            }
            [b'x', high, low, tail @ ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                bytes.push(u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?);
                rest = tail;
            }
            _ => return None,
        }
    }
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

/// The last name of an escaped path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The folder of an escaped path; empty for the root itself.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn every_name_comes_back_and_no_two_become_one() {
        let names: [&[u8]; 8] = [
            b"a b.md",
            b"a_b.md",
            b"README.md",
            b"readme.md",
            b"caf\xc3\xa9",
            b"cafe\xcc\x81",
            b"x\xff\xfey",
            b"x\\xffy",
        ];
        let mut seen = std::collections::HashSet::new();
        for name in names {
            let path = Path::new(OsStr::from_bytes(name));
            let text = escape(path);
            assert_eq!(unescape(&text).as_deref(), Some(path), "{text}");
            assert!(seen.insert(text));
        }
        assert_eq!(escape(Path::new(OsStr::from_bytes(b"x\xffy"))), "x\\xffy");
        assert_eq!(unescape("a\\q"), None);
    }
}
