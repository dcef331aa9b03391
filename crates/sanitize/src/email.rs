//! Is the `@` here part of an e-mail address, and how far does the address go?
//!
//! Refused: handles (`@someone`), package versions (`react@16.3.1`), image scales (`logo@2x.png`), decorators, and the SSH
//! remotes of version control (`git@github.com:a/b.git`). A domain needs a top level that exists or is set apart for private use.

use crate::{
    Kind,
    context::{self, Word},
    rules::RuleInfo,
    scanner::{Hit, weight},
};

const ADDRESS: &str = "email.address";

pub(crate) const RULES: &[RuleInfo] = &[RuleInfo::new(
    ADDRESS,
    Kind::Email,
    "RFC 5321 section 4.1.2, RFC 6531 (letters beyond ASCII), RFC 5890 (IDN), Public Suffix List, RFC 2606, RFC 6762",
)];

/// Longest local part and domain (RFC 5321 section 4.5.3.1), in bytes; local parts beyond ASCII may be longer than 64.
const LOCAL: usize = 128;
const DOMAIN: usize = 255;

/// Top-level names that no registry gives out but that addresses use (RFC 2606, RFC 6762 appendix G, ICANN on `.internal`).
const PRIVATE: [&str; 14] = [
    "example",
    "test",
    "invalid",
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "localdomain",
    "onion",
    "arpa",
];

/// The address around the `@` at `at`.
pub(crate) fn at(text: &[u8], at: usize) -> Option<Hit> {
    let start = local(text, at)?;
    let end = domain(text, start, at + 1)?;
    if remote(text, &text[start..at], end) {
        return None;
    }
    Some(Hit { start, end, kind: Kind::Email, rule: ADDRESS, weight: weight::SHAPE })
}

/// Signs of a local part. RFC 5322 has more, but they rather come from the text around it (`to=a@b`, `{a@b}`, `x/a@b`).
const fn atom(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-' | b'+' | b'\'') || b >= 0x80
}

fn local(text: &[u8], at: usize) -> Option<usize> {
    if at > 0 && text[at - 1] == b'"' {
        return quoted(text, at);
    }
    let floor = at.saturating_sub(LOCAL);
    let mut start = at;
    while start > floor && atom(text[start - 1]) {
        start -= 1;
    }
    while start < at && text[start] & 0xC0 == 0x80 {
        start += 1;
    }
    start = script_edge(text, start, at);
    while start < at && matches!(text[start], b'.' | b'\'' | b'-' | b'+') {
        start += 1;
    }
    (start < at && text[at - 1] != b'.').then_some(start)
}

/// `"john doe"@example.org`
fn quoted(text: &[u8], at: usize) -> Option<usize> {
    let floor = at.saturating_sub(66);
    let open = memchr::memrchr(b'"', text.get(floor..at - 1)?)?;
    let start = floor + open;
    let inside = &text[start + 1..at - 1];
    (!inside.is_empty() && !inside.contains(&b'\n')).then_some(start)
}

/// Scripts without spaces touch an address (`邮箱jo@example.org`): it begins behind their last character that ASCII follows.
/// A part wholly in such a script is kept. Signs and punctuation beyond ASCII never belong to it.
fn script_edge(text: &[u8], start: usize, end: usize) -> usize {
    let Ok(part) = std::str::from_utf8(&text[start..end]) else { return end };
    let mut edge = 0;
    let mut dense = false;
    for (i, c) in part.char_indices() {
        let foreign = !c.is_ascii();
        if foreign && !c.is_alphanumeric() {
            edge = i + c.len_utf8();
            dense = false;
        } else if foreign {
            dense = is_dense(c);
        } else if dense && c.is_ascii_alphanumeric() {
            edge = i;
            dense = false;
        }
    }
    start + edge
}

