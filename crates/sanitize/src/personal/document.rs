//! Is the value behind a word for passport or driving licence a document's number?

use super::{LICENSE, PASSPORT, capitals};
use crate::{
    Kind,
    context::Word,
    run::{Run, Sep},
    scanner::{Hit, Spot, weight},
};

/// The run at the value of `word`, which is at the spot or begins with letters right before it.
fn valued(spot: &Spot, word: Word) -> Option<Run> {
    let value = spot.before.value(word)?;
    let gap = &spot.text[value..spot.start];
    let letters = gap.len() <= 4 && gap.iter().all(|b| b.is_ascii_uppercase() || matches!(b, b' ' | b'-'));
    let run = letters.then(|| Run::read(spot.text, value))?;
    (!run.is_date()).then_some(run)
}

/// Six to ten capitals and digits, also with a break behind the letters or the first two digits.
pub(super) fn passport(spot: &Spot) -> Option<Hit> {
    let run = valued(spot, Word::Passport)?;
    let groups = run.groups();
    let len = match groups {
        [one, ..] if (6..=10).contains(&one.len()) => one.to(),
        [one, two, ..] if one.len() <= 4 && (5..=8).contains(&two.len()) && two.sep != Sep::Slash => two.to(),
        [one, two, three, ..] if one.len() == 2 && two.len() == 2 && three.len() == 6 => three.to(),
        _ => return None,
    };
    let (start, end) = (run.place(0), run.end(len));
    let digits = run.signs()[..len].iter().filter(|b| b.is_ascii_digit()).count();
    let right = capitals(&spot.text[start..end]) && digits >= 1 && (digits >= 4 || len == 9) && run.ends(len);
    right.then_some(Hit { start, end, kind: Kind::Passport, rule: PASSPORT, weight: weight::KEYED })
}

/// Five to eighteen capitals and digits with four digits at least; groups with dashes, or short ones with spaces.
pub(super) fn license(spot: &Spot) -> Option<Hit> {
    let run = valued(spot, Word::License)?;
    let mut len = 0;
    for group in run.groups() {
        let signs = &run.signs()[group.from()..group.to()];
        let digits = signs.iter().any(u8::is_ascii_digit);
        let small = !capitals(&spot.text[run.place(group.from())..run.end(group.to())]);
        let join = match group.sep {
            Sep::None => true,
            Sep::Dash | Sep::Line | Sep::Dot => digits || len < 4,
            Sep::Space | Sep::Slash => (digits || len + group.len() == 16) && group.len() <= 8 && len <= 12,
        };
        if small || !join || group.to() > 18 {
            break;
        }
        len = group.to();
    }
    let digits = run.signs()[..len].iter().filter(|b| b.is_ascii_digit()).count();
    if !(5..=18).contains(&len) || digits < 4 || !run.ends(len) {
        return None;
    }
    Some(Hit {
        start: run.place(0),
        end: run.end(len),
        kind: Kind::DriverLicense,
        rule: LICENSE,
        weight: weight::KEYED,
    })
}

#[cfg(test)]
mod tests {
    use crate::testing::{nothing, only};

    #[test]
    fn passports() {
        for (text, want) in [
            ("Passport No. L38517754 valid until 2031", "L38517754"),
            ("Reisepass-Nr.: C01X00T47", "C01X00T47"),
            ("N° de passeport 97UU33356", "97UU33356"),
            ("passaporto n. AF7345944", "AF7345944"),
            ("паспорт 45 08 123456", "45 08 123456"),
            ("护照号码：E12345678。", "E12345678"),
            ("passport: 123456789", "123456789"),
            ("Pasaporte AAA 123456", "AAA 123456"),
        ] {
            only(text, "PASSPORT", want);
        }
        for text in ["my passport to be ready by 2031", "passport control 1234567x", "passport photos 35 x 45"] {
            nothing(text);
        }
    }

    #[test]
    fn licences() {
        for (text, want) in [
            ("driver's license number is 2270-66-1551", "2270-66-1551"),
            ("DL# X002898610178 class B", "X002898610178"),
            ("driving licence number: MORGA657054SM9IJ", "MORGA657054SM9IJ"),
            ("Führerschein-Nr. B072RRE2I55", "B072RRE2I55"),
            ("permis de conduire n° 12AB34567", "12AB34567"),
            ("patente n. U1A2345678", "U1A2345678"),
            ("driver license: S123-4567-8901", "S123-4567-8901"),
            ("運転免許証番号 123456789012", "123456789012"),
        ] {
            only(text, "DRIVER_LICENSE", want);
        }
        for text in ["License: Apache-2.0", "driver version 535.104", "permis 3 ans", "licence number three"] {
            nothing(text);
        }
    }
}
