//! A row of digits in the notation of telephone numbers: groups, brackets, a trunk zero, an extension.

use super::codes;

const DIGITS: usize = 20;
const GROUPS: usize = 10;

/// See the module.
pub(super) struct Number {
    /// Where it begins, `+` and bracket included.
    pub(super) start: usize,
    /// `+`, or `00` and a calling code.
    pub(super) international: bool,
    digits: [u8; DIGITS],
    len: usize,
    groups: [Group; GROUPS],
    count: usize,
    pub(super) plus: bool,
    bracket: bool,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Group {
    /// Digits in it.
    len: u8,
    /// Digits up to its end.
    total: u8,
    /// Where it ends, closing bracket included.
    end: usize,
    /// The first byte between the last group and this one; 0 for the first.
    sep: u8,
    /// `(0)`, which is dialled at home only.
    trunk: bool,
}

impl Number {
    /// Reads the number whose first digit is at `at`. Lines may break it where it has a `+` or `labelled` says so.
    pub(super) fn read(text: &[u8], at: usize, labelled: bool) -> Option<Self> {
        let byte = |i: usize| text.get(i).copied().unwrap_or(b' ');
        let back = |i: usize, n: usize| i.checked_sub(n).map_or(b' ', |i| text[i]);
        let mut start = at;
        let mut plus = false;
        let mut bracket = false;
        if back(start, 1) == b'(' {
            start -= 1;
            bracket = true;
        }
        if back(start, 1) == b'+' {
            start -= 1;
            plus = true;
            if back(start, 1) == b'(' {
                start -= 1;
                bracket = true;
            }
        }
        // A bracket that is not closed behind the first group is the text's: `(see +44 20 7946 0018)`.
        let group = text[at..].iter().take_while(|b| b.is_ascii_digit()).count();
        if bracket && (group > 5 || byte(at + group) != b')') {
            start = if plus { at - 1 } else { at };
            bracket = false;
        }
        if plus && back(start, 1).is_ascii_alphanumeric() {
            return None;
        }
        let none = Group::default();
        let mut number = Self {
            start,
            international: plus,
            digits: [0; DIGITS],
            len: 0,
            groups: [none; GROUPS],
            count: 0,
            plus,
            bracket,
        };
        let mut i = at;
        let mut sep = 0;
        let mut open = bracket;
        let mut line = false;
        while number.count < GROUPS {
            let from = i;
            while byte(i).is_ascii_digit() {
                if number.len == DIGITS {
                    return None;
                }
                number.digits[number.len] = byte(i);
                number.len += 1;
                i += 1;
            }
            let len = i - from;
            // Letters glued to the last group are no part of the number, unless they begin an extension.
            if byte(i).is_ascii_alphabetic() && extension(text, i) == i {
                number.len -= len;
                break;
            }
            let mut end = i;
            if open && byte(i) == b')' {
                end += 1;
                open = false;
            }
            let trunk = len == 1 && byte(from) == b'0' && back(from, 1) == b'(' && end > i;
            number.groups[number.count] = Group { len: small(len), total: small(number.len), end, sep, trunk };
            number.count += 1;
            if line && number.wraps(text, from, i) {
                number.count -= 1;
                number.len -= len;
                break;
            }
            let Some((width, kind)) = gap(text, end, open) else { break };
            line = text[end..end + width].contains(&b'\n');
            if line && !(plus || labelled) {
                break;
            }
            open |= text[end..end + width].contains(&b'(');
            sep = kind;
            i = end + width;
        }
        if !plus && number.len >= 10 && number.digits.starts_with(b"00") && number.digits[2] != b'0' {
            number.international = true;
        }
        (number.count > 0).then_some(number)
    }

    /// Whether the line break before the last group (`from..to`) ended the number: it was long enough without the group, or
    /// words follow on the next line (`12345 Berlin`).
    fn wraps(&self, text: &[u8], from: usize, to: usize) -> bool {
        let before = usize::from(self.groups[self.count - 2].total);
        let enough = match self.plus {
            true => codes::right_length(&self.digits[..before]) && !codes::right_length(&self.digits[..self.len]),
            false => before >= 10,
        };
        let rest = text[to..].iter().take(2).find(|b| **b != b' ');
        let word = text.get(to) == Some(&b' ') && rest.is_some_and(|b| b.is_ascii_alphabetic() || *b >= 0x80);
        // A new line that goes on as a list or date is no tail of a number.
        let list = matches!(text.get(to), Some(b'.' | b':' | b'/' | b'%'))
            || text.get(to) == Some(&b')') && text[..to].iter().rev().take(6).all(|&b| b != b'(');
        enough || (word && before >= 6) || list || to - from > 8
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups[..self.count]
    }

