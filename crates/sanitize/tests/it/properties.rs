//! What holds for any text at all.

use bastion_sanitize::{TokenKey, sanitize, scan, unescape};
use proptest::prelude::*;

/// Pieces that rules care about: put together at random they overlap, touch and nest.
const PIECES: &[&str] = &[
    "jo@example.org",
    "DE89 3704 0044 0532 0130 00",
    "4111 1111 1111 1111",
    "219-09-9999",
    "+49 170 1234567",
    "203.0.113.7",
    "2001:db8::1",
    "00:1A:2B:3C:4D:5E",
    "https://jo:pw@example.org/x",
    "password: hunter2",
    "sk_live_aB3dE5fG7hJ9kL2m",
    "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
    "BTW NL123456789B01",
    "born 1985-07-15",
    "passport L38517754",
    "DL# X0028986",
    "Kennzeichen HH-HD 95",
    "ZIP 12345",
    "SSN ",
    "tel ",
    "IBAN ",
    "card ",
    "NIF ",
    "ID number ",
    "身份证号",
    "生年月日：",
    "1985年7月15日",
    " ",
    "\n",
    "-",
    ".",
    "/",
    ";",
    "|",
    ",",
    "(",
    ")",
    ":",
    "=",
    "[",
    "]",
    "\\",
    "0",
    "7",
    "12",
    "2024",
    "943 476 5919",
    "A",
    "x",
    "é",
    "の",
    "\u{200b}",
    "\u{a0}",
    "４",
    "%40",
    "&#64;",
    "[EMAIL_abcdefghij23]",
    "[\\IP_abcdefghij23]",
    "_",
    "@",
    "-----BEGIN PRIVATE KEY-----",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.x",
];

fn mixed() -> impl Strategy<Value = String> {
    let piece = prop_oneof![8 => proptest::sample::select(PIECES).prop_map(str::to_owned), 1 => "\\PC{0,6}", 1 => "[0-9 ./-]{1,24}", 1 => "[A-Z0-9]{1,20}"];
    proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn sound(text: &str) -> Result<(), TestCaseError> {
    let mut end = 0;
    for span in scan(text) {
        prop_assert!(end <= span.start && span.start < span.end, "sorted, not empty, not overlapping");
        prop_assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end));
        end = span.end;
    }
    let key = TokenKey::new([5; 32]);
    let clean = sanitize(text, &key).map_err(|error| TestCaseError::fail(format!("{error}: {text:?}")))?;
    prop_assert_eq!(&clean, &sanitize(text, &key).map_err(|error| TestCaseError::fail(error.to_string()))?);
    prop_assert!(scan(&clean.text).is_empty(), "a second scan finds nothing");
    if clean.found.is_empty() {
        prop_assert_eq!(unescape(&clean.text), text);
    }
    // Taking the tokens out again gives the text back.
    let mut restored = clean.text.clone();
    let firsts: std::collections::HashMap<_, _> =
        clean.found.iter().filter(|f| f.times == 1).map(|f| (f.token.as_str(), f.value.as_str())).collect();
    if firsts.len() == clean.found.len() {
        for (token, value) in firsts {
            restored = restored.replacen(token, value, 1);
        }
        prop_assert_eq!(unescape(&restored).len(), text.len());
    }
    Ok(())
}

/// A rule that looks at a value only so far cuts no character.
#[test]
fn no_character_is_cut_wherever_a_rule_stops_looking() {
    for lead in ["password: ", "password=", "token: ", "https://me:", "geboren am ", "tel. "] {
        for shift in 0..4 {
            for filler in ["é", "语", "𝔞"] {
                let text = format!("{lead}{}{}1a", "x1".repeat(2 + shift), filler.repeat(200));
                sound(&text).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        sound(&text)?;
    }

    #[test]
    fn any_mixture_of_values(text in mixed()) {
        sound(&text)?;
    }

    #[test]
    fn a_planted_value_is_gone(before in "[a-z ]{0,40}", after in "[a-z ]{0,40}", n in 0usize..12) {
        let value = PIECES[n];
        let text = format!("{before}\n{value}\n{after}");
        let clean = sanitize(&text, &TokenKey::new([5; 32])).unwrap();
        prop_assert!(!clean.text.contains(value), "{}", clean.text);
    }
}