/// Letters of scripts that are written without spaces, from Thai and Tibetan to Han, kana and Hangul.
const fn is_dense(c: char) -> bool {
    matches!(c as u32, 0xE00..=0xFFF | 0x1000..=0x11FF | 0x1780..=0x17FF | 0x2E80..=0xD7FF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

/// Where the domain that begins at `from` ends; the local part begins at `local`.
fn domain(text: &[u8], local: usize, from: usize) -> Option<usize> {
    let mut start = from;
    // A mail reader or PDF may break the line behind the sign.
    if matches!(text.get(start), Some(b'\r' | b'\n')) {
        start += text[start..].iter().take(2).take_while(|b| matches!(b, b'\r' | b'\n')).count();
    }
    if text.get(start) == Some(&b'[') {
        return literal(text, start);
    }
    let mut labels: Vec<(usize, usize)> = Vec::new();
    let mut at = start;
    while at - start < DOMAIN {
        let end = label(text, at);
        if end == at {
            break;
        }
        labels.push((at, end));
        match text.get(end) {
            Some(b'.') => at = end + 1,
            _ => break,
        }
    }
    let (all, last) = (labels.len(), labels.last().copied());
    // Take labels off the end until a top level is left: `jo@example.org.Then`.
    while labels.len() >= 2 {
        let (top, end) = labels[labels.len() - 1];
        if top_level(&text[top..end]) {
            return Some(end);
        }
        labels.pop();
    }
    // Behind a keyword a top level that does not exist is a typing error.
    let (top, end) = last?;
    let typed = all >= 2 && text[top..end].iter().all(u8::is_ascii_alphabetic) && (2..=12).contains(&(end - top));
    (typed && context::keyed(text, local, Word::Email)).then_some(end)
}

/// `[192.0.2.1]`, `[IPv6:…]`
fn literal(text: &[u8], start: usize) -> Option<usize> {
    let close = text[start..].iter().take(48).position(|&b| b == b']')?;
    let inside = &text[start + 1..start + close];
    let address = inside.iter().all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b':' | b'I' | b'P' | b'v'));
    (address && inside.len() >= 3 && inside.iter().any(u8::is_ascii_digit)).then_some(start + close + 1)
}

fn label(text: &[u8], from: usize) -> usize {
    let rest = &text[from..(from + 200).min(text.len())];
    let len =
        rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'-' || **b == b'_' || **b >= 0x80).count();
    let mut part = &rest[..len];
    let text = match std::str::from_utf8(part) {
        Ok(text) => text,
        Err(error) => {
            part = &part[..error.valid_up_to()];
            std::str::from_utf8(part).unwrap_or_default()
        }
    };
    // A label in Latin letters ends where a script without spaces begins: `jo@example.org입니다`.
    let latin = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    let end =
        text.find(|c: char| !c.is_ascii() && (!c.is_alphanumeric() || (latin && is_dense(c)))).unwrap_or(text.len());
    from + text[..end].trim_end_matches(['-', '_']).len()
}

fn top_level(top: &[u8]) -> bool {
    let Ok(top) = std::str::from_utf8(top) else { return false };
    if top.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let top = top.to_lowercase();
    if PRIVATE.contains(&top.as_str()) {
        return true;
    }
    psl::suffix(top.as_bytes()).is_some_and(|suffix| suffix.is_known())
}

/// The SSH remote of a version control service.
fn remote(text: &[u8], local: &[u8], end: usize) -> bool {
    let path = |rest: &[u8]| rest.iter().take(120).take_while(|b| b.is_ascii_graphic()).any(|&b| b == b'/');
    matches!(local, b"git" | b"hg" | b"svn" | b"org" | b"aur" | b"gitea" | b"gogs")
        && match &text[end..] {
            [b':', rest @ ..] => path(rest),
            rest @ [b'/', ..] => path(rest),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<&str> {
        let sign = text.find('@').unwrap();
        at(text.as_bytes(), sign).map(|hit| &text[hit.start..hit.end])
    }

    #[test]
    fn addresses() {
        for (text, want) in [
            ("<jo@example.org>", "jo@example.org"),
            ("Work:o'brien.2+x@mail.example.co.uk, or", "o'brien.2+x@mail.example.co.uk"),
            ("'jo@example.org'", "jo@example.org"),
            ("to=jo@example.org&x=1", "jo@example.org"),
            ("jo@example.org. Then", "jo@example.org"),
            ("jo@example.org.Then", "jo@example.org"),
            ("邮箱jo@example.org。", "jo@example.org"),
            ("jo@example.org입니다", "jo@example.org"),
            ("jürgen@müller.de", "jürgen@müller.de"),
            ("用户@例え.jp", "用户@例え.jp"),
            ("ops@db.internal", "ops@db.internal"),
            ("\"jo doe\"@example.org", "\"jo doe\"@example.org"),
            ("jo@[192.0.2.7]", "jo@[192.0.2.7]"),
            ("jo@\nexample.org", "jo@\nexample.org"),
            ("git@example.org is ours", "git@example.org"),
        ] {
            assert_eq!(found(text), Some(want), "{text}");
        }
    }

    #[test]
    fn near_misses() {
        for text in [
            "@someone",
            "react@16.3.1",
            "@types/node@16.1.6",
            "logo@2x.png",
            "@app.route(\"/x\")",
            "git@github.com:a/b.git",
            "jo@example",
            "jo @example.org",
            "a@b",
            "x@.org",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