    /// Where the last group ends.
    pub(super) const fn end(&self) -> usize {
        self.groups[self.count - 1].end
    }

    fn lens(&self) -> ([usize; GROUPS], usize) {
        let mut lens = [0; GROUPS];
        for (len, group) in lens.iter_mut().zip(self.groups()) {
            *len = usize::from(group.len);
        }
        (lens, self.count)
    }

    /// The end of the longest run of groups that is an international number; `keyed`, of any length.
    pub(super) fn e164(&self, keyed: bool) -> Option<usize> {
        for count in (1..=self.count).rev() {
            let groups = &self.groups[..count];
            let mut digits = Vec::with_capacity(DIGITS);
            let mut from = 0;
            for group in groups {
                if !group.trunk {
                    digits.extend_from_slice(&self.digits[from..usize::from(group.total)]);
                }
                from = usize::from(group.total);
            }
            let plain = if self.plus { &digits[..] } else { digits.strip_prefix(b"00").unwrap_or(&digits) };
            // Unmarked `00` numbers are long and grouped, or keyed.
            let marked = self.plus || keyed || (count >= 3 && plain.len() >= 9);
            if marked && codes::right_length(plain) {
                return Some(groups[count - 1].end);
            }
        }
        (keyed && (7..=15).contains(&self.len)).then(|| self.end())
    }

    /// `2024-01-02`, `02.01.2024`, `1/2/24`
    pub(super) fn is_date(&self) -> bool {
        let (lens, count) = self.lens();
        let year = |from: usize| matches!(crate::checks::number(&self.digits[from..from + 4]), 1800..=2199);
        let small = |from: usize, len: usize, max: u32| crate::checks::number(&self.digits[from..from + len]) <= max;
        let same = count == 3
            && self.groups[1].sep == self.groups[2].sep
            && matches!(self.groups[1].sep, b'-' | b'.' | b'/' | b' ');
        same && !self.plus
            && !self.bracket
            && match lens[..3] {
                [4, m @ 1..=2, d @ 1..=2] => year(0) && small(4, m, 12) && small(4 + m, d, 31),
                [d @ 1..=2, m @ 1..=2, 4] => year(d + m) && small(0, d, 31) && small(d, m, 31),
                [d @ 1..=2, m @ 1..=2, 2] => self.groups[1].sep != b' ' && small(0, d, 31) && small(d, m, 31),
                _ => false,
            }
    }

    /// A range of years or pages: two groups of the same length of at most four, or `1900-05`.
    pub(super) fn range(&self) -> bool {
        let year = |from: usize| matches!(crate::checks::number(&self.digits[from..from + 4]), 1800..=2199);
        let (lens, count) = self.lens();
        match lens[..count] {
            [4, 4] => year(4),
            [4, 2] => year(0),
            _ => false,
        }
    }

    /// Grouped as national numbers are, with nothing else it could be.
    pub(super) fn plausible(&self) -> bool {
        let (lens, count) = self.lens();
        let lens = &lens[..count];
        let grouped =
            (2..=6).contains(&count) && lens.iter().all(|n| (1..=8).contains(n)) && lens[1..].iter().all(|&n| n >= 2);
        let slash = self.groups().iter().skip(2).any(|g| g.sep == b'/');
        let dots = self.groups().iter().filter(|g| g.sep == b'.').count();
        let all_dots = dots == 0 || (dots == count - 1 && lens.iter().all(|&n| n >= 2) && count >= 3);
        (7..=13).contains(&self.len) && grouped && !slash && all_dots && !self.range()
    }

    /// More than two bare groups of digits: a bracket, a leading zero, three groups, or `555-0134`.
    pub(super) fn telling(&self) -> bool {
        self.bracket
            || self.plus
            || self.digits[0] == b'0'
            || self.count >= 3
            || (self.groups[0].len == 3 && self.groups[1].len == 4)
    }

