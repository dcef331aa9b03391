//! Is there a date, and does a word for birth stand by it?
//!
//! Right before it (`born on …`), in the same sentence with no other number between, or right behind it (`…生まれ`).

use super::{DOB, months};
use crate::{
    Kind, checks,
    context::{self, Word},
    scanner::{Hit, Spot, weight},
};

/// Years in which persons of living documents were born; the later bound also takes Buddhist years.
const YEARS: std::ops::RangeInclusive<u32> = 1850..=2600;

pub(super) fn find(spot: &Spot) -> Option<Hit> {
    let near = spot.before.near(Word::Dob);
    // A word behind the date is in brackets, or in a script that has such words: most texts are passed over by a look ahead.
    let ahead = &spot.text[spot.start..(spot.start + 56).min(spot.text.len())];
    if !near && ahead.is_ascii() && memchr::memchr(b'(', ahead).is_none() {
        return None;
    }
    let (start, end) = date(spot.text, spot.start)?;
    let hit = |weight| Some(Hit { start, end, kind: Kind::Dob, rule: DOB, weight });
    if near && let Some(value) = spot.before.value(Word::Dob) {
        if value >= start {
            return hit(weight::KEYED_VALID);
        }
        if !spot.text[value..start].iter().any(|b| b.is_ascii_digit() || *b == b'\n') {
            return hit(weight::NEAR);
        }
    }
    if context::after(spot.text, end, Word::Dob) { hit(weight::KEYED) } else { None }
}

/// Where the date that has its first number at `at` begins and ends.
pub(super) fn date(text: &[u8], at: usize) -> Option<(usize, usize)> {
    let (first, end) = number(text, at)?;
    let digits = end - at;
    if digits == 8 && !text.get(end).is_some_and(|b| matches!(b, b'-' | b'/' | b'.')) {
        return compact(&text[at..end]).then_some((at, end));
    }
    if digits > 4 || digits == 3 {
        return None;
    }
    east_asian(text, at, end)
        .or_else(|| numeric(text, at, end, first, digits))
        .or_else(|| named(text, at, end, first, digits))
        .or_else(|| month_first(text, at, end, first, digits))
}

fn number(text: &[u8], at: usize) -> Option<(u32, usize)> {
    let len = text.get(at..)?.iter().take(9).take_while(|b| b.is_ascii_digit()).count();
    let glued = text.get(at + len).is_some_and(|b| b.is_ascii_alphabetic()) && ordinal(&text[at + len..]) == 0;
    (len > 0 && len < 9 && !(glued && len > 2)).then(|| (checks::number(&text[at..at + len]), at + len))
}

/// `19850715`, `15071985`
fn compact(digits: &[u8]) -> bool {
    let n = |range: std::ops::Range<usize>| checks::number(&digits[range]);
    YEARS.contains(&n(0..4)) && checks::day_month(n(6..8), n(4..6), Some(n(0..4)))
        || YEARS.contains(&n(4..8))
            && (checks::day_month(n(0..2), n(2..4), None) || checks::day_month(n(2..4), n(0..2), None))
}

/// A year of four digits, or two.
fn year(text: &[u8], at: usize) -> Option<usize> {
    let at = at + usize::from(text.get(at) == Some(&b'\''));
    let (year, end) = number(text, at)?;
    let next = text.get(end).copied().unwrap_or(b' ');
    let right = match end - at {
        4 => YEARS.contains(&year),
        2 => true,
        _ => false,
    };
    (right && !next.is_ascii_alphanumeric()).then_some(end)
}

/// `1/2/1985`, `1985-02-01`, `1. 2. 1985`
fn numeric(text: &[u8], at: usize, end: usize, first: u32, digits: usize) -> Option<(usize, usize)> {
    let sep = *text.get(end).filter(|b| matches!(b, b'/' | b'-' | b'.' | b' '))?;
    let skip = |mut i: usize| {
        i += 1;
        if sep == b'-' && text.get(i) == Some(&b'\n') || sep == b'.' && text.get(i) == Some(&b' ') {
            i += 1;
        }
        i
    };
    let second_at = skip(end);
    let (second, second_end) = number(text, second_at).filter(|(_, e)| e - second_at <= 2)?;
    if text.get(second_end) != Some(&sep) {
        return None;
    }
    let third_at = skip(second_end);
    if digits == 4 {
        let (day, last) = number(text, third_at).filter(|(_, e)| e - third_at <= 2)?;
        let right = YEARS.contains(&first)
            && (checks::day_month(day, second, Some(first)) || checks::day_month(second, day, Some(first)));
        return (right && !text.get(last).is_some_and(|b| b.is_ascii_alphanumeric() && *b != b'T'))
            .then_some((at, last));
    }
    let last = year(text, third_at)?;
    let right = checks::day_month(first, second, None) || checks::day_month(second, first, None);
    (right && (sep != b' ' || last - third_at == 4)).then_some((at, last))
}

fn ordinal(rest: &[u8]) -> usize {
    [&b"st"[..], b"nd", b"rd", b"th", b"er", b"ste", b"de", b"TH", b"ST"]
        .into_iter()
        .find(|o| rest.starts_with(o) && !rest.get(o.len()).is_some_and(u8::is_ascii_alphabetic))
        .map_or(0, <[u8]>::len)
}

