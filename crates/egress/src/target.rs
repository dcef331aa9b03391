//! What does a request ask for? Its path decoded once and canonical, and its query as pairs, or a refusal.
//!
//! A rule is judged on [`Target::path`] and the server gets [`Target::wire`], so both must mean one thing to every
//! server. Refused is what servers read in different ways: dot segments in any encoding, empty segments, an encoded
//! slash or backslash, control characters, bad percent sequences, text that is encoded twice, `;` parameters, `;`
//! between query pairs, fragments, non-UTF-8. In what is sent on, percent sequences of unreserved characters are
//! decoded and all others stand in upper case (RFC 3986 §6.2.2); so a wire that is parsed again is itself.

use std::fmt;

use zeroize::Zeroizing;

/// The longest target, in bytes.
const MAX_TARGET: usize = 16 * 1024;

/// Why a host, a port or a target was refused. Nothing of the request's own text is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadTarget {
    /// The host has two readings.
    #[error("the host: {0}")]
    Host(&'static str),
    /// The port is not a plain number from 1 to 65535.
    #[error("the port must be a plain number from 1 to 65535")]
    Port,
    /// Longer than 16 KiB.
    #[error("the target is longer than 16 KiB")]
    TooLong,
    /// Not `/path` or `/path?query`.
    #[error("the target must start with `/` and have no fragment")]
    Form,
    /// The path has two readings.
    #[error("the path: {0}")]
    Path(&'static str),
    /// The query has two readings.
    #[error("the query: {0}")]
    Query(&'static str),
}

/// An origin-form target that has one reading.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    path: String,
    query: Vec<(String, String)>,
    wire: Zeroizing<String>, // may hold a secret once a credential was swapped in
}

impl Target {
    /// Reads `/path?query`.
    pub fn parse(origin_form: &str) -> Result<Self, BadTarget> {
        if origin_form.len() > MAX_TARGET {
            return Err(BadTarget::TooLong);
        }
        if !origin_form.starts_with('/') || origin_form.contains('#') {
            return Err(BadTarget::Form);
        }
        let (raw_path, raw_query) = match origin_form.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (origin_form, None),
        };
        let (path, mut wire) = read_path(raw_path)?;
        let mut query = Vec::new();
        if let Some(raw) = raw_query {
            let (pairs, again) = read_query(raw)?;
            query = pairs;
            wire.push('?');
            wire.push_str(&again);
        }
        if wire.len() > MAX_TARGET {
            return Err(BadTarget::TooLong); // quoting made it longer
        }
        Ok(Self { path, query, wire: wire.into() })
    }

    /// The decoded path: no dot segment, no empty segment but a last one.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The decoded pairs in order; `a` is `("a", "")`. A secret that was swapped in is not here.
    pub fn query(&self) -> &[(String, String)] {
        &self.query
    }

    /// What is sent on. It may hold a secret after a swap: not for logs.
    pub fn wire(&self) -> &str {
        &self.wire
    }

    /// Puts `value` in place of the values of `name` in what is sent on.
    pub(crate) fn put(&mut self, name: &str, value: &str) {
        let mut wire = Zeroizing::new(String::with_capacity(self.wire.len() + value.len() * 3));
        let (path, query) = self.wire.split_once('?').unwrap_or((&self.wire, ""));
        wire.push_str(path);
        for (index, raw) in query.split('&').enumerate() {
            wire.push(if index == 0 { '?' } else { '&' });
            let raw_name = raw.split('=').next().unwrap_or_default();
            if decode(raw_name, true).as_deref() == Some(name) {
                wire.push_str(raw_name);
                wire.push('=');
                value.bytes().for_each(|byte| {
                    if unreserved(byte) { wire.push(char::from(byte)) } else { quote(byte, &mut wire) }
                });
            } else {
                wire.push_str(raw);
            }
        }
        self.wire = wire;
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("path", &self.path).finish_non_exhaustive()
    }
}

