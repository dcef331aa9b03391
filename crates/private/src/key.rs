//! The agent's key: what makes document ids and tokens mean nothing to somebody who only guesses.

use std::fmt;

use bastion_store::DocId;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// 32 random bytes, made with the vault and kept in it.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentKey([u8; 32]);

impl AgentKey {
    pub(crate) fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        let mut filled = 0;
        while filled < bytes.len() {
            filled += rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
        }
        Ok(Self(bytes))
    }

    /// The key whose bytes these are.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The id of a document: HMAC-SHA-256 (RFC 2104) of its file's bytes.
    pub fn doc_id(&self, bytes: &[u8]) -> DocId {
        DocId::from_bytes(self.mac(bytes))
    }

    /// The key of the tokens. It is one of its own, so that a document whose bytes were chosen to look like a token's
    /// input gets an id that says nothing about that token.
    pub fn token_key(&self) -> [u8; 32] {
        self.mac(b"bastion: the key of tokens, version 1")
    }

    fn mac(&self, message: &[u8]) -> [u8; 32] {
        #[allow(clippy::expect_used)] // HMAC takes a key of any length
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any key length");
        mac.update(message);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AgentKey(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_hmac_sha_256_and_tokens_have_a_key_of_their_own() {
        // RFC 4231, test case 2, with the key padded to our length: HMAC pads keys with zeros itself.
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(b"Jefe");
        let key = AgentKey::from_bytes(bytes);
        let id = key.doc_id(b"what do ya want for nothing?");
        assert_eq!(id.to_string(), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        assert_ne!(&key.token_key(), key.as_bytes());
        assert_eq!(format!("{key:?}"), "AgentKey(..)");
    }
}
