//! Does the cage hold? Asked once, right after it is closed: an emulated kernel may accept a filter and ignore it.

use rustix::net::{AddressFamily, SocketType};

use crate::CageError;

/// Tries one deed of each forbidden kind. Each has to fail.
pub(crate) fn nothing_forbidden_works() -> Result<(), CageError> {
    let deeds: [(&'static str, bool); 3] = [
        ("opening a folder", std::fs::File::open("/").is_ok()),
        ("making a socket", rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).is_ok()),
        ("looking at the file system", rustix::fs::statfs("/").is_ok()),
    ];
    match deeds.into_iter().find(|(_, worked)| *worked) {
        Some((deed, _)) => Err(CageError::Leaks { deed }),
        None => Ok(()),
    }
}
