//! Is the value behind a word for registration mark or postal code one?

use super::{PLATE, POSTAL, capitals};
use crate::{
    Kind,
    context::Word,
    run::{Group, Run, Sep},
    scanner::{Hit, Spot, weight},
};

/// Four to eight letters and digits, both there, in at most four short groups; or one word of another script with digits.
pub(super) fn plate(spot: &Spot) -> Option<Hit> {
    let value = spot.before.value(Word::Plate)?;
    let gap = &spot.text[value..spot.start];
    let hit = |start, end| Some(Hit { start, end, kind: Kind::Plate, rule: PLATE, weight: weight::KEYED });
    if gap.iter().any(|&b| b >= 0x80)
        || spot.text.get(spot.run.end(spot.run.groups()[0].to())).is_some_and(|&b| b >= 0x80)
    {
        return other_script(spot, value).and_then(|end| hit(value, end));
    }
    if gap.len() > 7 || !gap.iter().all(|b| b.is_ascii_uppercase() || matches!(b, b' ' | b'-')) {
        return None;
    }
    let run = Run::read(spot.text, value);
    let mut len = 0;
    for (i, group) in run.groups().iter().enumerate() {
        let text = &spot.text[run.place(group.from())..run.end(group.to())];
        if !capitals(text) || group.to() > 8 || i > 3 || matches!(group.sep, Sep::Slash) || (i > 0 && group.len() > 5) {
            break;
        }
        len = group.to();
    }
    let signs = &run.signs()[..len];
    let digits = signs.iter().filter(|b| b.is_ascii_digit()).count();
    let right = len >= 4 && digits >= 1 && digits < len && run.ends(len);
    right.then(|| hit(run.place(0), run.end(len))).flatten()
}

/// `京A12345`, `А123ВС77`, `品川300あ1234`: to the next sign that is no letter, digit, dash or single space before a digit.
fn other_script(spot: &Spot, value: usize) -> Option<usize> {
    let rest = &spot.text[value..(value + 64).min(spot.text.len())];
    let rest = match std::str::from_utf8(rest) {
        Ok(rest) => rest,
        Err(cut) => std::str::from_utf8(&rest[..cut.valid_up_to()]).unwrap_or_default(),
    };
    let mut end = 0;
    let mut digits = 0;
    for (i, c) in rest.char_indices().take(14) {
        let letter = c.is_ascii_uppercase() || c.is_ascii_digit() || (!c.is_ascii() && c.is_alphabetic());
        let joint = matches!(c, '-' | '·' | ' ');
        if !letter && !joint {
            break;
        }
        digits += usize::from(c.is_ascii_digit());
        // Letters of a new word behind the digits are the sentence's.
        if letter && !(digits >= 4 && !c.is_ascii() && (0x2E80..0xD7FF).contains(&(c as u32))) {
            end = i + c.len_utf8();
        } else if letter {
            break;
        }
    }
    let mark = rest[..end].trim_end();
    (digits >= 2 && mark.chars().count() <= 12 && mark.chars().count() >= 5).then_some(value + mark.len())
}

/// A postal code of one of the structures that countries use.
pub(super) fn postal(spot: &Spot) -> Option<Hit> {
    let value = spot.before.value(Word::Postal)?;
    let gap = &spot.text[value..spot.start];
    // `LV-1010`, `SE-123 45`: the country's letters.
    if !(gap.is_empty()
        || gap.len() <= 3 && gap.ends_with(b"-") && gap[..gap.len() - 1].iter().all(u8::is_ascii_uppercase))
    {
        return None;
    }
    let run = spot.run;
    let len = structure(run)?;
    let (start, end) = (value, run.end(len));
    let next = (spot.byte(end), spot.byte(end + 1));
    let fraction = matches!(next.0, b'.' | b',' | b':' | b'/' | b'-') && next.1.is_ascii_digit() || next.0 == b'%';
    (run.ends(len) && !fraction).then_some(Hit {
        start,
        end,
        kind: Kind::PostalCode,
        rule: POSTAL,
        weight: weight::KEYED + 2,
    })
}

