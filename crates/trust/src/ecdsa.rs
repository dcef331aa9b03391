//! Is this a signature of these bytes under this P-256 key? ECDSA with SHA-256, DER read strictly.
//!
//! Refused before any arithmetic: BER, bytes behind the signature, padded or negative integers, r or s that is 0 or
//! not below the group's order. Both (r, s) and (r, n - s) verify, so a signature's bytes are never an identity.

use aws_lc_rs::digest::Digest;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256_SHA256_FIXED, EcdsaKeyPair, UnparsedPublicKey};

/// The order of the P-256 group (FIPS 186-5, SP 800-186), big-endian.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// Whether `signature` (DER) is one of `message` under the key with this point (SEC 1, 2.3.3).
pub(crate) fn verifies(point: &[u8], message: &[u8], signature: &[u8]) -> bool {
    fixed(signature)
        .is_some_and(|fixed| UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, &fixed).is_ok())
}

/// As [`verifies`], of a message whose SHA-256 is `digest`.
pub(crate) fn verifies_digest(point: &[u8], digest: &Digest, signature: &[u8]) -> bool {
    fixed(signature).is_some_and(|fixed| {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify_digest(digest, &fixed).is_ok()
    })
}

/// Whether the point is one of the curve.
pub(crate) fn is_point(point: &[u8]) -> bool {
    aws_lc_rs::signature::ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).is_ok()
}

/// A P-256 private key that signs.
pub(crate) struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    /// Reads the first private key of a PEM text: PKCS#8 or SEC1, P-256 only.
    ///
    /// # Errors
    /// In words.
    pub(crate) fn from_pem(text: &[u8]) -> Result<Self, &'static str> {
        let blocks = pem::parse_many(text).map_err(|_| "is not PEM")?;
        let key = blocks.iter().find(|block| block.tag().ends_with("PRIVATE KEY")).ok_or("has no private key in it")?;
        let alg = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pair = match key.tag() {
            _ if key.headers().iter().any(|(name, _)| name == "Proc-Type") => Err("is encrypted; decrypt it first"),
            "PRIVATE KEY" => EcdsaKeyPair::from_pkcs8(alg, key.contents()).map_err(|_| "is not a P-256 key"),
            "EC PRIVATE KEY" => {
                EcdsaKeyPair::from_private_key_der(alg, key.contents()).map_err(|_| "is not a P-256 key")
            }
            "ENCRYPTED PRIVATE KEY" => Err("is encrypted; decrypt it first"),
            _ => Err("is not a P-256 key"),
        };
        pair.map(Self)
    }

    /// The DER signature of `message`.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Vec<u8>> {
        self.0.sign(&SystemRandom::new(), message).ok().map(|signature| signature.as_ref().to_vec())
    }

    /// The DER signature of a message whose SHA-256 is `digest`.
    pub(crate) fn sign_digest(&self, digest: &Digest) -> Option<Vec<u8>> {
        self.0.sign_digest(digest).ok().map(|signature| signature.as_ref().to_vec())
    }

    /// The public key's point, uncompressed.
    pub(crate) fn point(&self) -> &[u8] {
        use aws_lc_rs::signature::KeyPair as _;
        self.0.public_key().as_ref()
    }
}

/// r and s, 32 bytes each, of a strict DER `SEQUENCE { INTEGER r, INTEGER s }` (RFC 3279, 2.2.3).
fn fixed(der: &[u8]) -> Option<[u8; 64]> {
    let [0x30, length, body @ ..] = der else { return None };
    if usize::from(*length) != body.len() {
        return None; // at most 72 bytes, so the length is always one byte below 0x80
    }
    let (r, rest) = integer(body)?;
    let (s, rest) = integer(rest)?;
    if !rest.is_empty() {
        return None;
    }
    let mut fixed = [0; 64];
    fixed[..32].copy_from_slice(&r);
    fixed[32..].copy_from_slice(&s);
    Some(fixed)
}

/// One positive, minimally encoded integer below the order, and what follows it.
fn integer(der: &[u8]) -> Option<([u8; 32], &[u8])> {
    let [0x02, length, rest @ ..] = der else { return None };
    let (digits, rest) = rest.split_at_checked(usize::from(*length))?;
    let digits = match digits {
        [0, high, ..] if *high >= 0x80 => &digits[1..],
        [high, ..] if *high > 0 && *high < 0x80 => digits,
        _ => return None, // empty, negative, zero or padded
    };
    let mut value = [0; 32];
    let start = value.len().checked_sub(digits.len())?;
    value[start..].copy_from_slice(digits);
    (value < ORDER).then_some((value, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> SigningKey {
        SigningKey(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap())
    }

    fn der(r: &[u8], s: &[u8]) -> Vec<u8> {
        let int = |digits: &[u8]| [&[2, u8::try_from(digits.len()).unwrap()], digits].concat();
        let body = [int(r), int(s)].concat();
        [&[0x30, u8::try_from(body.len()).unwrap()], body.as_slice()].concat()
    }

    fn minimal(value: &[u8]) -> Vec<u8> {
        let digits: Vec<u8> = value.iter().copied().skip_while(|b| *b == 0).collect();
        if digits[0] >= 0x80 { [&[0], digits.as_slice()].concat() } else { digits }
    }

    #[test]
    fn every_flipped_bit_and_every_other_form_is_refused() {
        let key = key();
        let good = key.sign(b"payload").unwrap();
        assert!(verifies(key.point(), b"payload", &good));
        assert!(!verifies(key.point(), b"payloae", &good));
        assert!(!verifies(self::key().point(), b"payload", &good));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!verifies(key.point(), b"payload", &bad), "bit {bit}");
        }
        assert!(!verifies(key.point(), b"payload", &[good.as_slice(), &[0]].concat()), "trailing byte");
        let long_form = [&[0x30, 0x81, good[1]], &good[2..]].concat();
        assert!(!verifies(key.point(), b"payload", &long_form), "long length");
        let indefinite = [&[0x30, 0x80], &good[2..], &[0, 0]].concat();
        assert!(!verifies(key.point(), b"payload", &indefinite), "BER");
        for end in 0..good.len() {
            assert!(!verifies(key.point(), b"payload", &good[..end]));
        }
    }

    #[test]
    fn r_and_s_must_be_in_range_and_minimal() {
        let key = key();
        let order = minimal(&ORDER);
        for (r, s) in [
            (vec![0], vec![0]),
            (vec![0], vec![1]),
            (vec![1], vec![0]),
            (order.clone(), order.clone()),
            (order.clone(), vec![1]),
            (vec![1], order),
        ] {
            assert!(!verifies(key.point(), b"m", &der(&r, &s)));
        }
        let rs = fixed(&key.sign(b"m").unwrap()).unwrap();
        let (r, s) = (minimal(&rs[..32]), minimal(&rs[32..]));
        assert!(verifies(key.point(), b"m", &der(&r, &s)));
        assert!(!verifies(key.point(), b"m", &der(&[&[0], r.as_slice()].concat(), &s)), "padded");
        // (r, n - s) is as valid
        let mut other = [0; 32];
        let mut borrow = 0_i16;
        for i in (0..32).rev() {
            let digit = i16::from(ORDER[i]) - i16::from(rs[32 + i]) - borrow;
            borrow = i16::from(digit < 0);
            other[i] = u8::try_from(digit.rem_euclid(256)).unwrap();
        }
        assert!(verifies(key.point(), b"m", &der(&r, &minimal(&other))));
    }
}
