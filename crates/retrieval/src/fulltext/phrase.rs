//! Where do words follow one another?

use tantivy::postings::{Postings, SegmentPostings};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocSet, TERMINATED, Term};

use super::query::Forms;
use super::reader::Segment;

/// The windows of a segment that have the phrase, and how often. Rarer words first: the others are only looked up.
pub(super) fn occurrences(segment: &Segment, field: Field, phrase: &[Forms]) -> tantivy::Result<Vec<(u32, u32)>> {
    let mut words = Vec::with_capacity(phrase.len());
    for (offset, forms) in (0..).zip(phrase) {
        let mut postings = Vec::new();
        for form in forms {
            let term = Term::from_field_text(field, form);
            postings.extend(segment.terms.read_postings(&term, IndexRecordOption::WithFreqsAndPositions)?);
        }
        let windows: u32 = postings.iter().map(SegmentPostings::doc_freq).fold(0, u32::saturating_add);
        words.push(Word { offset, windows, postings });
    }
    words.sort_by_key(|word| word.windows);
    let Some((first, others)) = words.split_first_mut() else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    let mut window = first.next_window(0);
    while window != TERMINATED {
        let mut starts = first.starts(window);
        for other in others.iter_mut() {
            if starts.is_empty() {
                break;
            }
            let there = other.starts(window);
            starts.retain(|start| there.binary_search(start).is_ok());
        }
        if !starts.is_empty() {
            found.push((window, u32::try_from(starts.len()).unwrap_or(u32::MAX)));
        }
        window = first.next_window(window + 1);
    }
    Ok(found)
}

/// One word of a phrase.
struct Word {
    /// Its place in the phrase.
    offset: u32,
    windows: u32,
    postings: Vec<SegmentPostings>,
}

impl Word {
    /// The first window from `from` on that has the word.
    fn next_window(&mut self, from: u32) -> u32 {
        self.postings.iter_mut().map(|postings| seek(postings, from)).min().unwrap_or(TERMINATED)
    }

    /// Where the phrase would start for each place of the word in `window`, sorted. Windows must be asked for in order.
    fn starts(&mut self, window: u32) -> Vec<u32> {
        let (mut starts, mut positions) = (Vec::new(), Vec::new());
        for postings in &mut self.postings {
            if seek(postings, window) == window {
                postings.positions(&mut positions);
                starts.extend(positions.iter().filter_map(|position| position.checked_sub(self.offset)));
            }
        }
        starts.sort_unstable();
        starts.dedup();
        starts
    }
}

fn seek(postings: &mut SegmentPostings, target: u32) -> u32 {
    if postings.doc() < target { postings.seek(target) } else { postings.doc() }
}
