//! Is there a value-added tax number where a keyword says so?
//!
//! Behind a keyword, or right before one in brackets, the shape of the country suffices; elsewhere in the window of a keyword
//! the country's check must agree as well. Behind a keyword a bare national number without its country counts too.

use std::sync::LazyLock;

use crate::{
    Kind,
    checks::{luhn, mod11_10, modulo, number, value, weighted},
    context::{self, Word},
    rules::RuleInfo,
    run::Run,
    scanner::{Hit, Spot, weight},
};

const NUMBER: &str = "vat.number";
const BARE: &str = "vat.bare";

pub(crate) const RULES: &[RuleInfo] = &[
    RuleInfo::new(
        NUMBER,
        Kind::VatId,
        "Council Directive 2006/112/EC art. 215; VIES structures; check digits as the member states publish them; UK, Swiss, Norwegian, Indian, Australian tax offices",
    ),
    RuleInfo::new(BARE, Kind::VatId, "The same without the country's letters, behind a keyword"),
];

/// Country, shape (`9` digit, `A` letter, `*` either) and check.
type Shape = (&'static str, &'static str, fn(&[u8]) -> bool);

const fn open(_: &[u8]) -> bool {
    false
}

#[rustfmt::skip]
const SHAPES: &[Shape] = &[
    ("AT", "A99999999", |s| { let sum: u32 = s[1..8].iter().zip([1, 2, 1, 2, 1, 2, 1]).map(|(&d, w)| value(d) * w / 10 + value(d) * w % 10).sum(); (96 - sum % 90) % 10 == value(s[8]) }),
    ("BE", "9999999999", |s| 97 - modulo(&s[..8], 97) == u64::from(number(&s[8..]))), ("BE", "999999999", open), ("BG", "999999999", open), ("BG", "9999999999", open), ("CY", "99999999A", open), ("CZ", "99999999", open), ("CZ", "999999999", open), ("CZ", "9999999999", open),
    ("DE", "999999999", mod11_10), ("DK", "99999999", |s| weighted(s, &[2, 7, 6, 5, 4, 3, 2, 1]).is_multiple_of(11)), ("EE", "999999999", |s| (10 - weighted(&s[..8], &[3, 7, 1, 3, 7, 1, 3, 7]) % 10) % 10 == value(s[8])),
    ("EL", "999999999", |s| weighted(&s[..8], &[256, 128, 64, 32, 16, 8, 4, 2]) % 11 % 10 == value(s[8])), ("GR", "999999999", open), ("ES", "*9999999*", |s| s[0].is_ascii_uppercase() || s[8].is_ascii_uppercase()),
    ("FI", "99999999", |s| (11 - weighted(&s[..7], &[7, 9, 10, 5, 8, 4, 2]) % 11) % 11 == value(s[7])), ("FR", "**999999999", |s| s[..2].iter().all(u8::is_ascii_digit) && u64::from(number(&s[..2])) == (12 + 3 * modulo(&s[2..], 97)) % 97),
    ("GB", "999999999", |s| matches!((weighted(&s[..7], &[8, 7, 6, 5, 4, 3, 2]) + number(&s[7..])) % 97, 0 | 42)), ("GB", "999999999999", open), ("GB", "AA999", open), ("XI", "999999999", open), ("XI", "999999999999", open), ("HR", "99999999999", mod11_10), ("HU", "99999999", |s| (10 - weighted(&s[..7], &[9, 7, 3, 1, 9, 7, 3]) % 10) % 10 == value(s[7])), ("HU", "99999999999", open),
    ("IE", "9999999A", |s| weighted(&s[..7], &[8, 7, 6, 5, 4, 3, 2]) % 23 == u32::from(s[7] - b'A' + 1) % 23), ("IE", "9999999AA", open), ("IE", "9A99999A", open), ("IT", "99999999999", luhn), ("LT", "999999999", open), ("LT", "999999999999", open), ("LU", "99999999", |s| number(&s[..6]) % 89 == number(&s[6..])),
    ("LV", "99999999999", open), ("MT", "99999999", |s| 37 - weighted(&s[..6], &[3, 4, 6, 7, 8, 9]) % 37 == number(&s[6..])), ("NL", "999999999A99", |s| s[9] == b'B'), ("PL", "9999999999", |s| weighted(&s[..9], &[6, 5, 7, 2, 3, 4, 5, 6, 7]) % 11 == value(s[9])),
    ("PT", "999999999", |s| { let rest = weighted(&s[..8], &[9, 8, 7, 6, 5, 4, 3, 2]) % 11; (if rest < 2 { 0 } else { 11 - rest }) == value(s[8]) }), ("RO", "999999999", open), ("RO", "99999999", open), ("RO", "9999999999", open), ("RO", "9999999", open), ("RO", "999999", open), ("SE", "999999999999", |s| s.ends_with(b"01") && luhn(&s[..10])),
    ("SI", "99999999", |s| (11 - weighted(&s[..7], &[8, 7, 6, 5, 4, 3, 2]) % 11) % 10 == value(s[7])), ("SK", "9999999999", |s| modulo(s, 11) == 0), ("CHE", "999999999", |s| (11 - weighted(&s[..8], &[5, 4, 3, 2, 7, 6, 5, 4]) % 11) % 11 == value(s[8])), ("NO", "999999999", open), ("NO", "999999999AAA", |s| s.ends_with(b"MVA")),
    ("RS", "999999999", open), ("TR", "9999999999", open), ("UA", "999999999999", open), ("LI", "99999", open), ("IS", "99999", open), ("IS", "999999", open), ("AL", "A99999999A", open), ("MK", "9999999999999", open),
    // Without letters of a country.
    ("", "99AAAAA9999A***", open), ("", "99999999999999", open),
];

