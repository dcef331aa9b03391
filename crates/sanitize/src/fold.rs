//! How is text brought to one spelling before the rules look at it, and where does each byte of it come from?
//!
//! Full-width and mathematical letters, the decimal digits of every script, all spaces, dashes and quotes become ASCII;
//! what is not seen (zero-width, soft hyphen, bidirectional controls, variation selectors) goes; `%40`, `&#64;` and
//! `\u0040` become the sign they stand for. A token is one opaque byte, so that no rule sees inside it or across it.
//! Plain ASCII text is borrowed, not copied.
//!
//! Invariant: a range of folded text maps to a range of source text that begins and ends on character boundaries.

use std::borrow::Cow;

use crate::token;

/// Stands for a token in folded text: no rule takes it as part of a value or of a link between keyword and value.
pub(crate) const OPAQUE: u8 = 0x01;

/// Folded text and the way back.
pub(crate) struct Folded<'t> {
    /// Valid UTF-8.
    pub(crate) text: Cow<'t, [u8]>,
    marks: Vec<Mark>,
}

/// From `folded` on, until the next mark, bytes come from `source` on: one to one, or (`whole`) all of them from one piece.
#[derive(Clone, Copy)]
struct Mark {
    folded: usize,
    source: usize,
    whole: bool,
}

enum Fold {
    Keep,
    Drop,
    To(u8),
}

impl<'t> Folded<'t> {
    pub(crate) fn new(source: &'t str) -> Self {
        let bytes = source.as_bytes();
        let mut at = 0;
        let mut folder = Folder { source, out: Vec::new(), marks: Vec::new() };
        let mut copied = 0; // source is in `out` up to here, once the first change was met
        while let Some(next) = next_special(bytes, at) {
            let (taken, fold) = special(source, next, copied, &folder.out);
            if matches!(fold, Fold::Keep) {
                at = next + taken;
                continue;
            }
            folder.copy(copied, next);
            folder.change(next, next + taken, &fold);
            at = next + taken;
            copied = at;
        }
        if folder.marks.is_empty() {
            return Self { text: Cow::Borrowed(bytes), marks: Vec::new() };
        }
        folder.copy(copied, bytes.len());
        Self { text: Cow::Owned(folder.out), marks: folder.marks }
    }

    /// The source range of a folded range that is not empty.
    pub(crate) fn source(&self, start: usize, end: usize) -> (usize, usize) {
        if self.marks.is_empty() {
            return (start, end);
        }
        let first = self.mark(start);
        let last = self.mark(end - 1);
        let from = match first {
            Some(m) if m.whole => m.source,
            Some(m) => m.source + (start - m.folded),
            None => start,
        };
        let to = match last {
            Some(m) if m.whole => self.after(m),
            Some(m) => m.source + (end - m.folded),
            None => end,
        };
        (from, to)
    }

    fn mark(&self, at: usize) -> Option<Mark> {
        // Of marks at one folded place (something was dropped) the last counts.
        self.marks.partition_point(|m| m.folded <= at).checked_sub(1).map(|i| self.marks[i])
    }

    /// Where the piece of a `whole` mark ends in the source: where the next mark's piece, dropped or not, begins.
    fn after(&self, mark: Mark) -> usize {
        let next = self.marks.partition_point(|m| m.folded <= mark.folded);
        self.marks.get(next).map_or(mark.source, |m| m.source)
    }
}

struct Folder<'t> {
    source: &'t str,
    out: Vec<u8>,
    marks: Vec<Mark>,
}

impl Folder<'_> {
    fn copy(&mut self, from: usize, to: usize) {
        self.out.extend_from_slice(&self.source.as_bytes()[from..to]);
    }

    fn change(&mut self, start: usize, end: usize, fold: &Fold) {
        let folded = self.out.len();
        if let Fold::To(byte) = fold {
            self.marks.push(Mark { folded, source: start, whole: true });
            self.out.push(*byte);
        }
        self.marks.push(Mark { folded: self.out.len(), source: end, whole: false });
    }
}

/// Bytes that may begin something to fold.
static SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let mut i = 0x80;
    while i < 256 {
        table[i] = true;
        i += 1;
    }
    table[b'%' as usize] = true;
    table[b'&' as usize] = true;
    table[b'[' as usize] = true;
    table[b'\\' as usize] = true;
    table
};

