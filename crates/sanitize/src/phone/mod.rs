//! Does a telephone number begin here, and where does it end?
//!
//! `+` and a calling code with a number of the right length is enough. Behind a keyword any 6 to 15 digits in phone-like groups
//! are; near one, or right before one (`… office`), the grouping must be plausible. Without a keyword only the few national
//! forms count that little else looks like. Refused: dates, ranges of years, decimal numbers, numbers of things.

mod codes;
mod number;

use crate::{
    Kind,
    context::{self, Word},
    rules::RuleInfo,
    scanner::{Hit, Spot, weight},
};
use number::Number;

const E164: &str = "phone.international";
const KEYED: &str = "phone.keyed";
const NATIONAL: &str = "phone.national";
const ROW: &str = "phone.row";

pub(crate) const RULES: &[RuleInfo] = &[
    RuleInfo::new(
        E164,
        Kind::Phone,
        "ITU-T E.164 (calling codes, 15 digits), E.123 (notation), RFC 3966 (extensions); lengths from the national numbering plans",
    ),
    RuleInfo::new(KEYED, Kind::Phone, "ITU-T E.123 national notation behind or before a keyword"),
    RuleInfo::new(
        NATIONAL,
        Kind::Phone,
        "NANP (ATIS-0300051), ARCEP France, MIC Japan, MSIT Korea, Anatel Brazil, Ofcom: printed forms",
    ),
    RuleInfo::new(
        ROW,
        Kind::Phone,
        "ITU-T E.123 national notation as a whole field of a record that holds other personal values",
    ),
];

pub(crate) fn find(spot: &Spot, hits: &mut Vec<Hit>) {
    hits.extend(read(spot));
}

fn read(spot: &Spot) -> Option<Hit> {
    let first = spot.run.groups()[0];
    if first.len() > 20 {
        return None;
    }
    let letters = spot.run.signs()[..first.to()].iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let start = spot.start + letters;
    let labelled = spot.before.keyed(Word::Phone) || spot.before.keyed(Word::Call);
    let number = Number::read(spot.text, start, labelled)?;
    if number.is_date() {
        return None;
    }
    let hit = |end: usize, rule, weight| {
        Some(Hit { start: number.start, end: number.extended(spot.text, end), kind: Kind::Phone, rule, weight })
    };
    if letters > 0 {
        // `data630-596-1111`: glued to a word, only the most telling form counts.
        return (letters >= 2 && number.nanp()).then(|| hit(number.end(), NATIONAL, weight::FREE)).flatten();
    }
    let keyed = spot.before.keyed(Word::Phone)
        || number.start < start && spot.before.value(Word::Phone).is_some_and(|v| v + 2 >= start);
    if number.international
        && (number.plus || keyed || !spot.continued)
        && let Some(end) = number.e164(keyed)
    {
        return hit(end, E164, weight::KEYED);
    }
    if keyed && (6..=15).contains(&number.len()) && number.groups().len() <= 8 && !number.range() {
        return hit(number.end(), KEYED, weight::KEYED + 1);
    }
    if spot.continued
        || spot.before.keyed(Word::Thing)
        || spot.before.keyed(Word::Version)
        || number.measured(spot.text)
    {
        return None;
    }
    let called = spot.before.keyed(Word::Call) && (7..=15).contains(&number.len());
    if called && !number.range()
        || number.plausible() && number.telling() && (spot.before.near(Word::Phone) || spot.before.near(Word::Call))
    {
        return hit(number.end(), KEYED, weight::NEAR);
    }
    let behind = number.plausible() || (7..=13).contains(&number.len()) && !number.range();
    if behind && context::after(spot.text, number.end(), Word::Phone) {
        return hit(number.end(), KEYED, weight::NEAR);
    }
    number.printed().then(|| hit(number.end(), NATIONAL, weight::FREE)).flatten()
}

/// Whether the whole of `field` is a phone number.
pub(crate) fn whole(field: &[u8]) -> Option<&'static str> {
    let start = field.iter().position(u8::is_ascii_digit)?;
    let number = Number::read(field, start, false)?;
    let end = number.extended(field, number.end());
    (number.start == 0
        && end == field.len()
        && !number.is_date()
        && (number.plausible() || number.international && number.len() >= 8 || (9..=11).contains(&number.len())))
    .then_some(ROW)
}

#[cfg(test)]
mod tests {
    use crate::testing::{found, nothing, only};

    #[test]
    fn international() {
        for phone in [
            "+49 170 1234567",
            "+44 (0)20 7946 0018",
            "+1-415-555-2671",
            "+1 (415) 555-2671 x123",
            "+33612345678",
            "+46 (0)8 123 456 78",
            "+358 40 1234567",
            "+8613812345678",
            "+31(0)20-1234567",
            "＋81 90-1234-5678",
            "+45 70 72\n80 48",
            "+7 (495) 123-45-67",
        ] {
            for text in
                [format!("x {phone} y"), format!("({phone})"), format!("tel:{phone}."), format!("电话：{phone}。")]
            {
                only(&text, "PHONE", phone);
            }
        }
    }

    #[test]
    fn behind_keywords() {
        for (text, want) in [
            ("Phone: 555-0134", "555-0134"),
            ("Tél. : 01 23 45 67 89", "01 23 45 67 89"),
            ("Handy 0170/1234567", "0170/1234567"),
            ("전화번호 02-123-4567", "02-123-4567"),
            ("my phone:(425) 803 8080", "(425) 803 8080"),
            ("\"phone\":\"664 1 174\"", "664 1 174"),
            ("You can reach him at 030 1234567.", "030 1234567"),
            ("Rufen Sie 0171 1234567 an.", "0171 1234567"),
            ("28-64-66-98 office", "28-64-66-98"),
            ("Fax 463-612-6138x036", "463-612-6138x036"),
            ("tel. kom. 512 335 121", "512 335 121"),
            ("Tel: 030 1234567\n12345 Berlin", "030 1234567"),
            ("cell: 041\n2365411", "041\n2365411"),
        ] {
            only(text, "PHONE", want);
        }
    }

    #[test]
    fn printed_forms() {
        for phone in [
            "(415) 555-2671",
            "415-555-2671",
            "415.555.2671",
            "01 23 45 67 89",
            "090-1234-5678",
            "010-1234-5678",
            "(11) 91234-5678",
        ] {
            only(&format!("or {phone} then"), "PHONE", phone);
        }
        only("testdata630-596-1111", "PHONE", "630-596-1111");
    }

    #[test]
    fn near_misses() {
        for text in [
            "id 943 476 5919 or 9434765919",
            "OMB No. 1545-0008 PA 12345",
            "Table 3.0: 166 414 681 2860",
            "pages 131-317, 1947-2016",
            "published 1976-02-07",
            "UTC offset +07:00, 81%",
            "lat 65.777720, tile 4356/8357",
            "110bcd25-a55d-453a-8046-1297901ea002",
            "size 17907106458 bytes in 636437319 blocks",
            "ISBN 978-0-921030-61-4",
            "+12",
            "order #50686520 shipped",
            "23/5 teams scored 36-76",
            "1+15555550100",
        ] {
            nothing(text);
        }
        assert_eq!(found("phone 2024-01-02").len(), 0);
    }
}