fn read_path(raw: &str) -> Result<(String, String), BadTarget> {
    if raw.contains(['\\', ';']) {
        return Err(BadTarget::Path("a backslash or a `;` parameter"));
    }
    let wire =
        normal(raw, b"!$&'()*+,=:@/").ok_or(BadTarget::Path("a character or percent sequence that is not valid"))?;
    let mut segments = Vec::new();
    for segment in raw[1..].split('/') {
        let text = decode(segment, false).ok_or(BadTarget::Path("not UTF-8"))?;
        // full-width forms of `.`, `/` and `\` that a server may fold to ASCII
        if text.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | '\u{ff0e}' | '\u{ff0f}' | '\u{ff3c}')) {
            return Err(BadTarget::Path("an encoded slash, backslash or control character"));
        }
        if encoded_again(&text) {
            return Err(BadTarget::Path("encoded twice"));
        }
        if matches!(text.split(';').next().unwrap_or_default().trim(), "." | "..") {
            return Err(BadTarget::Path("a dot segment"));
        }
        segments.push(text);
    }
    if segments.iter().rev().skip(1).any(String::is_empty) {
        return Err(BadTarget::Path("an empty segment"));
    }
    Ok((format!("/{}", segments.join("/")), wire))
}

fn read_query(raw: &str) -> Result<(Vec<(String, String)>, String), BadTarget> {
    if raw.contains([';', '\\']) {
        return Err(BadTarget::Query("a `;` or a backslash; write them encoded"));
    }
    let wire =
        normal(raw, b"!$&'()*+,=:@/?").ok_or(BadTarget::Query("a character or percent sequence that is not valid"))?;
    let mut pairs = Vec::new();
    for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let [name, value] = [name, value].map(|text| decode(text, true));
        let (name, value) = name.zip(value).ok_or(BadTarget::Query("not UTF-8"))?;
        if encoded_again(&name) || name.contains(char::is_control) {
            return Err(BadTarget::Query("a name that is encoded twice or has control characters"));
        }
        if value.contains('\0') {
            return Err(BadTarget::Query("a NUL"));
        }
        pairs.push((name, value));
    }
    Ok((pairs, wire))
}

/// Whether `%` and two hexadecimal digits are left after decoding.
fn encoded_again(text: &str) -> bool {
    text.as_bytes().windows(3).any(|w| w[0] == b'%' && w[1].is_ascii_hexdigit() && w[2].is_ascii_hexdigit())
}

/// Decodes once. `None`: a bad percent sequence, or not UTF-8. In a `form`, `+` is a space.
pub(crate) fn decode(text: &str, form: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => hex(rest.next()?)? << 4 | hex(rest.next()?)?,
            b'+' if form => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// The text with one spelling for each byte. `None`: a bad percent sequence, white space, control or non-ASCII bytes.
fn normal(text: &str, kept: &[u8]) -> Option<String> {
    let mut wire = String::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => match hex(rest.next()?)? << 4 | hex(rest.next()?)? {
                plain if unreserved(plain) => wire.push(char::from(plain)),
                other => quote(other, &mut wire),
            },
            plain if unreserved(plain) || kept.contains(&plain) => wire.push(char::from(plain)),
            0x21..=0x7e => quote(byte, &mut wire),
            _ => return None,
        }
    }
    Some(wire)
}

fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

