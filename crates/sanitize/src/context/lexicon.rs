//! Which keywords are in a window of plain text?
//!
//! A table by the first three bytes of a word (two, for the shortest) holds all keywords; the few that may end a longer word are
//! compared with its end. Each word of a window is looked up once.

use std::{collections::BTreeMap, sync::LazyLock};

use super::{
    Word,
    plain::{self, Plain},
    words,
};
use crate::national;

/// A keyword and what it announces.
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
pub(super) struct Lexicon {
    entries: Vec<Entry>,
    /// First entry and number of entries of each hash of a head.
    heads: Vec<(u16, u16)>,
    /// Keywords of two bytes, by another hash.
    pairs: Vec<(u16, u16)>,
    /// Keywords that may end a longer word.
    tails: Vec<Entry>,
}

pub(super) static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::build);

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
    pub(super) fn each(&self, plain: &Plain, text: &[u8], mut take: impl FnMut(&[Word], usize, usize)) {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
