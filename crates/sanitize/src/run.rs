//! How does a value that is written in groups look without its separators, and where in the text does each sign stand?
//!
//! A run is a row of groups of ASCII letters and digits, each but the first behind one separator: a space, `-`, `.`, `/`, or
//! a line break (also behind a dash or space). Two spaces, a tab or any other sign end it. Values are compared in upper case.

/// Most letters and digits that a run holds; the longest value in groups is an IBAN of 34.
pub(crate) const CAP: usize = 44;
const GROUPS: usize = 20;

/// The separator before a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sep {
    None,
    Space,
    Dash,
    Dot,
    Slash,
    Line,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    from: u8,
    to: u8,
    pub(crate) sep: Sep,
    /// Where it begins, in bytes behind the run's beginning.
    at: u16,
}

impl Group {
    /// Index of its first sign in the run.
    pub(crate) const fn from(&self) -> usize {
        self.from as usize
    }

    /// Index behind its last sign.
    pub(crate) const fn to(&self) -> usize {
        self.to as usize
    }

    pub(crate) const fn len(&self) -> usize {
        (self.to - self.from) as usize
    }
}

/// Of a letter its capital, of a digit itself, of any other byte 0.
static SIGNS: [u8; 256] = {
    let mut table = [0; 256];
    let mut b = 0;
    while b < 128u8 {
        if b.is_ascii_alphanumeric() {
            table[b as usize] = b.to_ascii_uppercase();
        }
        b += 1;
    }
    table
};

/// How many bytes of the group of letters and digits that surrounds `at` lie before it, and from it on.
pub(crate) fn around(text: &[u8], at: usize) -> (usize, usize) {
    let is_sign = |b: &&u8| SIGNS[usize::from(**b)] != 0;
    (text[..at].iter().rev().take_while(is_sign).count(), text[at..].iter().take_while(is_sign).count())
}

/// See the module.
pub(crate) struct Run {
    signs: [u8; CAP],
    len: usize,
    groups: [Group; GROUPS],
    count: usize,
    /// Where in the text it begins.
    start: usize,
    /// The last group went on beyond what a run holds.
    cut: bool,
}

impl Run {
    /// Reads the run that begins at `start`, which is the first sign of a group.
    pub(crate) fn read(text: &[u8], start: usize) -> Self {
        let none = Group { from: 0, to: 0, sep: Sep::None, at: 0 };
        let mut run = Self { signs: [0; CAP], len: 0, groups: [none; GROUPS], count: 0, start, cut: false };
        let mut at = start;
        let mut sep = Sep::None;
        while run.count < GROUPS {
            let from = run.len;
            let mut letters = 0;
            let mut len = 0;
            for (slot, &b) in run.signs[from..].iter_mut().zip(&text[at..]) {
                let sign = SIGNS[usize::from(b)];
                if sign == 0 {
                    break;
                }
                letters += usize::from(sign > b'9');
                *slot = sign;
                len += 1;
            }
            run.len += len;
            at += len;
            run.cut = run.len == CAP && text.get(at).is_some_and(u8::is_ascii_alphanumeric);
            if run.len == from {
                break;
            }
            run.groups[run.count] = Group {
                from: small(from),
                to: small(run.len),
                sep,
                at: u16::try_from(at - len - start).unwrap_or(u16::MAX),
            };
            run.count += 1;
            // A word of more than five letters is prose, not a part of a number; behind digits, one of three small ones.
            let small = letters > 2 && run.signs[0].is_ascii_digit() && text[at - len].is_ascii_lowercase();
            let word = letters == len && run.count > 1 && (letters > 5 || small);
            if run.cut || word {
                break;
            }
            match separator(text, at) {
                Some((width, kind)) => {
                    at += width;
                    sep = kind;
                }
                None => break,
            }
        }
        run
    }

    /// All signs, upper case, without separators.
    pub(crate) fn signs(&self) -> &[u8] {
        &self.signs[..self.len]
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups[..self.count]
    }

