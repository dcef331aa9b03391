//! Which keywords stand before (or right behind) a place, and is the place just where a keyword's value would be?
//!
//! A window of [`BEFORE`] bytes is brought to lower case without diacritics, and each word looked up in a table of all keywords.
//! From a keyword's end a *link* of punctuation and filling words (`number`, `is`, `n°`, `是` …) leads to its value: a value
//! there is *keyed*, one elsewhere in the window only *near*.

mod plain;
mod words;

use std::{collections::BTreeMap, sync::LazyLock};

use crate::{fold::OPAQUE, national};
use plain::Plain;

/// Bytes of folded text before a place in which keywords count.
pub(crate) const BEFORE: usize = 72;
/// Bytes behind a value in which a keyword counts.
const AFTER: usize = 32;
/// Keywords kept of one window; the nearest ones.
const KEPT: usize = 16;

/// What a keyword announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Email,
    Phone,
    /// What a phone may be called right behind its number: office, home.
    Desk,
    /// Words around a phone number: call, reach, answering at.
    Call,
    Card,
    Iban,
    Ip,
    Mac,
    Password,
    Crypto,
    Vat,
    Dob,
    Passport,
    License,
    Plate,
    Postal,
    /// The national id of this index in `national::ids()`.
    National(u8),
    /// Any national id.
    Identity,
    /// Four numbers behind it are a version, not an address.
    Version,
    /// Digits behind it belong to a thing, not to a person: an order, a page, a checksum.
    Thing,
}

impl Word {
    /// A bit of its own; the national ids share one here.
    const fn bit(self) -> u32 {
        1 << match self {
            Self::Email => 0,
            Self::Phone => 1,
            Self::Desk => 2,
            Self::Call => 3,
            Self::Card => 4,
            Self::Iban => 5,
            Self::Ip => 6,
            Self::Mac => 7,
            Self::Password => 8,
            Self::Crypto => 9,
            Self::Vat => 10,
            Self::Dob => 11,
            Self::Passport => 12,
            Self::License => 13,
            Self::Plate => 14,
            Self::Postal => 15,
            Self::National(_) => 16,
            Self::Identity => 17,
            Self::Version => 18,
            Self::Thing => 19,
        }
    }
}

/// A keyword before a place.
#[derive(Clone, Copy)]
struct Seen {
    word: Word,
    /// Where the keyword ends.
    end: usize,
    /// Where its value would begin.
    value: usize,
}

/// The keywords met on the way through a text. Each byte is read once, however many places there are.
#[derive(Default)]
pub(crate) struct Keywords {
    seen: Vec<Seen>,
    /// Read up to here.
    done: usize,
    /// Keywords before this place, the end of the last token, count no more.
    barrier: usize,
    plain: Plain,
}

impl Keywords {
    /// The keywords in the window before `at`, which does not go back from call to call.
    pub(crate) fn before(&mut self, text: &[u8], at: usize) -> Before<'_> {
        let mut from = at.saturating_sub(BEFORE);
        let fresh = from.max(self.done).min(at);
        if let Some(token) = memchr::memrchr(OPAQUE, &text[fresh..at]) {
            self.barrier = fresh + token + 1;
        }
        from = from.max(self.barrier);
        self.read(text, from.max(self.done), at);
        self.done = self.done.max(at);
        let old = self.seen.iter().take_while(|s| s.end <= from).count();
        if old > 0 {
            self.seen.drain(..old);
        }
        let nearest = self.seen.len().saturating_sub(KEPT);
        Before::new(&self.seen[nearest..], at)
    }

    fn read(&mut self, text: &[u8], from: usize, at: usize) {
        if from >= at {
            return;
        }
        self.plain.read(text, from, at);
        let seen = &mut self.seen;
        LEXICON.each(&self.plain, text, |words, _, end| {
            let value = link(text, end, at);
            // The next line's number is not the thing's.
            let broken = value > end && text[end..value].contains(&b'\n');
            let at = |word| if broken && matches!(word, Word::Thing | Word::Version) { end } else { value };
            seen.extend(words.iter().map(|&word| Seen { word, end, value: at(word) }));
        });
    }
}

/// The keywords before a place.
#[derive(Clone, Copy)]
pub(crate) struct Before<'k> {
    seen: &'k [Seen],
    at: usize,
    /// Bits of the words in the window, and of those with their value at the place.
    near: u32,
    keyed: u32,
}

impl<'k> Before<'k> {
    fn new(seen: &'k [Seen], at: usize) -> Self {
        let mut before = Self { seen, at, near: 0, keyed: 0 };
        for s in seen {
            let bit = s.word.bit();
            before.near |= bit;
            before.keyed |= if s.value >= at { bit } else { 0 };
        }
        before
    }

