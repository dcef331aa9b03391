//! Is there a key, token or password?
//!
//! Keys of known services begin with a head of their own and are taken anywhere. Other secrets are taken where a name says so
//! (`password: …`, `api_key = "…"`, `Authorization: Bearer …`); a value that reads like a word or like code is refused.

mod assigned;
mod heads;

use crate::{
    Kind,
    rules::RuleInfo,
    scanner::{Hit, weight},
};
pub(crate) use assigned::{assigned, spoken};
use heads::Body;

const KEY_FILE: &str = "secret.key_file";
const SERVICE: &str = "secret.service_key";
const JWT: &str = "secret.jwt";
const ASSIGNED: &str = "secret.assigned";
const SPOKEN: &str = "secret.spoken";

pub(crate) const RULES: &[RuleInfo] = &[
    RuleInfo::new(KEY_FILE, Kind::Secret, "RFC 7468 (PEM), RFC 4880 section 6.2 (OpenPGP armor), OpenSSH key files"),
    RuleInfo::new(SERVICE, Kind::Secret, "The key formats that the services document; heads in src/secret/heads.rs"),
    RuleInfo::new(JWT, Kind::Secret, "RFC 7515 section 7.1, RFC 7516 section 7.1 (compact serialization)"),
    RuleInfo::new(
        ASSIGNED,
        Kind::Secret,
        "A name for a secret with a value behind : or =; RFC 6750, RFC 7617 (Authorization)",
    ),
    RuleInfo::new(SPOKEN, Kind::Secret, "A word for password in a sentence with its value behind it"),
];

/// Longest key file.
const KEY_FILE_MAX: usize = 32 * 1024;

/// Private keys between their BEGIN and END lines, to the end of the base64 text where the END line is missing; and keys that
/// no trigger would find.
pub(crate) fn blocks(text: &[u8], hits: &mut Vec<Hit>) {
    let mut done = 0;
    // The ids of keys at Amazon are the one format that often has neither digit nor dash.
    for head in [&b"AKIA"[..], b"ASIA"] {
        for start in memchr::memmem::find_iter(text, head) {
            let body = text[start + 4..].iter().take_while(|b| Body::Upper.takes(**b)).count();
            if body == 16 && start.checked_sub(1).is_none_or(|i| !text[i].is_ascii_alphanumeric()) {
                hits.push(Hit { start, end: start + 20, kind: Kind::Secret, rule: SERVICE, weight: weight::BLOCK });
            }
        }
    }
    for start in memchr::memmem::find_iter(text, b"-----BEGIN ") {
        if start < done {
            continue;
        }
        let rest = &text[start..(start + KEY_FILE_MAX).min(text.len())];
        let Some(title) = memchr::memmem::find(&rest[11..], b"-----") else { continue };
        let title = &rest[11..11 + title];
        if title.len() > 64 || memchr::memmem::find(title, b"PRIVATE KEY").is_none() {
            continue;
        }
        let body = 11 + title.len() + 5;
        let len = match memchr::memmem::find(&rest[body..], b"-----END ") {
            Some(end) => {
                let tail = body + end + 9;
                memchr::memmem::find(&rest[tail..], b"-----").map_or(tail, |n| tail + n + 5)
            }
            None => {
                body + rest[body..]
                    .iter()
                    .take_while(|b| b.is_ascii_alphanumeric() || b"+/=\\ \r\n:,-".contains(b))
                    .count()
            }
        };
        let len = rest[..len].trim_ascii_end().len();
        // A mention of the first line is no key.
        if rest[body.min(len)..len].iter().filter(|b| b.is_ascii_alphanumeric()).count() < 24 {
            continue;
        }
        done = start + len;
        hits.push(Hit { start, end: done, kind: Kind::Secret, rule: KEY_FILE, weight: weight::BLOCK });
    }
}

/// Remembers the last word, so that a word of many digits is looked at once.
#[derive(Default)]
pub(crate) struct Words {
    end: usize,
}

/// Shortest key with a head, in bytes.
pub(crate) const KEY_MIN: usize = 19;

const fn in_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.')
}

