//! The document's name: a keyed content hash.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;

/// HMAC-SHA-256 of a file's bytes under the agent's key. Written as 64 lower-case hexadecimal digits.
///
/// Keyed, so that somebody who may search cannot test whether a file he knows lies in the folder.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId([u8; 32]);

/// The text is no document id: not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a document id is 64 lower-case hexadecimal digits")]
pub struct InvalidDocId;

impl DocId {
    /// The id whose 32 bytes these are.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for DocId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for DocId {
    type Err = InvalidDocId;

    fn from_str(text: &str) -> Result<Self, InvalidDocId> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(InvalidDocId);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

fn nibble(digit: u8) -> Result<u8, InvalidDocId> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(InvalidDocId),
    }
}

impl serde::Serialize for DocId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for DocId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_64_lower_case_digits_are_an_id() {
        let id = DocId::from_bytes([0xab; 32]);
        assert_eq!(id.to_string(), "ab".repeat(32));
        assert_eq!("ab".repeat(32).parse(), Ok(id));
        for wrong in ["", "ab", &"AB".repeat(32), &"ab".repeat(33), &"g0".repeat(32), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<DocId>(), Err(InvalidDocId), "{wrong}");
        }
    }
}
