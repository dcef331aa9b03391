//! What is one value's single spelling, whatever way it was typed?
//!
//! Folded first (full width, spaces, dashes), then by kind: separators go where they carry no meaning, and letters become one
//! case where case carries none. The token is made from this form.

use crate::{Kind, fold::Folded};

/// The normal form of `value`.
pub(crate) fn normal(kind: Kind, value: &str) -> String {
    let folded = String::from_utf8_lossy(&Folded::new(value).text).into_owned();
    match kind {
        Kind::Phone => phone(&folded),
        Kind::Email => folded.split_whitespace().collect::<String>().to_lowercase(),
        Kind::Mac => folded.chars().filter(char::is_ascii_hexdigit).collect::<String>().to_ascii_lowercase(),
        Kind::Iban
        | Kind::CreditCard
        | Kind::NationalId
        | Kind::VatId
        | Kind::Passport
        | Kind::DriverLicense
        | Kind::Plate
        | Kind::PostalCode => folded.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_uppercase(),
        Kind::Ip => folded.to_ascii_lowercase(),
        Kind::Dob => folded.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase(),
        // Case and every sign count here.
        Kind::UrlCred | Kind::Secret | Kind::Crypto => folded,
    }
}

/// Digits, with `+` for the international prefix `00` and without the trunk zero of `+44 (0)20`.
fn phone(folded: &str) -> String {
    let plain = folded.trim_start();
    let international = plain.starts_with('+') || plain.starts_with("00") || plain.starts_with("(+");
    let kept = if international { plain.replacen("(0)", "", 1) } else { plain.to_owned() };
    let digits: String = kept.chars().filter(char::is_ascii_digit).collect();
    match international {
        true => format!("+{}", digits.strip_prefix("00").unwrap_or(&digits)),
        false => digits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_share_one_form() {
        for (kind, spellings) in [
            (
                Kind::Iban,
                &["DE89 3704 0044 0532 0130 00", "de89370400440532013000", "ＤＥ89-3704-0044-0532-0130-00"][..],
            ),
            (Kind::Phone, &["+44 20 7946 0018", "+44 (0)20-7946-0018", "0044 20 7946 0018", "＋44 20 7946 0018"]),
            (Kind::Email, &["Jo@Example.org", "jo%40example.org", "jo@\nexample.org"]),
            (Kind::Mac, &["00:1A:2b:3c:4d:5e", "00-1a-2b-3c-4d-5e", "001a.2b3c.4d5e"]),
        ] {
            let forms: Vec<_> = spellings.iter().map(|s| normal(kind, s)).collect();
            assert!(forms.windows(2).all(|w| w[0] == w[1]), "{forms:?}");
        }
        assert_ne!(normal(Kind::Secret, "aB3"), normal(Kind::Secret, "ab3"));
    }
}
