//! Is there an IP address, a hardware address, or a URL that carries a password?
//!
//! Refused: versions (`version 9.8.0.9`), times, C++ paths (`ad::x`, `dead::beef`), the unspecified and loopback addresses and
//! netmasks, which name nobody.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{
    Kind,
    context::{self, Word},
    rules::RuleInfo,
    run::Sep,
    scanner::{Hit, Spot, weight},
};

const V4: &str = "ip.v4";
const V6: &str = "ip.v6";
const MAC: &str = "mac.eui";
const URL: &str = "url.password";

pub(crate) const RULES: &[RuleInfo] = &[
    RuleInfo::new(V4, Kind::Ip, "RFC 791, RFC 6943 section 3.1.1 (dotted decimal)"),
    RuleInfo::new(V6, Kind::Ip, "RFC 4291 section 2.2, RFC 5952"),
    RuleInfo::new(MAC, Kind::Mac, "IEEE 802 EUI-48 and EUI-64 in colon, hyphen and dotted-quad form"),
    RuleInfo::new(URL, Kind::UrlCred, "RFC 3986 section 3.2.1 (userinfo)"),
];

const fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// A URL with user and password around the `:` of its `://` at `at`: scheme to end.
pub(crate) fn url(text: &[u8], at: usize) -> Option<Hit> {
    if !text[at..].starts_with(b"://") {
        return None;
    }
    let scheme = text[..at]
        .iter()
        .rev()
        .take(24)
        .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'))
        .count();
    let start = at - scheme;
    let start = start + text[start..at].iter().take_while(|b| !b.is_ascii_alphabetic()).count();
    let rest = &text[at + 3..(at + 2048).min(text.len())];
    let authority = &rest[..rest.iter().position(|&b| ends_url(b) || b == b'/').unwrap_or(rest.len())];
    let sign = memchr::memrchr(b'@', authority)?;
    let colon = memchr::memchr(b':', &authority[..sign])?;
    let host = authority.get(sign + 1)?;
    if start == at || colon + 1 == sign || !(host.is_ascii_alphanumeric() || *host == b'[' || *host >= 0x80) {
        return None;
    }
    let len = rest.iter().position(|&b| ends_url(b)).unwrap_or(rest.len());
    let mut len = sentence(&rest[..len]);
    // A bracket of the text around it closes the URL.
    if let Some(close) = rest[..len].iter().position(|&b| b == b')')
        && !rest[..close].contains(&b'(')
        && close > sign
    {
        len = close;
    }
    Some(Hit { start, end: at + 3 + len, kind: Kind::UrlCred, rule: URL, weight: weight::BLOCK })
}

