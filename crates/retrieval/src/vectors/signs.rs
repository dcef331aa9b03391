//! Which of very many rows may be near a question at all? Told by the signs of their numbers, an eighth of what a full
//! comparison reads.
//!
//! The share of numbers whose signs differ grows with the angle between two vectors (M. Charikar, "Similarity estimation
//! techniques from rounding algorithms", 2002). It is a first look only: what is near by it is compared in full.

use rayon::prelude::*;

use super::scan;
use crate::index::Filter;
use crate::key::ChunkKey;

/// Rows a thread takes at a time.
const BLOCK: usize = 2_048;
const WORD: usize = u64::BITS as usize;

/// The signs of all rows, one bit a number.
pub(super) struct Signs {
    /// Words of one row.
    words: usize,
    bits: Vec<u64>,
}

impl Signs {
    /// The signs of `rows`, each of `dims` bytes that are numbers of eight bits.
    pub(super) fn of(rows: &[u8], dims: usize) -> Self {
        let words = dims.div_ceil(WORD);
        let mut bits = vec![0; rows.len() / dims * words];
        bits.par_chunks_mut(BLOCK * words).zip(rows.par_chunks(BLOCK * dims)).for_each(|(bits, rows)| {
            for (bits, row) in bits.chunks_exact_mut(words).zip(rows.chunks_exact(dims)) {
                put(row, bits);
            }
        });
        Self { words, bits }
    }

    /// The rows that the filter lets through whose signs differ least from the question's, ascending: at least `wanted` of
    /// them, where there are so many, and all that are as near as the last of these.
    pub(super) fn near(&self, query: &[i8], wanted: usize, keys: &[u64], filter: &Filter<'_>) -> Vec<usize> {
        let mut question = vec![0; self.words];
        put(&query.iter().map(|number| number.cast_unsigned()).collect::<Vec<_>>(), &mut question);
        let farthest = self.words * WORD;
        let mut distances = vec![0; keys.len()];
        let blocks = distances.par_chunks_mut(BLOCK).zip(self.bits.par_chunks(BLOCK * self.words));
        let counts = blocks
            .zip(keys.par_chunks(BLOCK))
            .fold(
                || vec![0_usize; farthest + 1],
                |mut counts, ((distances, bits), keys)| {
                    scan::distances(&question, bits, distances);
                    let mut allows = filter.asking();
                    for (distance, key) in distances.iter_mut().zip(keys) {
                        if allows(ChunkKey::unpacked(*key).doc) {
                            counts[*distance as usize] += 1;
                        } else {
                            *distance = u32::MAX;
                        }
                    }
                    counts
                },
            )
            .reduce(
                || vec![0; farthest + 1],
                |one, other| one.iter().zip(other).map(|(one, other)| one + other).collect(),
            );
        let mut found = 0;
        let limit = counts.iter().position(|count| {
            found += count;
            found >= wanted
        });
        let limit = limit.unwrap_or(farthest);
        distances.iter().enumerate().filter(|(_, far)| **far as usize <= limit).map(|(row, _)| row).collect()
    }
}

/// Sets the bit of each number that is less than zero.
fn put(row: &[u8], bits: &mut [u64]) {
    for (word, numbers) in bits.iter_mut().zip(row.chunks(WORD)) {
        *word = numbers.iter().rev().fold(0, |word, number| word << 1 | u64::from(number >> 7));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::quantize::quantize;

    /// Vectors around a few centres, as meanings are, from a fixed seed.
    fn vectors(count: usize, dims: usize) -> Vec<Vec<i8>> {
        let mut state = 42_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f32::from(u16::try_from(state % 2_001).unwrap()) / 1_000.0 - 1.0
        };
        let centres: Vec<Vec<f32>> = (0..20).map(|_| (0..dims).map(|_| random()).collect()).collect();
        let one = |n: usize| centres[n % centres.len()].iter().map(|at| at + random()).collect::<Vec<_>>();
        (0..count).map(one).map(|vector| quantize(&vector).unwrap().values).collect()
    }

    fn product(one: &[i8], other: &[i8]) -> i32 {
        one.iter().zip(other).map(|(one, other)| i32::from(*one) * i32::from(*other)).sum()
    }

    #[test]
    fn what_is_nearest_is_among_the_near() {
        let (count, dims) = (5_000, 200);
        let all = vectors(count + 20, dims);
        let (rows, questions) = all.split_at(count);
        let bytes: Vec<u8> = rows.iter().flatten().map(|number| number.cast_unsigned()).collect();
        let keys: Vec<u64> =
            (0..count).map(|n| ChunkKey { doc: u32::try_from(n / 10).unwrap(), index: 0 }.packed()).collect();
        let signs = Signs::of(&bytes, dims);
        for allow in [(|_| true) as fn(u32) -> bool, |doc| doc % 4 == 1, |doc| doc == 7] {
            let (mut found, mut wanted) = (0, 0);
            for question in questions {
                let near = signs.near(question, 500, &keys, &Filter::new(&allow));
                assert!(near.is_sorted() && near.iter().all(|row| allow(ChunkKey::unpacked(keys[*row]).doc)));
                let mut best: Vec<usize> = (0..count).filter(|row| allow(ChunkKey::unpacked(keys[*row]).doc)).collect();
                assert!(near.len() >= best.len().min(500));
                best.sort_by_cached_key(|row| std::cmp::Reverse(product(question, &rows[*row])));
                best.truncate(10);
                wanted += best.len();
                found += best.iter().filter(|row| near.contains(row)).count();
            }
            assert!(found * 100 >= wanted * 98, "{found} of {wanted}");
        }
    }

    #[test]
    fn sizes_that_fill_no_word_are_told_apart() {
        for dims in [1_usize, 63, 64, 65] {
            let mut rows = vec![1_u8; dims * 2];
            rows[dims * 2 - 1] = (-1_i8).cast_unsigned();
            let signs = Signs::of(&rows, dims);
            let near = signs.near(&vec![1; dims], 1, &[0, 1 << 32], &Filter::new(&|_| true));
            assert_eq!(near, [0]);
        }
    }
}
