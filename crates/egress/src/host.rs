//! Which host is meant? One spelling for one thing, or a refusal.
//!
//! CONNECT target, SNI and Host header are compared as [`Authority`], so two texts that a resolver or a server would
//! read alike must become equal here or fail. Refused is whatever two readers could read differently: control
//! characters, `@`, `%`, backslashes, white space, non-ASCII names (an `xn--` label is fine), IPv4 in any form but four
//! plain decimal numbers, IPv6 that carries an IPv4 address, zone ids. A name is lower case and has no trailing dot.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address;
use crate::target::BadTarget;

/// The longest name, in bytes (RFC 1035 §2.3.4, without the root).
const MAX_NAME: usize = 253;
/// The longest label, in bytes.
const MAX_LABEL: usize = 63;

/// A DNS name in lower case without a trailing dot, or an address without brackets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    text: String,
    ip: Option<IpAddr>,
}

impl Host {
    /// Reads a host; an IPv6 address may stand in brackets. Fails where it has two readings.
    pub fn parse(text: &str) -> Result<Self, BadTarget> {
        match text.strip_prefix('[') {
            Some(rest) => v6(rest.strip_suffix(']').ok_or(BadTarget::Host("a bracket is missing"))?),
            None if text.contains(':') => v6(text),
            None => name_or_v4(text),
        }
    }

    /// The address, where the host is one.
    pub fn ip(&self) -> Option<IpAddr> {
        self.ip
    }

    /// The name or address, without brackets.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn of(ip: IpAddr) -> Self {
        Self { text: ip.to_string(), ip: Some(ip) }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A host and its port: what CONNECT, SNI and Host must agree on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Authority {
    /// The host.
    pub host: Host,
    /// The port, 1 to 65535.
    pub port: u16,
}

impl Authority {
    /// The authority-form of CONNECT: `host:port`, both there.
    pub fn connect(target: &str) -> Result<Self, BadTarget> {
        let (host, port) = split(target)?;
        Ok(Self { host, port: port.ok_or(BadTarget::Port)? })
    }

    /// A Host header: where it names no port, it is `default_port`.
    pub fn header(value: &str, default_port: u16) -> Result<Self, BadTarget> {
        let (host, port) = split(value)?;
        Ok(Self { host, port: port.unwrap_or(default_port) })
    }
}

impl fmt::Display for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.ip {
            Some(IpAddr::V6(ip)) => write!(f, "[{ip}]:{}", self.port),
            _ => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Host and port of an authority; an IPv6 address must be in brackets here, else `::1:443` would have two readings.
fn split(text: &str) -> Result<(Host, Option<u16>), BadTarget> {
    if let Some(rest) = text.strip_prefix('[') {
        let (inside, after) = rest.split_once(']').ok_or(BadTarget::Host("a bracket is missing"))?;
        let port = match after.strip_prefix(':') {
            Some(digits) => Some(port(digits)?),
            None if after.is_empty() => None,
            None => return Err(BadTarget::Host("something follows the bracket")),
        };
        return Ok((v6(inside)?, port));
    }
    match text.split_once(':') {
        Some((host, digits)) => Ok((name_or_v4(host)?, Some(port(digits)?))),
        None => Ok((name_or_v4(text)?, None)),
    }
}

fn port(digits: &str) -> Result<u16, BadTarget> {
    let plain = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| plain).ok_or(BadTarget::Port)
}

fn v6(text: &str) -> Result<Host, BadTarget> {
    let ip: Ipv6Addr = text.parse().map_err(|_| BadTarget::Host("not an IPv6 address"))?;
    if address::carries_v4(ip) {
        return Err(BadTarget::Host("an IPv6 address that carries an IPv4 address"));
    }
    Ok(Host::of(ip.into()))
}

fn name_or_v4(text: &str) -> Result<Host, BadTarget> {
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return Err(BadTarget::Host("it is empty"));
    }
    if name.len() > MAX_NAME {
        return Err(BadTarget::Host("longer than 253 bytes"));
    }
    if !name.is_ascii() {
        return Err(BadTarget::Host("not ASCII; write its `xn--` form"));
    }
    for label in name.split('.') {
        if label.is_empty() || label.len() > MAX_LABEL {
            return Err(BadTarget::Host("a label is empty or longer than 63 bytes"));
        }
        if !label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_') {
            return Err(BadTarget::Host("a character that no host name has"));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(BadTarget::Host("a label starts or ends with `-`"));
        }
    }
    let name = name.to_ascii_lowercase();
    // Resolvers (inet_aton) and browsers take a name whose last label is a number for an address.
    if name.rsplit('.').next().is_some_and(is_number) {
        let ip: Ipv4Addr =
            name.parse().map_err(|_| BadTarget::Host("an IPv4 address is four plain decimal numbers"))?;
        if text.ends_with('.') {
            return Err(BadTarget::Host("an address with a trailing dot"));
        }
        return Ok(Host::of(ip.into()));
    }
    Ok(Host { text: name, ip: None })
}