pub(crate) fn find(spot: &Spot, hits: &mut Vec<Hit>) {
    let Some(value) = spot.before.value(Word::Vat) else {
        hits.extend(before_keyword(spot));
        return;
    };
    let gap = spot.start - value;
    if gap > 0
        && (gap > 6
            || !spot.text[value..spot.start].iter().all(|b| b.is_ascii_alphabetic() || matches!(b, b' ' | b'-' | b'.')))
    {
        // A keyword in the window, but its value is elsewhere.
        hits.extend(shaped(spot.run, true).map(|len| hit(spot.run, len, NUMBER, weight::NEAR)));
        return;
    }
    let other;
    let run = if gap == 0 {
        spot.run
    } else {
        other = Run::read(spot.text, value);
        &other
    };
    if let Some(len) = shaped(run, false) {
        hits.push(hit(run, len, NUMBER, weight::KEYED_VALID));
    } else if let Some(len) = bare(run) {
        hits.push(hit(run, len, BARE, weight::KEYED - 1));
    }
}

fn hit(run: &Run, len: usize, rule: &'static str, weight: u8) -> Hit {
    Hit { start: run.place(0), end: run.end(len), kind: Kind::VatId, rule, weight }
}

/// `ATU12345675 (VAT)`, `FR 40 303265045 (TVA)`
fn before_keyword(spot: &Spot) -> Option<Hit> {
    let split = matches!(spot.text[..spot.start], [.., a, b, b' '] if a.is_ascii_uppercase() && b.is_ascii_uppercase());
    let split = split && spot.start.checked_sub(4).is_none_or(|i| !spot.text[i].is_ascii_alphanumeric());
    let other;
    let run = if split {
        other = Run::read(spot.text, spot.start - 3);
        &other
    } else {
        spot.run
    };
    if !run.signs()[0].is_ascii_uppercase() {
        return None;
    }
    let len = shaped(run, false)?;
    context::after(spot.text, run.end(len), Word::Vat).then(|| hit(run, len, NUMBER, weight::KEYED))
}

/// How many signs of the run are a number with its country's letters.
fn shaped(run: &Run, checked: bool) -> Option<usize> {
    let signs = run.signs();
    // The shapes by the first letter of their country; digits stand for those without one.
    static BY_FIRST: LazyLock<Vec<Vec<&Shape>>> = LazyLock::new(|| {
        let mut by_first = vec![Vec::new(); 128];
        SHAPES.iter().for_each(|shape| by_first[usize::from(shape.0.bytes().next().unwrap_or(b'0'))].push(shape));
        by_first
    });
    let first = if signs[0].is_ascii_digit() { b'0' } else { signs[0] };
    BY_FIRST[usize::from(first)]
        .iter()
        .filter(|(country, shape, _)| run.ends(country.len() + shape.len()) && signs.starts_with(country.as_bytes()))
        .filter(|(country, shape, check)| {
            let body = &signs[country.len()..country.len() + shape.len()];
            takes(shape, body) && (!checked || !country.is_empty() && check(body))
        })
        .map(|(country, shape, _)| country.len() + shape.len())
        .max()
}

fn takes(shape: &str, signs: &[u8]) -> bool {
    shape.bytes().zip(signs).all(|(class, sign)| match class {
        b'9' => sign.is_ascii_digit(),
        b'A' => sign.is_ascii_uppercase(),
        _ => true,
    })
}

/// Eight to twelve digits in groups, or a country's shape without its letters.
fn bare(run: &Run) -> Option<usize> {
    if run.is_date() {
        return None;
    }
    let digits = run.digits();
    let plain = (8..=12).rev().find(|&len| len <= digits && run.ends(len));
    let shaped = || {
        SHAPES
            .iter()
            .filter(|(_, shape, _)| shape.len() >= 8 && run.ends(shape.len()) && takes(shape, run.signs()))
            .map(|(_, shape, _)| shape.len())
            .max()
    };
    plain.or_else(shaped)
}

#[cfg(test)]
mod tests {
    use crate::testing::{nothing, only};

    #[test]
    fn behind_and_before_keywords() {
        for (text, want) in [
            ("USt-IdNr.: DE136695976", "DE136695976"),
            ("N° TVA FR 40 303265045", "FR 40 303265045"),
            ("VAT Reg No GB 980 7806 84", "GB 980 7806 84"),
            ("BTW NL123456789B01", "NL123456789B01"),
            ("ATU13585627 (VAT)", "ATU13585627"),
            ("FR 40 303265045 (TVA)", "FR 40 303265045"),
            ("P.IVA 00743110157", "00743110157"),
            ("VAT ID: IE6433435F", "IE6433435F"),
            ("NIP/VAT ESX9999999X", "ESX9999999X"),
        ] {
            only(text, "VAT_ID", want);
        }
    }

    #[test]
    fn near_misses() {
        nothing("see DE136695976 there");
        nothing("VAT at 19 percent");
    }
}
