//! The best `k` of those windows that the caller allows, so that what is not allowed crowds out nothing.

use std::cell::Cell;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use crate::key::ChunkKey;

/// The caller's `allow`, asked at most once for each document of one search.
pub(crate) struct Filter<'a> {
    allow: &'a (dyn Fn(u32) -> bool + Sync),
    known: Mutex<FxHashMap<u32, bool>>,
}

impl<'a> Filter<'a> {
    pub(crate) fn new(allow: &'a (dyn Fn(u32) -> bool + Sync)) -> Self {
        Self { allow, known: Mutex::default() }
    }

    fn allows(&self, doc: u32) -> bool {
        self.asking()(doc)
    }

    /// Answers for many documents, one after the other. Others wait meanwhile: two threads must not ask twice.
    pub(crate) fn asking(&self) -> impl FnMut(u32) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = None;
        move |doc| match last {
            Some((before, allowed)) if before == doc => allowed,
            _ => {
                let allowed = *known.entry(doc).or_insert_with(|| (self.allow)(doc));
                last = Some((doc, allowed));
                allowed
            }
        }
    }
}

/// Collects the best. Of two with the same score the one with the smaller key is better.
pub(crate) struct Best<'a> {
    k: usize,
    filter: &'a Filter<'a>,
    /// The worst of the best on top.
    heap: BinaryHeap<Reverse<Scored>>,
    /// Windows come mostly document by document.
    last: Cell<Option<(u32, bool)>>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scored {
    pub(crate) score: f32,
    pub(crate) key: ChunkKey,
}

impl Eq for Scored {}

impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.key.cmp(&self.key))
    }
}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Best<'a> {
    pub(crate) fn new(k: usize, filter: &'a Filter<'a>) -> Self {
        Self { k, filter, heap: BinaryHeap::with_capacity(k.min(1_024) + 1), last: Cell::new(None) }
    }

    /// Whether a window with this score could still be among the best: cheap, to be asked before [`Best::offer`].
    pub(crate) fn would_take(&self, score: f32) -> bool {
        self.heap.len() < self.k || self.heap.peek().is_some_and(|worst| score >= worst.0.score)
    }

    pub(crate) fn offer(&mut self, key: ChunkKey, score: f32) {
        let scored = Scored { score, key };
        let full = self.heap.len() >= self.k;
        if full && self.heap.peek().is_none_or(|worst| scored <= worst.0) || !self.allows(key.doc) {
            return;
        }
        if full {
            self.heap.pop();
        }
        self.heap.push(Reverse(scored));
    }

    /// With what another collector of the same search found.
    pub(crate) fn joined(mut self, other: Self) -> Self {
        for Reverse(scored) in other.heap {
            self.offer(scored.key, scored.score);
        }
        self
    }

    /// Best first.
    pub(crate) fn into_sorted(self) -> Vec<Scored> {
        self.heap.into_sorted_vec().into_iter().map(|Reverse(scored)| scored).collect()
    }

    fn allows(&self, doc: u32) -> bool {
        match self.last.get() {
            Some((last, allowed)) if last == doc => allowed,
            _ => {
                let allowed = self.filter.allows(doc);
                self.last.set(Some((doc, allowed)));
                allowed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    fn key(doc: u32, index: u32) -> ChunkKey {
        ChunkKey { doc, index }
    }

    #[test]
    fn ties_go_to_the_smaller_key_whatever_the_order() {
        let filter = Filter::new(&|_| true);
        for docs in [[3, 1, 2], [1, 2, 3], [2, 3, 1]] {
            let mut best = Best::new(2, &filter);
            for doc in docs {
                best.offer(key(doc, 0), 1.0);
            }
            assert_eq!(best.into_sorted().iter().map(|one| one.key.doc).collect::<Vec<_>>(), [1, 2]);
        }
    }

    #[test]
    fn a_document_is_asked_about_once_and_what_is_not_allowed_takes_no_place() {
        let asked = AtomicU32::new(0);
        let allow = |doc: u32| {
            asked.fetch_add(1, Relaxed);
            doc.is_multiple_of(10)
        };
        let filter = Filter::new(&allow);
        let mut best = Best::new(3, &filter);
        for round in 0..4 {
            for doc in 0..100_u32 {
                #[allow(clippy::cast_precision_loss)]
                best.offer(key(doc, round), (100 - doc % 10) as f32);
            }
        }
        assert!(asked.load(Relaxed) <= 100);
        let found = best.into_sorted();
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|one| one.key.doc.is_multiple_of(10)));
    }

    #[test]
    fn none_are_kept_where_none_are_asked_for() {
        let filter = Filter::new(&|_| true);
        let mut best = Best::new(0, &filter);
        assert!(!best.would_take(1.0));
        best.offer(key(1, 0), 1.0);
        assert!(best.into_sorted().is_empty());
    }
}
