//! Copies of files whose digest is known: what is copied is what was hashed, or it is refused.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use bastion_trust::manifest::hex;
use sha2::{Digest, Sha256};

use crate::error::LaunchError;

/// Opens a regular file, its own name not followed as a link and a FIFO not waited for.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(file)
}

/// Lower-case hex SHA-256 of a file, and its length in bytes.
pub(crate) fn digest(path: &Path) -> io::Result<(String, u64)> {
    pour(&mut open(path)?, &mut io::sink())
}

/// Copies `from` to the new file `to`, and refuses where the bytes are not those of `sha256`.
pub(crate) fn copy(from: &Path, to: &Path, mode: u32, sha256: &str) -> Result<(), LaunchError> {
    let mut source = open(from).map_err(LaunchError::file(from))?;
    let mut target = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(bastion_host::files::PRIVATE_FILE)
        .open(to)
        .map_err(LaunchError::file(to))?;
    let (digest, _) = pour(&mut source, &mut target).map_err(LaunchError::file(from))?;
    if digest != sha256 {
        return Err(LaunchError::refused(from.display().to_string(), "changed while it was being launched"));
    }
    set_mode(to, mode)
}

/// Sets the mode, whatever the umask is.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), LaunchError> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).map_err(LaunchError::file(path))
}

fn pour(from: &mut impl Read, to: &mut impl Write) -> io::Result<(String, u64)> {
    let mut hash = Sha256::new();
    let mut length = 0;
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = from.read(&mut buffer)?;
        if n == 0 {
            return Ok((hex(&hash.finalize()), length));
        }
        hash.update(&buffer[..n]);
        to.write_all(&buffer[..n])?;
        length += n as u64;
    }
}

/// Lower-case hex SHA-256 of bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
