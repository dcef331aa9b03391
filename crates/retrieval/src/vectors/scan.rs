//! Products of one vector with many rows, as fast as the processor's widest instructions allow.
//!
//! The loops are plain; `pulp` compiles them for the instruction set found at run time, and the compiler makes vector
//! instructions of them.

use pulp::{Arch, Simd, WithSimd};

/// The products of `query` with each row of `rows` (rows of as many bytes as the query has numbers), into `products`.
///
/// Exact: sums of at most 65,536 products of eight bits fit.
pub(super) fn products(query: &[i8], rows: &[u8], products: &mut [i32]) {
    Arch::new().dispatch(Products { query, rows, products });
}

struct Products<'a> {
    query: &'a [i8],
    rows: &'a [u8],
    products: &'a mut [i32],
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (row, product) in self.rows.chunks_exact(self.query.len()).zip(self.products) {
            let mut sum = 0_i32;
            for (one, other) in self.query.iter().zip(row) {
                sum += i32::from(*one) * i32::from(other.cast_signed());
            }
            *product = sum;
        }
    }
}

/// How many bits of `query` and of each row of `rows` (of as many words as the query) differ, into `distances`.
pub(super) fn distances(query: &[u64], rows: &[u64], distances: &mut [u32]) {
    Arch::new().dispatch(Distances { query, rows, distances });
}

struct Distances<'a> {
    query: &'a [u64],
    rows: &'a [u64],
    distances: &'a mut [u32],
}

impl WithSimd for Distances<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        for (row, distance) in self.rows.chunks_exact(self.query.len()).zip(self.distances) {
            *distance = self.query.iter().zip(row).map(|(one, other)| (one ^ other).count_ones()).sum();
        }
    }
}

/// The product of a vector with one row, before its factor.
pub(super) fn exact(query: &[f32], row: &[u8]) -> f32 {
    query.iter().zip(row).map(|(one, other)| one * f32::from(other.cast_signed())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
    fn products_are_those_of_plain_arithmetic_for_every_size() {
        for dims in [1, 7, 16, 31, 384, 1_000] {
            let query: Vec<i8> = (0..dims).map(|i| ((i * 37) % 255) as i8).collect();
            let rows: Vec<u8> = (0..dims * 5).map(|i| u8::try_from((i * 101 + 13) % 256).unwrap()).collect();
            let mut found = [0; 5];
            products(&query, &rows, &mut found);
            for (row, product) in rows.chunks_exact(dims).zip(found) {
                let plain: i64 =
                    query.iter().zip(row).map(|(one, other)| i64::from(*one) * i64::from(other.cast_signed())).sum();
                assert_eq!(i64::from(product), plain);
            }
        }
    }
}