impl Words {
    /// A key with a known head in the word around `at`.
    pub(crate) fn token(&mut self, text: &[u8], at: usize) -> Option<Hit> {
        if at < self.end {
            return None;
        }
        let floor = self.end.max(at.saturating_sub(512));
        let start = at - text[floor..at].iter().rev().take_while(|b| in_word(**b)).count();
        self.end = at + text[at..].iter().take(4096).take_while(|b| in_word(**b)).count();
        if self.end - start < KEY_MIN {
            return None;
        }
        let word = &text[start..self.end];
        let mut fresh = true;
        for (i, &b) in word.iter().enumerate() {
            if fresh && let Some(hit) = known(word, i) {
                return Some(Hit {
                    start: start + i,
                    end: start + i + hit.1,
                    kind: Kind::Secret,
                    rule: hit.0,
                    weight: weight::BLOCK,
                });
            }
            fresh = !b.is_ascii_alphanumeric();
        }
        None
    }
}

/// The rule and length of a key that begins at `i` of the word.
fn known(word: &[u8], i: usize) -> Option<(&'static str, usize)> {
    let rest = &word[i..];
    if let Some(len) = jwt(rest) {
        return Some((JWT, len));
    }
    let bucket = heads::beginning(rest[0]).iter().filter(|head| rest.starts_with(head.head.as_bytes()));
    for head in bucket {
        let body = &rest[head.head.len()..];
        let len = body.iter().take_while(|b| head.body.takes(**b)).count();
        let mut end = len;
        while end > 0 && matches!(body[end - 1], b'.') {
            end -= 1;
        }
        let body = &body[..end];
        let random =
            head.body == Body::Hex || head.body == Body::Upper || body.iter().any(u8::is_ascii_digit) || mixed(body);
        if (head.min..=head.max).contains(&end) && random {
            return Some((SERVICE, head.head.len() + end));
        }
    }
    None
}

fn mixed(body: &[u8]) -> bool {
    body.iter().any(u8::is_ascii_uppercase) && body.iter().any(u8::is_ascii_lowercase)
}

/// `eyJ….eyJ….signature`, or five parts where it is encrypted.
fn jwt(rest: &[u8]) -> Option<usize> {
    if !rest.starts_with(b"eyJ") {
        return None;
    }
    let parts: Vec<&[u8]> = rest.split(|&b| b == b'.').take(5).collect();
    let signed = parts.len() >= 2 && parts[0].len() >= 12 && (parts[1].starts_with(b"eyJ") || parts.len() == 5);
    let count = if signed && parts[1].starts_with(b"eyJ") { parts.len().min(3) } else { parts.len() };
    signed.then(|| parts[..count].iter().map(|p| p.len() + 1).sum::<usize>() - 1)
}

#[cfg(test)]
mod tests {
    use super::{heads::HEADS, *};
    use crate::testing::{nothing, only};

    /// A body of letters and digits that no one gave out.
    fn body(len: usize) -> String {
        "aB3dE5fG7hJ9kL2mN4pQ6rS8tU".chars().cycle().take(len).collect()
    }

    #[test]
    fn service_keys() {
        for head in HEADS {
            let mut body: String = match head.body {
                Body::Hex => "0123456789abcdef".chars().cycle().take(head.min).collect(),
                Body::Upper => body(head.min).to_uppercase(),
                _ => body(head.min),
            };
            if head.head == "SG." {
                body = format!("{}.{}", self::body(22), self::body(43));
            }
            let key = format!("{}{body}", head.head);
            for text in [
                format!("use {key} for now"),
                format!("export TOKEN={key}"),
                format!("凭证为{key}。"),
                format!("\"api_key\":\"{key}\""),
                format!("Authorization: Bearer {key}"),
            ] {
                only(&text, "SECRET", &key);
            }
        }
    }

    #[test]
    fn key_files_and_jwt() {
        let pem = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n{}\n-----END RSA PRIVATE KEY-----", body(64), body(20));
        only(&format!("key:\n{pem}\n"), "SECRET", &pem);
        let open = format!("-----BEGIN OPENSSH PRIVATE KEY-----\n{}", body(64));
        only(&format!("{open}\n"), "SECRET", &open);
        nothing("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----");
        let jwt = format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{}", body(43));
        only(&format!("use {jwt}."), "SECRET", &jwt);
    }
}