fn next_special(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(chunk) = bytes.get(at..at + 16) {
        // One branch for sixteen bytes: a non-ASCII byte or one of the four signs.
        if chunk
            .iter()
            .fold(false, |any, &b| any | (b >= 0x80) | (b == b'%') | (b == b'&') | (b == b'[') | (b == b'\\'))
        {
            break;
        }
        at += 16;
    }
    bytes[at..].iter().position(|&b| SPECIAL[b as usize]).map(|n| at + n)
}

/// How many bytes of the source the piece at `at` has, and what becomes of it.
fn special(source: &str, at: usize, copied: usize, out: &[u8]) -> (usize, Fold) {
    let bytes = &source.as_bytes()[at..];
    match bytes[0] {
        b'%' => match bytes.get(1..3).and_then(percent) {
            Some(sign) => (3, Fold::To(sign)),
            None => (1, Fold::Keep),
        },
        b'&' => entity(bytes).unwrap_or((1, Fold::Keep)),
        b'\\' => escape(bytes).unwrap_or((1, Fold::Keep)),
        b'[' => token::shape(bytes).map_or((1, Fold::Keep), |len| (len, Fold::To(OPAQUE))),
        _ => {
            let Some(c) = source[at..].chars().next() else { return (1, Fold::Keep) };
            let before = if at > copied { source.as_bytes().get(at - 1) } else { out.last() };
            let after_digit = before.is_some_and(u8::is_ascii_digit);
            (c.len_utf8(), fold_char(c, after_digit))
        }
    }
}

/// Signs that are worth decoding from an escape: those that hold values together. Others would only move letters about.
const fn worth(sign: u8) -> bool {
    matches!(sign, b'@' | b'+' | b' ' | b'.' | b'-' | b':' | b'(' | b')' | b'=')
}

fn percent(hex: &[u8]) -> Option<u8> {
    let sign = u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()?;
    worth(sign).then_some(sign)
}

fn entity(bytes: &[u8]) -> Option<(usize, Fold)> {
    const NAMED: [(&[u8], Fold); 5] = [
        (b"&commat;", Fold::To(b'@')),
        (b"&nbsp;", Fold::To(b' ')),
        (b"&shy;", Fold::Drop),
        (b"&plus;", Fold::To(b'+')),
        (b"&period;", Fold::To(b'.')),
    ];
    if bytes.get(1) == Some(&b'#') {
        let end = bytes.iter().take(10).position(|&b| b == b';')?;
        let digits = std::str::from_utf8(bytes.get(2..end)?).ok()?;
        let code = match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => digits.parse().ok()?,
        };
        return coded(code).map(|fold| (end + 1, fold));
    }
    NAMED.into_iter().find(|(name, _)| bytes.starts_with(name)).map(|(name, fold)| (name.len(), fold))
}

/// `\u0040`, as in JSON and in most programming languages.
fn escape(bytes: &[u8]) -> Option<(usize, Fold)> {
    if bytes.get(1) != Some(&b'u') {
        return None;
    }
    let code = u32::from_str_radix(std::str::from_utf8(bytes.get(2..6)?).ok()?, 16).ok()?;
    coded(code).map(|fold| (6, fold))
}

fn coded(code: u32) -> Option<Fold> {
    let c = char::from_u32(code)?;
    if let Ok(sign) = u8::try_from(code)
        && sign.is_ascii()
    {
        return worth(sign).then_some(Fold::To(sign));
    }
    match fold_char(c, false) {
        Fold::Keep => None,
        fold => Some(fold),
    }
}

/// First digit of each run of ten decimal digits outside ASCII and the full-width forms (Unicode general category Nd).
const ZEROS: [u32; 62] = [
    0x660, 0x6F0, 0x7C0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xDE6, 0xE50, 0xED0, 0xF20,
    0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0, 0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0,
    0xA900, 0xA9D0, 0xA9F0, 0xAA50, 0xABF0, 0x104A0, 0x10D30, 0x11066, 0x110F0, 0x11136, 0x111D0, 0x112F0, 0x11450,
    0x114D0, 0x11650, 0x116C0, 0x11730, 0x118E0, 0x11950, 0x11C50, 0x11D50, 0x11DA0, 0x11F50, 0x16A60, 0x16AC0,
    0x16B50, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6, 0x1E140,
];

