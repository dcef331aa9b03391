//! Where does the endpoint listen? Reads `host:port` and `[v6]:port`, and opens the socket.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, ToSocketAddrs};
use std::str::FromStr;

use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

/// Connections that the system holds for us until they are accepted.
const BACKLOG: i32 = 1024;

/// An address to listen at, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAddr {
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    host: String,
    port: u16,
}

/// The text is no address to listen at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is no address to listen at; write host:port, or [address]:port for IPv6, with a port from 0 to 65535"
)]
pub struct InvalidBind {
    text: String,
}

impl Default for BindAddr {
    /// Every address of this machine, IPv6 and IPv4, port 8470.
    fn default() -> Self {
        Self { host: "::".to_owned(), port: 8470 }
    }
}

impl FromStr for BindAddr {
    type Err = InvalidBind;

    fn from_str(text: &str) -> Result<Self, InvalidBind> {
        let invalid = || InvalidBind { text: text.to_owned() };
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_port).ok_or_else(invalid)?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(v6) => v6.parse::<Ipv6Addr>().map_err(|_| invalid())?.to_string(),
            None if host.is_empty() || host.contains([':', '[', ']', '/', ' ']) => return Err(invalid()),
            None => host.to_owned(),
        };
        Ok(Self { host, port })
    }
}

impl fmt::Display for BindAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl BindAddr {
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Opens the listening socket. Where `[::]` can't be had because the machine has no IPv6, all of IPv4 is taken.
    ///
    /// # Errors
    /// What the system said: the name is unknown, the port is in use or not allowed.
    pub(crate) fn listen(&self) -> io::Result<TcpListener> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match listen_at(address) {
                Ok(listener) => return Ok(listener),
                Err(error) => last = error,
            }
        }
        if self.host == "::" && is_without_ipv6(&last) {
            return listen_at((Ipv4Addr::UNSPECIFIED, self.port).into());
        }
        Err(last)
    }
}

fn is_without_ipv6(error: &io::Error) -> bool {
    let error = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(error, Some(rustix::io::Errno::AFNOSUPPORT | rustix::io::Errno::ADDRNOTAVAIL))
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
    // so that a restart does not wait for connections of before to be forgotten
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if let SocketAddr::V6(v6) = address {
        // the system's default differs from machine to machine; `[::]` means both here
        sockopt::set_ipv6_v6only(&socket, *v6.ip() != Ipv6Addr::UNSPECIFIED)?;
    }
    rustix::net::bind(&socket, &address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// The address that a program on this machine reaches the listener at.
pub(crate) fn reachable(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => (Ipv4Addr::LOCALHOST, v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            SocketAddrV6::new(Ipv6Addr::LOCALHOST, v6.port(), 0, 0).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for (text, host, port) in [
            ("127.0.0.1:0", "127.0.0.1", 0),
            ("localhost:8470", "localhost", 8470),
            ("[::]:8470", "::", 8470),
            ("[::1]:1", "::1", 1),
            ("[0:0::1]:65535", "::1", 65535),
        ] {
            let address: BindAddr = text.parse().unwrap();
            assert_eq!((address.host.as_str(), address.port), (host, port), "{text}");
        }
        assert_eq!("[::]:8470".parse(), Ok(BindAddr::default()));
        assert_eq!(BindAddr::default().to_string(), "[::]:8470");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for text in [
            "",
            "8470",
            ":8470",
            "::1:80",
            "::",
            "[::1]",
            "[::1]80",
            "[::1:80",
            "host:",
            "host:65536",
            "host:-1",
            "host:+1",
            "[host]:1",
            "a b:1",
            "http://a:1",
        ] {
            assert!(text.parse::<BindAddr>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_wildcard_takes_both_families_where_the_machine_has_them() {
        let listener = "[::]:0".parse::<BindAddr>().unwrap().listen().unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    }

    #[test]
    fn a_port_in_use_is_an_error() {
        let first = "127.0.0.1:0".parse::<BindAddr>().unwrap().listen().unwrap();
        let taken = BindAddr { host: "127.0.0.1".into(), port: first.local_addr().unwrap().port() };
        assert_eq!(taken.listen().unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
