//! Which keywords stand before (or right behind) a place, and is the place just where a keyword's value would be?
//!
//! A window of [`BEFORE`] bytes is brought to lower case without diacritics and read once by an automaton of all keywords.
//! From a keyword's end a *link* of punctuation and filling words (`number`, `is`, `n°`, `是` …) leads to its value: a value
//! there is *keyed*, one elsewhere in the window only *near*.

mod plain;
mod words;

use std::{collections::BTreeMap, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::{fold::OPAQUE, national};
use plain::Plain;

/// Bytes of folded text before a place in which keywords count.
pub(crate) const BEFORE: usize = 72;
/// Bytes behind a value in which a keyword counts.
const AFTER: usize = 32;
/// Keywords kept of one window; the nearest ones.
const KEPT: usize = 12;

/// What a keyword announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    Phone,
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

/// A keyword before a place.
#[derive(Clone, Copy)]
struct Seen {
    word: Word,
    /// Where its value would begin.
    value: usize,
}

/// The keywords before a place.
pub(crate) struct Before {
    seen: [Seen; KEPT],
    count: usize,
    at: usize,
}

impl Before {
    /// Reads the window before `at`.
    pub(crate) fn read(text: &[u8], at: usize) -> Self {
        let mut before = Self { seen: [Seen { word: Word::Thing, value: usize::MAX }; KEPT], count: 0, at };
        let mut from = at.saturating_sub(BEFORE);
        if let Some(token) = memchr::memrchr(OPAQUE, &text[from..at]) {
            from += token + 1;
        }
        let plain = Plain::read(text, from, at);
        LEXICON.each(&plain, text, |words, _, end| {
            let value = link(text, end, at);
            for &word in words {
                before.push(Seen { word, value });
            }
        });
        before
    }

    fn push(&mut self, seen: Seen) {
        if self.count == KEPT {
            self.seen.rotate_left(1);
            self.count -= 1;
        }
        self.seen[self.count] = seen;
        self.count += 1;
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = &Seen> {
        self.seen[..self.count].iter()
    }

    /// Whether the place is right behind a keyword of this word.
    pub(crate) fn keyed(&self, word: Word) -> bool {
        self.iter().any(|s| s.word == word && s.value >= self.at)
    }

    /// Whether a keyword of this word is in the window.
    pub(crate) fn near(&self, word: Word) -> bool {
        self.iter().any(|s| s.word == word)
    }

    /// Where the nearest keyword of this word has its value: the place itself or letters before it.
    pub(crate) fn value(&self, word: Word) -> Option<usize> {
        self.iter().rev().find(|s| s.word == word).map(|s| s.value.min(self.at))
    }

    /// National ids whose keyword has its value here, and where: the place itself or letters before it.
    pub(crate) fn national(&self) -> impl Iterator<Item = (u8, usize)> {
        self.iter().filter_map(|s| match s.word {
            Word::National(id) => Some((id, s.value.min(self.at))),
            _ => None,
        })
    }

    /// Whether no keyword was met at all.
    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Lower case without diacritics.
pub(crate) fn plain_word(word: &[u8]) -> String {
    plain::lower(&String::from_utf8_lossy(word))
}

/// Whether a keyword of this word stands right behind a value that ends at `end`, and has no value of its own.
pub(crate) fn after(text: &[u8], end: usize, word: Word) -> bool {
    let mut to = (end + AFTER).min(text.len());
    while to < text.len() && text[to] & 0xC0 == 0x80 {
        to -= 1;
    }
    let gap = text[end..to].iter().take_while(|b| matches!(b, b' ' | b',' | b'-' | b'(' | b'\\' | b'[')).count();
    let plain = Plain::read(text, end + gap, to);
    let mut found = false;
    LEXICON.each(&plain, text, |words, start, stop| {
        let own = text[stop..].iter().find(|b| !matches!(b, b' ' | b'.')).is_some_and(|b| matches!(b, b':' | b'=' | b'+' | b'0'..=b'9'));
        found |= start == end + gap && words.contains(&word) && !own;
    });
    found
}

struct Entry {
    words: Vec<Word>,
    /// Letters may stand before it.
    open_left: bool,
    /// Letters may follow it.
    open_right: bool,
    /// Counts in capitals only: `CAP` is a postal code, `cap` a hat.
    capitals: bool,
    latin: bool,
}

struct Lexicon {
    automaton: AhoCorasick,
    entries: Vec<Entry>,
}

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::build);

impl Lexicon {
    fn build() -> Self {
        let mut by_pattern: BTreeMap<String, Entry> = BTreeMap::new();
        let own = words::WORDS.iter().flat_map(|(word, list)| list.iter().map(|keyword| (*word, *keyword)));
        let ids = (0u8..).zip(national::ids()).flat_map(|(i, id)| id.words.iter().map(move |keyword| (Word::National(i), *keyword)));
        for (word, keyword) in own.chain(ids) {
            let bare = keyword.trim_matches('*');
            let entry = by_pattern.entry(plain::lower(bare)).or_insert_with(|| Entry {
                words: Vec::new(),
                open_left: keyword.starts_with('*'),
                open_right: keyword.ends_with('*'),
                capitals: bare.bytes().any(|b| b.is_ascii_uppercase()),
                latin: bare.is_ascii() || plain::lower(bare).is_ascii(),
            });
            entry.open_right |= keyword.ends_with('*');
            entry.words.push(word);
        }
        let (patterns, entries): (Vec<_>, Vec<_>) = by_pattern.into_iter().unzip();
        let build = AhoCorasick::builder().kind(Some(AhoCorasickKind::DFA)).build(&patterns);
        // It fails only on more states than 32 bits can count; an empty automaton then would miss, so the smaller kind is tried.
        let automaton = build.or_else(|_| AhoCorasick::new(&patterns));
        match automaton {
            Ok(automaton) => Self { automaton, entries },
            Err(error) => unreachable!("the keyword table is too large: {error}"),
        }
    }

    /// Calls `take` with each keyword's words, start and end in the text, in order of their ends.
    fn each(&self, plain: &Plain, text: &[u8], mut take: impl FnMut(&[Word], usize, usize)) {
        let bytes = plain.bytes();
        for found in self.automaton.find_overlapping_iter(bytes) {
            let entry = &self.entries[found.pattern().as_usize()];
            let (left, mut right) = (found.start(), found.end());
            if entry.latin {
                let letter = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_lowercase);
                if !entry.open_left && left > 0 && letter(left - 1) || !entry.open_right && letter(right) {
                    continue;
                }
                while letter(right) {
                    right += 1;
                }
            } else if split_word(bytes, left, right, entry) {
                continue;
            }
            let (start, end) = (plain.place(left), plain.place(right));
            if entry.capitals && text[start..end].iter().any(u8::is_ascii_lowercase) {
                continue;
            }
            take(&entry.words, start, end);
        }
    }
}

/// Greek and Cyrillic are written with spaces too: a keyword inside a longer word is none.
fn split_word(bytes: &[u8], left: usize, right: usize, entry: &Entry) -> bool {
    let spaced = |lead: u8| matches!(lead, 0xCE..=0xD3);
    if !spaced(bytes[left]) {
        return false;
    }
    let before = left >= 2 && spaced(bytes[left - 2]) && bytes[left - 1] & 0xC0 == 0x80;
    let behind = bytes.get(right).is_some_and(|&b| spaced(b));
    before && !entry.open_left || behind && !entry.open_right
}

/// From a keyword's end over punctuation and filling words, to `limit` at most.
fn link(text: &[u8], mut at: usize, limit: usize) -> usize {
    loop {
        while at < limit && plain::joins(text[at]) {
            at += 1;
        }
        if at >= limit {
            return limit;
        }
        if text[at] >= 0x80
            && let Some(len) = words::SIGNS.iter().find(|sign| text[at..limit].starts_with(sign.as_bytes())).map(|sign| sign.len())
        {
            at += len;
            continue;
        }
        let len = plain::word(&text[at..limit]);
        if len == 0 || len > 16 || (at + len == limit && text.get(limit).is_some_and(u8::is_ascii_alphanumeric)) {
            return at;
        }
        let word = plain::lower(&String::from_utf8_lossy(&text[at..at + len]));
        if words::FILLERS.binary_search(&word.as_str()).is_err() {
            return at;
        }
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(text: &str, word: Word) -> bool {
        Before::read(text.as_bytes(), text.len()).keyed(word)
    }

    #[test]
    fn links_lead_to_values() {
        for text in ["Phone: ", "Tél. : ", "phone_number = ", "\"phone\":\"", "My phone number is ", "电话：", "电话是", "Phone:\n", "TELEFONNUMMER "] {
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
    fn fillers_are_sorted() {
        assert!(words::FILLERS.is_sorted());
    }

    #[test]
    fn a_token_ends_the_window() {
        assert!(!Before::read(b"phone \x01 ", 8).near(Word::Phone));
    }
}