const fn ends_url(b: u8) -> bool {
    b <= b' ' || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`' | b'|' | b'\\' | b'{' | b'}' | 0x7F | 0xE3 | 0xEF)
}

/// Length without the punctuation of a sentence that ends behind the URL.
fn sentence(url: &[u8]) -> usize {
    url.iter().rposition(|b| !matches!(b, b'.' | b',' | b';' | b':' | b'!' | b'?' | b']' | b'*')).map_or(0, |i| i + 1)
}

/// An IPv6 or hardware address whose first `:` is at `at`.
pub(crate) fn colon(text: &[u8], at: usize) -> Option<Hit> {
    let start = at - text[..at].iter().rev().take(5).take_while(|b| b.is_ascii_hexdigit()).count();
    let head = start.checked_sub(1).map_or(b' ', |i| text[i]);
    let follows = *text.get(at + 1)?;
    if is_word(head)
        || head == b'.'
        || head == b':' && inside(text, start)
        || !(follows.is_ascii_hexdigit() || follows == b':')
    {
        return None;
    }
    let rest = &text[start..(start + 64).min(text.len())];
    let len = rest.iter().take_while(|b| b.is_ascii_hexdigit() || matches!(b, b':' | b'.')).count();
    let next = rest.get(len).copied().unwrap_or(b' ');
    let body = &rest[..len];
    let body = &body[..body.len() - body.iter().rev().take_while(|&&b| b == b'.').count()];
    if is_word(next) && body.len() == len {
        return None;
    }
    if pairs(body, b':') {
        if body.iter().all(|b| matches!(b, b'0' | b':')) || body.iter().all(|b| matches!(b, b'f' | b'F' | b':')) {
            return None;
        }
        return Some(Hit { start, end: start + body.len(), kind: Kind::Mac, rule: MAC, weight: weight::SHAPE });
    }
    let body = match body {
        [head @ .., b':'] if !head.ends_with(b":") => head,
        _ => body,
    };
    let address: Ipv6Addr = std::str::from_utf8(body).ok()?.parse().ok()?;
    let hit = Hit { start, end: start + body.len(), kind: Kind::Ip, rule: V6, weight: weight::SHAPE };
    if address.is_unspecified() || address.is_loopback() || address.is_multicast() {
        return None;
    }
    let groups = body.split(|&b| b == b':').filter(|g| !g.is_empty()).count();
    let digit = body.iter().any(u8::is_ascii_digit);
    let allocated =
        matches!(address.segments()[0], 0x2000..=0x3FFF | 0x64 | 0xFC00..=0xFDFF | 0xFE80..=0xFEBF | 0xFF00..=0xFFFF);
    let sure =
        groups >= 6 || digit && groups >= 3 || digit && allocated || groups >= 2 && address.to_ipv4_mapped().is_some();
    (sure || (groups >= 2 && context::keyed(text, start, Word::Ip))).then_some(hit)
}

/// Whether the `:` before `start` belongs to the same address: a hexadecimal group or another `:` stands before it. The word of
/// a label (`ip:2001:db8::1`) is no such group.
fn inside(text: &[u8], start: usize) -> bool {
    let before = &text[..start - 1];
    let word = before.iter().rev().take(8).take_while(|b| is_word(**b)).count();
    let group = &before[before.len() - word..];
    if word == 0 { before.ends_with(b":") } else { word <= 4 && group.iter().all(u8::is_ascii_hexdigit) }
}

/// Six or eight pairs of hexadecimal digits.
fn pairs(body: &[u8], sep: u8) -> bool {
    matches!(body.len(), 17 | 23)
        && body.iter().enumerate().all(|(i, &b)| if i % 3 == 2 { b == sep } else { b.is_ascii_hexdigit() })
}

/// Three groups of four hexadecimal digits, as some switches print them.
fn quads(body: &[u8]) -> bool {
    body.len() == 14
        && body.iter().enumerate().all(|(i, &b)| if i % 5 == 4 { b == b'.' } else { b.is_ascii_hexdigit() })
}

/// An IPv4 address, or a hardware address without colons, that holds the group at the spot.
pub(crate) fn number(spot: &Spot, hits: &mut Vec<Hit>) {
    hits.extend(v4(spot).or_else(|| hardware(spot)));
}

fn hardware(spot: &Spot) -> Option<Hit> {
    let text = spot.text;
    let group = spot.run.groups()[0].len();
    let (step, sep, len) = match group {
        2 => (3, b'-', 17),
        4 => (5, b'.', 14),
        12 => (0, 0, 12),
        _ => return None,
    };
    let mut start = spot.start;
    while step > 0
        && start >= step
        && text[start - 1] == sep
        && text[start - step..start - 1].iter().all(u8::is_ascii_hexdigit)
    {
        start -= step;
    }
    let body = text.get(start..start + len)?;
    let letters = body.iter().any(u8::is_ascii_alphabetic);
    let (head, next) = (start.checked_sub(1).map_or(b' ', |i| text[i]), spot.byte(start + len));
    let joined = is_word(next) || (next == sep && is_word(spot.byte(start + len + 1))) || is_word(head) || head == sep;
    let right = match group {
        2 => pairs(body, b'-'),
        4 => quads(body),
        _ => body.iter().all(u8::is_ascii_hexdigit),
    };
    let known = if group == 12 { spot.before.keyed(Word::Mac) } else { letters || spot.before.near(Word::Mac) };
    (right && known && !joined).then_some(Hit {
        start,
        end: start + len,
        kind: Kind::Mac,
        rule: MAC,
        weight: weight::SHAPE,
    })
}

fn v4(spot: &Spot) -> Option<Hit> {
    let groups = spot.run.groups();
    if groups.len() < 4 || groups[1..4].iter().any(|g| g.sep != Sep::Dot) {
        return None;
    }
    let (start, end) = (spot.start, spot.run.end(groups[3].to()));
    // `1. 2.3.4` and `1.\n2.3.4` are no addresses: dots only.
    let address: Ipv4Addr = std::str::from_utf8(&spot.text[start..end]).ok()?.parse().ok()?;
    if part_of_more(spot, end) || !names_someone(address) {
        return None;
    }
    // The smaller its numbers, the rather it is a version: then a word for an address must be there.
    let below = |max| address.octets().iter().all(|&o| o < max);
    let (keyed, near) = (spot.before.keyed(Word::Ip), spot.before.near(Word::Ip));
    let known = keyed || near && (!below(32) || address.octets()[0] == 10) || !below(100);
    if spot.before.keyed(Word::Version) && !keyed || !known || below(100) && !keyed && spot.before.near(Word::Version) {
        return None;
    }
    Some(Hit { start, end, kind: Kind::Ip, rule: V4, weight: weight::SHAPE })
}

fn names_someone(address: Ipv4Addr) -> bool {
    let [a, ..] = address.octets();
    a != 0 && a < 224 && !address.is_loopback()
}

/// A longer dotted number, a package's version (`1.2.3.4-5`), a file name.
fn part_of_more(spot: &Spot, end: usize) -> bool {
    let dotted = |at: usize| {
        let digits = (at..at + 4).take_while(|&i| spot.byte(i).is_ascii_digit()).count();
        digits > 0 && spot.byte(at + digits) == b'.'
    };
    let (next, further) = (spot.byte(end), spot.byte(end + 1));
    let behind = is_word(next)
        || (next == b'.' && is_word(further))
        || (matches!(next, b'-' | b'+' | b'~') && is_word(further) && !dotted(end + 1));
    let before = match spot.start.checked_sub(2).map(|i| [spot.text[i], spot.text[i + 1]]) {
        Some([_, b'_' | b'.']) => true,
        Some([b, b'-']) => {
            is_word(b) && !(b.is_ascii_digit() && spot.text[..spot.start - 1].iter().rev().take(4).any(|&b| b == b'.'))
        }
        _ => false,
    };
    behind || before
}

#[cfg(test)]
mod tests {
    use crate::testing::{found, nothing, only};

    #[test]
    fn addresses() {
        for ip in [
            "203.0.113.7",
            "192.168.1.20",
            "2001:db8::1",
            "fe80::1ff:fe23:4567:890a",
            "2001:db8:85a3:8d3:1319:8a2e:370:7348",
            "A099::09C0:876A:130B",
            "::ffff:192.0.2.128",
            "1.2.3.200",
        ] {
            for text in [
                format!("from {ip} port 22"),
                format!("[{ip}]"),
                format!("ip：{ip}の"),
                format!("{ip}."),
                format!("({ip})"),
                format!("peer {ip} up"),
            ] {
                only(&text, "IP", ip);
            }
        }
        only("http://203.0.113.7:8080/x", "IP", "203.0.113.7");
        only("203.0.113.0/24", "IP", "203.0.113.0");
        only("DNS server 9.9.9.9", "IP", "9.9.9.9");
        assert_eq!(found("203.0.113.1-203.0.113.9").len(), 2);
    }

    #[test]
    fn not_addresses() {
        for text in [
            "version 9.8.0.9 of the driver",
            "v1.2.3.4",
            "libx-1.2.3.200-5",
            "1.3.6.1.4.1.311.2",
            "section 4.3.2.1",
            "0.0.0.0 and ::",
            "std::vec ad::x // dead::beef",
            "at 12:30:45",
            "256.1.1.1",
            "127.0.0.1",
            "::1",
            "255.255.255.0",
            "a::b",
            "2.4.1.10 released",
            "01.02.03.004",
        ] {
            nothing(text);
        }
    }

    #[test]
    fn hardware_addresses() {
        for mac in
            ["00:1A:2B:3C:4D:5E", "ec-eb-cc-6b-d2-e8", "96b5.d4da.d1cf", "00:11:22:ff:fe:33:44:55", "12:34:56:78:90:12"]
        {
            only(&format!("device {mac} joined"), "MAC", mac);
        }
        only("MAC: 001A2B3C4D5E", "MAC", "001A2B3C4D5E");
        nothing("ec-eb-cc-6b-d2 and ec-eb-cc-6b-d2-e8-11 and 001A2B3C4D5E");
    }

    #[test]
    fn urls_with_passwords() {
        for url in [
            "https://jo:s3cr$t!@example.org/path?x=1",
            "mongodb+srv://jo:pw@db.example.org:5432/app",
            "ftp://jo:a@b@example.org",
            "redis://:pw@localhost:6379",
        ] {
            only(&format!("see {url} there"), "URL_CRED", url);
            only(&format!("\"url\": \"{url}\","), "URL_CRED", url);
        }
        nothing("https://example.org/a:b and ssh://git@example.org/x");
        only("(https://jo:pw@example.org).", "URL_CRED", "https://jo:pw@example.org");
    }
}
