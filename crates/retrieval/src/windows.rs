//! Where is a text cut into the windows that are searched and shown?
//!
//! A window is about [`WINDOW_CHARS`] characters and begins about [`OVERLAP_CHARS`] before the end of the one before
//! it, so that a sentence at an edge is whole in one of the two. The end is the last paragraph break of the window's
//! second half; where there is none the last end of a sentence, of a line, of a word, of a grapheme.
//!
//! It refuses to cut inside a grapheme (UAX #29) or a range that the caller protects: such a piece makes its window
//! longer, never broken. Windows cover the whole text in order, and the same text always has the same windows.
//!
//! We do not use a splitter from a library: those tried look at all of the remaining text for every window (10 MB take
//! minutes), and end a window at a paragraph break however small a heading that leaves. This one is a single pass.

use std::ops::Range;

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

/// The most characters (Unicode scalar values) of a window, unless one piece that must not be cut is longer.
pub const WINDOW_CHARS: usize = 1_000;
/// About how many characters two neighbouring windows share.
pub const OVERLAP_CHARS: usize = 150;
/// A window's end is looked for from here on, so that no window is needlessly small.
const MIN_CHARS: usize = 500;
/// Names the rules of this module. Windows made under another fingerprint are cut afresh.
pub const WINDOWS_FINGERPRINT: &str = "windows-1:1000/150";

/// One window of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// Place in the row of windows, from 0.
    pub index: u32,
    /// First character (Unicode scalar values from the text's start).
    pub start: u64,
    /// One past the last character.
    pub end: u64,
    /// The same range in bytes.
    pub bytes: Range<usize>,
}

/// Cuts `text`. No cut lies inside one of the `protect` ranges (bytes; any order, may overlap).
///
/// An empty text has no window.
pub fn windows(text: &str, protect: &[Range<usize>]) -> Vec<Window> {
    let cutter = Cutter { text, protect: merged(text, protect) };
    let mut found: Vec<Window> = Vec::with_capacity(text.len() / (WINDOW_CHARS - OVERLAP_CHARS) + 1);
    let (mut start, mut start_char) = (0, 0_u64);
    while start < text.len() {
        let end = cutter.end(start);
        let end_char = start_char + chars(&text[start..end]);
        let index = u32::try_from(found.len()).unwrap_or(u32::MAX);
        found.push(Window { index, start: start_char, end: end_char, bytes: start..end });
        if end == text.len() {
            break;
        }
        start = cutter.next_start(start, end);
        start_char = end_char - chars(&text[start..end]);
    }
    found
}

fn chars(text: &str) -> u64 {
    text.chars().count() as u64
}

/// The ranges in order, joined where they touch, held to the text and to whole characters.
fn merged(text: &str, protect: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut ranges: Vec<_> = protect
        .iter()
        .map(|range| text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end))
        .filter(|range| range.start < range.end)
        .collect();
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    ranges.dedup_by(|next, kept| {
        // Two that only touch may be cut between.
        let overlaps = next.start < kept.end;
        if overlaps {
            kept.end = kept.end.max(next.end);
        }
        overlaps
    });
    ranges
}

struct Cutter<'a> {
    text: &'a str,
    /// Sorted, disjoint.
    protect: Vec<Range<usize>>,
}

