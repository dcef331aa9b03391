//! Where in the text may a value be, which rule is asked there, and which answer wins?
//!
//! One pass over the folded text jumps from trigger to trigger: a digit, `@`, `:`, `=` or `_`. Rules read a few dozen bytes
//! around their trigger. Of overlapping hits the one of higher weight stays, then the longer one.

use crate::{
    Kind, Span, card,
    context::{Before, Keywords},
    crypto, email,
    fold::Folded,
    iban, national, net, personal, phone,
    run::{self, Run},
    secret, vat,
};

/// How sure a rule is; decides overlaps.
pub(crate) mod weight {
    /// A whole block that holds other values: a key file, a URL with a password, a key with a known head.
    pub(crate) const BLOCK: u8 = 90;
    /// A shape that nothing else has.
    pub(crate) const SHAPE: u8 = 80;
    /// Right after its own keyword, and its check digits agree.
    pub(crate) const KEYED_VALID: u8 = 70;
    /// Right after its own keyword.
    pub(crate) const KEYED: u8 = 60;
    /// Near its keyword, and valid.
    pub(crate) const NEAR: u8 = 50;
    /// Valid, with no keyword.
    pub(crate) const FREE: u8 = 40;
    /// Valid only because of the record it stands in.
    pub(crate) const ROW: u8 = 30;
}

/// A value found, in folded bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: Kind,
    pub(crate) rule: &'static str,
    pub(crate) weight: u8,
}

/// A place where a value may begin: a group of letters and digits with at least one digit.
pub(crate) struct Spot<'t> {
    pub(crate) text: &'t [u8],
    /// First byte of the group.
    pub(crate) start: usize,
    pub(crate) run: &'t Run,
    pub(crate) before: Before<'t>,
    /// A number stands right before, behind a separator: this may be the rest of something longer.
    pub(crate) continued: bool,
}

impl Spot<'_> {
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(b' ')
    }

    /// The byte before the group.
    pub(crate) fn previous(&self) -> u8 {
        self.start.checked_sub(1).map_or(b' ', |at| self.text[at])
    }
}

/// Finds the values in text. Spans are sorted and do not overlap.
pub(crate) fn scan(source: &str) -> Vec<Span> {
    let folded = Folded::new(source);
    let mut last = 0;
    let hits = resolve(find(&folded.text)).into_iter().map(|hit| {
        // Rules look at bytes and some only so far: a character that they cut is the value's.
        let start = boundary(&folded.text, hit.start, |at| at - 1).max(last);
        last = boundary(&folded.text, hit.end, |at| at + 1);
        let (start, end) = folded.source(start, last);
        Span { start, end, kind: hit.kind, rule: hit.rule }
    });
    hits.filter(|span| span.start < span.end).collect()
}

/// The next place in the direction of `step` where no character is cut.
fn boundary(text: &[u8], mut at: usize, step: fn(usize) -> usize) -> usize {
    while text.get(at).is_some_and(|b| b & 0xC0 == 0x80) {
        at = step(at);
    }
    at
}

/// Bytes at which a rule may have something to say.
static TRIGGER: [bool; 256] = {
    let mut table = [false; 256];
    let mut digit = b'0';
    while digit <= b'9' {
        table[digit as usize] = true;
        digit += 1;
    }
    table[b'@' as usize] = true;
    table[b':' as usize] = true;
    table[b'=' as usize] = true;
    table[b'_' as usize] = true;
    table
};

fn trigger(text: &[u8], mut at: usize) -> Option<usize> {
    // One branch for sixteen bytes without a trigger; digits and `:` are neighbours.
    while let Some(chunk) = text.get(at..at + 16) {
        if chunk
            .iter()
            .fold(false, |any, &b| any | (b.wrapping_sub(b'0') <= 10) | (b == b'=') | (b == b'@') | (b == b'_'))
        {
            break;
        }
        at += 16;
    }
    text[at..].iter().position(|&b| TRIGGER[b as usize]).map(|step| at + step)
}