fn quote(byte: u8, into: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    into.extend(['%', char::from(DIGITS[usize::from(byte >> 4)]), char::from(DIGITS[usize::from(byte & 15)])]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_judged_and_the_sent_are_one() {
        for (raw, path, wire) in [
            ("/", "/", "/"),
            ("/v1/x", "/v1/x", "/v1/x"),
            ("/v1/", "/v1/", "/v1/"),
            ("/%76%31/%7e", "/v1/~", "/v1/~"),
            ("/a%20b", "/a b", "/a%20b"),
            ("/a%3bb", "/a;b", "/a%3Bb"),
            ("/100%25", "/100%", "/100%25"),
            ("/%c3%a9", "/é", "/%C3%A9"),
            ("/a{b}|", "/a{b}|", "/a%7Bb%7D%7C"),
            ("/.../.well-known/a..b", "/.../.well-known/a..b", "/.../.well-known/a..b"),
            ("/a:b@c/d", "/a:b@c/d", "/a:b@c/d"),
            ("/a?x=../%2e", "/a", "/a?x=../."),
            ("/a?", "/a", "/a?"),
        ] {
            let target = Target::parse(raw).unwrap();
            assert_eq!((target.path(), target.wire()), (path, wire), "{raw}");
        }
    }

    #[test]
    fn path_tricks_are_refused() {
        for bad in [
            "",
            "*",
            "v1",
            "http://a/b",
            "?q",
            "/v1/../x",
            "/v1/./x",
            "/..",
            "/.",
            "/v1/%2e%2e/x",
            "/v1/.%2E/x",
            "/v1/%2e/x",
            "//x",
            "/v1//x",
            "/v1//",
            "/v1/%2fx",
            "/v1%2Fx",
            "/v1%5cx",
            "/v1\\x",
            "/v1/..\\x",
            "/%00",
            "/a%0d%0a",
            "/a\0",
            "/a b",
            "/a\tb",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a%+1",
            "/%c0%ae%c0%ae/",
            "/%ff",
            "/é",
            "/%252e%252e/x",
            "/%252f",
            "/a%2500",
            "/%25%32%65",
            "/a;b",
            "/..;/x",
            "/..%3b/x",
            "/.%3Bx/y",
            "/a#b",
            "/%ef%bc%8e%ef%bc%8e/x",
            "/a%ef%bc%8fb",
            "/a/..%20/b",
            "/%20../b",
            "/a%c2%85",
            "/%u002e",
            "/a%7f",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Target::parse(&format!("/{}", "a".repeat(16 * 1024 - 1))).is_ok());
        assert_eq!(Target::parse(&format!("/{}", "a".repeat(16 * 1024))), Err(BadTarget::TooLong));
    }

    #[test]
    fn the_query_is_as_strict() {
        let target = Target::parse("/a?q=a+b%2B&q=2&&x&y=1=2&u=https%3A%2F%2Fx%3Fa%3D%2526").unwrap();
        let pairs: Vec<(&str, &str)> = target.query().iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("q", "a b+"), ("q", "2"), ("x", ""), ("y", "1=2"), ("u", "https://x?a=%26")]);
        for bad in [
            "/a?q=%",
            "/a?q=%zz",
            "/a?q=%00",
            "/a?q=%ff",
            "/a?q=a;q=b",
            "/a?q=a b",
            "/a?q=é",
            "/a?%2571=1",
            "/a?q%0a=1",
            "/a?q=\\",
        ] {
            assert!(Target::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_value_is_put_quoted_and_stays_out_of_debug() {
        let mut target = Target::parse("/a?x=1&%6bey=old&z").unwrap();
        target.put("key", "s&c=r t");
        assert_eq!(target.wire(), "/a?x=1&key=s%26c%3Dr%20t&z");
        assert!(!format!("{target:?}").contains("s%26"));
        assert_eq!(target.query()[1].1, "old");
    }

    proptest::proptest! {
        #[test]
        fn canonical_is_a_fixed_point(text in "/[a-z.%/0-9?&=;+~A-F\\\\]{0,40}|/\\PC{0,30}|/(%[0-9a-fA-F]{2}|[a-z./?]){0,20}") {
            if let Ok(target) = Target::parse(&text) {
                proptest::prop_assert_eq!(&Target::parse(target.wire()).unwrap(), &target);
                proptest::prop_assert!(!target.path().contains("//") && !target.path().contains('\\'));
                proptest::prop_assert!(target.path().split('/').all(|segment| segment != "." && segment != ".."));
                proptest::prop_assert!(target.wire().bytes().all(|b| b.is_ascii_graphic()));
            }
        }
    }
}