/// Sources: Unicode 15 general categories Nd, Zs, Pd and Default_Ignorable_Code_Point; UTS 39 for look-alike signs.
fn fold_char(c: char, after_digit: bool) -> Fold {
    let code = c as u32;
    match code {
        0xA0 | 0x1680 | 0x2000..=0x200A | 0x202F | 0x205F | 0x3000 => Fold::To(b' '),
        0x85 | 0x2028 | 0x2029 => Fold::To(b'\n'),
        0xAD
        | 0x34F
        | 0x61C
        | 0x180B..=0x180F
        | 0x200B..=0x200F
        | 0x202A..=0x202E
        | 0x2060..=0x206F
        | 0x3164
        | 0xFE00..=0xFE0F
        | 0xFEFF
        | 0xFFA0
        | 0xE0000..=0xE0FFF => Fold::Drop,
        0x58A
        | 0x5BE
        | 0x1806
        | 0x2010..=0x2015
        | 0x2043
        | 0x207B
        | 0x208B
        | 0x2212
        | 0x2E3A
        | 0x2E3B
        | 0x301C
        | 0x3030
        | 0xFE31
        | 0xFE32
        | 0xFE58
        | 0xFE63 => Fold::To(b'-'),
        // The Japanese long-vowel sign is typed for a dash in numbers; in words it is a letter.
        0x30FC | 0xFF70 if after_digit => Fold::To(b'-'),
        0x2018 | 0x2019 | 0x201B | 0x2BC => Fold::To(b'\''),
        0x201C..=0x201F => Fold::To(b'"'),
        0x2024 | 0xFE52 => Fold::To(b'.'),
        0x2236 | 0xA789 | 0xFE13 | 0xFE55 => Fold::To(b':'),
        0x2044 | 0x2215 => Fold::To(b'/'),
        0xFE6B => Fold::To(b'@'),
        0xFE62 => Fold::To(b'+'),
        0xFF01..=0xFF5E => Fold::To(low_byte(code - 0xFEE0)),
        0x1D400..=0x1D6A3 => {
            let n = low_byte((code - 0x1D400) % 52);
            Fold::To(if n < 26 { b'A' + n } else { b'a' + n - 26 })
        }
        _ => decimal(code).map_or(Fold::Keep, |digit| Fold::To(b'0' + digit)),
    }
}

fn decimal(code: u32) -> Option<u8> {
    if code < ZEROS[0] {
        return None;
    }
    let zero = ZEROS[ZEROS.partition_point(|&z| z <= code) - 1];
    (code - zero < 10).then(|| low_byte(code - zero))
}

fn low_byte(code: u32) -> u8 {
    u8::try_from(code).unwrap_or(b'?')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fold(source: &str) -> String {
        String::from_utf8(Folded::new(source).text.into_owned()).unwrap()
    }

    #[test]
    fn spellings_become_one() {
        for (source, want) in [
            ("plain [text] & 100 %", "plain [text] & 100 %"),
            ("４１１１－１１１１", "4111-1111"),
            ("4111\u{2011}1111\u{a0}1\u{202f}2", "4111-1111 1 2"),
            ("41\u{200b}11\u{ad}1", "41111"),
            ("٠١٢ १२३ 𝟗", "012 123 9"),
            ("a%40b.example a&#64;b a&#x40;b a\\u0040b", "a@b.example a@b a@b a@b"),
            ("𝐣oe＠example．org", "joe@example.org"),
            ("カード 03ー1234", "カード 03-1234"),
            ("o’connor", "o'connor"),
            ("%41 %2F \\u0041 &amp;", "%41 %2F \\u0041 &amp;"),
        ] {
            assert_eq!(fold(source), want);
        }
    }

    #[test]
    fn ascii_is_borrowed() {
        assert!(matches!(Folded::new("plain [text] & 100 %").text, Cow::Borrowed(_)));
        assert!(matches!(Folded::new("é is kept too").text, Cow::Borrowed(_)));
    }

    #[test]
    fn ranges_map_back() {
        let source = "é\u{200b}４\u{200b}1%40é x";
        let folded = Folded::new(source);
        assert_eq!(&*folded.text, "é41@é x".as_bytes());
        let part = |start, end| {
            let (from, to) = folded.source(start, end);
            &source[from..to]
        };
        assert_eq!(part(0, 2), "é");
        assert_eq!(part(2, 3), "４");
        assert_eq!(part(2, 4), "４\u{200b}1");
        assert_eq!(part(4, 5), "%40");
        assert_eq!(part(2, 7), "４\u{200b}1%40é");
    }

    #[test]
    fn tokens_are_opaque() {
        assert_eq!(fold("a [EMAIL_abcdefghij23] b"), "a \u{1} b");
        assert_eq!(fold("a [\\EMAIL_abcdefghij23] b"), "a \u{1} b");
        assert_eq!(fold("a [EMAIL_abc] b"), "a [EMAIL_abc] b");
    }
}