fn find(text: &[u8]) -> Vec<Hit> {
    let mut hits = Vec::new();
    secret::blocks(text, &mut hits);
    let mut way = Way::default();
    let mut at = 0;
    while let Some(next) = trigger(text, at) {
        at = next;
        match text[at] {
            b'@' => {
                hits.extend(email::at(text, at));
                at += 1;
            }
            b':' => {
                hits.extend(net::url(text, at).or_else(|| net::colon(text, at)));
                hits.extend(secret::assigned(text, at));
                at += 1;
            }
            b'=' => {
                hits.extend(secret::assigned(text, at));
                at += 1;
            }
            b'_' => {
                hits.extend(way.words.token(text, at));
                at += 1;
            }
            _ => at = digit(text, at, &mut way, &mut hits),
        }
    }
    personal::rows(text, &mut hits);
    hits
}

/// The rules for groups of letters and digits, those with the strongest checks first.
const RULES: [fn(&Spot, &mut Vec<Hit>); 8] =
    [iban::find, card::find, national::find, vat::find, secret::spoken, net::number, personal::find, phone::find];

/// What is remembered on the way through a text.
#[derive(Default)]
struct Way {
    words: secret::Words,
    keywords: Keywords,
}

/// Asks the rules that know groups of letters and digits; gives the place to go on from.
fn digit(text: &[u8], at: usize, way: &mut Way, hits: &mut Vec<Hit>) -> usize {
    let (before, behind) = run::around(text, at);
    let (start, end) = (at - before, at + behind);
    let first = hits.len();
    // A word is longer than the group where these signs join letters to it.
    let joined = |sign: Option<&u8>, far: Option<&u8>| {
        matches!(sign, Some(b'-' | b'_' | b'.')) && far.is_some_and(u8::is_ascii_alphabetic)
    };
    let letters = text[start] > b'9' || text[end - 1] > b'9';
    let behind =
        joined(text.get(end), text.get(end + 1)) || letters && matches!(text.get(end), Some(b'-' | b'_' | b'.'));
    let before = start >= 2 && joined(text.get(start - 1), text.get(start - 2));
    if end - start >= secret::KEY_MIN || behind || before {
        hits.extend(way.words.token(text, at));
    }
    if end - start >= 25 {
        hits.extend(crypto::address(text, start, end));
    }
    if end - start <= 36 && hits.len() == first {
        let run = Run::read(text, start);
        let spot = Spot {
            text,
            start,
            run: &run,
            before: way.keywords.before(text, start),
            continued: continued(text, start),
        };
        // What is keyed and valid is not overruled by the rules behind it.
        for rule in RULES {
            rule(&spot, hits);
            if hits[first..].iter().any(|hit| hit.weight >= weight::KEYED_VALID && hit.start == start) {
                break;
            }
        }
    }
    let sure = hits[first..].iter().filter(|hit| hit.weight >= weight::NEAR && hit.start <= start);
    sure.map(|hit| hit.end).max().unwrap_or(end).max(end)
}

fn continued(text: &[u8], start: usize) -> bool {
    match &text[..start] {
        [.., digit, b' ' | b'-' | b'.' | b'/' | b',' | b':' | b'_'] => digit.is_ascii_digit(),
        _ => false,
    }
}

/// Of overlapping hits the one of higher weight stays, then the longer, then the first.
fn resolve(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_by_key(|hit| (hit.start, hit.end));
    let mut kept: Vec<Hit> = Vec::with_capacity(hits.len());
    let mut i = 0;
    while i < hits.len() {
        // A cluster of hits that hang together; most have one member.
        let mut end = hits[i].end;
        let mut j = i + 1;
        while j < hits.len() && hits[j].start < end {
            end = end.max(hits[j].end);
            j += 1;
        }
        if j == i + 1 {
            kept.push(hits[i]);
            i = j;
            continue;
        }
        let cluster = &mut hits[i..j];
        cluster.sort_by_key(|hit| (std::cmp::Reverse(hit.weight), std::cmp::Reverse(hit.end - hit.start), hit.start));
        let from = kept.len();
        for hit in cluster.iter() {
            if kept[from..].iter().all(|k| hit.end <= k.start || hit.start >= k.end) {
                kept.push(*hit);
            }
        }
        kept[from..].sort_unstable_by_key(|hit| hit.start);
        i = j;
    }
    kept
}