    /// Where in the text sign `i` stands.
    pub(crate) fn place(&self, i: usize) -> usize {
        self.groups().iter().find(|g| i < g.to()).map_or(0, |g| self.start + usize::from(g.at) + i - g.from())
    }

    /// Where in the text the first `len` signs end.
    pub(crate) fn end(&self, len: usize) -> usize {
        self.place(len - 1) + 1
    }

    /// Whether a group ends behind the first `len` signs.
    pub(crate) fn ends(&self, len: usize) -> bool {
        self.groups().iter().any(|g| g.to() == len) && !(self.cut && len == self.len)
    }

    /// The groups of the first `len` signs, if a group ends there.
    pub(crate) fn head(&self, len: usize) -> Option<&[Group]> {
        let count = self.groups().iter().position(|g| g.to() == len)?;
        (!(self.cut && len == self.len)).then(|| &self.groups[..=count])
    }

    /// Whether it begins with a date in the order year, month, day.
    pub(crate) fn is_date(&self) -> bool {
        let number = |g: &Group| crate::checks::number(&self.signs[g.from()..g.to()]);
        match self.groups() {
            [y, m, d, ..] if y.len() == 4 && m.len() == 2 && d.len() == 2 && m.sep == d.sep && self.digits() >= 8 => {
                matches!(number(y), 1900..=2100) && number(m) <= 12 && number(d) <= 31
            }
            _ => false,
        }
    }

    /// How many digits the run begins with.
    pub(crate) fn digits(&self) -> usize {
        self.signs().iter().take_while(|b| b.is_ascii_digit()).count()
    }
}

/// A run's index, which is below [`CAP`].
fn small(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

/// The separator at `at` and its width in bytes. It has a letter or digit behind it.
fn separator(text: &[u8], at: usize) -> Option<(usize, Sep)> {
    let mut i = at;
    let mut kind = match text.get(i)? {
        b' ' => Sep::Space,
        b'-' => Sep::Dash,
        b'.' => Sep::Dot,
        b'/' => Sep::Slash,
        b'\n' | b'\r' => Sep::Line,
        _ => return None,
    };
    if kind != Sep::Line {
        i += 1;
    }
    // " - " and "- " are dashes too.
    if kind == Sep::Space && text.get(i) == Some(&b'-') {
        kind = Sep::Dash;
        i += 1;
    }
    if kind == Sep::Dash && text.get(i) == Some(&b' ') {
        i += 1;
    }
    if text.get(i) == Some(&b'\r') {
        i += 1;
    }
    if text.get(i) == Some(&b'\n') {
        kind = if kind == Sep::Dash { Sep::Dash } else { Sep::Line };
        i += 1;
        let indent = text[i..].iter().take(8).take_while(|&&b| b == b' ').count();
        i += indent;
    }
    text.get(i).is_some_and(u8::is_ascii_alphanumeric).then_some((i - at, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(text: &str) -> (String, Vec<usize>) {
        let run = Run::read(text.as_bytes(), 0);
        (String::from_utf8_lossy(run.signs()).into_owned(), run.groups().iter().map(Group::len).collect())
    }

    #[test]
    fn groups_and_separators() {
        assert_eq!(
            signs("de89 3704-0044.0532/01\n30 00 failed later"),
            ("DE89370400440532013000FAILED".into(), vec![4, 4, 4, 4, 2, 2, 2, 6])
        );
        assert_eq!(signs("1234-\n5678"), ("12345678".into(), vec![4, 4]));
        assert_eq!(signs("1234  5678"), ("1234".into(), vec![4]));
        assert_eq!(signs("12, 34"), ("12".into(), vec![2]));
    }

    #[test]
    fn too_long_is_no_value() {
        let run = Run::read(&[b'7'; 60], 0);
        assert!(!run.ends(CAP) && run.head(CAP).is_none());
    }
}
