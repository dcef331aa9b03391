//! Does a bank account number begin here?
//!
//! Right: a country of the registry, its length, its structure, and MOD 97-10. Behind a keyword length and country suffice.

use crate::{
    Kind, checks,
    context::Word,
    rules::RuleInfo,
    run::Run,
    scanner::{Hit, Spot, weight},
};

const NUMBER: &str = "iban.number";
const UNLISTED: &str = "iban.unlisted";

pub(crate) const RULES: &[RuleInfo] = &[
    RuleInfo::new(
        NUMBER,
        Kind::Iban,
        "ISO 13616-1; SWIFT IBAN registry (lengths, structures); ISO 7064 MOD 97-10; experimental countries as published by their central banks",
    ),
    RuleInfo::new(
        UNLISTED,
        Kind::Iban,
        "ISO 13616-1 and ISO 7064 MOD 97-10 for countries and lengths that the registry does not have",
    ),
];

/// Country and structure of what follows the two check digits: `n` digits, `a` letters, `c` either.
/// The registry's `c` parts are kept; where it has letters in a fixed place that banks do not keep to, `c` stands.
#[rustfmt::skip]
const COUNTRIES: &[(&[u8; 2], &str)] = &[
    (b"AD", "n8c12"), (b"AE", "n19"), (b"AL", "n8c16"), (b"AT", "n16"), (b"AZ", "a4c20"), (b"BA", "n16"), (b"BE", "n12"), (b"BG", "a4n6c8"), (b"BH", "a4c14"),
    (b"BI", "n23"), (b"BR", "n23a1c1"), (b"BY", "c4n4c16"), (b"CH", "n5c12"), (b"CR", "n18"), (b"CY", "n8c16"), (b"CZ", "n20"), (b"DE", "n18"), (b"DJ", "n23"),
    (b"DK", "n14"), (b"DO", "c4n20"), (b"EE", "n16"), (b"EG", "n25"), (b"ES", "n20"), (b"FI", "n14"), (b"FK", "a2n12"), (b"FO", "n14"), (b"FR", "n10c11n2"),
    (b"GB", "a4n14"), (b"GE", "a2n16"), (b"GI", "a4c15"), (b"GL", "n14"), (b"GR", "n7c16"), (b"GT", "c4c20"), (b"HN", "a4n20"), (b"HR", "n17"), (b"HU", "n24"), (b"IE", "a4n14"),
    (b"IL", "n19"), (b"IQ", "a4n15"), (b"IS", "n22"), (b"IT", "a1n10c12"), (b"JO", "a4n4c18"), (b"KW", "a4c22"), (b"KZ", "n3c13"), (b"LB", "n4c20"), (b"LC", "a4c24"),
    (b"LI", "n5c12"), (b"LT", "n16"), (b"LU", "n3c13"), (b"LV", "a4c13"), (b"LY", "n21"), (b"MC", "n10c11n2"), (b"MD", "c2c18"), (b"ME", "n18"), (b"MK", "n3c10n2"),
    (b"MN", "n16"), (b"MR", "n23"), (b"MT", "a4n5c18"), (b"MU", "a4n19a3"), (b"NI", "a4n20"), (b"NL", "a4n10"), (b"NO", "n11"), (b"OM", "n3c16"), (b"PK", "a4c16"), (b"PL", "n24"),
    (b"PS", "a4c21"), (b"PT", "n21"), (b"QA", "a4c21"), (b"RO", "a4c16"), (b"RS", "n18"), (b"RU", "n14c15"), (b"SA", "n2c18"), (b"SC", "a4n20a3"), (b"SD", "n14"), (b"SE", "n20"),
    (b"SI", "n15"), (b"SK", "n20"), (b"SM", "a1n10c12"), (b"SO", "n19"), (b"ST", "n21"), (b"SV", "a4n20"), (b"TL", "n19"), (b"TN", "n20"), (b"TR", "n5n1c16"), (b"UA", "n6c19"),
    (b"VA", "n18"), (b"VG", "a4n16"), (b"XK", "n16"), (b"YE", "a4n4c18"),
    // Not in the registry, but printed by banks.
    (b"AO", "n21"), (b"BF", "c2n22"), (b"BJ", "c2n22"), (b"CF", "n23"), (b"CG", "n23"), (b"CI", "c2n22"), (b"CM", "n23"), (b"CV", "n21"), (b"DZ", "n22"), (b"GA", "n23"),
    (b"GQ", "n23"), (b"GW", "c2n19"), (b"IR", "n22"), (b"KM", "n23"), (b"MA", "n24"), (b"MG", "n23"), (b"ML", "c2n22"), (b"MZ", "n21"), (b"NE", "a2n22"), (b"SN", "c2n22"),
    (b"TD", "n23"), (b"TG", "a2n22"),
];

pub(crate) fn find(spot: &Spot, hits: &mut Vec<Hit>) {
    hits.extend(read(spot.run, spot));
    // `IBANDE89…`, typed without a space.
    if spot.run.signs().starts_with(b"IBAN") && spot.run.groups()[0].len() > 4 {
        hits.extend(read(&Run::read(spot.text, spot.start + 4), spot));
    }
}

