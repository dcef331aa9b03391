//! Does a number that a state gives to a person begin here?
//!
//! Each id is a row of a table: its keywords, the forms in which it is printed, and its check. Right behind its own keyword any
//! separators and any check digit do; near its keyword, or behind a general one (`ID number`), the check must agree; without a
//! keyword only a form marked `!` counts, one that is rare by itself or has a strong check.

mod americas;
mod asia;
mod europe;
mod north;
mod world;

use std::sync::LazyLock;

use crate::{
    Kind,
    context::Word,
    run::{Group, Run, Sep},
    scanner::{Hit, Spot, weight},
};

/// One kind of number.
pub(crate) struct Id {
    /// Name of its rule.
    pub(crate) rule: &'static str,
    /// Where its format is from.
    pub(crate) source: &'static str,
    /// Its keywords; see `context::words` for `*` and capitals.
    pub(crate) words: &'static [&'static str],
    /// As printed: `9` a digit, `A` a letter, `*` either, the rest separators; `!` in front: counts without a keyword.
    forms: &'static [&'static str],
    /// Whether the signs, upper case and without separators, agree with the format's inner rules; nothing where it has none.
    check: Option<fn(&[u8]) -> bool>,
}

impl Id {
    fn allows(&self, signs: &[u8]) -> bool {
        self.check.is_none_or(|check| check(signs))
    }
}

/// All ids. Their order is the index in `Word::National`.
pub(crate) fn ids() -> &'static [Id] {
    static IDS: LazyLock<Vec<Id>> = LazyLock::new(|| {
        let mut ids = Vec::new();
        for part in [europe::ids, north::ids, asia::ids, americas::ids, world::ids] {
            ids.extend(part());
        }
        ids
    });
    &IDS
}

/// Longest id, in signs.
const LONGEST: usize = 20;

/// A form taken apart.
struct Form {
    /// `9`, `A` or `*` for each sign.
    signs: Vec<u8>,
    /// Length and separator of each group.
    groups: Vec<(usize, Sep)>,
    anywhere: bool,
}

/// The forms, by id and by what is looked up.
struct Forms {
    by_id: Vec<Vec<Form>>,
    /// Id and place in its list of the forms that count anywhere, by number of signs.
    anywhere: Vec<Vec<(usize, usize)>>,
}

static FORMS: LazyLock<Forms> = LazyLock::new(|| {
    let by_id: Vec<Vec<Form>> =
        ids().iter().map(|id| id.forms.iter().map(|form| Form::parse(form)).collect()).collect();
    let mut anywhere = vec![Vec::new(); LONGEST + 1];
    for (i, forms) in by_id.iter().enumerate() {
        for (j, form) in forms.iter().enumerate().filter(|(_, form)| form.anywhere) {
            anywhere[form.signs.len().min(LONGEST)].push((i, j));
        }
    }
    Forms { by_id, anywhere }
});

impl Form {
    fn parse(text: &str) -> Self {
        let bare = text.trim_start_matches('!');
        let mut form = Self { signs: Vec::new(), groups: vec![(0, Sep::None)], anywhere: bare.len() < text.len() };
        for sign in bare.bytes() {
            let sep = match sign {
                b'-' => Sep::Dash,
                b' ' => Sep::Space,
                b'.' => Sep::Dot,
                b'/' => Sep::Slash,
                _ => {
                    form.signs.push(sign);
                    if let Some(last) = form.groups.last_mut() {
                        last.0 += 1;
                    }
                    continue;
                }
            };
            form.groups.push((0, sep));
        }
        form
    }

    /// Whether signs are of the right classes.
    fn takes(&self, signs: &[u8]) -> bool {
        self.signs.iter().zip(signs).all(|(class, sign)| match class {
            b'9' => sign.is_ascii_digit(),
            b'A' => sign.is_ascii_uppercase(),
            _ => true,
        })
    }

    /// Whether the run's groups are those of the form; a line break stands for any separator, and may also split a group.
    fn printed(&self, run: &Run, len: usize) -> bool {
        let Some(groups) = run.head(len) else { return false };
        if groups.len() == self.groups.len() {
            return groups
                .iter()
                .zip(&self.groups)
                .all(|(g, (n, sep))| g.len() == *n && (g.sep == *sep || g.sep == Sep::Line));
        }
        false
    }
}

pub(crate) fn find(spot: &Spot, hits: &mut Vec<Hit>) {
    let first = hits.len();
    for (id, value) in spot.before.national() {
        hits.extend(keyed(spot, id, value));
    }
    if hits.len() > first || spot.run.len() < 7 {
        return;
    }
    hits.extend(unkeyed(spot));
}

