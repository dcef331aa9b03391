//! May a connection go to this address? Only to one that is global by the IANA special-purpose registries.
//!
//! Sources: <https://www.iana.org/assignments/iana-ipv4-special-registry> and its IPv6 twin, and the addresses where
//! clouds keep their metadata. Of IPv6 only the global unicast block 2000::/3 is let through, less what is special in
//! it. An IPv6 address that carries an IPv4 one is refused as such: there is no way to name 127.0.0.1 twice.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not for everyone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// Private, shared (CGNAT), documentation, benchmarks: a range of `allowed_ips` may list it.
    Private(&'static str),
    /// Loopback, link-local, metadata: only the very address may be listed.
    Local(&'static str),
    /// Unspecified, multicast, broadcast, reserved, one address inside another: never.
    Never(&'static str),
}

impl Special {
    /// What it is, for a log.
    pub fn what(self) -> &'static str {
        match self {
            Self::Private(what) | Self::Local(what) | Self::Never(what) => what,
        }
    }
}

/// What is special about `ip`; `None` is an ordinary address of the internet.
pub fn special(ip: IpAddr) -> Option<Special> {
    match ip {
        IpAddr::V4(ip) => special_v4(ip),
        IpAddr::V6(ip) => special_v6(ip),
    }
}

const METADATA: &str = "a cloud's metadata address";

fn special_v4(ip: Ipv4Addr) -> Option<Special> {
    use Special::{Local, Never, Private};
    Some(match ip.octets() {
        // AWS, GCP, Azure and most others; Azure's wire server; Alibaba; Oracle
        [169, 254, 169, 254] | [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] => Local(METADATA),
        [0, ..] => Never("an address of this network (0.0.0.0/8)"),
        [127, ..] => Local("a loopback address"),
        [169, 254, ..] => Local("a link-local address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Private("a private address"),
        [100, 64..=127, ..] => Private("a shared address (100.64.0.0/10)"),
        [192, 0, 0, _] => Private("an address of protocol assignments"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Private("a documentation address"),
        [198, 18 | 19, ..] => Private("a benchmark address"),
        [192, 88, 99, _] => Never("a 6to4 relay"),
        [224..=239, ..] => Never("a multicast address"),
        [240..=255, ..] => Never("a reserved or broadcast address"),
        _ => return None,
    })
}

fn special_v6(ip: Ipv6Addr) -> Option<Special> {
    use Special::{Local, Never, Private};
    if ip == Ipv6Addr::LOCALHOST {
        return Some(Local("a loopback address"));
    }
    if ip == Ipv6Addr::UNSPECIFIED {
        return Some(Never("the unspecified address"));
    }
    if carries_v4(ip) {
        return Some(Never("an IPv6 address that carries an IPv4 address"));
    }
    Some(match ip.segments() {
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => Local(METADATA), // AWS, GCP
        [0xfe80..=0xfebf, ..] => Local("a link-local address"),
        [0xfec0..=0xfeff, ..] => Private("a site-local address"),
        [0xfc00..=0xfdff, ..] => Private("a private address"),
        [0xff00..=0xffff, ..] => Never("a multicast address"),
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => Private("a documentation address"),
        [0x2001, 0x0002, 0, ..] => Private("a benchmark address"),
        [0x2001, 0..=0x01ff, ..] => Never("an address of protocol assignments"),
        [0x2000..=0x3fff, ..] => return None,
        _ => Never("not a global unicast address"),
    })
}

/// Mapped, compatible, translated (NAT64), 6to4, Teredo and ISATAP addresses. `::` and `::1` are themselves.
pub fn carries_v4(ip: Ipv6Addr) -> bool {
    match ip.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => false,
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => true,
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] | [0x2002, ..] | [0x2001, 0, ..] => true,
        [_, _, _, _, 0 | 0x0200, 0x5efe, ..] => true,
        _ => false,
    }
}

/// A range of addresses: `10.0.0.0/8`, or one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cidr {
    base: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// Reads `address/prefix` or `address`. Refused: host bits that are set, a prefix of 0, IPv4 inside IPv6.
    pub fn parse(text: &str) -> Option<Self> {
        let (base, prefix) = match text.split_once('/') {
            Some((base, prefix)) => (base, Some(prefix)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().ok()?;
        if matches!(base, IpAddr::V6(ip) if carries_v4(ip)) {
            return None;
        }
        let width = if base.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0') => {
                digits.parse().ok().filter(|prefix| *prefix <= width)?
            }
            Some(_) => return None,
        };
        let this = Self { base, prefix };
        (this.masked(base) == Some(bits(base))).then_some(this)
    }

    /// Whether `ip` lies in it.
    pub fn contains(&self, ip: IpAddr) -> bool {
        self.masked(ip) == Some(bits(self.base))
    }

    /// Whether it is one address.
    pub fn is_single(&self) -> bool {
        self.prefix == if self.base.is_ipv4() { 32 } else { 128 }
    }

    /// The prefix bits of `ip`, where it is of the same family.
    fn masked(&self, ip: IpAddr) -> Option<u128> {
        let width: u32 = if ip.is_ipv4() { 32 } else { 128 };
        let low = width.checked_sub(u32::from(self.prefix))?;
        (ip.is_ipv4() == self.base.is_ipv4()).then(|| bits(ip) & u128::MAX.checked_shl(low).unwrap_or(0))
    }
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u32::from(ip).into(),
        IpAddr::V6(ip) => ip.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_registries_are_kept_edge_by_edge() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
            ("::", "1fff:ffff::"),
            ("2001:0::", "2001:1ff:ffff::"),
            ("2001:db8::", "2001:db8:ffff::"),
            ("2002::", "2002:ffff::"),
            ("3fff::", "3fff:fff:ffff::"),
            ("4000::", "ffff:ffff::"),
            ("168.63.129.16", "168.63.129.16"),
            ("::ffff:8.8.8.8", "::ffff:8.8.8.8"),
            ("64:ff9b::8.8.8.8", "64:ff9b::8.8.8.8"),
            ("::1", "::1"),
            ("fd00:ec2::254", "fd00:ec2::254"),
            ("fe80::1", "febf::1"),
            ("fc00::1", "fdff::1"),
        ] {
            assert!(special(ip(first)).is_some() && special(ip(last)).is_some(), "{first} {last}");
        }
        for open in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.0",
            "192.0.3.0",
            "192.167.0.0",
            "192.169.0.0",
            "198.17.0.0",
            "198.20.0.0",
            "198.51.99.0",
            "198.51.101.0",
            "203.0.112.0",
            "203.0.114.0",
            "223.255.255.255",
            "8.8.8.8",
            "2000::1",
            "2001:200::1",
            "2001:db7::1",
            "2001:db9::1",
            "2001:4860::8888",
            "2003::1",
            "2606:4700::1",
            "3ffe::1",
            "3fff:1000::1",
            "168.63.129.17",
        ] {
            assert_eq!(special(ip(open)), None, "{open}");
        }
    }

    #[test]
    fn metadata_and_loopback_are_local_and_private_ranges_are_not() {
        for local in
            ["169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "::1", "127.9.9.9"]
        {
            assert!(matches!(special(ip(local)), Some(Special::Local(_))), "{local}");
        }
        for private in ["10.1.2.3", "fd12::1", "100.64.0.1", "192.0.2.1"] {
            assert!(matches!(special(ip(private)), Some(Special::Private(_))), "{private}");
        }
    }

    #[test]
    fn ranges_are_strict() {
        let ten = Cidr::parse("10.0.0.0/8").unwrap();
        assert!(ten.contains(ip("10.255.0.1")) && !ten.contains(ip("11.0.0.1")) && !ten.contains(ip("::a00:1")));
        let six = Cidr::parse("fd00:1::/32").unwrap();
        assert!(six.contains(ip("fd00:1::9")) && !six.contains(ip("fd00:2::9")) && !six.is_single());
        assert!(Cidr::parse("127.0.0.1").unwrap().is_single() && Cidr::parse("::1/128").unwrap().is_single());
        for bad in [
            "10.0.0.1/8",
            "10.0.0.0/33",
            "10.0.0.0/08",
            "10.0.0.0/",
            "10/8",
            "0.0.0.0/0",
            "::ffff:10.0.0.0/104",
            "x",
            "",
        ] {
            assert_eq!(Cidr::parse(bad), None, "{bad}");
        }
    }
}