fn read(run: &Run, spot: &Spot) -> Option<Hit> {
    let signs = run.signs();
    let [c1, c2, k1, k2, ..] = signs else { return None };
    if !(k1.is_ascii_digit() && k2.is_ascii_digit() && c1.is_ascii_uppercase()) {
        return None;
    }
    let Some(&(_, structure)) = COUNTRIES.iter().find(|(country, _)| country[..] == [*c1, *c2]) else {
        return unlisted(run, spot);
    };
    let len = 4 + parts(structure).map(|(_, n)| n).sum::<usize>();
    let Some(groups) = run.head(len) else { return unlisted(run, spot) };
    // Groups of one or two signs all through are a table, not a number.
    if groups.len() > 12 {
        return None;
    }
    let hit = |weight| Some(Hit { start: run.place(0), end: run.end(len), kind: Kind::Iban, rule: NUMBER, weight });
    let signs = &signs[..len];
    if checks::mod97(signs[4..].iter().chain(&signs[..4]).copied()) == 1 && fits(structure, &signs[4..]) {
        return hit(weight::SHAPE);
    }
    let shape = fits(structure, &signs[4..]) || groups.len() > 1;
    if shape && spot.before.keyed(Word::Iban) { hit(weight::KEYED) } else { None }
}

/// A number of a country or length that the registry does not have: its check must agree, and it must be printed as such numbers
/// are (capitals, one group or fours) or stand behind a keyword.
fn unlisted(run: &Run, spot: &Spot) -> Option<Hit> {
    let signs = run.signs();
    let keyed = spot.before.keyed(Word::Iban);
    let valid = |len: usize| checks::mod97(signs[4..len].iter().chain(&signs[..4]).copied()) == 1;
    let len = (12..=signs.len().min(34)).rev().find(|&len| run.ends(len) && valid(len))?;
    let groups = run.head(len)?;
    let fours = groups.split_last().is_some_and(|(last, fours)| {
        fours.iter().all(|g| g.len() == 4 && g.sep == groups[groups.len() - 1].sep || g.from() == 0 && g.len() == 4)
            && last.len() <= 4
    });
    let text = &spot.text[run.place(0)..run.end(len)];
    let printed = len >= 16
        && signs[1].is_ascii_uppercase()
        && (groups.len() == 1 || fours)
        && !text.iter().any(u8::is_ascii_lowercase);
    let digits = signs[4..len].iter().filter(|b| b.is_ascii_digit()).count();
    let weight = if keyed { weight::KEYED_VALID } else { weight::FREE };
    let right =
        signs[1].is_ascii_uppercase() && digits * 2 >= len - 4 && (keyed || printed && !spot.before.keyed(Word::Thing));
    right.then(|| Hit { start: run.place(0), end: run.end(len), kind: Kind::Iban, rule: UNLISTED, weight })
}

/// `"a4n14"` as pairs of class and count.
fn parts(structure: &str) -> impl Iterator<Item = (u8, usize)> {
    let mut rest = structure.as_bytes();
    std::iter::from_fn(move || {
        let (&class, tail) = rest.split_first()?;
        let digits = tail.iter().take_while(|b| b.is_ascii_digit()).count();
        rest = &tail[digits..];
        Some((class, checks::number(&tail[..digits]) as usize))
    })
}

fn fits(structure: &str, mut signs: &[u8]) -> bool {
    parts(structure).all(|(class, n)| {
        let Some((part, rest)) = signs.split_at_checked(n) else { return false };
        signs = rest;
        match class {
            b'n' => part.iter().all(u8::is_ascii_digit),
            b'a' => part.iter().all(u8::is_ascii_uppercase),
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{found, nothing};

    #[test]
    fn valid_numbers() {
        for iban in [
            "GB82 WEST 1234 5698 7654 32",
            "DE89370400440532013000",
            "FR14-2004-1010-0505-0001-3M02-606",
            "NO93 8601 1117 947",
            "MT84 MALT 0110 0001 2345 MTLC AST0 01S",
            "se4550000000058398257466",
            "BR18 0036 0305 0000 1000 9795 493C 1",
            "DE89 3704 0044\n0532 0130 00",
        ] {
            for text in [iban.to_owned(), format!("pay {iban} now"), format!("（{iban}）"), format!("IBAN：{iban}。")]
            {
                assert_eq!(found(&text), [("IBAN", iban)], "{text}");
            }
        }
        assert_eq!(found("IBANDE89370400440532013000"), [("IBAN", "DE89370400440532013000")]);
    }

    #[test]
    fn a_wrong_check_digit_needs_the_keyword() {
        nothing("see DE89370400440532013001 there");
        assert_eq!(found("IBAN: DE89370400440532013001"), [("IBAN", "DE89370400440532013001")]);
        assert_eq!(found("Kontonummer DE89 3704 0044 0532 0130 01"), [("IBAN", "DE89 3704 0044 0532 0130 01")]);
    }

    #[test]
    fn the_next_word_is_not_swallowed() {
        assert_eq!(found("IBAN DE89 3704 0044 0532 0130 00 failed"), [("IBAN", "DE89 3704 0044 0532 0130 00")]);
    }

    #[test]
    fn near_misses() {
        nothing("DE89 3704 0044 0532 0130 0 is short");
        nothing("ZZ89370400440532013000");
        nothing("xDE89370400440532013000");
    }
}