/// How many signs of the run are a postal code.
fn structure(run: &Run) -> Option<usize> {
    let groups = run.groups();
    let class = |g: &Group| -> Vec<u8> {
        run.signs()[g.from()..g.to()].iter().map(|b| if b.is_ascii_digit() { b'9' } else { b'A' }).collect()
    };
    let first = groups.first()?;
    let second = groups.get(1).filter(|g| matches!(g.sep, Sep::Space | Sep::Dash | Sep::Line));
    let dash = second.is_some_and(|g| g.sep == Sep::Dash);
    let shape = (class(first), second.map(class).unwrap_or_default());
    let joined = second.map(|g| g.to());
    match (&shape.0[..], &shape.1[..]) {
        // United States, Brazil, Portugal, Poland, Japan, Iran, Saudi Arabia.
        (b"99999", b"9999" | b"999" | b"99999") | (b"9999", b"999") | (b"99", b"999") | (b"999", b"9999") if dash => {
            joined
        }
        // Sweden, Czechia, Slovakia, Greece; India.
        (b"999", b"99" | b"999") => joined,
        // Netherlands.
        (b"9999", b"AA") => joined,
        (b"9999AA", _) => Some(6),
        // United Kingdom (and what is typed for it), Canada, Ireland.
        (
            b"A9" | b"A99" | b"AA9" | b"AA99" | b"A9A" | b"AA9A",
            b"9AA" | b"9A9" | b"A9AA" | b"AA99" | b"A999" | b"999A",
        ) => joined,
        (b"A99AA" | b"A999AA" | b"AA99AA" | b"AA999AA" | b"A9A9AA" | b"AA9A9AA" | b"A9A9A9" | b"A99A9AA", _) => {
            Some(first.to())
        }
        // Argentina, Andorra and others.
        (b"A9999AAA" | b"AA999" | b"AA9999" | b"AA99999", _) => Some(first.to()),
        (b"999" | b"9999" | b"99999" | b"999999" | b"9999999" | b"99999999", _) => Some(first.to()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{nothing, only};

    #[test]
    fn plates() {
        for (text, want) in [
            ("Kennzeichen: HH-HD 95", "HH-HD 95"),
            ("immatriculation DX-701-IK was", "DX-701-IK"),
            ("matrícula 5467 NRZ was towed", "5467 NRZ"),
            ("targa TZ273KB", "TZ273KB"),
            ("kenteken XA-007-U", "XA-007-U"),
            ("license plate 9WQP031 was", "9WQP031"),
            ("registration AB18 HZZ was towed", "AB18 HZZ"),
            ("车牌号京A12345", "京A12345"),
            ("госномер А123ВС77", "А123ВС77"),
        ] {
            only(text, "PLATE", want);
        }
        for text in [
            "PCR plate (384-well, duplicate) (A8-4 - H2-4)",
            "registration in 2024",
            "registration opens at 10",
            "kenteken onbekend 12",
        ] {
            nothing(text);
        }
    }

    #[test]
    fn postal_codes() {
        for (text, want) in [
            ("ZIP: 12345-6789", "12345-6789"),
            ("CAP 20155", "20155"),
            ("postcode: SW1A 1AA", "SW1A 1AA"),
            ("postal code K1A 0B1", "K1A 0B1"),
            ("postcode 1472 XT", "1472 XT"),
            ("CEP 75183-321", "75183-321"),
            ("kod pocztowy 80-276", "80-276"),
            ("postnummer 394 13", "394 13"),
            ("My zip code is 880", "880"),
            ("〒100-0001", "100-0001"),
            ("PLZ: 87151", "87151"),
            ("Eircode D02 X285", "D02 X285"),
        ] {
            only(text, "POSTAL_CODE", want);
        }
        for text in ["a zip of 12.5 MB", "zip version", "the cap 20155", "ZIP 3.0"] {
            nothing(text);
        }
    }
}