    /// Part of a decimal number, an amount, a path or a longer name.
    pub(super) fn measured(&self, text: &[u8]) -> bool {
        let back = self.start.checked_sub(1).map_or(b' ', |i| text[i]);
        let next = text.get(self.end()).copied().unwrap_or(b' ');
        let further = text.get(self.end() + 1).copied().unwrap_or(b' ');
        matches!(back, b'.' | b'$' | b'%' | b'_' | b'-' | b'=' | b'/' | b'&' | b'#')
            || matches!(next, b'%' | b'_' | b'=')
            || (matches!(next, b',' | b'.' | b'/' | b':' | b'-') && further.is_ascii_digit())
    }

    /// NANP: `NXX-NXX-XXXX`, with dashes or dots.
    pub(super) fn nanp(&self) -> bool {
        let (lens, count) = self.lens();
        let area = self.digits[0] >= b'2' && self.digits[3] >= b'2';
        lens[..count] == [3, 3, 4]
            && area
            && self.groups[1].sep == self.groups[2].sep
            && matches!(self.groups[1].sep, b'-' | b'.')
    }

    /// One of the national forms that need no keyword.
    pub(super) fn printed(&self) -> bool {
        let (lens, count) = self.lens();
        let seps = |sep: u8| self.groups()[1..].iter().all(|g| g.sep == sep);
        let zero = self.digits[0] == b'0' && self.digits[1] != b'0';
        match lens[..count] {
            [3, 3, 4] if self.bracket => self.digits[0] >= b'2' && self.digits[3] >= b'2',
            [3, 3, 4] if self.nanp() => true,
            [2, 4 | 5, 4] if self.bracket => self.digits[0] != b'0' && self.groups[2].sep == b'-',
            [2, 2, 2, 2, 2] => zero && (seps(b' ') || seps(b'.') || seps(b'-')),
            [2..=4, 2..=4, 4] => zero && seps(b'-') && matches!(self.len, 10 | 11),
            [3..=5, n] if self.bracket => zero && (4..=8).contains(&n),
            [1, 3, 3, 4] => {
                self.digits[0] == b'1' && (seps(b'-') || seps(b'.')) && self.digits[1] >= b'2' && self.digits[4] >= b'2'
            }
            _ => false,
        }
    }

    /// `end`, or where an extension behind it ends.
    pub(super) fn extended(&self, text: &[u8], end: usize) -> usize {
        let space = usize::from(text.get(end) == Some(&b' '));
        let stop = extension(text, end + space);
        if stop > end + space { stop } else { end }
    }
}

/// A count of digits, which is at most [`DIGITS`].
fn small(n: usize) -> u8 {
    u8::try_from(n).unwrap_or(u8::MAX)
}

/// The width of what stands between two groups, and its first sign. A digit or `(` and a digit follow.
fn gap(text: &[u8], at: usize, open: bool) -> Option<(usize, u8)> {
    let mut i = at;
    let mut kind = 0;
    let mut lines = 0;
    while i - at < 5 {
        match text.get(i)? {
            b'0'..=b'9' => break,
            b' ' if i > at && text[i - 1] == b' ' && lines == 0 => return None,
            sign @ (b' ' | b'-' | b'.' | b'/') => {
                if kind == 0 || kind == b' ' {
                    kind = *sign;
                } else if *sign != b' ' {
                    return None;
                }
            }
            b'\r' => {}
            b'\n' if lines == 0 => lines += 1,
            b'(' if !open
                && text.get(i + 1).is_some_and(u8::is_ascii_digit)
                && text[i + 1..].iter().take(6).any(|&b| b == b')') => {}
            b')' if open => {}
            _ => return None,
        }
        i += 1;
    }
    let digit = text.get(i).is_some_and(u8::is_ascii_digit);
    (digit && (i > at || text[at.saturating_sub(1)] == b')')).then_some((i - at, if kind == 0 { b' ' } else { kind }))
}

/// Where an extension that begins at `at` ends; `at` where there is none.
fn extension(text: &[u8], at: usize) -> usize {
    const HEADS: [&[u8]; 10] = [b"extension ", b"ext. ", b"ext.", b"ext ", b"ext", b"x. ", b"x ", b"x", b"EXT ", b"#"];
    let rest = &text[at.min(text.len())..];
    for head in HEADS {
        if rest.len() > head.len() && rest[..head.len()].eq_ignore_ascii_case(head) {
            let digits = rest[head.len()..].iter().take_while(|b| b.is_ascii_digit()).count();
            let next = rest.get(head.len() + digits);
            if (1..=6).contains(&digits) && !next.is_some_and(|b| b.is_ascii_alphanumeric()) {
                return at + head.len() + digits;
            }
        }
    }
    at
}