    fn nearest(&self, word: Word) -> Option<&Seen> {
        self.near(word).then(|| self.seen.iter().rev().find(|s| s.word == word)).flatten()
    }

    /// Whether the place is right behind a keyword of this word, which is no national id.
    pub(crate) const fn keyed(&self, word: Word) -> bool {
        self.keyed & word.bit() != 0
    }

    /// Whether a keyword of this word, which is no national id, is in the window.
    pub(crate) const fn near(&self, word: Word) -> bool {
        self.near & word.bit() != 0
    }

    /// Where the nearest keyword of this word ends, and where it has its value.
    pub(crate) fn link(&self, word: Word) -> Option<(usize, usize)> {
        self.nearest(word).map(|s| (s.end, s.value.min(self.at)))
    }

    /// Where the nearest keyword of this word has its value: the place itself or letters before it.
    pub(crate) fn value(&self, word: Word) -> Option<usize> {
        self.nearest(word).map(|s| s.value.min(self.at))
    }

    /// National ids whose keyword has its value here, and where: the place itself or letters before it.
    pub(crate) fn national(&self) -> impl Iterator<Item = (u8, usize)> {
        let any = self.near & Word::National(0).bit() != 0;
        self.seen.iter().filter(move |_| any).filter_map(|s| match s.word {
            Word::National(id) => Some((id, s.value.min(self.at))),
            _ => None,
        })
    }

    /// The national ids with a keyword in the window, as bits.
    pub(crate) fn nationals(&self) -> u128 {
        if self.near & Word::National(0).bit() == 0 {
            return 0;
        }
        self.seen.iter().fold(0, |bits, s| match s.word {
            Word::National(id) => bits | 1 << id,
            _ => bits,
        })
    }

    /// Whether no keyword was met at all.
    pub(crate) const fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }
}

/// Lower case without diacritics.
pub(crate) fn plain_word(word: &[u8]) -> String {
    plain::lower(&String::from_utf8_lossy(word))
}

/// Whether a place is right behind a keyword of this word, for rules that are asked outside the way through the text.
pub(crate) fn keyed(text: &[u8], at: usize, word: Word) -> bool {
    Keywords::default().before(text, at).keyed(word)
}

/// Whether a keyword of this word stands right behind a value that ends at `end`, and has no value of its own.
pub(crate) fn after(text: &[u8], end: usize, word: Word) -> bool {
    let mut to = (end + AFTER).min(text.len());
    while to < text.len() && text[to] & 0xC0 == 0x80 {
        to -= 1;
    }
    let gap = text[end..to].iter().take_while(|b| matches!(b, b' ' | b',' | b'-' | b'(' | b'\\' | b'[')).count();
    let mut plain = Plain::default();
    plain.read(text, end + gap, to);
    let mut found = false;
    LEXICON.each(&plain, text, |words, start, stop| {
        let own = text[stop..]
            .iter()
            .find(|b| !matches!(b, b' ' | b'.'))
            .is_some_and(|b| matches!(b, b':' | b'=' | b'+' | b'0'..=b'9'));
        found |=
            start == end + gap && words.iter().any(|w| *w == word || word == Word::Phone && *w == Word::Desk) && !own;
    });
    found
}

struct Entry {
    /// Its length and last byte, to tell most others from it without a look at its text.
    len: usize,
    last: u8,
    /// The keyword in plain spelling.
    text: Vec<u8>,
    words: Vec<Word>,
    /// Letters may follow it.
    open_right: bool,
    /// Counts in capitals only: `CAP` is a postal code, `cap` a hat.
    capitals: bool,
    /// Counts with its diacritics only: `né` is a birth, `ne` is not.
    exact: Option<&'static str>,
    latin: bool,
}

/// All keywords, found by the first three bytes of a word.
struct Lexicon {
    entries: Vec<Entry>,
    /// First entry and number of entries of each hash of a head.
    heads: Vec<(u16, u16)>,
    /// Keywords of two bytes, by another hash.
    pairs: Vec<(u16, u16)>,
    /// Keywords that may end a longer word.
    tails: Vec<Entry>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::build);

const HEADS: usize = 4096;

fn hash(head: &[u8]) -> usize {
    head.iter().fold(0usize, |h, &b| h.wrapping_mul(37).wrapping_add(usize::from(b))) % HEADS
}

