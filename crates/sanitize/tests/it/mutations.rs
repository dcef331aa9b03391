//! Values in the spellings that text comes in: other spaces and dashes, full width, zero width, broken lines, escapes.

use bastion_sanitize::{TokenKey, sanitize};

use crate::found;

/// Text with one value, and its kind.
const PLANTED: &[(&str, &str, &str)] = &[
    ("Kartennummer ", "4111 1111 1111 1111", "CREDIT_CARD"),
    ("IBAN: ", "DE89 3704 0044 0532 0130 00", "IBAN"),
    ("SSN: ", "219-09-9999", "NATIONAL_ID"),
    ("phone ", "+1 415-555-2671", "PHONE"),
    ("NHS number ", "943 476 5919", "NATIONAL_ID"),
    ("CPF ", "111.444.777-35", "NATIONAL_ID"),
    ("", "756.9217.0769.85", "NATIONAL_ID"),
    ("Tel. ", "020 7946 0018", "PHONE"),
];

fn check(spell: impl Fn(&str) -> String) {
    let key = TokenKey::new([3; 32]);
    for (keyword, value, kind) in PLANTED {
        let spelt = spell(value);
        let text = format!("{keyword}{spelt} (end)");
        assert_eq!(found(&text), [(*kind, spelt.as_str())], "{text:?}");
        let plain = sanitize(&format!("{keyword}{value} (end)"), &key).unwrap();
        assert_eq!(sanitize(&text, &key).unwrap().text, plain.text, "one value, one token: {text:?}");
    }
}

#[test]
fn spaces() {
    for space in ["\u{a0}", "\u{2009}", "\u{202f}", "\u{3000}"] {
        check(|value| value.replace(' ', space));
    }
}

#[test]
fn dashes() {
    for dash in ["\u{2010}", "\u{2011}", "\u{2013}", "\u{2212}", "－"] {
        check(|value| value.replace('-', dash));
    }
}

#[test]
fn full_width_and_other_digits() {
    check(|value| {
        value
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { char::from_u32(c as u32 + 0xFEE0).unwrap() } else { c })
            .collect()
    });
    for zero in ['٠', '०', '๐'] {
        check(|value| {
            value.chars().map(|c| c.to_digit(10).map_or(c, |d| char::from_u32(zero as u32 + d).unwrap())).collect()
        });
    }
}

#[test]
fn zero_width() {
    for sign in ["\u{200b}", "\u{ad}", "\u{2060}", "\u{feff}"] {
        check(|value| format!("{}{sign}{}", &value[..6], &value[6..]));
    }
}

#[test]
fn line_breaks() {
    check(|value| value.replacen(' ', "\n", 1));
    check(|value| value.replacen('-', "-\n", 1));
    check(|value| value.replacen(' ', "\r\n", 1));
}

#[test]
fn escapes() {
    for text in [
        "jo%40example.org",
        "jo&#64;example.org",
        "jo\\u0040example.org",
        "jo\u{200b}@example.org",
        "ｊｏ＠ｅｘａｍｐｌｅ．ｏｒｇ",
        "jo@exam\u{ad}ple.org",
    ] {
        assert_eq!(found(&format!("to {text} now")), [("EMAIL", text)]);
    }
}
