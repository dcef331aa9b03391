//! Is this word an address of a cryptocurrency?
//!
//! Base58check and bech32(m) carry 30 and more bits of checksum, so a valid one is taken anywhere. What has none that can be
//! checked cheaply is taken by its shape (Ethereum, Monero) or behind a keyword (Solana, Polkadot), as is one with a typing error.

use crate::{
    Kind,
    context::{self, Word},
    rules::RuleInfo,
    scanner::{Hit, weight},
};

const BASE58: &str = "crypto.base58check";
const BECH32: &str = "crypto.bech32";
const HEX: &str = "crypto.hex";
const KEYED: &str = "crypto.keyed";
const PRIVATE: &str = "secret.wallet_key";

pub(crate) const RULES: &[RuleInfo] = &[
    RuleInfo::new(
        BASE58,
        Kind::Crypto,
        "Bitcoin base58check (also Litecoin, Dogecoin, Dash, Zcash, Tron), XRP Ledger base58; BIP 32 extended public keys",
    ),
    RuleInfo::new(BECH32, Kind::Crypto, "BIP 173, BIP 350 (Bitcoin, Litecoin, Cardano, Cosmos and others)"),
    RuleInfo::new(
        HEX,
        Kind::Crypto,
        "Ethereum Yellow Paper (20 bytes in hexadecimal), EIP-55 not enforced; Monero standard addresses",
    ),
    RuleInfo::new(
        KEYED,
        Kind::Crypto,
        "Solana, Polkadot SS58, Stellar and any of the above with a wrong checksum, behind a keyword",
    ),
    RuleInfo::new(PRIVATE, Kind::Secret, "Bitcoin WIF, BIP 32 extended private keys, NIP-19 nsec, age secret keys"),
];

/// The word of letters and digits at `start..end` as an address.
pub(crate) fn address(text: &[u8], start: usize, end: usize) -> Option<Hit> {
    let word = std::str::from_utf8(&text[start..end]).ok()?;
    let (kind, rule) = checked(word).or_else(|| keyed(text, start, word))?;
    Some(Hit { start, end, kind, rule, weight: weight::SHAPE })
}

fn checked(word: &str) -> Option<(Kind, &'static str)> {
    let bytes = word.as_bytes();
    match bytes.len() {
        42 if hex_address(word) => return Some((Kind::Crypto, HEX)),
        95 | 106 if matches!(bytes[0], b'4' | b'8') && bytes.iter().all(|&b| is_base58(b)) => {
            return Some((Kind::Crypto, HEX));
        }
        _ => {}
    }
    if bytes.iter().all(|&b| is_base58(b)) && matches!(bytes.len(), 25..=36 | 51..=52 | 111..=112) {
        let ripple = bs58::decode(word).with_alphabet(bs58::Alphabet::RIPPLE).with_check(None).into_vec();
        let payload = bs58::decode(word).with_check(None).into_vec().or(if bytes[0] == b'r' {
            ripple
        } else {
            Err(bs58::decode::Error::BufferTooSmall)
        });
        match payload.map(|p| p.len()) {
            Ok(21 | 22) => return Some((Kind::Crypto, BASE58)),
            Ok(33 | 34) => return Some((Kind::Secret, PRIVATE)),
            Ok(78) if word.get(1..4) == Some("prv") => return Some((Kind::Secret, PRIVATE)),
            Ok(78) => return Some((Kind::Crypto, BASE58)),
            _ => {}
        }
    }
    let (hrp, _) = word.rsplit_once('1')?;
    if hrp.is_empty() || hrp.len() > 16 || bytes.len() > 120 || !hrp.bytes().all(|b| b.is_ascii_alphabetic()) {
        return None;
    }
    bech32::decode(word).is_ok().then(|| match hrp.to_ascii_lowercase().as_str() {
        "nsec" => (Kind::Secret, PRIVATE),
        _ => (Kind::Crypto, BECH32),
    })
}

fn hex_address(word: &str) -> bool {
    word.strip_prefix("0x")
        .or_else(|| word.strip_prefix("0X"))
        .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

const fn is_base58(b: u8) -> bool {
    b.is_ascii_alphanumeric() && !matches!(b, b'0' | b'O' | b'I' | b'l')
}

/// The right shape right behind a keyword.
fn keyed(text: &[u8], start: usize, word: &str) -> Option<(Kind, &'static str)> {
    let bytes = word.as_bytes();
    let mixed = bytes.iter().any(u8::is_ascii_uppercase) && bytes.iter().any(u8::is_ascii_lowercase);
    let base58 = mixed && matches!(bytes.len(), 25..=48) && bytes.iter().all(|&b| is_base58(b));
    let bech = word
        .rsplit_once('1')
        .is_some_and(|(hrp, data)| matches!(hrp, "bc" | "tb" | "ltc" | "addr" | "cosmos" | "BC") && data.len() >= 38);
    let stellar = bytes.len() == 56 && bytes[0] == b'G' && bytes.iter().all(|b| matches!(b, b'A'..=b'Z' | b'2'..=b'7'));
    ((base58 || bech || stellar) && context::keyed(text, start, Word::Crypto)).then_some((Kind::Crypto, KEYED))
}

#[cfg(test)]
mod tests {
    use crate::testing::{nothing, only};

    #[test]
    fn addresses() {
        for address in [
            "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
            "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
            "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4",
            "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            "0x52908400098527886E0F7030069857D2E4169EE7",
            "rN7n7otQDd6FczFgLdSqtcsAUxDkw6fzRH",
            "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
        ] {
            only(&format!("see {address} there"), "CRYPTO", address);
            only(&format!("地址{address}。"), "CRYPTO", address);
        }
    }

    #[test]
    fn a_wrong_checksum_needs_the_keyword() {
        nothing("see 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3 there");
        only("wallet: 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3", "CRYPTO", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3");
        nothing("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5 there");
    }

    #[test]
    fn private_keys_are_secrets() {
        only(
            "k 5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ there",
            "SECRET",
            "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ",
        );
    }

    #[test]
    fn near_misses() {
        nothing("commit 0x52908400098527886E0F7030069857D2E4169EE and 52908400098527886E0F7030069857D2E4169EE7");
    }
}