fn is_number(label: &str) -> bool {
    let hex = label.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_hexdigit()));
    hex || label.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_has_one_spelling() {
        for (written, read) in [
            ("API.Example.com", "api.example.com"),
            ("api.example.com.", "api.example.com"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:DB8:0:0::1]", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
            ("localhost", "localhost"),
            ("_srv.a.example", "_srv.a.example"),
        ] {
            assert_eq!(Host::parse(written).unwrap().as_str(), read, "{written}");
        }
    }

    #[test]
    fn tricks_are_refused() {
        for bad in [
            "",
            ".",
            "..",
            "a..b",
            "a.example..",
            ".a",
            "a\0.example",
            "a\n",
            "a b",
            " a",
            "a\t",
            "u@a.example",
            "a%2eexample",
            "a\\b",
            "a/b",
            "a?b",
            "a#b",
            "bücher.example",
            "ａ.example",
            "a。example",
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "127.0.1",
            "1.2.3.4.5",
            "256.1.1.1",
            "127.0.0.1.",
            "127.0.0.01",
            "a.1",
            "a.0x1",
            "[::ffff:127.0.0.1]",
            "::ffff:7f00:1",
            "[::127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2001:0:1::1]",
            "[fe80::5efe:7f00:1]",
            "[fe80::1%eth0]",
            "[::1",
            "::1]",
            "[]",
            "[1.2.3.4]",
            "-a.example",
            "a-.example",
            "*.example",
            "0x",
        ] {
            assert!(Host::parse(bad).is_err(), "{bad:?}");
        }
        let label = "a".repeat(63);
        assert!(Host::parse(&label).is_ok() && Host::parse(&format!("{label}a")).is_err());
        let long = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        assert!(Host::parse(&long).is_ok() && Host::parse(&format!("{long}a")).is_err());
    }

    #[test]
    fn connect_needs_a_port_and_a_header_does_not() {
        let to = Authority::connect("API.example.:443").unwrap();
        assert_eq!(to, Authority::header("api.example", 443).unwrap());
        assert_ne!(to, Authority::header("api.example:8443", 443).unwrap());
        assert_eq!(Authority::connect("[2001:db8::1]:1").unwrap().to_string(), "[2001:db8::1]:1");
        assert_eq!(to.to_string(), "api.example:443");
        for bad in [
            "a.example",
            "a.example:",
            "a.example:0",
            "a.example:0443",
            "a.example:+443",
            "a.example:65536",
            "a.example:443 ",
            "a.example:443:443",
            "u@a.example:443",
            "u:p@a.example:443",
            "::1:443",
            "[::1]443",
            "[::1]",
            "a.example:443\0",
            "a.example\0.b:443",
            "https://a.example:443",
            ":443",
            "[::1]x:443",
            "a:４43",
        ] {
            assert!(Authority::connect(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "a.example:", "a, b", "a.example:443, b", "[::1]:", "a.example:00"] {
            assert!(Authority::header(bad, 443).is_err(), "{bad:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_read_reads_the_same_again(text in "[a-zA-Z0-9.\\-_:\\[\\]%@x]{0,40}|\\PC{0,40}") {
            if let Ok(host) = Host::parse(&text) {
                proptest::prop_assert!(host.as_str().is_ascii() && !host.as_str().ends_with('.'));
                proptest::prop_assert_eq!(Host::parse(host.as_str()).unwrap(), host);
            }
            if let Ok(to) = Authority::header(&text, 443) {
                proptest::prop_assert_eq!(Authority::connect(&to.to_string()).unwrap(), to);
            }
        }

        #[test]
        fn every_v4_has_one_spelling(n: u32) {
            let ip = Ipv4Addr::from(n);
            proptest::prop_assert_eq!(Host::parse(&ip.to_string()).unwrap().ip(), Some(IpAddr::V4(ip)));
            let [a, b, c, d] = ip.octets();
            let (low, octal) = (u32::from(c) << 8 | u32::from(d), format!("0{a:o}.{b}.{c}.{d}"));
            for other in [n.to_string(), format!("{n:#x}"), octal, format!("{a}.{b}.{low}")] {
                proptest::prop_assert!(Host::parse(&other).is_err());
            }
            let mapped = ip.to_ipv6_mapped().to_string();
            proptest::prop_assert!(Host::parse(&mapped).is_err());
        }
    }
}