/// Right behind the keyword of `id`, which has its value at `value`.
fn keyed(spot: &Spot, id: u8, value: usize) -> Option<Hit> {
    let other;
    let run = if value == spot.start {
        spot.run
    } else if spot.start - value <= 8
        && spot.text[value..spot.start].iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'-' | b'.'))
    {
        // Letters before the first digit: `AB 12 34 56 C`.
        other = Run::read(spot.text, value);
        &other
    } else {
        return None;
    };
    if run.is_date() {
        return None;
    }
    let kind = &ids()[usize::from(id)];
    let mut best: Option<(bool, usize)> = None;
    for form in &FORMS.by_id[usize::from(id)] {
        let len = form.signs.len();
        if run.ends(len) && form.takes(&run.signs()[..len]) {
            best = best.max(Some((kind.allows(&run.signs()[..len]), len)));
        }
    }
    let (valid, len) = best?;
    let weight = if valid { weight::KEYED_VALID } else { weight::KEYED };
    let mut end = run.end(len);
    // Hong Kong prints the check digit in brackets.
    if let [b'(', digit, b')', ..] = spot.text[end..]
        && digit.is_ascii_alphanumeric()
    {
        end += 3;
    }
    Some(Hit { start: value, end, kind: Kind::NationalId, rule: kind.rule, weight })
}

/// Valid, and near a keyword, behind a general one, or in a form that needs none.
fn unkeyed(spot: &Spot) -> Option<Hit> {
    let run = spot.run;
    let general = spot.before.keyed(Word::Identity);
    let quiet = spot.before.is_empty();
    let thing = spot.before.keyed(Word::Thing) || spot.continued || spot.before.keyed(Word::Phone);
    let mut best: Option<Hit> = None;
    let mut offer = |id: usize, form: &Form, weight: u8| {
        let len = form.signs.len();
        let better = best.is_none_or(|b| weight > b.weight) && run.ends(len) && form.takes(&run.signs()[..len]);
        if better && (general || form.printed(run, len)) && ids()[id].allows(&run.signs()[..len]) {
            best = Some(Hit {
                start: spot.start,
                end: run.end(len),
                kind: Kind::NationalId,
                rule: ids()[id].rule,
                weight,
            });
        }
    };
    if !quiet {
        let mut wanted =
            if general { !0 >> (u128::BITS as usize - FORMS.by_id.len()) } else { spot.before.nationals() };
        let near = if general { weight::KEYED_VALID } else { weight::NEAR };
        while wanted != 0 {
            let id = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            // Near is not enough where no check could agree.
            if !general && (ids()[id].check.is_none() || spot.continued) {
                continue;
            }
            FORMS.by_id[id].iter().filter(|form| form.signs.len() >= 7).for_each(|form| offer(id, form, near));
        }
    }
    // Hexadecimal in small letters looks like ids of letters and digits; those are printed in capitals.
    let small = spot.text[spot.start..run.end(run.groups()[0].to())].iter().any(u8::is_ascii_lowercase);
    if !thing && !small {
        for len in run.groups().iter().map(Group::to).filter(|&len| (7..=LONGEST).contains(&len)) {
            if !FORMS.anywhere[len].is_empty() && alone(spot, run.end(len)) {
                FORMS.anywhere[len].iter().for_each(|&(id, form)| offer(id, &FORMS.by_id[id][form], weight::FREE));
            }
        }
    }
    best
}

/// Nothing that makes it a part of a longer number, name or path touches the value.
fn alone(spot: &Spot, end: usize) -> bool {
    let (next, further) = (spot.byte(end), spot.byte(end + 1));
    let behind = matches!(next, b'.' | b',' | b'-' | b'/' | b':' | b'+') && further.is_ascii_alphanumeric()
        || matches!(next, b'_' | b'%' | b'=' | b'\\');
    let before = matches!(spot.previous(), b'_' | b'-' | b'.' | b'/' | b'\\' | b'+' | b'%' | b'$' | b'=' | b'&' | b'?');
    !(behind || before && spot.start >= 2 && !spot.text[spot.start - 2].is_ascii_whitespace())
}

/// Whether the whole of `field` is a valid number in one of its printed forms.
pub(crate) fn whole(field: &[u8]) -> Option<&'static str> {
    let run = Run::read(field, 0);
    let len = run.len();
    if len == 0 || len > LONGEST || run.end(len) != field.len() || !field.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let signs = run.signs();
    let fits = |form: &Form| form.signs.len() == len && form.takes(signs) && form.printed(&run, len);
    let valid = |id: &&Id| id.check.is_some_and(|check| check(signs));
    FORMS
        .by_id
        .iter()
        .zip(ids())
        .filter(|(forms, _)| forms.iter().any(fits))
        .map(|(_, id)| id)
        .find(valid)
        .map(|id| id.rule)
}

/// Day, month and year of six digits, of which two of the year; whether that can be a date.
fn date6(day: &[u8], month: &[u8]) -> bool {
    crate::checks::day_month(crate::checks::number(day), crate::checks::number(month), None)
}

/// Whether eight digits are a date in the order year, month, day, of a person alive.
fn date8(digits: &[u8]) -> bool {
    let year = crate::checks::number(&digits[..4]);
    (1880..2100).contains(&year)
        && crate::checks::day_month(
            crate::checks::number(&digits[6..8]),
            crate::checks::number(&digits[4..6]),
            Some(year),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ids_have_a_bit() {
        assert!(ids().len() <= 128);
    }

    #[test]
    fn forms_are_of_known_signs() {
        for id in ids() {
            for form in id.forms {
                assert!(form.trim_start_matches('!').bytes().all(|b| b"9A* -./".contains(&b)), "{}: {form}", id.rule);
                assert!(Form::parse(form).signs.len() <= LONGEST, "{}", id.rule);
            }
        }
    }
}