/// Over separators and small words between the parts of a date.
fn between(text: &[u8], mut at: usize) -> usize {
    loop {
        let rest = &text[at.min(text.len())..];
        if rest.first().is_some_and(|b| matches!(b, b' ' | b'.' | b',' | b'-' | b'/' | b'\n')) {
            at += 1;
        } else if let Some(word) = [&b"of "[..], b"de ", b"del ", b"di ", b"den ", b"do ", b"da ", b"\xC2\xBA", b"the "]
            .into_iter()
            .find(|w| rest.starts_with(w))
        {
            at += word.len();
        } else {
            return at;
        }
    }
}

fn letters(rest: &[u8]) -> usize {
    rest.iter().take(32).take_while(|b| b.is_ascii_alphabetic() || **b >= 0x80).count()
}

/// `15 July 1985`, `15. Juli 1985`, `15 de julio de 1985`, `1985 July 15`
fn named(text: &[u8], at: usize, end: usize, first: u32, digits: usize) -> Option<(usize, usize)> {
    let month_at = between(text, end + ordinal(&text[end..]));
    if month_at - end > 8 {
        return None;
    }
    let name_end = month_at + letters(&text[month_at..]);
    if !months::is_month(&text[month_at..name_end]) {
        return None;
    }
    let last_at = between(text, name_end);
    if digits == 4 {
        let (day, last) = number(text, last_at)?;
        return (YEARS.contains(&first) && (1..=31).contains(&day) && last - last_at <= 2).then_some((at, last));
    }
    let last = year(text, last_at)?;
    (last_at - name_end <= 5 && (1..=31).contains(&first)).then_some((at, last))
}

/// `July 15, 1985`, whose first number is the day.
fn month_first(text: &[u8], at: usize, end: usize, first: u32, digits: usize) -> Option<(usize, usize)> {
    let trimmed = text[..at].iter().rev().take(2).take_while(|b| matches!(b, b' ' | b'.' | b'-')).count();
    let name_end = at - trimmed;
    if trimmed == 0 || digits > 2 || !(1..=31).contains(&first) {
        return None;
    }
    let len = text[..name_end].iter().rev().take(25).take_while(|b| b.is_ascii_alphabetic() || **b >= 0x80).count();
    if !months::is_month(&text[name_end - len..name_end]) {
        return None;
    }
    let year_at = between(text, end + ordinal(&text[end..]));
    let last = year(text, year_at)?;
    (year_at > end && year_at - end <= 4).then_some((name_end - len, last))
}

/// `1985年7月15日`, `1985년 7월 15일`, `昭和60年7月15日`
fn east_asian(text: &[u8], at: usize, end: usize) -> Option<(usize, usize)> {
    let sign = |at: usize, signs: [&str; 2]| {
        signs.into_iter().find(|s| text[at.min(text.len())..].starts_with(s.as_bytes())).map(str::len)
    };
    let space = |at: usize| at + usize::from(text.get(at) == Some(&b' '));
    let month_at = space(end + sign(end, ["年", "년"])?);
    let (month, month_end) = number(text, month_at)?;
    let day_at = space(month_end + sign(month_end, ["月", "월"])?);
    let (day, day_end) = number(text, day_at)?;
    let last = day_end + sign(day_end, ["日", "일"]).or_else(|| sign(day_end, ["号", "號"])).unwrap_or(0);
    let era = ["明治", "大正", "昭和", "平成", "令和", "民國", "民国"]
        .into_iter()
        .find(|e| text[..at].ends_with(e.as_bytes()))
        .map_or(0, str::len);
    (checks::day_month(day, month, None) && (era > 0 || end - at == 4)).then_some((at - era, last))
}

#[cfg(test)]
mod tests {
    use crate::testing::{nothing, only};

    #[test]
    fn beside_a_word_for_birth() {
        for (text, want) in [
            ("DOB: 1985-07-15", "1985-07-15"),
            ("born on July 15, 1985 in", "July 15, 1985"),
            ("Date of birth: 7/15/85", "7/15/85"),
            ("geb. 15. Juli 1985", "15. Juli 1985"),
            ("Geburtsdatum: 15.07.1985", "15.07.1985"),
            ("née le 15 août 1985", "15 août 1985"),
            ("nacida el 15 de agosto de 1985", "15 de agosto de 1985"),
            ("生年月日：1985年7月15日", "1985年7月15日"),
            ("1985年7月15日生まれ", "1985年7月15日"),
            ("昭和60年7月15日生まれ", "昭和60年7月15日"),
            ("생년월일 1985년 7월 15일", "1985년 7월 15일"),
            ("生于1985年7月15日", "1985年7月15日"),
            ("дата рождения 15 июля 1985", "15 июля 1985"),
            ("tell me your date of birth. It's 6/24/1991", "6/24/1991"),
            ("fødselsdato 15. juli 1985", "15. juli 1985"),
            ("data urodzenia: 15 lipca 1985", "15 lipca 1985"),
            ("doğum tarihi 15.07.1985", "15.07.1985"),
            ("born 15th of July, 1985", "15th of July, 1985"),
            ("DOB 19850715", "19850715"),
        ] {
            only(text, "DOB", want);
        }
    }

    #[test]
    fn near_misses() {
        for text in [
            "published 1985-07-15 in the journal",
            "born 31/31/1985",
            "born in 1985",
            "DOB 15.07",
            "the meeting of July 15, 1985",
        ] {
            nothing(text);
        }
    }
}
