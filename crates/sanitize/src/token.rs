//! What does a token look like, how is one made, and how is text that only looks like one kept apart?
//!
//! A token is `[TYPE_xxxxxxxxxxxx]`: twelve lower-case base32 characters (RFC 4648, 60 bits) of HMAC-SHA-256 under the agent's
//! key. Text that already looks like a token gets one more backslash after its bracket, so [`unescape`] can undo it and
//! nobody can plant a token of their own.

use std::{borrow::Cow, fmt, ops::Range};

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::Kind;

/// Characters of base32 in a token.
const CODE: usize = 12;

/// The agent's secret from which tokens are made: 32 bytes, never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey([u8; 32]);

impl TokenKey {
    /// Takes 32 random bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The token of a value in normal form: the same for the same kind and value, and not to be guessed without the key.
    pub(crate) fn token(&self, kind: Kind, normal: &str) -> String {
        // HMAC fills a short key up with zeros to its block (RFC 2104); done here, there is no length to refuse.
        let mut block = [0; 64];
        block[..32].copy_from_slice(&self.0);
        let mut mac = <Hmac<Sha256> as Mac>::new(&block.into());
        mac.update(kind.as_str().as_bytes());
        mac.update(&[0]);
        mac.update(normal.as_bytes());
        let digest = mac.finalize().into_bytes();
        let code = BASE32_NOPAD.encode(&digest[..8]).to_ascii_lowercase();
        format!("[{kind}_{}]", &code[..CODE])
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(..)")
    }
}

/// Length in bytes of the token, or escaped look-alike, that `bytes` begin with.
pub(crate) fn shape(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"[")?;
    let slashes = rest.iter().take_while(|&&b| b == b'\\').count();
    let rest = &rest[slashes..];
    let name = Kind::ALL
        .into_iter()
        .map(|kind| kind.as_str().as_bytes())
        .find(|name| rest.starts_with(name) && rest.get(name.len()) == Some(&b'_'))?;
    let code = rest.get(name.len() + 1..name.len() + 1 + CODE)?;
    let ends = rest.get(name.len() + 1 + CODE) == Some(&b']');
    let base32 = code.iter().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'));
    (ends && base32).then(|| 1 + slashes + name.len() + 1 + CODE + 1)
}

/// Byte ranges of the tokens and escaped look-alikes.
pub(crate) fn shapes(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut brackets = memchr::memchr_iter(b'[', bytes);
    std::iter::from_fn(move || brackets.by_ref().find_map(|at| shape(&bytes[at..]).map(|len| at..at + len)))
}

/// Byte ranges of the tokens in sanitized text, in order. A chunk must not be cut inside one.
pub fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    shapes(text).filter(|range| text.as_bytes()[range.start + 1] != b'\\')
}

/// Puts a backslash after the bracket of what already looks like a token.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    rewrite(text, |shape| Some(format!("[\\{}", &shape[1..])))
}

/// Gives sanitized text its look-alikes back: takes one backslash from each. Real tokens stay.
pub fn unescape(text: &str) -> Cow<'_, str> {
    rewrite(text, |shape| shape.strip_prefix("[\\").map(|rest| format!("[{rest}")))
}

fn rewrite(text: &str, change: impl Fn(&str) -> Option<String>) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for range in shapes(text) {
        if let Some(new) = change(&text[range.clone()]) {
            out.push_str(&text[done..range.start]);
            out.push_str(&new);
            done = range.end;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: TokenKey = TokenKey::new([7; 32]);

    #[test]
    fn a_token_has_its_shape_and_hides_its_key() {
        let token = KEY.token(Kind::CreditCard, "4111111111111111");
        assert_eq!(shape(token.as_bytes()), Some(token.len()));
        assert_eq!(token.len(), "[CREDIT_CARD_]".len() + 12);
        assert_eq!(token, KEY.token(Kind::CreditCard, "4111111111111111"));
        assert_ne!(token, TokenKey::new([8; 32]).token(Kind::CreditCard, "4111111111111111"));
        assert_ne!(token[12..], KEY.token(Kind::Phone, "4111111111111111")[6..]);
        assert_eq!(format!("{KEY:?}"), "TokenKey(..)");
    }

    #[test]
    fn look_alikes_are_escaped_and_come_back() {
        for text in ["see [EMAIL_abcdefghij23].", "[\\IP_abcdefghij23][IP_abcdefghij23]", "none [EMAIL_abc] [] [\\]"] {
            let escaped = escape(text);
            assert_eq!(tokens(&escaped).count(), 0, "{escaped}");
            assert_eq!(unescape(&escaped), text);
        }
        assert_eq!(escape("[EMAIL_abcdefghij23]"), "[\\EMAIL_abcdefghij23]");
    }

    #[test]
    fn near_misses_are_no_tokens() {
        for text in [
            "[EMAIL_abcdefghij2]",
            "[EMAIL_abcdefghij234]",
            "[EMAIL_abcdefghij21]",
            "[email_abcdefghij23]",
            "[XMAIL_abcdefghij23]",
        ] {
            assert_eq!(tokens(text).count(), 0, "{text}");
        }
        assert_eq!(tokens("a [EMAIL_abcdefghij23][IP_abcdefghij23]").collect::<Vec<_>>(), [2..22, 22..39]);
    }
}