impl Lexicon {
    fn build() -> Self {
        let mut by_text: BTreeMap<String, Entry> = BTreeMap::new();
        let mut tails: Vec<Entry> = Vec::new();
        let own = words::WORDS.iter().flat_map(|(word, list)| list.iter().map(|keyword| (*word, *keyword)));
        let ids = (0u8..)
            .zip(national::ids())
            .flat_map(|(i, id)| id.words.iter().map(move |keyword| (Word::National(i), *keyword)));
        for (word, keyword) in own.chain(ids) {
            let exact = keyword.strip_prefix('=');
            let bare = exact.unwrap_or(keyword).trim_matches('*');
            let text = plain::lower(bare);
            let fresh = || Entry {
                len: text.len(),
                last: text.bytes().last().unwrap_or(0),
                text: text.clone().into_bytes(),
                words: Vec::new(),
                open_right: keyword.ends_with('*'),
                capitals: bare.bytes().any(|b| b.is_ascii_uppercase()),
                exact,
                latin: text.is_ascii(),
            };
            if keyword.starts_with('*') {
                tails.push(Entry { words: vec![word], ..fresh() });
            }
            let entry = by_text.entry(text.clone()).or_insert_with(fresh);
            entry.open_right |= keyword.ends_with('*');
            // The same letters without the demand win.
            entry.exact = entry.exact.filter(|_| exact.is_some());
            if !entry.words.contains(&word) {
                entry.words.push(word);
            }
        }
        let (short, mut entries): (Vec<_>, Vec<_>) = by_text.into_values().partition(|e| e.text.len() < 3);
        entries.sort_by_key(|e| hash(&e.text[..3]));
        let heads = index(&entries, 3, 0);
        let from = entries.len();
        entries.extend(short);
        entries[from..].sort_by_key(|e| hash(&e.text));
        let pairs = index(&entries[from..], 2, from);
        Self { entries, heads, pairs, tails }
    }

    /// Calls `take` with each keyword's words, start and end in the text, in order of their starts.
    fn each(&self, plain: &Plain, text: &[u8], mut take: impl FnMut(&[Word], usize, usize)) {
        let bytes = plain.bytes();
        let mut at = 0;
        while at < bytes.len() {
            let b = bytes[at];
            if b.is_ascii_lowercase() {
                self.starting(plain, text, at, &mut take);
                let end = at + bytes[at..].iter().take_while(|b| b.is_ascii_lowercase()).count();
                self.ending(plain, at, end, &mut take);
                at = end;
            } else {
                if b >= 0xC0 {
                    self.starting(plain, text, at, &mut take);
                }
                at += 1;
            }
        }
    }

    /// Keywords that begin at `left`, the start of a word or of a character that is not ASCII.
    fn starting(&self, plain: &Plain, text: &[u8], left: usize, take: &mut impl FnMut(&[Word], usize, usize)) {
        let rest = &plain.bytes()[left..];
        if let [a, b, ..] = rest {
            let (first, count) = self.pairs[hash(&[*a, *b])];
            if count > 0 {
                self.check(plain, text, left, (first, count), take);
            }
        }
        if let [a, b, c, ..] = rest {
            let (first, count) = self.heads[hash(&[*a, *b, *c])];
            if count > 0 {
                self.check(plain, text, left, (first, count), take);
            }
        }
    }

    fn check(
        &self,
        plain: &Plain,
        text: &[u8],
        left: usize,
        (first, count): (u16, u16),
        take: &mut impl FnMut(&[Word], usize, usize),
    ) {
        let bytes = plain.bytes();
        let rest = &bytes[left..];
        for entry in &self.entries[usize::from(first)..usize::from(first) + usize::from(count)] {
            if rest.get(entry.len - 1) != Some(&entry.last) || !rest.starts_with(&entry.text) {
                continue;
            }
            let mut right = left + entry.text.len();
            if entry.latin {
                let letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
                if letter(right) && !entry.open_right {
                    continue;
                }
                while letter(right) {
                    right += 1;
                }
            } else if split_word(bytes, left, right, entry) {
                continue;
            }
            let (start, end) = (plain.place(left), plain.place(right));
            let small = entry.capitals && text[start..end].iter().any(u8::is_ascii_lowercase);
            let other = entry
                .exact
                .is_some_and(|exact| !String::from_utf8_lossy(&text[start..end]).to_lowercase().starts_with(exact));
            if !small && !other {
                take(&entry.words, start, end);
            }
        }
    }