impl Cutter<'_> {
    /// The end of the window that begins at `start`.
    fn end(&self, start: usize) -> usize {
        let Some(latest) = self.after(start, WINDOW_CHARS) else { return self.text.len() };
        let earliest = self.after(start, MIN_CHARS).unwrap_or(latest);
        let zone = earliest..latest;
        self.last_paragraph(start, &zone)
            .or_else(|| self.last_sentence_or_line(start, &zone))
            .or_else(|| self.last_word(start, &zone))
            .or_else(|| self.last_grapheme(start, &(start..latest)))
            .unwrap_or_else(|| self.first_after(start, latest))
    }

    /// Where the window after `start..end` begins: at a sentence, else a word, inside the overlap; never at or before `start`.
    fn next_start(&self, start: usize, end: usize) -> usize {
        let (back, near) = (self.before(end, OVERLAP_CHARS), self.before(end, OVERLAP_CHARS / 3));
        if back <= start {
            return end;
        }
        // A sentence or word is taken from a little before the overlap, where its own start tells it apart from a rest.
        let from = self.before(back, OVERLAP_CHARS).max(start);
        let inside = |at: &usize| (back..near).contains(at) && self.may_cut(start, *at);
        let sentence = self.text[from..end].split_sentence_bound_indices().map(|(at, _)| from + at).find(inside);
        sentence
            .or_else(|| self.text[from..end].unicode_word_indices().map(|(at, _)| from + at).find(inside))
            .or_else(|| (back..end).find(|at| self.text.is_char_boundary(*at) && self.may_cut(start, *at)))
            .unwrap_or(end)
    }

    fn last_paragraph(&self, start: usize, zone: &Range<usize>) -> Option<usize> {
        let bytes = self.text.as_bytes();
        // A paragraph ends where a line that holds something is followed by one that holds nothing.
        let mut blank_after = None;
        for at in (zone.start..zone.end).rev() {
            match bytes[at] {
                b'\n' => {
                    if let Some(cut) = blank_after.filter(|cut| self.may_cut(start, *cut)) {
                        return Some(cut);
                    }
                    blank_after = Some(at + 1);
                }
                b' ' | b'\t' | b'\r' => {}
                _ => blank_after = None,
            }
        }
        None
    }

    fn last_sentence_or_line(&self, start: usize, zone: &Range<usize>) -> Option<usize> {
        let mut line = None;
        let mut sentence = None;
        for (at, piece) in self.text[zone.clone()].split_sentence_bound_indices() {
            let cut = zone.start + at + piece.len();
            // The last piece ends where the zone does, which says nothing.
            if cut == zone.end || !self.may_cut(start, cut) {
                continue;
            }
            let closed = piece.trim_end().trim_end_matches(['"', '\'', ')', ']', '”', '’', '»', '」', '』']);
            if closed.ends_with(['.', '!', '?', '…', '。', '！', '？', '؟', '।', '։']) {
                sentence = Some(cut);
            }
            line = Some(cut);
        }
        sentence.or(line)
    }

    fn last_word(&self, start: usize, zone: &Range<usize>) -> Option<usize> {
        let pieces = self.text[zone.clone()].split_word_bound_indices();
        pieces.map(|(at, _)| zone.start + at).rfind(|at| *at > zone.start && self.may_cut(start, *at))
    }

    fn last_grapheme(&self, start: usize, range: &Range<usize>) -> Option<usize> {
        let cuts = self.text[range.clone()].char_indices().rev().map(|(at, _)| range.start + at);
        cuts.take_while(|at| *at > start).find(|at| self.may_cut(start, *at))
    }

    /// The first place after `from` where a cut is allowed: the piece around it is longer than a window.
    fn first_after(&self, start: usize, from: usize) -> usize {
        let mut at = from;
        while at < self.text.len() {
            if let Some(range) = self.protected(at) {
                at = range.end;
            } else if self.may_cut(start, at) {
                return at;
            } else {
                let mut cursor = GraphemeCursor::new(at - start, self.text.len() - start, true);
                let next = cursor.next_boundary(&self.text[start..], 0).ok().flatten();
                at = next.map_or(self.text.len(), |next| start + next);
            }
        }
        self.text.len()
    }

    /// Whether a cut at the byte `at` splits neither a protected range nor a grapheme. `start` is a cut before it: what
    /// lies further back has no say, so that a text of one endless grapheme costs no more than another.
    fn may_cut(&self, start: usize, at: usize) -> bool {
        if at == self.text.len() {
            return true;
        }
        if !self.text.is_char_boundary(at) || self.protected(at).is_some() {
            return false;
        }
        let mut cursor = GraphemeCursor::new(at - start, self.text.len() - start, true);
        cursor.is_boundary(&self.text[start..], 0).unwrap_or(false)
    }

    /// The protected range that a cut at `at` would split.
    fn protected(&self, at: usize) -> Option<&Range<usize>> {
        let next = self.protect.partition_point(|range| range.start < at);
        self.protect[..next].last().filter(|range| at < range.end)
    }

    /// The byte `count` characters after `from`; none where the text ends before or there.
    fn after(&self, from: usize, count: usize) -> Option<usize> {
        self.text[from..].char_indices().nth(count).map(|(at, _)| from + at)
    }

    /// The byte `count` characters before `to`, or the text's start.
    fn before(&self, to: usize, count: usize) -> usize {
        self.text[..to].char_indices().rev().nth(count.saturating_sub(1)).map_or(0, |(at, _)| at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[a-z]{1,12}",
            2 => "[A-Z][a-z]{2,8}\\. ",
            2 => Just(" ".to_owned()),
            1 => Just("\n".to_owned()),
            1 => Just("\r\n\r\n".to_owned()),
            1 => Just("👨‍👩‍👧‍👦".to_owned()),
            1 => Just("🇩🇪🇫🇷🇯🇵".to_owned()),
            1 => Just("e\u{301}\u{323}".to_owned()),
            1 => "[\u{4e00}-\u{4eff}]{5,80}。",
            1 => "[ก-ฮ]{1,40}",
            1 => "\\PC{1,20}",
            1 => Just("a".to_owned() + &"\u{300}".repeat(700)),
            1 => Just("x".repeat(1_500)),
        ]
    }

    fn texts() -> impl Strategy<Value = String> {
        prop::collection::vec(piece(), 0..400).prop_map(|pieces| pieces.concat())
    }

    fn graphemes(text: &str) -> std::collections::HashSet<usize> {
        text.grapheme_indices(true).map(|(at, _)| at).chain([text.len()]).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn windows_cover_the_text_in_order_and_cut_nothing(text in texts(), seeds in prop::collection::vec((0.0..1.0, 0_usize..1_300), 0..20)) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let protect: Vec<_> = seeds.iter().map(|(at, len): &(f64, usize)| {
                let start = (at * text.len() as f64) as usize;
                start..start + len
            }).collect();
            let found = windows(&text, &protect);
            prop_assert_eq!(&found, &windows(&text, &protect));
            let boundaries = graphemes(&text);
            let clean = merged(&text, &protect);
            let mut covered = 0;
            for (place, window) in found.iter().enumerate() {
                prop_assert_eq!(window.index as usize, place);
                let Range { start, end } = window.bytes.clone();
                prop_assert!(start <= covered && end > covered, "a gap, or a window inside the one before");
                prop_assert_eq!(window.start, chars(&text[..start]));
                prop_assert_eq!(window.end, chars(&text[..end]));
                for cut in [start, end] {
                    prop_assert!(boundaries.contains(&cut), "a grapheme is cut at {}", cut);
                    prop_assert!(!clean.iter().any(|range| range.start < cut && cut < range.end), "a protected range is cut at {}", cut);
                }
                covered = end;
            }
            prop_assert_eq!(covered, text.len());
        }
    }

    #[test]
    fn windows_have_their_size_and_overlap_on_prose() {
        let text = "The quick brown fox jumps over the lazy dog near the river bank. ".repeat(400);
        let found = windows(&text, &[]);
        for pair in found.windows(2) {
            assert!((500..=1_000).contains(&(pair[0].end - pair[0].start)));
            assert!((40..=200).contains(&(pair[0].end - pair[1].start)), "overlap of {}", pair[0].end - pair[1].start);
            assert!(text[pair[0].bytes.clone()].ends_with("bank. "), "the end is a sentence's");
            assert!(text[pair[1].bytes.clone()].starts_with("The quick"), "the start is a sentence's");
        }
    }

    #[test]
    fn a_paragraph_break_is_preferred_to_a_sentence_and_a_sentence_to_a_line() {
        let sentence = "One two three four five six seven. ";
        let text = format!("{}\n\n{}", sentence.repeat(17), sentence.repeat(40));
        assert!(text[windows(&text, &[])[0].bytes.clone()].ends_with("seven. \n\n"));
        let wrapped = "one two. three\nfour five six\n".repeat(100);
        assert!(wrapped[windows(&wrapped, &[])[0].bytes.clone()].ends_with("two. "));
        let lines = "alpha beta\ngamma delta\n".repeat(100);
        assert!(lines[windows(&lines, &[])[0].bytes.clone()].ends_with('\n'));
    }

    #[test]
    fn a_token_at_the_edge_stays_whole() {
        let filler = "x".repeat(990);
        let text = format!("{filler}[EMAIL_abcdefghijkl]{filler}");
        let token = 990..990 + "[EMAIL_abcdefghijkl]".len();
        for window in windows(&text, std::slice::from_ref(&token)) {
            for cut in [window.bytes.start, window.bytes.end] {
                assert!(!(token.start < cut && cut < token.end));
            }
        }
    }

    #[test]
    fn a_short_text_is_one_window_and_an_empty_one_none() {
        assert_eq!(windows("", &[]), []);
        assert_eq!(windows("héllo", &[]), [Window { index: 0, start: 0, end: 5, bytes: 0..6 }]);
    }

    #[test]
    fn texts_without_any_place_to_cut_end_too() {
        for text in [
            "a".to_owned() + &"\u{300}".repeat(3_000_000),
            "🇩".repeat(300_000),
            "\u{200d}".repeat(1_000_000),
            "\n".repeat(1_000_000),
            " ".repeat(1_000_000),
        ] {
            let found = windows(&text, &[]);
            assert_eq!(found.last().map(|window| window.bytes.end), Some(text.len()));
        }
        let text = "y".repeat(2_000_000);
        assert_eq!(windows(&text, std::slice::from_ref(&(0..text.len()))).len(), 1);
    }
}
