//! Is there a placeholder in this text, in whatever spelling? Case, percent-encoding and base64 hide none.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const MARK: &[u8] = b"openshell:resolve:";
/// Decoding is repeated so often; what is still encoded after that was not made by accident, and is swapped nowhere.
const ROUNDS: usize = 4;
const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// Whether `bytes` has a placeholder, as it is, percent-encoded, or in a base64 part.
pub(super) fn hidden(bytes: &[u8]) -> bool {
    let plain = unquoted(bytes);
    marked(bytes) || marked(&plain) || [bytes, &plain].iter().any(|text| in_base64(text))
}

fn marked(bytes: &[u8]) -> bool {
    bytes.windows(MARK.len()).any(|window| window.eq_ignore_ascii_case(MARK))
}

/// Percent sequences decoded, again and again; bad ones stay.
fn unquoted(bytes: &[u8]) -> Vec<u8> {
    let mut text = bytes.to_vec();
    for _ in 0..ROUNDS {
        let mut next = Vec::with_capacity(text.len());
        let mut at = 0;
        while at < text.len() {
            let digit =
                |i: usize| text.get(i).and_then(|d| char::from(*d).to_digit(16)).and_then(|d| u8::try_from(d).ok());
            match (text[at], digit(at + 1), digit(at + 2)) {
                (b'%', Some(high), Some(low)) => {
                    next.push(high << 4 | low);
                    at += 3;
                }
                (other, ..) => {
                    next.push(other);
                    at += 1;
                }
            }
        }
        if next == text {
            break;
        }
        text = next;
    }
    text
}

fn in_base64(bytes: &[u8]) -> bool {
    let part = |b: &u8| !(b.is_ascii_alphanumeric() || b"+/-_".contains(b));
    bytes.split(part).filter(|text| text.len() >= MARK.len()).any(|text| {
        let decoded = STANDARD.decode(text).or_else(|_| URL_SAFE.decode(text));
        decoded.is_ok_and(|inside| marked(&inside) || marked(&unquoted(&inside)))
    })
}

/// The text of base64 that has one reading, for Basic.
pub(super) fn basic(text: &str) -> Option<String> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(text).ok()?;
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_hides_a_placeholder() {
        let code = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
        for text in [
            "openshell:resolve:env:A".to_owned(),
            "xOpenShell:RESOLVE:env:A".into(),
            "openshell%3Aresolve%3aenv:A".into(),
            "openshell%253Aresolve%253Aenv".into(),
            code("u:openshell:resolve:env:A"),
            format!("Basic {}", code("openshell:resolve:env:A:")),
            format!("a={}; b", code("openshell%3Aresolve:env:A")),
            code("openshell:resolve:env:A").replace('=', ""),
            code("openshell:resolve:env:A").replace('=', "%3D"),
        ] {
            assert!(hidden(text.as_bytes()), "{text}");
        }
        for text in ["", "openshell", "Bearer abc", "%", "%6", "\u{fffd}", "b3BlbnNoZWxsOg=="] {
            assert!(!hidden(text.as_bytes()), "{text}");
        }
        assert!(hidden(b"\xff openshell:resolve:env:A"));
    }
}