    /// Keywords that end the word `left..right`, which begins with something else.
    fn ending(&self, plain: &Plain, left: usize, right: usize, take: &mut impl FnMut(&[Word], usize, usize)) {
        if right - left < 7 {
            return;
        }
        let word = &plain.bytes()[left..right];
        for entry in &self.tails {
            if word.len() > entry.text.len() && word.last() == entry.text.last() && word.ends_with(&entry.text) {
                take(&entry.words, plain.place(left), plain.place(right));
            }
        }
    }
}

/// For each hash of the first `len` bytes, where its entries begin and how many there are.
fn index(entries: &[Entry], len: usize, from: usize) -> Vec<(u16, u16)> {
    let mut table = vec![(0, 0); HEADS];
    for (i, entry) in entries.iter().enumerate() {
        let slot: &mut (u16, u16) = &mut table[hash(&entry.text[..len])];
        if slot.1 == 0 {
            slot.0 = u16::try_from(from + i).unwrap_or(u16::MAX);
        }
        slot.1 += 1;
    }
    table
}

/// Greek and Cyrillic are written with spaces too: a keyword inside a longer word is none.
fn split_word(bytes: &[u8], left: usize, right: usize, entry: &Entry) -> bool {
    let spaced = |lead: u8| matches!(lead, 0xCE..=0xD3);
    if !spaced(bytes[left]) {
        return false;
    }
    let before = left >= 2 && spaced(bytes[left - 2]) && bytes[left - 1] & 0xC0 == 0x80;
    let behind = bytes.get(right).is_some_and(|&b| spaced(b));
    before || behind && !entry.open_right
}

/// From a keyword's end over punctuation, tags (`</td><td>`) and filling words, to `limit` at most.
fn link(text: &[u8], from: usize, limit: usize) -> usize {
    let mut at = from;
    loop {
        while at < limit && plain::joins(text[at]) {
            // A sentence or a paragraph that ends here takes its keyword along.
            if text[at] == b'\n' && at > from && (text[at - 1] == b'\n' || text[at - 1] == b'.' && at > from + 1) {
                return at;
            }
            if text[at] == b'<'
                && let Some(len) = text[at..limit].iter().take(32).position(|&b| b == b'>')
            {
                at += len;
            }
            at += 1;
        }
        if at >= limit {
            return limit;
        }
        if text[at] >= 0x80
            && let Some(len) =
                words::SIGNS.iter().find(|sign| text[at..limit].starts_with(sign.as_bytes())).map(|sign| sign.len())
        {
            at += len;
            continue;
        }
        let len = plain::word(&text[at..limit]);
        if len == 0 || len > 16 || (at + len == limit && text.get(limit).is_some_and(u8::is_ascii_alphanumeric)) {
            return at;
        }
        // `S-SW 332` is a plate, not a filler and a dash.
        if matches!(text[at + len..limit.max(at + len)], [b'-', next, ..] if next.is_ascii_alphanumeric())
            || at + len + 1 == limit && text[at + len] == b'-'
        {
            return at;
        }
        if !plain::is_filler(&text[at..at + len]) {
            return at;
        }
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(text: &str, word: Word) -> bool {
        super::keyed(text.as_bytes(), text.len(), word)
    }

    #[test]
    fn links_lead_to_values() {
        for text in [
            "Phone: ",
            "Tél. : ",
            "phone_number = ",
            "\"phone\":\"",
            "My phone number is ",
            "电话：",
            "电话是",
            "Phone:\n",
            "TELEFONNUMMER ",
        ] {
            assert!(keyed(text, Word::Phone), "{text}");
        }
        for text in ["Phone, then ", "telephoned ", "xtel ", "phone 12 "] {
            assert!(!keyed(text, Word::Phone), "{text}");
        }
    }

    #[test]
    fn capitals_and_glued_words() {
        assert!(keyed("CAP ", Word::Postal) && !keyed("a cap ", Word::Postal));
        assert!(keyed("Kundenpassnummer: ", Word::Passport));
    }

    #[test]
    fn no_keyword_is_too_short_to_be_found() {
        assert!(LEXICON.entries.iter().all(|e| e.text.len() >= 2));
        assert!(
            LEXICON.entries.iter().all(|e| e.text[0].is_ascii_lowercase() || e.text[0] >= 0xC0),
            "{:?}",
            LEXICON
                .entries
                .iter()
                .map(|e| String::from_utf8_lossy(&e.text).into_owned())
                .find(|t| !t.starts_with(char::is_alphabetic))
        );
    }

    #[test]
    fn fillers_are_sorted() {
        assert!(words::FILLERS.is_sorted());
    }

    #[test]
    fn a_token_ends_the_window() {
        assert!(!Keywords::default().before(b"phone \x01 ", 8).near(Word::Phone));
    }
}
