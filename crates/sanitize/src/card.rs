//! Does a payment card number begin here?
//!
//! Right: an issuer's range, a length it gives out, and Luhn. Without a keyword also the grouping must be one that cards have,
//! and 12 and 13 digits are not enough. Behind a keyword range and length suffice.

use crate::{
    Kind, checks,
    context::Word,
    rules::RuleInfo,
    run::Sep,
    scanner::{Hit, Spot, weight},
};

const NUMBER: &str = "card.number";

pub(crate) const RULES: &[RuleInfo] = &[RuleInfo::new(
    NUMBER,
    Kind::CreditCard,
    "ISO/IEC 7812-1 (structure, Luhn); issuer ranges and lengths as Visa, Mastercard, American Express, Discover, Diners Club, JCB, UnionPay, Maestro, Mir, RuPay, Troy, Elo, Verve publish them",
)];

/// Lengths that the issuer of this head gives out, as a bit for each length.
fn lengths(digits: &[u8]) -> u32 {
    const fn bits(from: u32, to: u32) -> u32 {
        (1 << (to + 1)) - (1 << from)
    }
    const ONE: fn(u32) -> u32 = |n| 1 << n;
    let head = |n: usize| checks::number(&digits[..n]);
    match head(4) {
        // Visa; 13 digits in old numbers.
        4000..=4999 => ONE(13) | ONE(16) | ONE(19),
        // Mastercard.
        5100..=5599 | 2221..=2720 => ONE(16),
        // American Express.
        3400..=3499 | 3700..=3799 => ONE(15),
        // Diners Club.
        3000..=3099 | 3600..=3699 | 3800..=3999 => bits(14, 19),
        // JCB; 15 digits in old numbers.
        3528..=3589 => bits(16, 19),
        1800 | 2131 => ONE(15),
        3500..=3599 => ONE(16),
        // Mir.
        2200..=2204 => bits(16, 19),
        // Discover, UnionPay.
        6011 | 6440..=6599 => bits(16, 19),
        6200..=6299 | 8100..=8171 => bits(16, 19),
        // RuPay, Elo, Troy, Verve.
        6060..=6099 | 8172..=8299 | 9792 | 5061 | 6363 | 5078 => ONE(16) | ONE(18) | ONE(19),
        // Maestro and what is like it.
        5000..=5099 | 5600..=5899 | 6300..=6439 | 6600..=6999 => bits(12, 19),
        // UATP.
        1000..=1999 => ONE(15),
        _ => 0,
    }
}

/// Heads of Maestro and UATP are so wide that a number of any origin fits; they count behind a keyword only.
fn wide(digits: &[u8]) -> bool {
    matches!(checks::number(&digits[..4]), 1000..=1799 | 1801..=1999 | 3500..=3527 | 3590..=3599 | 5000..=5099 | 5600..=5899 | 6300..=6439 | 6600..=6999)
}

pub(crate) fn find(spot: &Spot, hits: &mut Vec<Hit>) {
    let run = spot.run;
    let digits = run.digits();
    if digits < 12 {
        return;
    }
    let keyed = spot.before.keyed(Word::Card);
    let near = keyed || spot.before.near(Word::Card);
    let mut shaped = None;
    for len in (12..=digits.min(19)).rev() {
        let Some(groups) = run.head(len) else { continue };
        let number = &run.signs()[..len];
        let valid = checks::luhn(number);
        // Behind a keyword a right check digit makes up for an issuer that is not listed.
        if lengths(number) >> len & 1 == 0 && !(keyed && valid) || groups.len() > 7 {
            continue;
        }
        let hit = |weight| Hit { start: spot.start, end: run.end(len), kind: Kind::CreditCard, rule: NUMBER, weight };
        let common = !wide(number) && len >= 14 && printed(groups) && !measured(spot, run.end(len));
        match (valid, keyed, near) {
            (true, true, _) => return hits.push(hit(weight::KEYED_VALID)),
            (true, _, true) => return hits.push(hit(weight::NEAR)),
            (true, ..) if common && !spot.continued && (groups.len() > 1 || !spot.before.keyed(Word::Thing)) => {
                return hits.push(hit(weight::FREE));
            }
            // A number of one group, or grouped as cards are.
            (false, true, _) if shaped.is_none() && printed(groups) => shaped = Some(hit(weight::KEYED)),
            _ => {}
        }
    }
    hits.extend(shaped);
}

/// Groupings that cards have: none, fours, 4-6-5, 4-6-4, 6-13, 4-8-4 (a soft hyphen or line break in the middle).
fn printed(groups: &[crate::run::Group]) -> bool {
    let mut lens = [0; 8];
    for (len, group) in lens.iter_mut().zip(groups) {
        *len = group.len();
    }
    let even = groups[1..].iter().all(|g| g.sep == groups[1].sep || g.sep == Sep::Line);
    let slash = groups.iter().any(|g| g.sep == Sep::Slash);
    even && !slash
        && match &lens[..groups.len()] {
            [_] => true,
            [4, 6, 4..=5] | [6, 13] | [8, 8] | [4, 4, 5] => true,
            [fours @ .., last] => fours.iter().all(|&n| n == 4) && (1..=4).contains(last),
            [] => false,
        }
}

/// A decimal number, a part of a path or something with a unit.
fn measured(spot: &Spot, end: usize) -> bool {
    let next = spot.byte(end);
    let fraction = matches!(next, b'.' | b',') && spot.byte(end + 1).is_ascii_digit();
    fraction || matches!(spot.previous(), b'.' | b'$' | b'%' | b'_') || matches!(next, b'%' | b'_')
}

#[cfg(test)]
mod tests {
    use crate::testing::{found, nothing};

    #[test]
    fn valid_numbers() {
        for card in [
            "4111111111111111",
            "4111 1111 1111 1111",
            "4111-1111-1111-1111",
            "3782 822463 10005",
            "378282246310005",
            "6011 0009 9013 9424",
            "3056 930902 5904",
            "30569309025904",
            "3530111333300000",
            "6212345678900000003",
            "5555.5555.5555.4444",
            "２２２１　００００　００００　０００９",
            "4111 1111\n1111 1111",
            "4111-\n1111-1111-1111",
        ] {
            for text in [
                card.to_owned(),
                format!("paid with {card} on"),
                format!("card：{card}。"),
                format!("\"pan\":\"{card}\""),
            ] {
                assert_eq!(found(&text), [("CREDIT_CARD", card)], "{text}");
            }
        }
        assert_eq!(found("my card 4222222222222 please"), [("CREDIT_CARD", "4222222222222")]);
        assert_eq!(found("Kartennummer 6759649826438453"), [("CREDIT_CARD", "6759649826438453")]);
    }

    #[test]
    fn a_wrong_check_digit_needs_the_keyword() {
        nothing("seen 4111111111111112 there");
        assert_eq!(found("card number: 4111111111111112"), [("CREDIT_CARD", "4111111111111112")]);
        nothing("credit card account is 1234-5678-1234-5678");
    }

    #[test]
    fn near_misses() {
        nothing("x = 0.4111111111111111");
        nothing("id 41111111111111111111111");
        nothing("order 4111111111111111 shipped");
        nothing("Table 3.0: 166 414 681 2860");
    }
}
