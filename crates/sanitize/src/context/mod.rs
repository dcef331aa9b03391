//! Which keywords stand before (or right behind) a place, and is the place just where a keyword's value would be?
//!
//! A window of [`BEFORE`] bytes is brought to lower case without diacritics, and each word looked up in a table of all keywords.
//! From a keyword's end a *link* of punctuation and filling words (`number`, `is`, `n°`, `是` …) leads to its value: a value
//! there is *keyed*, one elsewhere in the window only *near*.

mod lexicon;
mod plain;
mod words;

use crate::fold::OPAQUE;
use lexicon::LEXICON;
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
    fn fillers_are_sorted() {
        assert!(words::FILLERS.is_sorted());
    }

    #[test]
    fn a_token_ends_the_window() {
        assert!(!Keywords::default().before(b"phone \x01 ", 8).near(Word::Phone));
    }
}
